"""Groups of columns: every candidate once, and a choice that tells little about any row."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from incrowd.core.cells import Cells
from incrowd.core.domain import Categories
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import Column, Missing, Outside, Schema
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.engines.local.engine import LocalEngine
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.slicing.grouping import Group, Grouping, associations, kept_together
from tests.coins import SeededCoins, largest_loss, law_of
from tests.tables import Batches

SCHEMA = Schema(
    tuple(
        Column(name, hierarchy=Flat(Categories(("0", "1"))), missing=Missing.DROP, outside=Outside.DROP)
        for name in "abc"
    )
)
Row = tuple[str, ...]


def found(rows: tuple[Row, ...]) -> NDArray[np.int64]:
    table = pa.table({name: pa.array([row[place] for row in rows], pa.string()) for place, name in enumerate("abc")})
    return associations(LocalEngine().count(Batches(table), Cells.of(SCHEMA, {})))


def partitions(left: Group) -> Iterator[frozenset[Group]]:
    """Every way to split places into groups of any size: the first goes alone, or into a group of the others'."""
    if not left:
        yield frozenset()
        return
    first, *others = left
    for rest in partitions(tuple(others)):
        yield rest | {(first,)}
        for group in rest:
            yield rest - {group} | {(first, *group)}


@pytest.mark.parametrize(("columns", "size"), [(3, 2), (4, 2), (4, 3), (5, 2), (5, 3), (6, 3), (6, 4), (7, 3), (7, 5)])
def test_candidates_are_all_splits_into_as_few_groups_as_the_size_allows(columns: int, size: int) -> None:
    grouping = Grouping(columns, size)
    small = [split for split in partitions(tuple(range(columns))) if max(map(len, split)) <= size]
    fewest = min(map(len, small))
    assert grouping.groups == fewest
    candidates = [frozenset(candidate) for candidate in grouping.candidates()]
    assert Counter(candidates) == Counter(split for split in small if len(split) == fewest)
    assert grouping.counted() == len(candidates)
    assert grouping.pairs == max(len(list(kept_together(each))) for each in grouping.candidates())


def test_no_row_moves_the_score_of_a_candidate_by_more_than_the_sensitivity() -> None:
    """Every table of up to four rows over three columns of two values, every row that can join it."""
    grouping, values = Grouping(3, 2), list(product("01", repeat=3))
    candidates = list(grouping.candidates())

    def scores(rows: tuple[Row, ...]) -> list[int]:
        pairs = found(rows)
        return [sum(int(pairs[pair]) for pair in kept_together(each)) for each in candidates]

    tables = [rows for size in range(5) for rows in combinations_with_replacement(values, size)]
    known = {rows: scores(rows) for rows in tables}
    joined = [(rows, tuple(sorted((*rows, row)))) for rows in tables if len(rows) < 4 for row in values]
    moved = [abs(b - a) for rows, more in joined for a, b in zip(known[rows], known[more], strict=True)]
    assert 0 < max(moved) <= grouping.sensitivity(Unit())


def test_people_with_several_rows_and_replaced_ones_move_more() -> None:
    grouping = Grouping(5, 3)
    assert grouping.sensitivity(Unit()) == 8
    assert grouping.sensitivity(Unit(Kind.PERSON, column="id", max_rows=3)) == 24
    assert grouping.sensitivity(Unit(adjacency=Adjacency.REPLACE)) == 16


@pytest.mark.parametrize("rows", [(("0", "0", "0"),) * 3 + (("1", "1", "0"),) * 3, (("0", "1", "1"),) * 2])
def test_the_exact_law_of_the_choice_keeps_its_epsilon(rows: tuple[Row, ...]) -> None:
    grouping, epsilon = Grouping(3, 2), Fraction(2)

    def law(given: tuple[Row, ...]) -> dict[tuple[Group, ...], float]:
        return law_of(lambda coins: grouping.choose(found(given), epsilon, Unit(), coins))

    whole = law(rows)
    assert math.isclose(math.fsum(whole.values()), 1.0)
    for row in product("01", repeat=3):
        assert largest_loss(whole, law((*rows, row))) <= float(epsilon) + 1e-9


def test_columns_that_go_together_are_put_together() -> None:
    pairs = np.array([[0, 5, 900, 0], [5, 0, 0, 800], [900, 0, 0, 3], [0, 800, 3, 0]])
    chosen = Grouping(4, 2).choose(pairs, Fraction(1), Unit(), SeededCoins(3))
    assert chosen == ((0, 2), (1, 3))


@pytest.mark.parametrize(("columns", "size"), [(4, 1), (4, 4), (1, 2), (4, 0)])
def test_a_size_that_leaves_nothing_to_choose_is_refused(columns: int, size: int) -> None:
    with pytest.raises(InvalidParameter, match="the most columns in a group"):
        Grouping(columns, size)


def test_more_candidates_than_can_be_weighed_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="too many to weigh"):
        Grouping(16, 4).counted()
