"""Two tables that differ in one person: with the person whose values are the worst there can be, and without."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from incrowd.engines.sql.engine import Limits
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.query.service import QueryService, open_queries

VICTIM = 7731
CANARIES = ("7731", "canary", "4141414141", "1977-07-31", "73117.731")
"""Values that only the victim has; no message may show them."""

ROWS_OF_ONE = 2
_EPOCH = date(1970, 1, 1)
_COLUMNS: dict[str, dict[str, Any]] = {
    "id": {"role": "identifier", "type": "integer"},
    "name": {"role": "identifier"},
    "age": {"type": "integer", "bounds": [0, 120]},
    "income": {"type": "decimal", "bounds": [0, 200000]},
    "sex": {"categories": ["F", "M"]},
    "zip": {},
    "born": {"type": "date", "bounds": ["1900-01-01", "2025-12-31"]},
    "member": {"type": "boolean"},
    "code": {"type": "integer"},
    "ratio": {"type": "decimal"},
    "day": {"type": "date"},
}
_ARROW = {
    "integer": pa.int64(),
    "decimal": pa.float64(),
    "date": pa.date32(),
    "boolean": pa.bool_(),
    "text": pa.string(),
}
_STORED = pa.schema([(name, _ARROW[column.get("type", "text")]) for name, column in _COLUMNS.items()])
_LARGEST, _SMALLEST = 2**63 - 1, -(2**63)


def _plain(person: int) -> tuple[Any, ...]:
    """Return a row of somebody about whom nothing is special."""
    born = _EPOCH + timedelta(days=137 * person)
    return (person, f"name {person}", 20 + person, 1000.0 * person, "FM"[person % 2], f"{10000 + person}", born,
            person % 3 == 0, person, person / 7, born)  # fmt: skip


_OTHERS = [_plain(person) for person in range(1, 13)] + [_plain(person) for person in (3, 3, 5)]
_BORN = date(1977, 7, 31)
_VICTIM: list[tuple[Any, ...]] = [
    (VICTIM, "canary name", 41, 73117.731, "F", "canary", _BORN, True, 4141414141, 2.0**53, _BORN),
    (VICTIM, "canary name", 41, math.nan, "canary", "canary%_\\'\"", None, None, _SMALLEST, math.nan, None),
    (VICTIM, "canary name", _LARGEST, math.inf, None, "1e400", date(9999, 12, 31), False, _LARGEST, -math.inf,
     date.max),
    (VICTIM, "canary name", -5, -1e300, "M", "canary" * 700, date.min, True, 0, 0.0, date.min),
]  # fmt: skip
_VISITS = pa.schema([("who", pa.int64()), ("cost", pa.int64()), ("ward", pa.string())])
_VISITED = [(person, 10 * person, "heart" if person % 2 else "lung") for person in range(1, 9)]
_VICTIM_VISITED = [(VICTIM, 999, "canary"), (VICTIM, 4141414141, "heart"), (VICTIM, None, None), (VICTIM, -1, "lung")]
_WORDS = pa.table(
    {
        "sex": ["F", "F", "F", "M", "other", None],
        "word": ["woman", "girl", "lady", "man", "person", "nobody"],
        "number": [2**53, 2**53 + 1, 2**53 + 2, 4, 5, 6],
    }
)


@dataclass(frozen=True)
class Worlds:
    """Query services over neighboring tables: for the unit of privacy, one with the victim and one without."""

    with_victim: QueryService
    without: QueryService


@contextmanager
def worlds(folder: Path, unit: str) -> Iterator[Worlds]:
    """Open neighboring worlds, of people with several rows each, or of single rows."""
    with ExitStack() as stack:
        opened = []
        for place, present in (("with", True), ("without", False)):
            home = folder / place
            home.mkdir()
            victims = (_VICTIM if unit == "person" else _VICTIM[:1]) if present else []
            # In the world of rows the worst rows are everybody's background: only the first of them comes and goes.
            others = _OTHERS if unit == "person" else [*_OTHERS, *_VICTIM[1:]]
            _write(home / "people.parquet", _STORED, [*others[:5], *victims, *others[5:]])
            _write(home / "visits.parquet", _VISITS, [*_VISITED, *(_VICTIM_VISITED if present else [])])
            pq.write_table(_WORDS, home / "words.parquet")
            policy = load_policy(_policy(home, unit))
            opened.append(stack.enter_context(open_queries([policy], home / "people.parquet", Limits(120, "1GB", 1))))
        yield Worlds(*opened)


def _write(path: Path, schema: pa.Schema, rows: list[tuple[Any, ...]]) -> None:
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), schema.types, strict=True)]
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), path)


def _policy(home: Path, unit: str) -> dict[str, Any]:
    tables: dict[str, Any] = {
        "words": {
            "source": str(home / "words.parquet"),
            "public": True,
            "columns": {"sex": {"categories": ["F", "M"]}, "word": {}, "number": {"type": "integer"}},
        }
    }
    dataset: dict[str, Any] = {"name": "people"}
    if unit == "person":
        dataset["unit"] = {"column": "id", "max_rows": ROWS_OF_ONE}
        tables["visits"] = {
            "source": str(home / "visits.parquet"),
            "unit": "who",
            "max_rows": ROWS_OF_ONE,
            "columns": {
                "who": {"role": "identifier", "type": "integer"},
                "cost": {"type": "integer", "bounds": [0, 100]},
                "ward": {"categories": ["heart", "lung"]},
            },
        }
    return {
        "incrowd": 1,
        "dataset": dataset,
        "columns": _COLUMNS,
        "tables": tables,
        "queries": {},
        "budget": {"epsilon": 10**6, "delta": "0.9"},
        "ledger": f"sqlite:///{home}/ledger.sqlite",
    }
