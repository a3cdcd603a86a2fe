"""The best of a random number of runs: its price by the theorem, and held against laws that are written out.

G(p) = E[p^K] = ln(1 − (1 − γ)p) / ln γ for K of the logarithmic law, so the best score is at most y with chance
G(F(y)), and among equal scores each run is as likely to stand first.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from incrowd.accounting import accountant
from incrowd.accounting.concentrated import delta_of_runs, epsilon_of_runs, expected_runs, gamma_for, largest_run_rho
from incrowd.core.coins import Coins
from incrowd.core.loss import BestRun, Pure, ZeroConcentrated
from incrowd.core.steps.counts import Law
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.methods.learning.classifier.recipes import FittedScores
from incrowd.methods.learning.regressor import units_of
from incrowd.methods.learning.shared.models import ScoreLink
from incrowd.methods.learning.shared.planning import LearningTask
from incrowd.methods.learning.shared.trials import (
    CLOSE,
    Folds,
    TryModels,
    best_run,
    close_rows,
    number_of_runs,
    right_rows,
)
from incrowd.verifier.slow_accountant import derive
from tests.coins import Abandoned, Branching, EveryCoin, ScriptedCoins, SeededCoins, law
from tests.methods.learning.records import records_of, small

Floats = NDArray[np.float64]
VECTORS = json.loads((Path(__file__).parent / "vectors_learning.json").read_text(encoding="utf-8"))
DELTA = VECTORS["delta"]
GAMMA = Fraction(1, 4)
CASES = [(rho, int(runs)) for rho, told in VECTORS["tuned_eps_logarithmic"].items() for runs in told]


def chance_of_all(gamma: Fraction, chance: Floats | float) -> Floats:
    """G: the chance that all runs do what one does with a chance."""
    return np.asarray(np.log1p(-(1 - float(gamma)) * np.asarray(chance)) / math.log(float(gamma)))


def by_one_order(rho: float, runs: int, delta: float) -> float:
    """The theorem with both orders alike, on a grid: how the reference's figures were computed."""
    gamma = float(gamma_for(runs))
    orders = 1.0 + np.exp(np.linspace(-4, 8, 4001))
    renyi = rho * orders + rho * (orders - 1) - math.log(gamma) / orders + math.log(runs) / (orders - 1)
    return float(np.min(renyi - (math.log(delta) + np.log(orders)) / (orders - 1) + np.log1p(-1 / orders)))


@pytest.mark.parametrize(("rho", "runs"), CASES)
def test_the_reference_figures_are_those_of_the_theorem_and_the_price_is_no_higher(rho: str, runs: int) -> None:
    told = VECTORS["tuned_eps_logarithmic"][rho][str(runs)]
    assert by_one_order(float(rho), runs, float(DELTA)) == pytest.approx(told, abs=1.5e-4)
    price = epsilon_of_runs(rho, gamma_for(runs), DELTA)
    assert VECTORS["untuned_eps"][rho] < price < told


@pytest.mark.parametrize(("rho", "runs"), CASES[::2])
def test_epsilon_and_delta_are_inverse_and_the_slow_accountant_agrees(rho: str, runs: int) -> None:
    gamma = gamma_for(runs)
    loss = BestRun(gamma, ZeroConcentrated(Fraction(rho)))
    epsilon = accountant.epsilon(loss, DELTA).value
    assert delta_of_runs(rho, gamma, epsilon) == pytest.approx(float(DELTA), rel=1e-6)
    derived = derive(loss, Unit(), epsilon, Fraction(DELTA))
    assert derived is not None
    assert derived.whole
    assert float(DELTA) * (1 - 1e-6) < derived.delta <= float(DELTA) * (1 + 1e-9)
    assert epsilon_of_runs(largest_run_rho(1, DELTA, gamma), gamma, DELTA) == pytest.approx(1, rel=1e-9)


def test_runs_of_a_pure_guarantee_cost_it_twice() -> None:
    loss = BestRun(GAMMA, Pure(Fraction(3, 10)))
    assert accountant.charge_of(loss, 0).epsilon == Fraction(6, 10)
    derived = derive(loss, Unit(), Fraction(6, 10), Fraction(0))
    assert derived is not None
    assert derived.delta == 0


def test_the_number_of_runs_is_drawn_by_its_law() -> None:
    """A round ends with k by chance (1 − γ)^(k−1) γ / k: the logarithmic law up to the factor of all rounds."""
    masses = np.array([(1 - float(GAMMA)) ** (k - 1) * float(GAMMA) / k for k in range(1, 12)])

    def drawn(branching: Branching) -> int:
        return number_of_runs(GAMMA, Bounded(branching, rounds=1))

    found = law(drawn)
    assert [found[k] for k in range(1, 12)] == pytest.approx(masses.tolist())
    ks = np.arange(1, 400)
    logarithmic = (1 - float(GAMMA)) ** ks / (-math.log(GAMMA) * ks)
    assert masses / masses.sum() == pytest.approx(logarithmic[:11] / logarithmic[:11].sum())
    assert float((ks * logarithmic).sum()) == pytest.approx(expected_runs(GAMMA))


class Bounded(EveryCoin):
    """Coins in every possible way, where a number of runs of 12 and more is not looked at."""

    tosses = 0

    def bernoulli(self, probability: Fraction, size: int) -> NDArray[np.bool_]:
        if probability == GAMMA:
            self.tosses += 1
            if self.tosses > 11:
                raise Abandoned
        return super().bernoulli(probability, size)


class Short(Bounded):
    """The same where a number of runs of 4 and more is not looked at, and of the first round."""

    tosses = 8


@pytest.mark.parametrize("chances", [(0.5, 0.3, 0.2), (0.1, 0.1, 0.8)])
def test_the_kept_run_has_the_law_of_the_best_of_all(chances: tuple[float, ...]) -> None:
    """Every number of runs below four, and everything that runs can make, through the real loop; two scores tie."""
    scores = (1, 2, 2)

    def run(coins: Coins) -> tuple[int, int]:
        assert isinstance(coins, EveryCoin)
        made = coins.branching.choose(chances)
        return scores[made], made

    found = law(lambda branching: best_run(GAMMA, run, Short(branching, rounds=1)))
    expected = np.zeros(3)
    for number in (1, 2, 3):
        mass = (1 - float(GAMMA)) ** (number - 1) * float(GAMMA) / number
        worse = chances[0] ** number
        tied = (1 - worse) * np.array([0, chances[1], chances[2]]) / (chances[1] + chances[2])
        expected += mass * (np.array([worse, 0, 0]) + tied)
    assert [found[made] for made in range(3)] == pytest.approx(expected.tolist())


def kept_law(gamma: Fraction, chances: Floats) -> Floats:
    """The law of the kept run where outcomes are ordered by their score, the worst first."""
    below = np.minimum(1.0, np.cumsum(chances, axis=-1))
    return np.diff(chance_of_all(gamma, below), axis=-1, prepend=0.0)


@pytest.mark.parametrize("gamma", [Fraction(1, 2), Fraction(1, 20), Fraction(1, 1000)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_no_pair_of_pure_runs_costs_more_than_twice_and_some_nearly_do(gamma: Fraction, epsilon: float) -> None:
    """All pairs of three outcomes at the ends of what ε allows: chances p and q with q/p at e^ε, e^−ε or between."""
    grid = np.geomspace(1e-5, 0.999, 60)
    pairs = np.array([(first, second) for first, second in product(grid, grid) if first + second < 1])
    one, worst = np.column_stack([pairs, 1 - pairs.sum(axis=1)]), 0.0
    for signs in product((-1, 1), repeat=2):
        other = pairs * np.exp(epsilon * np.array(signs))
        other = np.column_stack([other, 1 - other.sum(axis=1)])
        allowed = (np.abs(np.log(np.maximum(1e-300, other[:, 2]) / one[:, 2])) <= epsilon) & (other[:, 2] > 0)
        for order in ([0, 1, 2], [0, 2, 1], [2, 0, 1]):
            laws = [kept_law(gamma, each[allowed][:, order]) for each in (one, other)]
            worst = max(worst, float(np.abs(np.log(laws[0] / laws[1])).max()))
    assert worst <= 2 * epsilon * (1 + 1e-6)
    assert worst > {Fraction(1, 2): 1.2, Fraction(1, 20): 1.5, Fraction(1, 1000): 1.7}[gamma] * epsilon


@pytest.mark.parametrize("gamma", [Fraction(1, 2), Fraction(7, 100), Fraction(1, 100)])
@pytest.mark.parametrize("scale", [2, 8])
def test_no_gaussian_score_costs_more_than_its_price(gamma: Fraction, scale: int) -> None:
    """The score alone is published, with integer Gaussian noise, about one row more or less."""
    values = np.arange(-20 * scale, 20 * scale + 1)
    laws = []
    for moved in (0, 1):
        chances = np.exp(-((values - moved) ** 2) / (2 * scale**2))
        laws.append(kept_law(gamma, chances / chances.sum()))
    rho = Fraction(1, 2 * scale**2)
    for epsilon in (0.3, 1.0, 2.0):
        for one, other in (laws, laws[::-1]):
            true = float(np.maximum(0.0, one - math.exp(epsilon) * other).sum())
            assert true <= delta_of_runs(rho, gamma, epsilon) + 1e-12


POLICY = small()
TASK: LearningTask = POLICY.method.task(POLICY.schema)  # type: ignore[attr-defined]
ROWS = [(a, n, m, t) for a, n, m, t in product("xy", (0, 2), (-4, 4), "pqr")]


def fixed(seed: int) -> FittedScores:
    chance = np.random.default_rng(seed)
    tables = tuple(chance.normal(size=(size, 3)) for size in TASK.sizes)
    return FittedScores(chance.normal(size=3), tables, ScoreLink.SOFTMAX, 1.0)


def test_the_price_holds_for_scores_of_real_records_whatever_row_is_added() -> None:
    """Two fixed models, scores with integer Laplace noise of scale 2, every row of a small universe added."""
    models, scale = (fixed(1), fixed(2)), 2.0
    values = np.arange(-60, 67)
    worst = 0.0
    for others in ([], [("x", 1, 0, "q"), ("y", 2, 4, "p")]):
        for row in ROWS:
            laws = []
            for rows in (others, [*others, row]):
                records = records_of(POLICY, TASK, rows)
                rights = [right_rows(model.offset, model.tables, records, 3) for model in models]
                each = np.array([np.exp(-np.abs(values - right) / scale) for right in rights])
                each /= 2 * each.sum(axis=1, keepdims=True)
                laws.append(kept_law(GAMMA, each.sum(axis=0)) * each / each.sum(axis=0))
            inside = slice(20, -20)
            worst = max(worst, float(np.abs(np.log(laws[0][:, inside] / laws[1][:, inside])).max()))
    assert 1 / scale < worst <= 2 / scale * (1 + 1e-9)


def moved_folds(row: tuple[str, int, int, str], folds: int) -> list[tuple[int, int]]:
    """How many rows more each fold's others and own have, if a row is added whose coin is 1."""
    others = [("x", 1, 0, "q"), ("y", 2, 4, "p")]
    pairs: Callable[[list[tuple[str, int, int, str]]], list[tuple[int, int]]] = lambda rows: [  # noqa: E731
        (rest.counts.total, own.counts.total)
        for rest, own in Folds.deal(records_of(POLICY, TASK, rows), folds, ScriptedCoins(below=[1] * len(rows))).pairs()
    ]
    return [(b[0] - a[0], b[1] - a[1]) for a, b in zip(pairs(others), pairs([*others, row]), strict=True)]


@pytest.mark.parametrize("folds", [2, 3, 5])
def test_a_row_has_a_part_in_all_models_but_that_of_its_fold(folds: int) -> None:
    for row in ROWS[:6]:
        moved = moved_folds(row, folds)
        assert sorted(moved) == [(0, 1), *[(1, 0)] * (folds - 1)]
    fits = TryModels(GAMMA, Law.LAPLACE, Fraction(1), ((),), folds).fits
    assert fits(Unit()) == folds  # with the model of all rows
    assert fits(Unit(Kind.PERSON, Adjacency.ADD_REMOVE, "id", 2)) == folds + 1


def test_every_row_is_in_one_fold() -> None:
    rows = [row for row in ROWS for _ in range(7)]
    dealt = Folds.deal(records_of(POLICY, TASK, rows), 4, SeededCoins(3))
    assert dealt.counts.sum(axis=1).tolist() == dealt.records.counts.counts.tolist()
    assert (dealt.counts >= 0).all()


NUMBERS = small(method="tuning", target_column="m", column_sets={"all": ["a", "n"], "one": ["a"]}, models=["moments"])


@pytest.mark.parametrize("seed", [0, 2])
def test_a_row_adds_a_closeness_that_is_never_negative_and_at_most_what_the_step_states(seed: int) -> None:
    """Every row of a small universe, fixed models of all sizes: what it adds is its own, whoever else is there."""
    method: Any = NUMBERS.method
    task, step = method.task(NUMBERS.schema), method.tried(NUMBERS.schema)[1]
    chance, units = np.random.default_rng(seed), units_of(task)
    offset, tables = chance.normal(size=1), tuple(chance.normal(size=(size, 1)) * 4.0**seed for size in task.sizes)
    universe = [(a, n, m, "p") for a, n, m in product("xy", (0, 3), range(-5, 6, 2))]
    added = {row: close_rows(offset, tables, records_of(NUMBERS, task, [row]), units) for row in universe}
    others = universe[::5]
    before = close_rows(offset, tables, records_of(NUMBERS, task, others), units)
    for row in universe:
        assert close_rows(offset, tables, records_of(NUMBERS, task, [*others, row]), units) == before + added[row]
    assert step.reach == CLOSE
    assert 0 <= min(added.values()) <= max(added.values()) <= step.reach
    exact = close_rows(np.zeros(1), (), records_of(NUMBERS, task, [("x", 0, 0, "p")]), np.zeros_like(units))
    assert exact == CLOSE
