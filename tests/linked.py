"""Linked tables for tests: a small hospital, its policies, and its neighbors."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from incrowd.core.linked import LinkedSchema, LinkedTables
from incrowd.core.table import Table
from incrowd.engines.local.engine import LOCAL
from incrowd.workflows.policy.linked_tables import linked_schema, open_tables
from incrowd.workflows.policy.policy import Policy, load_policy

Tables = dict[str, pa.Table]
_FEW: dict[str, Any] = {"missing": "drop", "outside": "drop"}
_COLUMNS: dict[str, dict[str, Any]] = {
    "patients": {"patient": {"role": "identifier"}, "sex": {"categories": ["F", "M"], **_FEW}},
    "stays": {
        "stay": {"role": "identifier"},
        "patient": {"role": "identifier"},
        "day": {"role": "withheld", "type": "integer", "bounds": [0, 999]},
        "ward": {"categories": ["A", "B", "C"], **_FEW},
        "urgent": {"type": "boolean", "missing": "drop"},
    },
    "procedures": {
        "stay": {"role": "identifier"},
        "patient": {"role": "identifier"},
        "code": {"role": "sensitive", "categories": ["u", "v", "w"], **_FEW},
    },
}
DAYS: dict[str, Any] = {"type": "integer", "bounds": [0, 300], "missing": "drop", "hierarchy": {"cuts": [[2, 5, 40]]}}
"""Days that are released: drawn inside their classes, in the order of a sequence."""
IMPOSSIBLE = {"never": {"ward": "C", "urgent": "true"}}
EXAMPLES: dict[str, dict[str, Any]] = {
    "one level": {},
    "one level, replaced": {"adjacency": "replace-one"},
    "sequence": {"order": "day"},
    "two levels": {"order": "day", "below": "person"},
    "two levels by row ID": {"below": "row", "depends_on": ["stays.ward", "patients.sex"]},
    "people with more are left out": {"more": "drop"},
    "values and constraints": {"order": "day", "values": True},
    "round numbers": {"order": "day", "values": True, "bounds": [0, 3000]},
}
"""Every shape of linked tables, by what differs from people with stays."""


def linked_policy(name: str, folder: Path | None = None, **release: Any) -> dict[str, Any]:
    """Return the policy of an example; rows are in files of a folder, where one is given."""
    shape = EXAMPLES[name]
    chosen = {"order": shape.get("order"), "more": shape.get("more")}
    stays = {key: value for key, value in chosen.items() if value is not None} | {"id": "stay", "unit": "patient"}
    tables: dict[str, Any] = {"stays": {"parent": "patients", "max_rows": 4, **stays}}
    below = shape.get("below")
    if below is not None:
        above = {"depends_on": shape["depends_on"]} if "depends_on" in shape else {}
        unit = {"unit": "patient"} if below == "person" else {}
        tables["procedures"] = {"parent": "stays", "foreign_key": "stay", "max_rows": 6, **above, **unit}
    if "values" in shape:
        release = {"constraints": {"stays": [IMPOSSIBLE]}} | release
    for table, section in tables.items():
        own = deepcopy(_COLUMNS[table])
        if "values" in shape and table == "stays":
            own["day"] = DAYS | {"bounds": shape.get("bounds", DAYS["bounds"])}
        if table == "procedures" and below == "row":
            del own["patient"]
        section |= {"source": f"{table}.csv", "columns": own}
    place = {} if folder is None else {"ledger": f"sqlite:///{folder}/ledger.sqlite"}
    return {
        "incrowd": 1,
        "dataset": {
            "name": "patients",
            "unit": {"column": "patient", "adjacency": shape.get("adjacency", "add-remove")},
        },
        "source": "patients.csv",
        "columns": deepcopy(_COLUMNS["patients"]),
        "tables": tables,
        "release": {"method": "linked", "epsilon": 1, "delta": 1e-6, **release},
        **place,
    }


def hospital(people: int, seed: int = 1) -> Tables:
    """Return patients of whom older ones have more stays, wards that follow each other, and codes by ward."""
    chance = np.random.default_rng(seed)
    sex = chance.integers(0, 2, people)
    stays: list[tuple[Any, ...]] = []
    procedures: list[tuple[Any, ...]] = []
    for patient in range(people):
        ward = int(chance.integers(0, 3))
        for day in range(int(min(5, chance.poisson(1 + sex[patient])))):
            ward = ward if chance.random() < 0.6 else int(chance.integers(0, 3))
            stays.append((f"s{len(stays)}", f"p{patient}", day, "ABC"[ward], bool(chance.random() < 0.3 + 0.2 * ward)))
            codes = ["uvw"[(ward + int(chance.random() < 0.3)) % 3] for _ in range(chance.poisson(0.5 + ward / 2))]
            procedures.extend((stays[-1][0], f"p{patient}", code) for code in codes)
    return {
        "patients": _table(("patient", "sex"), [(f"p{n}", "FM"[code]) for n, code in enumerate(sex)]),
        "stays": _table(("stay", "patient", "day", "ward", "urgent"), stays),
        "procedures": _table(("stay", "patient", "code"), procedures),
    }


def _table(names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> pa.Table:
    schema = pa.schema([(name, {"day": pa.int64(), "urgent": pa.bool_()}.get(name, pa.string())) for name in names])
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=schema)


def with_person(tables: Tables, sex: str, stays: list[tuple[int, str, bool, str]]) -> Tables:
    """Return tables with one more person behind all others: sex, and for each stay a day, ward, urgency and codes."""
    own = [(f"x{n}", "you", day, ward, urgent) for n, (day, ward, urgent, _) in enumerate(stays)]
    codes = [(f"x{n}", "you", code) for n, (*_, codes) in enumerate(stays) for code in codes]
    return {
        "patients": pa.concat_tables([tables["patients"], _table(("patient", "sex"), [("you", sex)])]),
        "stays": pa.concat_tables([tables["stays"], _table(("stay", "patient", "day", "ward", "urgent"), own)]),
        "procedures": pa.concat_tables([tables["procedures"], _table(("stay", "patient", "code"), codes)]),
    }


def without_person(tables: Tables, patient: str) -> Tables:
    """Return tables without a person and all rows that the keys lead to."""
    return {name: table.filter(pc.not_equal(table["patient"], patient)) for name, table in tables.items()}


def linked_files(folder: Path, tables: Tables) -> None:
    """Write each table to a file."""
    for name, table in tables.items():
        csv.write_csv(table, folder / f"{name}.csv")


def example(name: str, **release: Any) -> Policy:
    """Return a policy of the examples; no file is read."""
    return load_policy(linked_policy(name, **release))


def chosen(policy: Policy, tables: Tables) -> Tables:
    """Return the tables that a policy has."""
    return {name: tables[name] for name in linked_schema(policy).table_names}


def opened(policy: Policy, tables: Tables) -> LinkedTables:
    """Return tables as a plan takes them."""
    schema: LinkedSchema = linked_schema(policy)
    sources = open_tables(policy, chosen(policy, tables), LOCAL)
    rows = (
        Table(schema.columns_of(name), source, LOCAL) for name, source in zip(schema.table_names, sources, strict=True)
    )
    return LinkedTables(schema, tuple(rows))
