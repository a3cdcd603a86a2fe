"""Private trees, sums by column, grids and samples: how far one row moves them, by trying all rows in the real code."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from incrowd.accounting.accountant import epsilon as epsilon_of
from incrowd.core.loss import Gaussian, Pure, Sampled, Sequence, ZeroConcentrated
from incrowd.core.steps.counts import Law
from incrowd.core.steps.step import fold
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.errors import InvalidParameter
from incrowd.methods.learning.kmeans import grid_parts
from incrowd.methods.learning.shared.growth import (
    FINE,
    GrowthGoal,
    cut_scores,
    dealt_sums,
    half_gini,
    leaf_sums,
    node_sums,
    squared_spread,
)
from incrowd.methods.learning.shared.moves import squared_move
from incrowd.methods.learning.shared.planning import LearningTask
from incrowd.methods.learning.shared.statistics import RESIDUAL, VectorSpace, grid_counts, number_gradient, target_sums
from incrowd.methods.learning.shared.steps import CountGrid, ModelForm, PublishModel, SumByColumn
from incrowd.methods.learning.shared.streaming import FINE as ROUND
from incrowd.methods.learning.shared.streaming import column_counts, column_residuals, number_residuals, quietest
from incrowd.methods.learning.shared.tree_steps import CountLeaves, GrowTrees, SampleGradients, SumLeaves
from incrowd.methods.learning.shared.trees import SplitCandidates, TreeSplits
from incrowd.verifier.slow_accountant import derive
from incrowd.verifier.slow_accountant.contour import SampledGaussian, sampled_delta
from tests.coins import ScriptedCoins
from tests.methods.learning.records import records_of, small

MODEL = PublishModel(ModelForm.GRADIENT)

Row = tuple[str, int, int, str]
POLICY = small()
TASK: LearningTask = POLICY.method.task(POLICY.schema)  # type: ignore[attr-defined]
ROWS: list[Row] = [(a, n, m, t) for a, n, m, t in product("xy", (0, 2), (-4, 4), "pqr")]
OTHERS: list[list[Row]] = [[], [("x", 1, 0, "q"), ("y", 2, 4, "p"), ("x", 0, -4, "p")]]
EVERY = SplitCandidates.of(TASK.sizes, TASK.ordered)
ROOT = TreeSplits(np.array([1]), np.array([1]))
NONE = TreeSplits(np.zeros(0, np.int64), np.zeros(0, np.int64))
UNITS = np.array([-256, 10, 256])
GOALS = {"classes": GrowthGoal.classes(3), "numbers": GrowthGoal.numbers(UNITS)}
REPLACED, PAIR = Unit(adjacency=Adjacency.REPLACE), Unit(Kind.PERSON, column="id", max_rows=2)


def scores(rows: list[Row], goal: GrowthGoal, cuts: TreeSplits) -> NDArray[np.int64]:
    """The scores of all cuts in the leaves of some cuts."""
    sums = node_sums(records_of(POLICY, TASK, rows), goal, cuts, TASK.ordered)
    return cut_scores(sums, goal, EVERY, ((*TASK.sizes, 3), TASK.ordered))


def test_half_gini_grows_by_a_row_at_most() -> None:
    """Every table of up to three classes with up to seven rows each; a large pure one comes near to the bound."""
    every = np.array(list(product(range(8), repeat=3)), dtype=object)
    before = half_gini(every)
    for place in range(3):
        more = every.copy()
        more[:, place] += 1
        grown = half_gini(more) - before
        assert grown.min() >= 0
        assert grown.max() <= FINE
    far = half_gini(np.array([[1, 10**6]], dtype=object)) - half_gini(np.array([[0, 10**6]], dtype=object))
    assert far[0] >= FINE - 1


def test_the_spread_of_numbers_grows_by_a_row_at_most() -> None:
    for numbers in product(range(5), repeat=4):
        before = squared_spread(np.array([[4, sum(numbers), sum(n * n for n in numbers)]], dtype=object), 4)
        for more in range(5):
            told = (*numbers, more)
            after = squared_spread(np.array([[5, sum(told), sum(n * n for n in told)]], dtype=object), 4)
            assert 0 <= after[0] - before[0] <= FINE
    far = squared_spread(np.array([[10**6, 4, 16]], dtype=object), 4)
    assert far[0] >= FINE - 1


@pytest.mark.parametrize("goal", GOALS.values(), ids=GOALS)
@pytest.mark.parametrize("cuts", [NONE, ROOT], ids=["root", "second level"])
def test_a_row_moves_all_scores_of_one_node_the_same_way(goal: GrowthGoal, cuts: TreeSplits) -> None:
    """By at most 1; rows of a person together by as many as they are, replaced ones by twice that from end to end."""
    for others in OTHERS:
        before = scores(others, goal, cuts)
        moves = [scores([*others, row], goal, cuts) - before for row in ROWS]
        assert all(move.max() <= 0 and move.min() >= -FINE for move in moves)
        assert all((move != 0).any(axis=1).sum() <= 1 for move in moves), "a row is in one node of a level"
        spans = [np.ptp((one - other).reshape(len(before), -1), axis=1) for one in moves for other in moves]
        most = squared_move(REPLACED, 1, aligned=False)
        assert max(float((span.astype(float) ** 2).sum()) for span in spans) <= most * FINE**2
        two = [scores([*others, one, other], goal, cuts) - before for one in ROWS[::5] for other in ROWS[::7]]
        spans = [np.ptp(move, axis=1) for move in two]
        assert (
            max(float((span.astype(float) ** 2).sum()) for span in spans)
            <= squared_move(PAIR, 1, aligned=False) * FINE**2
        )


def law(rows: list[Row], goal: GrowthGoal, epsilon: float) -> NDArray[np.float64]:
    """The exact chance of every tree of two levels."""
    first = chances(scores(rows, goal, NONE), epsilon)[0]
    found = []
    for place, chance in enumerate(first):
        cuts = TreeSplits(EVERY.columns[place : place + 1], EVERY.codes[place : place + 1])
        left, right = chances(scores(rows, goal, cuts), epsilon)
        found.append(chance * np.outer(left, right).ravel())
    return np.concatenate(found)


def chances(scores_: NDArray[np.int64], epsilon: float) -> NDArray[np.float64]:
    weights = np.exp(epsilon * (scores_ - scores_.max(axis=1, keepdims=True)) / FINE)
    shares: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return shares


@pytest.mark.parametrize("goal", GOALS.values(), ids=GOALS)
def test_a_grown_tree_costs_an_eighth_of_the_square_of_epsilon_a_level(goal: GrowthGoal) -> None:
    """All trees of two levels, their exact chances with and without each row: Rényi divergences of every order."""
    step = GrowTrees(1, 2, len(EVERY), Fraction(2))
    loss = fold((step, MODEL), Unit()).loss
    assert isinstance(loss, ZeroConcentrated)
    largest = 0.0
    others = OTHERS[1]
    without = law(others, goal, 2.0)
    for row in ROWS[:: 5 if goal is GOALS["numbers"] else 2]:
        with_row = law([*others, row], goal, 2.0)
        for one, other in ((with_row, without), (without, with_row)):
            assert np.log(one / other).max() <= 2 * 2.0 + 1e-9, "and two levels are 2ε-private"
            for alpha in (1.5, 2.0, 8.0):
                divergence = math.log(float((one**alpha * other ** (1 - alpha)).sum())) / (alpha - 1)
                assert divergence <= alpha * float(loss.rho) + 1e-12
                largest = max(largest, divergence / (alpha * float(loss.rho)))
    assert largest > 0.05


def moved(statistic: Any) -> list[NDArray[np.int64]]:
    """What each row adds to a statistic, beside the same others."""
    before = statistic(records_of(POLICY, TASK, OTHERS[1]))
    return [statistic(records_of(POLICY, TASK, [*OTHERS[1], row])) - before for row in ROWS]


def longest(vectors: list[NDArray[np.int64]]) -> int:
    return max(int((each.astype(object) ** 2).sum()) for each in vectors)


def farthest(vectors: list[NDArray[np.int64]]) -> int:
    return max(int(((one - other).astype(object) ** 2).sum()) for one in vectors for other in vectors)


def test_a_row_is_in_one_leaf_of_each_tree() -> None:
    forest = (ROOT, TreeSplits(np.array([0]), np.array([0])))
    counts = moved(lambda records: leaf_sums(records, np.eye(3, dtype=np.int64), forest, TASK.ordered))
    step = CountLeaves(2, 1, dealt=False, noise=Law.GAUSSIAN, scale=Fraction(1))
    assert longest(counts) == squared_move(Unit(), step.counts, aligned=True)
    assert farthest(counts) == squared_move(REPLACED, step.counts, aligned=True)
    weights = np.stack([np.full(3, 181), UNITS], axis=1)
    sums = moved(lambda records: leaf_sums(records, weights, forest, TASK.ordered))
    square = SumLeaves(2, 1, 256, 181, Fraction(1)).square
    assert longest(sums) == square
    assert farthest(sums) <= squared_move(REPLACED, square, aligned=False)


def dealt_law(rows: list[Row], forest: tuple[TreeSplits, ...]) -> Counter[bytes]:
    """How often each outcome is dealt, over all ways in which the coins of the rows come up."""
    records, found = records_of(POLICY, TASK, rows), Counter[bytes]()
    for coins in product(range(len(forest)), repeat=len(rows)):
        script = ScriptedCoins(below=coins)
        sums = dealt_sums(records, np.eye(3, dtype=np.int64), forest, TASK.ordered, script)
        assert script.used_up, "a coin for each row"
        found[sums.tobytes()] += 1
    return found


def test_a_dealt_row_adds_one_to_one_count_of_all_trees_and_no_other_row_changes_place() -> None:
    """The exact law with a row is that without it, shifted by one count: in each tree with the same chance."""
    forest = (ROOT, TreeSplits(np.array([0]), np.array([0])))
    others = [("x", 1, 0, "q"), ("x", 1, 0, "q"), ("y", 2, 4, "p")]
    without = dealt_law(others, forest)
    for row in ROWS[::4]:
        both = leaf_sums(records_of(POLICY, TASK, [row]), np.eye(3, dtype=np.int64), forest, TASK.ordered)
        expected = Counter[bytes]()
        for outcome, times in without.items():
            for tree in range(2):
                more = np.frombuffer(outcome, np.int64).reshape(both.shape).copy()
                more[tree] += both[tree]
                expected[more.tobytes()] += times
        assert dealt_law([*others, row], forest) == expected


def test_a_row_moves_sums_by_column_and_residuals_by_no_more_than_is_paid_for() -> None:
    sums = moved(lambda records: target_sums(records, UNITS, 181))
    square = SumByColumn(3, 256, 181, Fraction(1)).square
    assert longest(sums) == square
    assert farthest(sums) <= squared_move(REPLACED, square, aligned=False)
    for spread in (0, 4000):
        values = np.random.default_rng(spread).integers(-spread, spread + 1, (sum(TASK.sizes), 1))
        gradients = moved(lambda records, v=values: number_gradient(records, 4 * UNITS, np.array([99]), v))
        assert longest(gradients) <= 4 * RESIDUAL**2
        assert farthest(gradients) <= squared_move(REPLACED, 4 * RESIDUAL**2, aligned=False)
        assert spread == 0 or longest(gradients) == 4 * RESIDUAL**2


def test_a_row_lies_in_one_cell_of_a_grid() -> None:
    policy = small(method="kmeans", target_column=None, clusters=2, columns=["n", "m"], expected_rows=500)
    task = policy.method.task(policy.schema)  # type: ignore[attr-defined]
    parts = grid_parts(VectorSpace.of(task.inputs, Fraction(1, 2)), 3)
    before = grid_counts(records_of(policy, task, OTHERS[1]), parts, 3)
    vectors = [grid_counts(records_of(policy, task, [*OTHERS[1], row]), parts, 3) - before for row in ROWS]
    assert longest(vectors) == 1
    assert farthest(vectors) == squared_move(REPLACED, 1, aligned=True)
    assert {int(each.argmax()) for each in vectors} == {0, 2, 6, 8}


PRICES: list[tuple[Any, Fraction, int]] = [
    (GrowTrees(2, 3, 9, Fraction(1, 2)), 6 * Fraction(1, 4) / 8, 4),
    (CountLeaves(3, 2, dealt=False, noise=Law.GAUSSIAN, scale=Fraction(20)), Fraction(3, 2 * 20**2), 2),
    (CountLeaves(3, 2, dealt=True, noise=Law.GAUSSIAN, scale=Fraction(20)), Fraction(1, 2 * 20**2), 2),
    (SumLeaves(2, 2, 256, 181, Fraction(900)), Fraction(2 * (256**2 + 181**2), 2 * 900**2), 4),
    (SumByColumn(5, 256, 181, Fraction(900)), Fraction(5 * (256**2 + 181**2), 2 * 900**2), 4),
    (CountGrid(2, 9, Law.GAUSSIAN, Fraction(20)), Fraction(1, 2 * 20**2), 2),
]


@pytest.mark.parametrize(("step", "rho", "replaced"), PRICES, ids=lambda each: getattr(each, "kind", ""))
def test_prices_are_those_by_hand(step: Any, rho: Fraction, replaced: int) -> None:
    assert fold((step, MODEL), Unit()).loss == ZeroConcentrated(rho)
    assert fold((step, MODEL), PAIR).loss == ZeroConcentrated(4 * rho)
    assert fold((step, MODEL), REPLACED).loss == ZeroConcentrated(replaced * rho)


def test_counts_with_laplace_noise_cost_epsilon_by_what_a_row_adds() -> None:
    dealt = CountLeaves(9, 2, dealt=True, noise=Law.LAPLACE, scale=Fraction(10))
    everywhere = CountLeaves(9, 2, dealt=False, noise=Law.LAPLACE, scale=Fraction(10))
    grid = CountGrid(2, 9, Law.LAPLACE, Fraction(10))
    for step, epsilon in ((dealt, Fraction(1, 10)), (everywhere, Fraction(9, 10)), (grid, Fraction(1, 10))):
        assert fold((step, MODEL), Unit()).loss == Pure(epsilon)
        assert fold((step, MODEL), REPLACED).loss == Pure(2 * epsilon)
        assert fold((step, MODEL), PAIR).loss == Pure(2 * epsilon)


@pytest.mark.parametrize("spread", [0, 3000])
def test_a_drawn_row_moves_one_sum_of_a_round_by_one_at_most(spread: int) -> None:
    """Whatever the scores: by a whole number that the noise is made for."""
    values = np.random.default_rng(7).integers(-spread, spread + 1, (sum(TASK.sizes), 3))
    for column in range(3):
        counts = moved(lambda records, c=column: column_counts(records, 3, c))
        assert {int(np.abs(each).sum()) for each in counts} == {ROUND}
        for output in range(3):
            sums = moved(lambda records, turn=(column, output): column_residuals(records, 3, values, turn))
            assert all((each != 0).sum() <= 1 for each in sums)
            assert ROUND // 2 <= max(int(np.abs(each).max()) for each in sums) <= ROUND
        sums = moved(lambda records, c=column: number_residuals(records, UNITS * 4, values[:, :1], c))
        assert all((each != 0).sum() <= 1 for each in sums)
        assert ROUND // 2 <= max(int(np.abs(each).max()) for each in sums) <= ROUND


def test_samples_cost_what_a_loss_distribution_says_twice() -> None:
    """The noise that is chosen costs at most ε, little less, and the slow accountant derives no more than δ."""
    rate, delta = Fraction(1, 10), Fraction(1, 10**6)
    for epsilon in (Fraction(1, 2), Fraction(3)):
        scale = quietest(epsilon, delta, rate, 88)
        loss = fold((SampleGradients(88, rate, ROUND, scale), MODEL), Unit(), delta).loss
        assert loss == Sequence((Sampled(rate, Gaussian(scale, ROUND)),) * 88)
        spent = epsilon_of(loss, delta).value
        assert 0.95 * epsilon <= spent <= epsilon
        derived = derive(loss, Unit(), Fraction(spent), delta)
        assert derived is not None
        assert derived.whole
        assert 0.9 * float(delta) <= derived.delta <= float(delta)


def composed(losses: np.ndarray[Any, Any], masses: np.ndarray[Any, Any], number: int, epsilon: float) -> float:
    """Return δ at ε of so many losses on a grid of 1e-3, by one convolution after the other."""
    first, law = int(losses.min()), np.bincount(losses - losses.min(), masses)
    whole, start = np.ones(1), 0
    for _ in range(number):
        whole, start = np.convolve(whole, law), start + first
    at = (start + np.arange(len(whole))) / 1000
    return float((whole * np.maximum(0.0, -np.expm1(epsilon - at))).sum())


@pytest.mark.parametrize("number", [8, 20])
def test_the_slow_derivation_of_samples_is_that_of_all_outcomes(number: int) -> None:
    """Losses of every outcome, rounded down and up to a grid, bound the derived δ from both sides."""
    rate, scale, reach = 0.3, 2.0, 24
    outcomes = np.arange(-reach, reach + 2, dtype=float)
    law = np.exp(-(outcomes**2) / (2 * scale**2))
    without, with_you = law / law.sum(), np.exp(-((outcomes - 1) ** 2) / (2 * scale**2)) / law.sum()
    mixed = (1 - rate) * without + rate * with_you
    for epsilon in (0.5, 2.0):
        ends = []
        for rounded in (np.floor, np.ceil):
            sides = ((mixed, without), (without, mixed))
            ends.append(max(composed(rounded(1000 * np.log(p / q)).astype(int), p, number, epsilon) for p, q in sides))
        derived = sampled_delta([SampledGaussian(Fraction(3, 10), Fraction(2), 1, number)], epsilon)
        assert derived is not None
        assert ends[0] * (1 - 1e-6) <= derived <= ends[1] * (1 + 1e-6)


@pytest.mark.parametrize("unit", [REPLACED, PAIR], ids=str)
def test_samples_of_people_with_several_rows_or_replaced_ones_are_refused(unit: Unit) -> None:
    with pytest.raises(InvalidParameter, match="everybody has one"):
        fold((SampleGradients(9, Fraction(1, 10), ROUND, Fraction(99)), MODEL), unit)
