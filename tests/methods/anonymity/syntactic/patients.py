"""An invented table under every criterion at once, with policies that demand them in different ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from incrowd.core.plan import Plan
from incrowd.core.schema import Schema
from incrowd.core.statement import Statement
from incrowd.core.table import Table
from incrowd.engines.local.engine import LocalEngine
from incrowd.methods.shared.outcome import Outcome
from incrowd.noise.system import SystemCoins
from incrowd.workflows.policy.policy import load_policy
from tests.policies import changed, people, written
from tests.statements import statement_of
from tests.tables import Batches

EVERYTHING: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "patients"},
    "columns": {
        "sex": {"categories": ["F", "M"]},
        "age": {"type": "integer", "bounds": [0, 99], "hierarchy": {"intervals": [10, 50]}},
        "ill": {"role": "sensitive", "hierarchy": {"tree": {"lungs": ["flu", "cough"], "none": ["healthy"]}}},
        "grade": {"role": "sensitive", "categories": ["low", "mid", "high"]},
        "pay": {"role": "sensitive", "type": "integer", "bounds": [0, 9]},
    },
    "release": {
        "method": "full-domain",
        "k": 5,
        "l": 2,
        "sensitive": {
            "ill": {
                "recursive": {"c": 4, "l": 2}, "t": "0.3", "distance": "hierarchical", "harmless": ["healthy"],
            },
            "grade": {"t": "0.4", "distance": "ordered", "beta": 2, "enhanced_beta": 2, "disclosure": 3},
            "pay": {"entropy_l": 2, "t": "0.3"},
        },
        "average_risk": "1/10",
        "unique": {"share": "1/100", "people": 10000},
    },
    "budget": {"unbounded": "an invented table"},
}  # fmt: skip
SUPPRESSED = changed(
    EVERYTHING,
    release__suppression="1/20",
    release__population={"file": "people.csv", "k": 10, "presence": {"most": "0.6"}},
)
MONDRIAN = changed(EVERYTHING, release__method="mondrian", release__average_risk=None, release__unique=None)
LOCAL = changed(MONDRIAN, release__method="local-recoding", release__left="1/2")


def rows(number: int = 600) -> pa.Table:
    table = people(number).drop_columns(["zip"])
    return (
        table.append_column("ill", pa.array([["flu", "healthy", "cough"][n * 7 % 3] for n in range(number)]))
        .append_column("grade", pa.array([["low", "mid", "high"][n * 5 % 11 % 3] for n in range(number)]))
        .append_column("pay", pa.array([None if n % 90 == 0 else str(n * 13 % 10) for n in range(number)]))
    )


def planned(policy: dict[str, Any], folder: Path) -> tuple[Plan, Schema]:
    """Return the plan of a policy, and its schema; a population lies in the folder."""
    pc.write_csv(people(3000, seed=8), folder / "people.csv")
    loaded = load_policy(written(policy, folder))
    plan: Plan = loaded.method.plan(loaded.schema)
    return plan, loaded.schema


def stated(policy: dict[str, Any], folder: Path) -> Statement:
    return statement_of(*planned(policy, folder))


def released(policy: dict[str, Any], folder: Path, table: pa.Table | None = None) -> Outcome:
    """Release the rows in memory."""
    plan, schema = planned(policy, folder)
    source = Batches(rows() if table is None else table)
    made: Outcome = plan.draw(Table(schema, source, LocalEngine()), SystemCoins())
    return made


def file_of(table: pa.Table, folder: Path, form: str = "parquet") -> Path:
    """Write a table as it is."""
    file = folder / f"data.{form}"
    plain = pa.table({name: table[name].combine_chunks() for name in table.column_names})
    if form == "parquet":
        pq.write_table(plain, file)
        return file
    texts = [(name, pa.string() if pa.types.is_dictionary(kind) else kind)
             for name, kind in zip(plain.schema.names, plain.schema.types, strict=True)]  # fmt: skip
    pc.write_csv(plain.cast(pa.schema(texts)), file)
    return file
