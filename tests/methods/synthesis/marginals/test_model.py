"""Models: marginals against the whole table, drawing with little error, private evaluation, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from incrowd.errors import InvalidParameter
from incrowd.methods.synthesis.marginals.budget import Sensitivity, Shares
from incrowd.methods.synthesis.marginals.evaluation import WeightedRows
from incrowd.methods.synthesis.marginals.junction import JunctionTree, spread, summed
from incrowd.methods.synthesis.marginals.model import Fit, NoisyTable, TableModel
from incrowd.methods.synthesis.marginals.output import SyntheticRows
from incrowd.methods.synthesis.marginals.pairs import pair_tables
from incrowd.methods.synthesis.marginals.search import Search, WorkLimits
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.tables import release
from tests.coins import SeededCoins
from tests.policies import PEOPLE, changed, people, with_ledger

SIZES = (2, 3, 2, 4)


def graphs() -> Iterator[list[tuple[int, ...]]]:
    """Tables over four columns: none, a chain, a star, a cycle, triples, parts that hang on nothing."""
    yield []
    yield [(0, 1), (1, 2), (2, 3)]
    yield [(0, 1), (0, 2), (0, 3)]
    yield [(0, 1), (1, 2), (2, 3), (0, 3)]
    yield [(0, 1, 2), (2, 3)]
    yield [(0, 2), (1, 3)]


@pytest.mark.parametrize("tables", list(graphs()))
def test_marginals_are_those_of_the_whole_table(tables: list[tuple[int, ...]]) -> None:
    tree = JunctionTree.of(SIZES, tables)
    chance = np.random.default_rng(2)
    potentials = [chance.normal(size=tuple(SIZES[c] for c in clique)) for clique in tree.cliques]
    whole = np.exp(sum(spread(p, c, (0, 1, 2, 3)) for p, c in zip(potentials, tree.cliques, strict=True)))
    whole = np.broadcast_to(whole, SIZES) / np.broadcast_to(whole, SIZES).sum()
    for table, clique in zip(tree.marginals(potentials), tree.cliques, strict=True):
        gone = tuple(column for column in range(4) if column not in clique)
        assert np.allclose(table, whole.sum(axis=gone))
    assert all(tree.home(table) >= 0 for table in tables)


def test_cliques_that_share_a_column_hang_together() -> None:
    for tables in graphs():
        tree = JunctionTree.of(SIZES, tables)
        for column in range(4):
            holding = [n for n, clique in enumerate(tree.cliques) if column in clique]
            roots = [n for n in holding if tree.parents[n] < 0 or column not in tree.cliques[tree.parents[n]]]
            assert len(roots) == 1, "the cliques with a column are one part of the tree"


def test_a_fit_finds_tables_without_noise() -> None:
    chance = np.random.default_rng(4)
    codes = np.array([chance.integers(0, size, 4000) for size in SIZES])
    codes[1] = (codes[0] + chance.integers(0, 2, 4000)) % 3
    rows = WeightedRows(SIZES, codes, np.ones(4000, np.int64))
    tables = [(0, 1), (1, 2), (2, 3), (0, 3)]
    fit = Fit.of(SIZES, [NoisyTable(table, rows.table(table), 1.0) for table in tables], 4000, 400)
    for table in tables:
        found = fit.model.table(table)
        assert found is not None
        assert np.abs(4000 * found - rows.table(table)).sum() < 40


def test_rows_are_drawn_with_less_than_one_row_of_error_in_a_clique() -> None:
    chance = np.random.default_rng(5)
    table = chance.dirichlet(np.ones(6)).reshape(2, 3)
    model = TableModel(JunctionTree.of((2, 3), [(0, 1)]), (table,), 1000.0)
    for seed in range(20):
        drawn = model.draw(1000, np.random.default_rng(seed))
        counts = WeightedRows((2, 3), drawn, np.ones(1000, np.int64)).table((0, 1))
        assert np.abs(counts - 1000 * table).max() < 1 + 1e-6


def test_drawing_is_unbiased_and_keeps_independence() -> None:
    """Two independent halves: the mean over 400 draws of a cell's count has a standard deviation of at most 0.1."""
    tree = JunctionTree.of((2, 2), [])
    model = TableModel(tree, (np.array([0.3, 0.7]), np.array([0.45, 0.55])), 10.0)
    counts = np.zeros((2, 2))
    for seed in range(400):
        drawn = model.draw(10, np.random.default_rng(seed))
        counts += WeightedRows((2, 2), drawn, np.ones(10, np.int64)).table((0, 1))
    assert np.allclose(counts / 400, 10 * np.outer([0.3, 0.7], [0.45, 0.55]), atol=0.6)


MODEL = {"method": "marginals", "epsilon": 3, "delta": "1e-6", "levels": {"zip": 2, "age": 1}}


def test_numbers_are_drawn_inside_their_bounds_and_rows_can_be_drawn_again(tmp_path: Path) -> None:
    found = release(people(2000), with_ledger(changed(PEOPLE, release=MODEL), tmp_path))
    assert isinstance(found.result, SyntheticRows)
    table = found.result.to_arrow()
    assert table["age"].type == pa.int64()
    ages = table["age"].drop_null().to_numpy()
    assert ages.min() >= 0
    assert ages.max() <= 99
    assert len(set(ages.tolist())) > 50, "not only the ends of intervals"
    assert abs(table.num_rows - 2000) < 200
    assert found.result.model is not None
    more = found.result.model.sample(500, seed=1)
    assert more.num_rows == 500
    assert more.schema.names == table.schema.names


def test_the_number_of_rows_is_the_policy_s_or_an_estimate(tmp_path: Path) -> None:
    found = release(people(300), with_ledger(changed(PEOPLE, release=MODEL, release__rows=77), tmp_path))
    assert len(found.result) == 77


def test_an_empty_table_is_modelled_too(tmp_path: Path) -> None:
    found = release(people(300).slice(0, 0), with_ledger(changed(PEOPLE, release=MODEL), tmp_path))
    assert len(found.result) < 100


def test_tables_of_a_model_agree_even_where_nothing_but_noise_was_measured() -> None:
    """With about one row and noise far above it, weights grow until they are held."""
    sizes = (4, 11, 2)
    empty = WeightedRows(sizes, np.zeros((3, 0), np.int64), np.zeros(0, np.int64))
    for seed in range(6):
        search = Search(empty, WorkLimits(((0, 1), (1, 2)), 16, 500), Sensitivity(1, 1), SeededCoins(seed))
        model = search.adaptive(Shares.of(Fraction(1, 5), 3, 16, Sensitivity(1, 1))).model
        for place, parent in enumerate(model.tree.parents):
            shared = model.tree.separators[place]
            sums = [summed(model.tables[each], model.tree.cliques[each], shared) for each in (place, max(0, parent))]
            assert np.abs(sums[0] - sums[1]).max() < 1e-9


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"release__epsilon": 0}, "epsilon above 0"),
        ({"release__epsilon": None}, "epsilon is missing|epsilon: "),
        ({"release__levels": {"zip": 0}}, "not declared"),
        ({"release__workload": [["sex"]]}, "two to four"),
        ({"release__workload": [["sex", "height"]]}, "not released"),
        ({"columns__sex__derived": "rows"}, "drafted from rows"),
        ({"release__cells": 10}, "100 to 10,000,000"),
    ],
)
def test_what_cannot_be_modelled_is_refused_from_the_policy_alone(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        load_policy(changed(PEOPLE, release=MODEL, **changes)).plan  # noqa: B018


@pytest.mark.parametrize(
    ("intervals", "level"),
    [([10, 100], 2), ([25, 100], 1), ([10, 500], 1), ([50], 1), ([500], 1)],
    ids=["48 intervals at most", "the finest of these", "8 at least", "the only level", "the coarsest level"],
)
def test_a_column_that_is_too_fine_is_taken_at_a_coarser_level(intervals: list[int], level: int) -> None:
    columns = {"year": {"type": "integer", "bounds": [0, 999], "hierarchy": {"intervals": intervals}}}
    plan = load_policy(changed(PEOPLE, release=MODEL, release__levels=None) | {"columns": columns}).plan
    assert plan.settings["levels"] == {"year": level}


def test_every_combination_can_come_out() -> None:
    """The model of an empty set of tables is even: nothing is left out because nobody has it."""
    fit = Fit.of((2, 2), [NoisyTable((n,), np.zeros(2, np.int64), 1.0) for n in range(2)], 10.0, 5)
    drawn = fit.model.draw(4000, np.random.default_rng(0))
    assert set(zip(*drawn.tolist(), strict=True)) == set(product(range(2), range(2)))


def test_pairs_across_cliques_are_those_of_the_whole_distribution() -> None:
    chance = np.random.default_rng(5)
    for _ in range(40):
        number = int(chance.integers(2, 7))
        sizes = tuple(int(size) for size in chance.integers(1, 4, number))
        tables = [
            tuple(sorted(chance.choice(number, min(number, int(chance.integers(1, 4))), replace=False).tolist()))
            for _ in range(int(chance.integers(0, 6)))
        ]
        tree = JunctionTree.of(sizes, tables)
        potentials = [2 * chance.normal(size=[sizes[column] for column in clique]) for clique in tree.cliques]
        whole = np.zeros(sizes)
        for clique, potential in zip(tree.cliques, potentials, strict=True):
            whole = whole + spread(potential, clique, tuple(range(number)))
        whole = np.exp(whole) / np.exp(whole).sum()
        pairs = pair_tables(tree, tuple(tree.marginals(potentials)))
        assert set(pairs) == set(combinations(range(number), 2))
        for pair, table in pairs.items():
            assert np.allclose(table, summed(whole, tuple(range(number)), pair))
