from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from incrowd.core.cells import Cells
from incrowd.core.domain import Categories, Numbers, Text, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.hierarchy.intervals import Intervals
from incrowd.core.hierarchy.text import Prefix
from incrowd.core.schema import Column, Missing, Outside, Role, Schema
from incrowd.errors import InvalidParameter

SCHEMA = Schema(
    (
        Column("id", Role.IDENTIFIER),
        Column("sex", Role.QUASI, hierarchy=Flat(Categories(("F", "M"))), outside=Outside.DROP, missing=Missing.DROP),
        Column("age", Role.QUASI, Type.INTEGER, Intervals(Numbers(0, 99), (10, 50))),
        Column("zip", Role.QUASI, hierarchy=Prefix(Text(), (3, 1))),
    )
)


def test_cells_are_the_product_of_the_classes() -> None:
    assert Cells.of(SCHEMA, {"age": 1, "zip": 3}).size == 2 * (10 + 1) * 1
    assert Cells.of(SCHEMA, {"age": 3, "zip": 3}).size == 2
    assert Cells.of(SCHEMA, {"zip": 1}).size is None
    assert Cells.of(SCHEMA, {}, ["sex"]).size == 2


def test_columns_stand_in_the_order_of_the_schema_or_as_asked() -> None:
    assert Cells.of(SCHEMA, {}).names == ("sex", "age", "zip")
    assert Cells.of(SCHEMA, {}, ["zip", "sex"]).names == ("zip", "sex")


def test_only_columns_that_matter_are_read() -> None:
    assert Cells.of(SCHEMA, {"sex": 1, "age": 3, "zip": 3}).reads == ("sex",)
    assert Cells.of(SCHEMA, {"sex": 1}).reads == ("sex", "age", "zip")


def test_rows_become_keys_without_those_left_out() -> None:
    batch = pa.record_batch({"sex": ["F", "M", "X", None], "age": ["5", "", "7", "8"], "zip": ["1", "2", "3", "4"]})
    assert Cells.of(SCHEMA, {"age": 1, "zip": 3}).encode(batch).tolist() == [0, 1 * 11 + 10]
    assert Cells.of(SCHEMA, {"age": 3, "zip": 3}).encode(batch).tolist() == [0, 1]


def test_more_cells_than_a_word_holds_get_longer_keys() -> None:
    wide = Schema(tuple(Column(f"c{place}", hierarchy=Flat(Categories(tuple("abcdef")))) for place in range(30)))
    cells = Cells.of(wide, {})
    assert cells.size == 8**30
    batch = pa.record_batch({column.name: ["a", "f", None] for column in wide.columns})
    keys = cells.encode(batch)
    assert keys.dtype == np.dtype("S16")
    assert [sum(int(c[row]) for c in cells.layout.unpack(keys)) for row in range(3)] == [0, 5 * 30, 7 * 30]


def test_cells_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="'id' is an identifier"):
        Cells.of(SCHEMA, {"id": 0})
    with pytest.raises(InvalidParameter, match="'id' is an identifier"):
        Cells.of(SCHEMA, {}, ["id"])
    with pytest.raises(InvalidParameter, match="Did you mean 'zip'"):
        Cells.of(SCHEMA, {"zipp": 1})
    with pytest.raises(InvalidParameter, match="'age' has the levels 0"):
        Cells.of(SCHEMA, {"age": 4})
    with pytest.raises(InvalidParameter, match="name each column once"):
        Cells.of(SCHEMA, {}, ["zip", "zip"])
    with pytest.raises(InvalidParameter, match="at least one column"):
        Cells.of(Schema((Column("id", Role.IDENTIFIER),)), {})
    with pytest.raises(InvalidParameter, match="'zip' at level 1 cannot be numbered"):
        Cells.of(SCHEMA, {"zip": 1}).encode(pa.record_batch({"sex": ["F"], "age": ["1"], "zip": ["2"]}))
