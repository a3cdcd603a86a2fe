"""Cuts of item hierarchies against an exhaustive search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.sets import Rows, Sets
from incrowd.methods.anonymity.itemsets.cuts import ItemDemand, ItemTree, best_cut, joinable
from tests.methods.anonymity.itemsets.cuts import Row, column_of, cuts, loss_of, rarest, tree_of

SHAPES = st.tuples(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.integers(1, 3))


@st.composite
def problems(draw: st.DrawFn, groups: int = 1) -> tuple[ItemTree, list[Row]]:
    shape, wider = draw(SHAPES)
    row = st.tuples(st.integers(0, groups - 1), st.frozensets(st.integers(0, sum(shape) - 1), max_size=4))
    return ItemTree.of(column_of(tree_of(shape, wider))), draw(st.lists(row, min_size=1, max_size=14))


def prepared(rows: list[Row], k: int) -> tuple[list[Row], Sets, Rows]:
    """Return the rows that can be kept at all, as they are and as sets."""
    owners = np.array([place for place, (_, items) in enumerate(rows) for _ in items], np.intp)
    sets = Sets.of(owners, np.array([item for _, items in rows for item in items], np.int32), len(rows))
    classes = np.array([group for group, _ in rows], np.intp)
    kept = joinable(sets, classes, k)
    return [row for row, keep in zip(rows, kept, strict=True) if keep], sets.take(np.flatnonzero(kept)), classes[kept]


@settings(max_examples=150)
@given(problems(groups=2), st.integers(1, 4), st.integers(1, 3))
def test_the_cut_is_one_of_those_that_cannot_be_refined(problem: tuple[ItemTree, list[Row]], k: int, m: int) -> None:
    tree, rows = problem[0], problem[1]
    kept, sets, classes = prepared(rows, k)
    if not kept:
        return
    found = best_cut(sets, classes, tree, ItemDemand(k, m))
    occurring = sorted({item for _, items in kept for item in items})
    ok = {tuple(cut[item] for item in occurring) for cut in cuts(tree) if rarest(kept, cut, m) >= k}
    mine = tuple(found.nodes[occurring].tolist())
    assert mine in ok
    finer = [cut for cut in ok if cut != mine and _finer(tree, cut, mine)]
    assert finer == []
    assert found.loss == pytest.approx(loss_of(kept, found.nodes.tolist(), tree))


def _finer(tree: ItemTree, one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether every item is shown at least as finely in one cut as in the other."""
    return all(tree.levels[a] <= tree.levels[b] for a, b in zip(one, other, strict=True))


@settings(max_examples=150)
@given(problems(groups=2), st.integers(2, 4), st.integers(1, 3), st.integers(0, 10))
def test_left_out_items_stay_within_their_limit_and_never_make_it_worse(
    problem: tuple[ItemTree, list[Row]], k: int, m: int, limit: int
) -> None:
    tree, rows = problem
    kept, sets, classes = prepared(rows, k)
    if not kept:
        return
    found = best_cut(sets, classes, tree, ItemDemand(k, m, limit))
    shown = found.nodes.tolist()
    assert rarest(kept, shown, m) >= k
    assert sum(shown[item] < 0 for _, items in kept for item in items) <= limit
    assert found.loss == pytest.approx(loss_of(kept, shown, tree))
    assert found.loss <= loss_of(kept, tree.nodes[-1].tolist(), tree) + 1e-12


def test_one_rare_item_need_not_spoil_its_siblings() -> None:
    tree = ItemTree.of(column_of(tree_of([3], 1)))
    rows: list[Row] = [(0, frozenset({0})), (0, frozenset({0})), (0, frozenset({1})), (0, frozenset({1, 2}))]
    _, sets, classes = prepared(rows, 2)
    assert best_cut(sets, classes, tree, ItemDemand(2, 2)).loss == 1.0
    found = best_cut(sets, classes, tree, ItemDemand(2, 2, left_out=1))
    assert found.nodes.tolist() == [0, 1, -1]
    assert found.loss == pytest.approx(1 / 5)


def test_what_is_left_out_does_not_come_back_with_a_sibling_that_does_not_occur() -> None:
    tree = ItemTree.of(column_of(tree_of([1, 2], 1)))
    rows: list[Row] = [(0, frozenset({0})), (0, frozenset({0, 1}))]
    _, sets, classes = prepared(rows, 2)
    assert best_cut(sets, classes, tree, ItemDemand(2, 1, left_out=1)).nodes.tolist() == [0, -1, -1]


def test_the_greedy_order_is_close_to_the_best_cut_on_many_small_tables() -> None:
    chance = np.random.default_rng(3)
    tree = ItemTree.of(column_of(tree_of([3, 2, 3], 2)))
    every = list(cuts(tree))
    excess = []
    for _ in range(40):
        rows: list[Row] = [
            (0, frozenset(chance.choice(8, chance.integers(1, 4), replace=False).tolist())) for _ in range(30)
        ]
        kept, sets, classes = prepared(rows, 3)
        best = min(loss_of(kept, cut, tree) for cut in every if rarest(kept, cut, 2) >= 3)
        excess.append(best_cut(sets, classes, tree, ItemDemand(3, 2)).loss - best)
    assert min(excess) >= -1e-12
    assert np.mean(excess) < 0.005  # the best cuts lose a third of what there is to lose
    assert np.mean(np.array(excess) < 1e-12) > 0.9


@given(problems(groups=3), st.integers(1, 4))
def test_kept_rows_can_always_be_shown_as_anything(problem: tuple[ItemTree, list[Row]], k: int) -> None:
    tree, rows = problem
    kept, _, _ = prepared(rows, k)
    assert not kept or rarest(kept, tree.nodes[-1].tolist(), 3) >= k
