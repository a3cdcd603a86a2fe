"""Boxes are cut privately: scores move as they are said to, and the exact law of the boxes keeps its epsilon."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.coins import Coins
from incrowd.core.domain import Numbers, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.hierarchy.tree import tree
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Column, Missing
from incrowd.methods.anonymity.mondrian.axes import Axis, box_names
from incrowd.methods.anonymity.mondrian.pieces import TupleGrid
from incrowd.methods.anonymity.partition.boxes import AxisCut, Box, Growth, leaf_of, scores
from tests.coins import SeededCoins, largest_loss, law_of


def line(top: int) -> Axis:
    column = Column("n", type=Type.INTEGER, hierarchy=Flat(Numbers(0, top)), missing=Missing.DROP)
    classes = Recoding(column, 0).classes
    assert classes is not None
    return Axis.of(classes)


def towns() -> Axis:
    named = tree({"north": ["Oslo", "Bergen"], "south": ["Rome"], "west": ["Cork", "Faro"]})
    classes = Recoding(Column("town", hierarchy=named), 0).classes
    assert classes is not None
    return Axis.of(classes)


AXES = (line(5), towns())
TUPLES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 6)), max_size=40)


def laid(rows: list[tuple[int, int]]) -> TupleGrid:
    codes = [np.array([row[c] for row in rows], np.int32) for c in range(2)]
    return TupleGrid.of(AXES, codes, np.ones(len(rows), np.int64))


@settings(max_examples=100, deadline=None)
@given(TUPLES, st.tuples(st.integers(0, 5), st.integers(0, 6)))
def test_one_row_more_raises_every_score_by_nothing_or_one(rows: list[tuple[int, int]], more: tuple[int, int]) -> None:
    whole = Box.whole(AXES)
    before, after = (scores(whole, AXES, grid.places, grid.rows) for grid in (laid(rows), laid([*rows, more])))
    assert set((after - before).tolist()) <= {0, 1}
    assert len(before) == len(whole.candidates(AXES))


def test_a_tree_is_cut_between_branches_and_only_inside_a_branch_between_its_own() -> None:
    whole = Box.whole(AXES)
    assert [cut.before for cut in whole.candidates(AXES) if cut.axis == 1] == [2, 3, 5, 6]
    _, west = whole.cut(AxisCut(1, 3))
    west, _ = west.cut(AxisCut(1, 5))
    assert [cut.before for cut in west.candidates(AXES) if cut.axis == 1] == [4]


def test_the_score_favors_even_cuts_in_wide_columns() -> None:
    grid = laid([(n % 6, 0) for n in range(60)])
    whole = Box.whole(AXES)
    best = whole.candidates(AXES)[int(np.argmax(scores(whole, AXES, grid.places, grid.rows)))]
    assert best == AxisCut(0, 3)
    narrow, _ = whole.cut(best)
    inside = grid.places[0] < 3
    assert scores(narrow, AXES, grid.places[:, inside], grid.rows[inside]).max() < 10


@settings(max_examples=40, deadline=None)
@given(TUPLES, st.integers(1, 5), st.integers(0, 1000))
def test_leaves_are_disjoint_and_hold_everything(rows: list[tuple[int, int]], depth: int, seed: int) -> None:
    leaves = Growth(depth, Fraction(4), 3).leaves(laid(rows), SeededCoins(seed))
    every = np.array([(a, b) for a in range(6) for b in range(7)]).T
    inside = [
        sum(all(low <= place <= high for place, (low, high) in zip(point, leaf.sides, strict=True)) for leaf in leaves)
        for point in every.T
    ]
    assert set(inside) == {1}
    assert len(leaves) <= 2**depth
    assert set(leaf_of(leaves, every).tolist()) == set(range(len(leaves)))


def test_boxes_are_named_by_ranges_nodes_and_branches() -> None:
    sides = [(0, 6), (0, 1), (0, 2), (3, 3), (5, 6), (6, 6)]
    named = box_names(AXES[1], sides, np.arange(len(sides)))
    shown = [None if place == len(named.values) else named.values[int(place)].as_py() for place in named.places]
    assert shown == ["*", "north", "north or south", "Cork", "other or missing", None]
    ages = box_names(AXES[0], [(0, 2), (3, 3), (2, 4), (5, 5), (0, 5)], np.arange(4))
    assert ages.values.to_pylist() == ["<= 2", "[2, 4]", "3", ">= 5"]


@pytest.mark.parametrize("rows", [[0, 0, 1], [0, 1, 2, 2], [1, 1, 1]])
@pytest.mark.parametrize("least", [1, 3])
def test_the_exact_law_of_the_boxes_keeps_epsilon(rows: list[int], least: int) -> None:
    axes = (line(2),)
    growth = Growth(1, Fraction(2), least)

    def boxes(values: list[int]) -> dict[tuple[Box, ...], float]:
        grid = TupleGrid.of(axes, [np.array(values, np.int32)], np.ones(len(values), np.int64))

        def run(coins: Coins) -> tuple[Box, ...]:
            return growth.leaves(grid, coins)

        return law_of(run, reach=12)

    for place in range(len(rows)):
        fewer = boxes(rows[:place] + rows[place + 1 :])
        more = boxes(rows)
        assert math.isclose(math.fsum(more.values()), 1.0)
        assert max(largest_loss(more, fewer), largest_loss(fewer, more)) <= 2 + 1e-9
