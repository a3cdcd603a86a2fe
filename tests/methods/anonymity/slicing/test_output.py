"""Several tables seen as one: numbered, one below the other, empty where a table has no such column."""

from __future__ import annotations

import pyarrow as pa
import pytest

from incrowd.core.cells import Cells
from incrowd.core.domain import Categories, Numbers, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import Column, Schema
from incrowd.core.unit import Unit
from incrowd.engines.local.engine import LocalEngine
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.slicing.steps import Sliced
from incrowd.methods.shared.microdata import Microdata
from tests.tables import Batches, text_table

SCHEMA = Schema(
    (
        Column("sex", hierarchy=Flat(Categories(("F", "M")))),
        Column("age", type=Type.INTEGER, hierarchy=Flat(Numbers(0, 9))),
        Column("city", hierarchy=Flat(Categories(("Rome",)))),
    )
)
ROWS = text_table({"sex": ["F", "M", None], "age": ["3", "3", None], "city": ["Rome"] * 3})


def part(*names: str, rows: pa.Table = ROWS) -> Microdata:
    return Microdata(LocalEngine().count(Batches(rows), Cells.of(SCHEMA, {}, names)))


SLICED = Sliced((part("sex", "city"), part("age")), ("sex", "age", "city"))


def test_rows_of_all_tables_stand_below_each_other() -> None:
    assert SLICED.to_arrow().to_pylist() == [
        {"slice": 1, "sex": "F", "age": None, "city": "Rome"},
        {"slice": 1, "sex": "M", "age": None, "city": "Rome"},
        {"slice": 1, "sex": None, "age": None, "city": "Rome"},
        {"slice": 2, "sex": None, "age": 3, "city": None},
        {"slice": 2, "sex": None, "age": 3, "city": None},
        {"slice": 2, "sex": None, "age": None, "city": None},
    ]
    assert len(SLICED) == 6
    assert len(SLICED.to_pandas()) == 6
    assert SLICED.parts == SLICED.tables


def test_an_empty_table_is_a_table() -> None:
    empty = Sliced((part("sex", rows=ROWS.slice(0, 0)), part("age", "city", rows=ROWS.slice(0, 0))), SLICED.names)
    assert len(empty.to_arrow()) == 0
    assert empty.evidence(Unit(), private=True)["rows"] == 0


def test_the_evidence_is_that_of_the_worst_table() -> None:
    shown = SLICED.evidence(Unit(), private=True)
    assert shown["tables"] == [
        {"columns": ["sex", "city"], "rows": 3, "classes": 3},
        {"columns": ["age"], "rows": 3, "classes": 2},
    ]
    assert (shown["rows"], shown["classes"], shown["smallest class"]) == (6, 5, 1)
    assert shown["prosecutor"] == "1.000000"


def test_columns_are_in_one_table_each() -> None:
    with pytest.raises(InvalidParameter, match="each of their columns once"):
        Sliced((part("sex"), part("sex", "age")), ("sex", "age"))
    schema = Schema((Column("slice", hierarchy=Flat(Categories(("a",)))),))
    own = Microdata(LocalEngine().count(Batches(text_table({"slice": ["a"]})), Cells.of(schema, {})))
    with pytest.raises(InvalidParameter, match="'slice' numbers"):
        Sliced((own,), ("slice",))
