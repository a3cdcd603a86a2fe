"""Set-valued columns: what is declared, how sets are read, and that nothing else takes them for text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.core.domain import Categories, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.hierarchy.tree import tree
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Column, Missing, Outside, Role
from incrowd.core.sets import Sets, read_sets
from incrowd.errors import InvalidParameter

ILL = Column("ill", Role.QUASI, hierarchy=tree({"lungs": ["flu", "cough"], "heart": ["attack"]}), separator=";")


def as_sets(sets: Sets) -> list[set[int]]:
    return [set(sets.row(place).tolist()) for place in range(len(sets))]


def sets_of(rows: list[set[int]]) -> Sets:
    owners = np.array([place for place, row in enumerate(rows) for _ in row], np.intp)
    return Sets.of(owners, np.array([item for row in rows for item in row], np.int32), len(rows))


ROWS = st.lists(st.sets(st.integers(0, 6), max_size=5), max_size=12)


@given(ROWS)
def test_sets_are_what_was_put_in(rows: list[set[int]]) -> None:
    found = sets_of(rows)
    assert as_sets(found) == rows
    assert all(np.all(np.diff(found.row(place)) > 0) for place in range(len(found)))


@given(ROWS, st.lists(st.integers(-1, 3), min_size=7, max_size=7))
def test_mapped_items_are_replaced_merged_or_taken_away(rows: list[set[int]], table: list[int]) -> None:
    expected = [{table[item] for item in row} - {-1} for row in rows]
    assert as_sets(sets_of(rows).mapped(np.array(table, np.int32))) == expected


@given(ROWS)
def test_rows_can_be_taken_in_any_order_and_joined(rows: list[set[int]]) -> None:
    wanted = [place for place in range(len(rows)) if place % 2] + [place for place in range(len(rows)) if not place % 2]
    taken = sets_of(rows).take(np.array(wanted, np.intp))
    assert as_sets(taken) == [rows[place] for place in wanted]
    assert as_sets(Sets.joined([taken, sets_of(rows)])) == [rows[place] for place in wanted] + rows


def test_text_and_lists_say_the_same() -> None:
    text = pa.array(["flu;cough", "attack", "", None, " cough ; flu;cough;"])
    lists = pa.array([["cough", "flu"], ["attack"], [], None, ["flu", "cough", "flu", None]])
    for array in (text, text.dictionary_encode(), lists, lists.cast(pa.large_list(pa.string()))):
        sets, kept = read_sets(array, ILL)
        assert as_sets(sets) == [{0, 1}, {2}, set(), set(), {0, 1}]
        assert kept.all()


def test_items_outside_the_domain_are_other_or_drop_their_row() -> None:
    array = pa.array(["flu;gout", "measles;gout", "cough"])
    assert as_sets(read_sets(array, ILL)[0]) == [{0, 3}, {3}, {1}]
    sets, kept = read_sets(array, replace(ILL, outside=Outside.DROP))
    assert kept.tolist() == [False, False, True]
    assert as_sets(sets) == [set(), set(), {1}]


def test_missing_sets_are_empty_or_drop_their_row() -> None:
    array = pa.array([None, "flu", ""])
    assert read_sets(array, ILL)[1].all()
    assert read_sets(array, replace(ILL, missing=Missing.DROP))[1].tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hierarchy": Flat(Categories(("1", "2"))), "type": Type.INTEGER}, "they are text"),
        ({"hierarchy": Column("free").hierarchy}, "all of them are declared"),
        ({"missing": "flu"}, "no value can replace"),
        ({"separator": ""}, "separate items"),
        ({"separator": ";;", "hierarchy": tree({"lungs": ["flu;"]})}, "separate items"),
        ({"separator": "u"}, "separate items"),
        ({"hierarchy": tree({"lungs; throat": ["flu"]})}, "separate items"),
        ({"hierarchy": tree({"lungs": ["flu "]})}, "separate items"),
    ],
)
def test_declarations_that_cannot_be_read_back_are_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        replace(ILL, **change)


def test_nothing_counts_a_set_as_if_it_were_one_value() -> None:
    for level in range(ILL.hierarchy.height):
        with pytest.raises(InvalidParameter, match="holds a set of items"):
            Recoding(ILL, level)
    assert Recoding(ILL, ILL.hierarchy.height).classes is not None
