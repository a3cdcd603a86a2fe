"""More policies than the contract suite has: other columns, people with many rows, biased samples, lists of masks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tests.contract.examples import ROWS, rows
from tests.policies import PEOPLE, changed

_COLUMNS: dict[str, dict[str, Any]] = {
    "day": {"type": "date", "bounds": ["2024-01-01", "2025-12-31"], "hierarchy": {"dates": ["quarter", "year"]}},
    "pay": {"type": "integer", "bounds": [0, 90000], "hierarchy": {"cuts": [[30000, 60000]]}, "outside": "bound"},
    "grade": {"categories": ["1", "2", "3", "4"], "hierarchy": {"groups": [2]}},
    "code": {"hierarchy": {"redaction": 3}},
    "job": {"hierarchy": {"file": "jobs.csv"}},
    "site": {"role": "identifier", "hierarchy": {"pseudonym": "site.key"}},
    "share": {"type": "decimal", "bounds": [0, 1], "outside": "bound"},
    "member": {"type": "boolean"},
    "chance": {"type": "decimal", "bounds": ["0.05", "0.3"], "role": "identifier"},
    "id": {"role": "identifier"},
}
_JOBS = "nurse;care;*\ndoctor;care;*\ncook;trade;*\nclerk;office;*\n"
_HIGHEST = {"age": 3, "zip": 2}
_BIASED: dict[str, Any] = {"release__rate": None, "release__levels": _HIGHEST}
_FORM = {"unbounded": "compared with other tools"}


def wide_rows() -> pa.Table:
    """Return the rows of the contract suite with columns of every kind; some values are missing, some out of bounds."""
    chance = np.random.default_rng(29)
    days = np.datetime64("2023-12-01") + chance.integers(0, 800, ROWS)
    columns: dict[str, Any] = {
        "day": days,
        "pay": chance.integers(-3, 95, ROWS) * 1000,
        "grade": chance.choice(["1", "2", "3", "4"], ROWS),
        "code": chance.integers(100, 104, ROWS),
        "job": chance.choice(["nurse", "doctor", "cook", "clerk"], ROWS),
        "site": chance.choice(["St. Anne", "Hôpital du Nord"], ROWS),
        "share": np.round(chance.beta(2, 5, ROWS), 3),
        "member": chance.choice(["true", "false"], ROWS),
        "chance": chance.choice(["0.05", "0.1", "0.2", "0.3"], ROWS),
    }
    table = rows()
    for name, values in columns.items():
        texts = [None if n % 90 == 7 and name in ("day", "grade") else str(value) for n, value in enumerate(values)]
        table = table.append_column(name, pa.array(texts, pa.string()))
    return table


_PREFIXES = range(10, 60)
"""The first two digits of a zip; the classes of those with the n-th prefix have n rows."""


def uneven_rows() -> pa.Table:
    """Return rows with the columns of the contract suite in classes of 1, 2, 3, … rows, so that every limit is met."""
    places = [place for place, _ in enumerate(_PREFIXES) for _ in range(place + 1)]
    total = len(places)
    columns = {
        "sex": ["FM"[place % 2] for place in places],
        "age": [str(place * 2) for place in places],
        "zip": [f"{_PREFIXES[place]}{100 + n % 7}" for n, place in enumerate(places)],
        "id": [f"p{n * 3 // 4}" for n in range(total)],
        "home": [f"h{n // 2}" for n in range(total)],
        "record": [f"r{n}" for n in range(total)],
        "bought": [("tea+milk", "tea+bread", "wine", "beer+flowers+wine")[place % 4] for place in places],
    }
    order = np.random.default_rng(31).permutation(total)
    table = pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
    return table.append_column("weight", pa.array([1.5 + n % 7 for n in range(total)])).take(pa.array(order))


def write_beside(folder: Path) -> None:
    """Write the files that the policies name: a hierarchy, and the key of a pseudonym."""
    (folder / "jobs.csv").write_text(_JOBS, encoding="utf-8")
    (folder / "site.key").write_text("a key for examples, never for people\n", encoding="utf-8")


def _of(names: str, **changes: Any) -> dict[str, Any]:
    """Return the small policy with some more columns, at levels that leave few cells."""
    more = {f"columns__{name}": _COLUMNS[name] for name in names.split()}
    levels = {"age": 3, "zip": 2, **changes.pop("levels", {})}
    return changed(PEOPLE, **{"release__levels": levels, **more, **changes})


_ROUND: dict[str, Any] = {"method": "rounding", "columns": {"age": 5}, "levels": {"zip": 1}}
_CUT: dict[str, Any] = {"method": "local-suppression", "threshold": "1/5"}
MORE: dict[str, dict[str, Any]] = {
    "dates and cuts": _of("day pay", levels={"day": 2, "pay": 1}),
    "dates by quarter": _of("day", levels={"day": 1}),
    "groups and redaction": _of("grade code", levels={"grade": 1, "code": 2}),
    "file and truth values": _of("job member", levels={"job": 1}),
    "pseudonyms": _of("site"),
    "decimals in a histogram": _of("share", release={"method": "private-histogram", "columns": ["sex"], "epsilon": 1}),
    "drafted and public": _of("", columns__zip__hierarchy={"prefix": [2], "derived": "rows", "public": "an atlas"}),
    "people with more are dropped": _of("id", dataset__unit={"column": "id", "more": "drop"}),
    "replaced people": _of("id", dataset__unit={"column": "id", "adjacency": "replace-one"}),
    "replaced people with two rows": _of(
        "id", dataset__unit={"column": "id", "adjacency": "replace-one", "max_rows": 2}, levels={"age": 3}
    ),
    "biased sample": changed(PEOPLE, **_BIASED, release__robust={"low": "0.05", "high": "0.1", "irregular": 2}),
    "biased sample, nobody irregular": changed(PEOPLE, **_BIASED, release__robust={"low": "0.05", "high": "0.1"}),
    "chances in a column": _of(
        "chance", release__rate=None, release__robust={"low": "0.05", "high": "0.3", "probability": "chance"}
    ),
    "biased sample, histogram": changed(
        PEOPLE,
        **_BIASED,
        release__method="suppressed-histogram",
        release__robust={"low": "0.05", "high": "0.1", "irregular": 2},
    ),
    "a list of masks": changed(PEOPLE, columns__age__missing="drop", release=[_ROUND, _CUT], budget=_FORM),
}
"""Policies of the wide rows by plain names."""
