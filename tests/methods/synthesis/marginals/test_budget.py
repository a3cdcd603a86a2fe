"""Budgets of models: the figures of the reference, and a filter that is never exceeded, whatever comes out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from incrowd.accounting.noise.concentrated import largest_rho
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.methods.synthesis.marginals.budget import (
    Reach,
    Shares,
    choice_epsilon,
    choice_rho,
    gaussian_scale,
    table_rho,
)
from incrowd.methods.synthesis.marginals.model import Fit, NoisyTable
from incrowd.methods.synthesis.marginals.search import ExpectedTables, Search, WorkLimits, estimated_total
from incrowd.methods.synthesis.marginals.weighted_rows import WeightedRows
from incrowd.noise.system import SystemCoins

ONE = Reach(1, 1)
TARGETS = {
    ("1/10", "1e-6"): 0.0003210476903457408,
    ("1/10", "1e-9"): 0.00017713844718502105,
    ("1/2", "1e-6"): 0.006641524356660505,
    ("1/2", "1e-9"): 0.003953191141217898,
    ("1", "1e-6"): 0.024355970359538376,
    ("1", "1e-9"): 0.014973057673588523,
    ("3", "1e-6"): 0.1850698406534015,
    ("3", "1e-9"): 0.12058242891101997,
}


@pytest.mark.parametrize(("target", "rho"), TARGETS.items())
def test_the_budget_of_a_target_is_that_of_the_reference(target: tuple[str, str], rho: float) -> None:
    assert float(largest_rho(*map(Fraction, target))) == pytest.approx(rho, rel=1e-6)


@pytest.mark.parametrize(
    ("rho", "single", "select", "pairs"),
    [
        ("0.003953191141217898", 58.43768155757546, 0.03630055619967779, 55.095574541575544),
        ("0.014973057673588523", 30.026978675269998, 0.0706471459050506, 28.309706986436364),
        ("0.12058242891101997", 10.58095507401314, 0.20048476992115882, 9.9758201123532),
    ],
)
def test_a_tree_s_noise_is_that_of_the_reference(rho: str, single: float, select: float, pairs: float) -> None:
    third = Fraction(rho) / 3
    assert float(gaussian_scale(third, 9, ONE)) == pytest.approx(single, rel=1e-5)
    assert float(choice_epsilon(third, 8)) == pytest.approx(select, rel=1e-5)
    assert float(gaussian_scale(third, 8, ONE)) == pytest.approx(pairs, rel=1e-5)


@pytest.mark.parametrize(
    ("rho", "plan"),
    [
        ("0.003953191141217898", (106.6921213246257, 49.98372026382788, 0.013337676010265259)),
        ("0.014973057673588523", (54.82151184723989, 25.683087734990053, 0.02595741888769921)),
        ("0.12058242891101997", (19.31809257995247, 9.050247792984923, 0.0736628081259186)),
    ],
)
def test_rounds_have_the_noise_of_the_reference(rho: str, plan: tuple[float, ...]) -> None:
    shares = Shares.of(Fraction(rho), 9, 16, ONE)
    assert [float(each) for each in (shares.first, shares.scale, shares.epsilon)] == pytest.approx(plan, rel=1e-5)


def test_the_number_of_rows_is_estimated_as_exactly_as_the_reference_says() -> None:
    """By the weights of the nine tables of Adult: those of few cells count most."""
    sizes = (16, 2, 5, 7, 16, 41, 7, 14, 2)
    moved = []
    for column in range(9):
        tables = [NoisyTable((n,), np.full(size, 10**6), 1.0) for n, size in enumerate(sizes)]
        more = NoisyTable((column,), tables[column].counts + np.eye(1, sizes[column], 0, np.int64)[0] * 10**6, 1.0)
        changed = [more if n == column else each for n, each in enumerate(tables)]
        moved.append((estimated_total(changed) - estimated_total(tables)) / 10**6)
    assert math.sqrt(sum(size * each**2 for size, each in zip(sizes, moved, strict=True))) == pytest.approx(
        0.7654954994681468, rel=1e-9
    )


@pytest.mark.parametrize(("epsilon", "ratio"), [(0.02, 0.4902), (0.2, 0.4182), (1.0, 0.2605), (3.0, 0.1415)])
def test_another_choice_would_cost_up_to_four_times_as_much(epsilon: float, ratio: float) -> None:
    """Permute-and-flip between two candidates whose scores go from (0, 0) to (1, −1): what ρ it has, over ε²."""
    flip = math.exp(-epsilon)
    wins = 0.5 + 0.5 * (1 - flip)
    laws = np.array([0.5, 0.5]), np.array([wins, 1 - wins])
    found = max(
        math.log(float((p**alpha * q ** (1 - alpha)).sum())) / (alpha * (alpha - 1))
        for p, q in (laws, laws[::-1])
        for alpha in np.geomspace(1.0001, 60, 2000)
    )
    assert found / epsilon**2 == pytest.approx(ratio, abs=0.003)
    assert float(choice_rho(Fraction(epsilon))) / epsilon**2 == pytest.approx(1 / 8)


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=50), st.integers(1, 60), st.integers(1, 9))
def test_scales_and_choices_never_cost_more_than_their_share(rho: Fraction, number: int, rows: int) -> None:
    reach = Reach(2 * rows**2, 2 * rows)
    assert table_rho(gaussian_scale(rho, number, reach), reach, number) <= rho
    assert number * choice_rho(choice_epsilon(rho, number)) <= rho


@pytest.mark.parametrize(
    ("unit", "table", "score"),
    [
        (Unit(), 1, 1),
        (Unit(adjacency=Adjacency.REPLACE), 2, 2),
        (Unit(Kind.PERSON, column="id", max_rows=2), 4, 2),
        (Unit(Kind.PERSON, Adjacency.REPLACE, "id", 2), 8, 4),
    ],
)
def test_no_unit_moves_tables_and_scores_farther_than_its_reach(unit: Unit, table: int, score: int) -> None:
    """Every pair of neighbors over two columns of two values, of up to three rows beside those that change."""
    assert Reach.of(unit) == Reach(table, score)
    cells = [(a, b) for a in range(2) for b in range(2)]
    mine = [rows for size in range(unit.max_rows + 1) for rows in _multisets(cells, size)]
    expected = np.array([[3, 0], [1, 2]])
    worst_table = worst_score = 0
    for others in [rows for size in range(3) for rows in _multisets(cells, size)]:
        for one in mine:
            for other in mine if unit.adjacency is Adjacency.REPLACE else [()]:
                tables = [_rows((*others, *each)) for each in (one, other)]
                for columns in ((0,), (1,), (0, 1)):
                    first, second = (each.table(columns) for each in tables)
                    worst_table = max(worst_table, int(((first - second) ** 2).sum()))
                scores = [int(np.abs(each.table((0, 1)) - expected).sum()) for each in tables]
                worst_score = max(worst_score, abs(scores[0] - scores[1]))
    assert worst_table == table
    assert worst_score == score


def test_a_choice_is_concentrated_as_it_is_charged() -> None:
    """By its exact law on every table of up to one row over three columns of two values, with a row more or less."""
    cells = [(a, b, c) for a in range(2) for b in range(2) for c in range(2)]
    fit = Fit.of((2, 2, 2), [NoisyTable((n,), np.array([3, 1]), 1.0) for n in range(3)], 4.0, 9)
    expected, allowed = ExpectedTables.of(fit.model, SystemCoins()), {(0, 1): 3, (0, 2): 2, (0, 1, 2): 5, (1, 2): 1}
    epsilon, worst = 2.0, 0.0
    for rows in [each for size in range(2) for each in combinations_with_replacement(cells, size)]:
        for more in cells:
            laws = []
            for table in (rows, (*rows, more)):
                codes = np.array(table, np.int64).reshape(-1, 3).T
                held = WeightedRows((2, 2, 2), codes, np.ones(len(table), np.int64))
                search = Search(held, WorkLimits(((0, 1, 2),), 1, 100), ONE, SystemCoins())
                scores = search.scores(expected, allowed, Fraction(2))
                weights = np.exp(epsilon * (scores - scores.max()) / (2 * ONE.score * 5))
                laws.append(weights / weights.sum())
            for p, q in (laws, laws[::-1]):
                for alpha in (1.01, 2.0, 8.0, 64.0):
                    divergence = math.log(float((p**alpha * q ** (1 - alpha)).sum())) / (alpha - 1)
                    worst = max(worst, divergence / (alpha * float(choice_rho(Fraction(2)))))
    assert 0.1 < worst <= 1


def _multisets(cells: list[tuple[int, int]], size: int) -> list[tuple[tuple[int, int], ...]]:
    return list(combinations_with_replacement(cells, size))


def _rows(rows: tuple[tuple[int, int], ...]) -> WeightedRows:
    codes = np.array(rows, np.int64).reshape(-1, 2).T
    return WeightedRows((2, 2), codes, np.ones(len(rows), np.int64))


@dataclass(frozen=True)
class Hostile(SystemCoins):
    """Coins whose noise is as large or small as somebody likes, to drive the search anywhere."""

    factor: int = 1

    def gaussian(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        return super().gaussian(scale, size) * self.factor


@pytest.mark.parametrize("factor", [0, 1, 40])
@pytest.mark.parametrize("reach", [ONE, Reach(8, 4)])
def test_the_filter_is_never_exceeded_whatever_comes_out(factor: int, reach: Reach) -> None:
    chance = np.random.default_rng(factor)
    sizes = (2, 3, 4, 2)
    codes = np.array([chance.integers(0, size, 300) for size in sizes])
    rows = WeightedRows(sizes, codes, np.ones(300, np.int64))
    limits = WorkLimits(tuple(combinations(range(4), 2)), 5, 500, 5)
    rho = Fraction(1, 3)
    search = Search(rows, limits, reach, Hostile(factor=factor))
    for found in (search.adaptive(Shares.of(rho, 4, 5, reach)), search.tree(rho)):
        assert found.rho(reach) <= rho
        assert found.model.tree.cells <= 500
