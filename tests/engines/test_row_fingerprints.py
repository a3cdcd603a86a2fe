"""Marks of rows: what typed values decide, and nothing else; the key stays where it is."""

from __future__ import annotations

import pickle
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from incrowd.core.domain import Categories, Type
from incrowd.core.fingerprints import SourceFingerprint
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.unit import Kind, Unit
from incrowd.engines.local.engine import LOCAL
from incrowd.engines.row_fingerprints import RowFingerprints, marks_of

KEY = bytes(range(32))
SCHEMA = Schema(
    (
        Column("age", type=Type.INTEGER),
        Column("pay", type=Type.DECIMAL),
        Column("born", type=Type.DATE),
        Column("well", type=Type.BOOLEAN),
        Column("zip"),
    )
)
PEOPLE = Schema((Column("who", Role.IDENTIFIER), Column("zip")), Unit(Kind.PERSON, column="who"))
TYPED: dict[str, list[Any]] = {
    "age": [41, 7, None, 41],
    "pay": [1.5, -2.0, 0.0, None],
    "born": [date(2001, 2, 3), None, date(1969, 12, 31), date(2001, 2, 3)],
    "well": [True, False, None, True],
    "zip": ["01234", "é", None, ""],
}
TEXT: dict[str, list[str | None]] = {
    "age": ["41", "007", None, "41.0"],
    "pay": ["1.50", "-2", "-0", None],
    "born": ["2001-02-03", None, "1969-12-31", "2001-02-03T00:00:00"],
    "well": ["yes", "F", None, "1"],
    "zip": ["01234", "é", None, ""],
}


def marks(table: pa.Table | dict[str, Any], schema: Schema = SCHEMA, key: bytes = KEY) -> SourceFingerprint:
    return marks_of(LOCAL, LOCAL.open(pa.table(table)), schema, key)


def samples(found: SourceFingerprint) -> tuple[str, bytes, bytes | None]:
    return found.content, found.rows.to_bytes(), None if found.people is None else found.people.to_bytes()


def test_the_same_values_in_any_type_order_and_cut_have_the_same_marks() -> None:
    table = pa.table(TYPED)
    others = [
        pa.table(TEXT),
        table.take([2, 0, 3, 1]),
        table.select(["zip", "well", "age", "pay", "born"]),
        pa.concat_tables([table.slice(0, 1), table.slice(1)]),
        table.set_column(4, "zip", table["zip"].dictionary_encode()),
        table.set_column(0, "age", table["age"].cast(pa.float64())),
        table.set_column(2, "born", table["born"].cast(pa.timestamp("us"))),
        table.append_column("undeclared", pa.array([1, 2, 3, 4])),
    ]
    for other in others:
        assert samples(marks(other)) == samples(marks(table))


@pytest.mark.parametrize("name", list(TYPED))
def test_every_value_of_every_declared_column_counts(name: str) -> None:
    changed = {**TYPED, name: [*TYPED[name][1:], TYPED[name][1]]}
    assert marks(changed).content != marks(TYPED).content


def test_a_row_more_or_less_or_twice_is_another_content() -> None:
    table = pa.table(TYPED)
    others = (table, table.slice(1), pa.concat_tables([table, table.slice(0, 1)]), table.slice(0, 0))
    assert len({marks(each).content for each in others}) == len(others)


def test_values_that_change_places_between_rows_or_columns_are_another_content() -> None:
    schema = Schema((Column("a"), Column("b")))
    tables = (
        {"a": ["x", "y"], "b": ["u", "v"]},
        {"a": ["y", "x"], "b": ["u", "v"]},
        {"a": ["u", "v"], "b": ["x", "y"]},
    )
    assert len({marks(each, schema).content for each in tables}) == 3


def test_another_key_has_nothing_in_common() -> None:
    one, two = marks(TYPED), marks(TYPED, key=bytes(32))
    assert one.content != two.content
    assert one.rows.overlap(two.rows) == 0


def test_people_are_known_under_any_name_of_their_column_and_as_text_or_numbers() -> None:
    numbers = Schema(
        (Column("person", Role.IDENTIFIER, type=Type.INTEGER), Column("zip")), Unit(Kind.PERSON, column="person")
    )
    one = marks({"who": ["17", "4", None, "17"], "zip": ["1", "2", "3", "4"]}, PEOPLE)
    two = marks({"person": [4, 17, 17], "zip": ["9", "9", "9"]}, numbers)
    assert one.people is not None
    assert two.people is not None
    assert len(one.people.bits) == 2
    assert one.people.to_bytes() == two.people.to_bytes()
    assert one.rows.overlap(two.rows) == 0


def test_who_has_which_row_is_part_of_the_content() -> None:
    one = marks({"who": ["a", "b"], "zip": ["1", "2"]}, PEOPLE)
    two = marks({"who": ["b", "a"], "zip": ["1", "2"]}, PEOPLE)
    assert one.content != two.content


def test_marks_gathered_apart_and_merged_are_the_same_and_carry_no_key() -> None:
    chance = np.random.default_rng(5)
    table = pa.table(
        {"who": chance.integers(0, 4000, 9000).astype(str), "zip": chance.integers(0, 99, 9000).astype(str)}
    )
    whole = RowFingerprints(PEOPLE, KEY)
    for piece in table.to_batches(max_chunksize=1000):
        part = RowFingerprints(PEOPLE, KEY)
        part.add(piece)
        packed = pickle.dumps(part)
        assert KEY not in packed
        whole.merge(pickle.loads(packed))
    assert samples(whole.marks()) == samples(marks(table, PEOPLE))


@pytest.mark.parametrize("empty", [pa.nulls(3), pa.array([None] * 3, pa.string()), pa.array([None] * 3, pa.int64())])
def test_a_column_of_nothing_is_the_same_in_every_type(empty: pa.Array) -> None:
    table = pa.table(TYPED).slice(0, 3)
    expected = marks(table.set_column(0, "age", pa.array([None] * 3, pa.int32())))
    assert samples(marks(table.set_column(0, "age", empty))) == samples(expected)


def test_sets_in_lists_and_in_text_have_the_same_marks() -> None:
    schema = Schema((Column("ills", hierarchy=Flat(Categories(("flu", "gout"))), separator=";"),))
    assert (
        marks({"ills": [["flu", "gout"], ["flu"]]}, schema).content
        == marks({"ills": ["flu;gout", "flu"]}, schema).content
    )
    assert (
        marks({"ills": [["flu", "gout"], []]}, schema).content != marks({"ills": [["flu"], ["gout"]]}, schema).content
    )
