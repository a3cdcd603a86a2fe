"""A small table with known counts, and scripted noise for it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from incrowd.core.domain import Categories
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import Column, Missing, Outside, Role, Schema
from incrowd.core.table import Table
from incrowd.core.unit import Unit
from incrowd.engines.local.engine import LocalEngine
from incrowd.methods.shared.outcome import Outcome
from tests.tables import Batches

SIX = Column("sex", Role.QUASI, hierarchy=Flat(Categories(("F", "M"))), missing=Missing.DROP, outside=Outside.DROP)
AREA = Column(
    "area", Role.QUASI, hierarchy=Flat(Categories(("n", "e", "s"))), missing=Missing.DROP, outside=Outside.DROP
)
SCHEMA = Schema((SIX, AREA))
ROWS = [("F", "n")] * 7 + [("F", "e")] * 3 + [("M", "n")] * 5 + [("M", "s")]
"""Of the six bins, in order: 7, 3, 0, 5, 0, 1."""


def table(schema: Schema = SCHEMA) -> Table:
    rows = pa.table({"sex": [sex for sex, _ in ROWS], "area": [area for _, area in ROWS]})
    return Table(schema, Batches(rows, 5), LocalEngine())


def for_unit(unit: Unit) -> Schema:
    return Schema((Column("id", Role.IDENTIFIER), SIX, AREA), unit)


def counts(outcome: Outcome) -> list[int]:
    found: list[int] = outcome.to_arrow()["count"].to_pylist()
    return found


def bins(outcome: Outcome) -> dict[tuple[Any, ...], int]:
    return {(row["sex"], row["area"]): row["count"] for row in outcome.to_arrow().to_pylist()}
