"""Rows that say of nobody whose they are: counted for the data holder."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from incrowd.core.domain import Type
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.unit import Kind, Unit
from incrowd.engines.local.engine import LOCAL
from incrowd.engines.people import MissingIds, missing_ids


def of(ids: Sequence[str | float | None], type_: Type = Type.TEXT) -> tuple[str, ...]:
    column = Column("id", Role.IDENTIFIER, type_)
    schema = Schema((column, Column("sex")), unit=Unit(Kind.PERSON, column="id"))
    return missing_ids(LOCAL, LOCAL.open(pa.table({"id": ids, "sex": ["F"] * len(ids)})), schema)


@pytest.mark.parametrize("ids", [["a", None, "b", None, "a"], [1.0, None, 2.5, None, 1.0]])
def test_rows_without_an_id_are_counted(ids: Sequence[str | float | None]) -> None:
    assert of(ids) == ("left out: 2 rows without a value in 'id', the person ID column",)


def test_nothing_is_said_where_every_row_has_one() -> None:
    assert of(["a", "b"]) == ()
    assert missing_ids(LOCAL, LOCAL.open(pa.table({"sex": ["F"]})), Schema((Column("sex"),))) == ()


def test_an_id_that_its_declared_type_cannot_read_is_none() -> None:
    assert of(["17", "017", " 17", "x"], Type.INTEGER)[0].startswith("left out: 1 row ")


def test_counts_of_several_tasks_add_up() -> None:
    one, two = MissingIds(Column("id")), MissingIds(Column("id"))
    for ids, rows in ((one, ["a", None]), (two, [None, None])):
        ids.add(pa.record_batch({"id": pa.array(rows, pa.string())}))
    one.merge(two)
    assert one.rows == 3
