"""Distances of linked tables: zero for the same tables, and each figure sees its own fault."""

from __future__ import annotations

import numpy as np
import pytest

from incrowd.measures.utility.relational import Link, LinkedRows

PEOPLE = LinkedRows((2,), np.array([[0, 1, 1]]), np.full(3, -1))


def visits(codes: list[int], parent: list[int]) -> Link:
    return Link(PEOPLE, LinkedRows((2,), np.array([codes], np.int64), np.array(parent, np.int64)), 3)


ORIGINAL = visits([0, 0, 1, 1], [0, 0, 1, 1])


def test_the_same_tables_are_at_no_distance() -> None:
    distance = ORIGINAL.distance(ORIGINAL)
    assert (distance.cardinality, distance.by_parent, distance.parent_child, distance.child_child) == (0, 0, 0, 0)
    assert distance.integrity == 1
    assert distance.to_json()["rows before"] == 4


def test_numbers_of_rows_are_compared_by_person() -> None:
    """One of two people with two rows has three, the other one: of three people two would have to change."""
    distance = visits([0, 0, 0, 1], [0, 0, 0, 1]).distance(ORIGINAL)
    assert distance.cardinality == pytest.approx(2 / 3)


def test_columns_are_compared_with_those_above_and_those_of_the_next_row() -> None:
    swapped = visits([1, 1, 0, 0], [0, 0, 1, 1]).distance(ORIGINAL)
    assert swapped.parent_child == 1
    assert swapped.child_child == 0
    mixed = visits([0, 1, 0, 1], [0, 0, 1, 1]).distance(ORIGINAL)
    assert mixed.child_child == 1
    assert mixed.cardinality == 0


def test_keys_that_name_no_row_are_counted_and_left_out() -> None:
    distance = visits([0, 0, 1, 1], [0, 0, -1, 7]).distance(ORIGINAL)
    assert distance.integrity == 0.5
    assert visits([], []).distance(ORIGINAL).integrity == 1
