"""Rare classes: a column of very many classes is modelled by those that noise shows, at the same cost."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from incrowd.methods.synthesis.marginals.budget import Sensitivity, Shares
from incrowd.methods.synthesis.marginals.evaluation import WeightedRows
from incrowd.methods.synthesis.marginals.junction import JunctionTree
from incrowd.methods.synthesis.marginals.model import NoisyTable, Zero
from incrowd.methods.synthesis.marginals.rare import RareClasses
from incrowd.methods.synthesis.marginals.search import Search, TableSelection, WorkLimits
from tests.coins import SeededCoins

_RHO = Fraction(1, 20)
SIZES = (90, 3, 2)


def skewed(rows: int = 6000) -> WeightedRows:
    """Return codes of which few are frequent; the second column follows the first, the last class never occurs."""
    chance = np.random.default_rng(4)
    code = np.minimum(chance.zipf(1.4, rows) - 1, 88)
    columns = [code, (code + (chance.random(rows) < 0.1)) % 3, chance.integers(0, 2, rows)]
    return WeightedRows.once(SIZES, np.array(columns))


def searched(rows: WeightedRows, seed: int, *, tree: bool = False, zeros: tuple[Zero, ...] = ()) -> TableSelection:
    limits = WorkLimits(((0, 1), (0, 2), (1, 2)), 4, 2000, faint=((0, 89),), zeros=zeros)
    search = Search(rows, limits, Sensitivity(1, 1), SeededCoins(seed))
    return search.tree(_RHO) if tree else search.adaptive(Shares.of(_RHO, 3, 4, Sensitivity(1, 1)))


@pytest.mark.parametrize("tree", [False, True])
def test_a_large_column_costs_no_more_and_keeps_what_depends_on_it(tree: bool) -> None:
    rows = skewed()
    selection = searched(rows, 1, tree=tree)
    assert selection.rho(Sensitivity(1, 1)) <= _RHO
    assert selection.rounds[0].scale < selection.rounds[1].scale
    model = selection.model
    cliques = [measured.columns for measured in selection.rounds]
    assert model.tree == JunctionTree.of(SIZES, cliques)
    assert [table.shape for table in model.tables] == [tuple(SIZES[c] for c in own) for own in model.tree.cliques]
    assert all(abs(table.sum() - 1) < 1e-9 for table in model.tables)
    single, pair = model.table((0,)), model.table((0, 1))
    assert single is not None
    assert pair is not None
    assert single[89] < 1e-9, "a class that may be empty is never taken together with others"
    assert len(np.unique(single.round(12))) < 40, "hidden classes have the same chance"
    truth = rows.table((0, 1)) / rows.times.sum()
    assert np.abs(pair - truth).sum() / 2 < 0.13, "independent columns would be .5 away"


def test_columns_with_a_rule_keep_their_classes() -> None:
    model = searched(skewed(), 2, zeros=(Zero((0, 1), ((5,), (0,))),)).model
    single, pair = model.table((0,)), model.table((0, 1))
    assert single is not None
    assert pair is not None
    assert pair[5, 0] == 0
    assert len(np.unique(single.round(12))) > 60


def test_a_row_is_in_one_cell_of_each_table_whatever_is_taken_together() -> None:
    rows = skewed(300)
    noisy = [NoisyTable((c,), rows.table((c,)), 9.0) for c in range(3)]
    rare = RareClasses.of(noisy, {(1, None)})
    assert rare.sizes[0] < SIZES[0]
    fewer = WeightedRows(SIZES, rows.codes[:, 1:], rows.times[1:])
    for columns in ((0,), (0, 1), (0, 2), (0, 1, 2)):
        moved = rare.rows(rows).table(columns) - rare.rows(fewer).table(columns)
        assert moved.sum() == np.abs(moved).sum() == 1
