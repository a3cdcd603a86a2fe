"""Groups: found by their values, whatever order and number of rows the engine returned."""

from __future__ import annotations

import random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp, parse_one

from incrowd.core.domain import Type
from incrowd.queries.measuring.groups import collect_groups, group_places, names_in, public_groups
from incrowd.queries.query import Contribution, Key, Query

TEXT = Key("t", Type.TEXT, ("a", "b", None))
WHOLE = Key("i", Type.INTEGER, (0, 1, 2))
ROWS = parse_one("SELECT 1", into=exp.Select)


def question(*keys: Key) -> Query:
    return Query("", ROWS, keys, (), (), Contribution(1, 1), (), ())


def table(rows: list[tuple[str | None, int | None, int]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    types = (pa.string(), pa.int64(), pa.int64())
    return pa.table({n: pa.array(c, k) for n, c, k in zip(("t", "i", "_s0"), columns, types, strict=True)})


VALUES = st.tuples(st.sampled_from(["a", "b", "c", None]), st.sampled_from([0, 1, 2, 9, None]), st.integers(-5, 5))


@given(rows=st.lists(VALUES))
def test_rows_are_numbered_as_a_dictionary_would(rows: list[tuple[str | None, int | None, int]]) -> None:
    asked, found = question(TEXT, WHOLE), table(rows)
    names = public_groups(asked)
    places = {name: place for place, name in enumerate(names)}
    assert group_places(asked, found, names).tolist() == [places.get(row[:2], -1) for row in rows]
    assert names_in(asked, found) == [row[:2] for row in rows]


def test_every_public_group_is_there_and_others_are_left_out() -> None:
    found = collect_groups(question(TEXT), table([("b", 1, 7), ("z", 1, 9), (None, 1, 5)]), ("_s0",))
    assert found.names == (("a",), ("b",), (None,))
    assert found.vectors.tolist() == [[0], [7], [5]]


def test_an_engine_may_return_codes_of_values() -> None:
    plain = table([("b", 1, 7), (None, 1, 5), ("b", 2, 1)])
    coded = plain.set_column(0, "t", plain.column("t").dictionary_encode())
    names = public_groups(question(TEXT))
    for rows, places in ((plain, [1, 2, 1]), (coded, [1, 2, 1]), (coded.slice(0, 0), [])):
        assert group_places(question(TEXT), rows, names).tolist() == places
    assert collect_groups(question(TEXT), coded, ("_s0",)).vectors.tolist() == [[0], [8], [5]]


def test_without_keys_there_is_one_group() -> None:
    assert collect_groups(question(), table([("x", 1, 3)]), ("_s0",)).vectors.tolist() == [[3]]
    assert public_groups(question()) == ((),)


def test_unknown_groups_come_in_the_order_of_their_values() -> None:
    rows: list[tuple[str | None, int | None, int]] = [
        ("b", 2, 1),
        (None, 1, 2),
        ("a", None, 3),
        ("a", 1, 4),
        ("b", 1, 5),
    ]
    random.Random(1).shuffle(rows)
    asked = question(Key("t", Type.TEXT, None), Key("i", Type.INTEGER, None))
    found = collect_groups(asked, table(rows), ("_s0",))
    assert found.names == ((None, 1), ("a", None), ("a", 1), ("b", 1), ("b", 2))
    assert found.vectors[:, 0].tolist() == [2, 3, 4, 5, 1]


def test_what_is_no_number_counts_as_missing() -> None:
    key = Key("x", Type.DECIMAL, (1.5, None))
    rows = pa.table({"x": pa.array([float("nan"), None, 1.5]), "_s0": pa.array([1, 2, 4])})
    assert collect_groups(question(key), rows, ("_s0",)).vectors.tolist() == [[4], [3]]
