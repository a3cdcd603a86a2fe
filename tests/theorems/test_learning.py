"""Private learning: how far one row moves every sum, by trying all rows on small tables through the real code.

A bound that no pair of tables reaches is too large, one that some pair exceeds is wrong: both are looked for.
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

from incrowd.accounting.concentrated import epsilon_of_rho, largest_rho, rho_of
from incrowd.core.loss import Pure, ZeroConcentrated
from incrowd.core.steps.counts import Law
from incrowd.core.steps.step import fold
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.methods.learning.shared.moves import gaussian_scale, squared_move
from incrowd.methods.learning.shared.planning import LearningTask
from incrowd.methods.learning.shared.statistics import (
    RESIDUAL,
    Records,
    VectorSpace,
    class_tables,
    cluster_sums,
    gradient,
    moments,
)
from incrowd.methods.learning.shared.steps import (
    CountAllRows,
    CountByTarget,
    FollowGradients,
    ModelForm,
    MoveCenters,
    MultiplyColumns,
    PublishModel,
)
from tests.methods.learning.records import records_of, small

MODEL = PublishModel(ModelForm.GRADIENT)

VECTORS = json.loads((Path(__file__).parent / "vectors_learning.json").read_text(encoding="utf-8"))
POLICY = small()
TASK: LearningTask = POLICY.method.task(POLICY.schema)  # type: ignore[attr-defined]
ROWS = [(a, n, m, t) for a, n, m, t in product("xy", (0, 2), (-4, -1, 4), "pqr")]
OTHERS: list[list[tuple[str, int, int, str]]] = [[], [("x", 1, 0, "q"), ("y", 2, 4, "p")]]
SPACE = VectorSpace.of(TASK.inputs, Fraction(7, 10))
ONE, CLASS = 100, 300
Statistic = Callable[[Records], NDArray[np.int64]]


def contributions(statistic: Statistic) -> list[list[NDArray[np.int64]]]:
    """What each row adds to a statistic, beside each of the other tables."""
    found = []
    for others in OTHERS:
        before = statistic(records_of(POLICY, TASK, others))
        found.append([statistic(records_of(POLICY, TASK, [*others, row])) - before for row in ROWS])
    return found


def squares(vectors: list[NDArray[np.int64]]) -> int:
    """The longest vector, squared."""
    return max(int((each.astype(object) ** 2).sum()) for each in vectors)


def weighed(product_: NDArray[np.int64]) -> NDArray[np.float64]:
    """A symmetric matrix as a vector in which numbers beside the diagonal are weighed by √2."""
    upper = np.triu_indices(len(product_), 1)
    return np.concatenate([np.diagonal(product_).astype(float), math.sqrt(2.0) * product_[upper]])


def test_a_row_adds_one_to_each_table() -> None:
    for vectors in contributions(lambda records: class_tables(records, 3)):
        assert {int(each.sum()) for each in vectors} == {3}
        assert {int(each.max()) for each in vectors} == {1}
        assert squares(vectors) == squared_move(Unit(), 3, aligned=True)
        replaced = max(int(((one - other) ** 2).sum()) for one in vectors for other in vectors)
        assert replaced == squared_move(Unit(adjacency=Adjacency.REPLACE), 3, aligned=True)


@pytest.mark.parametrize("spread", [0, 500, 8 * 1024])
def test_a_row_moves_a_gradient_by_no_more_than_is_paid_for(spread: int) -> None:
    """At the largest scores the bound is nearly reached: the model is sure of something else."""
    chance = np.random.default_rng(spread)
    scores = chance.integers(-spread, spread + 1, (sum(TASK.sizes), 3))
    step = FollowGradients(1, 3, 3, RESIDUAL, Fraction(1))
    bound = squared_move(Unit(), step.square, aligned=False)
    for vectors in contributions(lambda records: gradient(records, 3, np.array([spread, 0, -spread]), scores)):
        assert squares(vectors) <= bound
        if spread > 1000:
            assert squares(vectors) > 0.9 * bound
        replaced = max(int(((one - other) ** 2).sum()) for one in vectors for other in vectors)
        assert replaced <= squared_move(Unit(adjacency=Adjacency.REPLACE), step.square, aligned=False)


def test_products_of_a_row_have_its_length_squared() -> None:
    ends = CLASS * np.eye(3, dtype=np.int64)
    square = SPACE.square + ONE**2 + CLASS**2
    longest = 0.0
    for vectors in contributions(lambda records: moments(records, SPACE.vectors, ends, ONE)):
        lengths = [float((weighed(each) ** 2).sum()) for each in vectors]
        traces = [float(np.trace(each)) for each in vectors]
        assert lengths == pytest.approx([trace**2 for trace in traces])
        assert max(lengths) <= squared_move(Unit(), square**2, aligned=True)
        replaced = max(float(((weighed(one) - weighed(other)) ** 2).sum()) for one in vectors for other in vectors)
        assert replaced <= squared_move(Unit(adjacency=Adjacency.REPLACE), square**2, aligned=True)
        longest = max(longest, *lengths)
    assert longest > 0.95 * square**2, "the bound is larger than it needs to be"


def test_a_row_moves_sums_of_clusters_by_no_more_than_is_paid_for() -> None:
    centers = np.random.default_rng(3).integers(-200, 200, (3, SPACE.width))
    weight = 90
    for vectors in contributions(lambda records: cluster_sums(records, SPACE.vectors, centers, weight)):
        assert squares(vectors) <= squared_move(Unit(), SPACE.square + weight**2, aligned=False)
        assert squares(vectors) > 0.9 * (SPACE.square + weight**2)
        replaced = max(int(((one - other) ** 2).sum()) for one in vectors for other in vectors)
        most = squared_move(Unit(adjacency=Adjacency.REPLACE), SPACE.square + weight**2, aligned=False)
        assert replaced <= most


def test_people_with_several_rows_move_sums_by_so_many_times() -> None:
    """All groups of two rows: their contributions add up, so that none is longer than twice the longest."""
    (vectors, _) = contributions(lambda records: class_tables(records, 3))
    person = Unit(Kind.PERSON, column="id", max_rows=2)
    assert max(int(((a + b) ** 2).sum()) for a in vectors for b in vectors) == squared_move(person, 3, aligned=True)


SUMS: list[Any] = [
    CountByTarget(3, Law.GAUSSIAN, Fraction(20)),
    FollowGradients(30, 8, 1, RESIDUAL, Fraction(10**7)),
    MultiplyColumns(5, 1000, Fraction(20_000), Fraction(15_000)),
    MoveCenters(4, 8, 3, 5, 1000, 10, Fraction(200)),
    CountAllRows(Fraction(50)),
]


@pytest.mark.parametrize("step", SUMS, ids=lambda step: step.kind)
def test_the_price_of_a_sum_is_its_squared_move_over_twice_the_variance(step: Any) -> None:
    by_hand = {
        CountByTarget: Fraction(3, 2 * 20**2),
        FollowGradients: 30 * Fraction(9 * RESIDUAL**2, 2 * 10**14),
        MultiplyColumns: Fraction(1000**2, 2 * 20_000**2),
        MoveCenters: 4 * Fraction(1000 + 10**2, 2 * 200**2),
        CountAllRows: Fraction(1, 2 * 50**2),
    }
    one = fold((step, MODEL), Unit()).loss
    assert one == ZeroConcentrated(by_hand[type(step)])
    several = fold((step, MODEL), Unit(Kind.PERSON, column="id", max_rows=3)).loss
    assert several == ZeroConcentrated(9 * by_hand[type(step)])
    signed = isinstance(step, FollowGradients | MoveCenters)
    replaced = fold((step, MODEL), Unit(adjacency=Adjacency.REPLACE)).loss
    assert replaced == ZeroConcentrated((4 if signed else 2) * by_hand[type(step)])


def test_prices_add_up_whatever_came_out_before() -> None:
    first, second = SUMS[0], SUMS[1]
    both = fold((first, second, MODEL), Unit(), Fraction(1, 10**6))
    alone = [rho_of(fold((step, MODEL), Unit()).loss) for step in (first, second)]
    assert rho_of(both.loss) == (alone[0] or 0) + (alone[1] or 0)


def test_laplace_tables_cost_epsilon_by_the_sum_of_all_changes() -> None:
    step = CountByTarget(5, Law.LAPLACE, Fraction(10))
    assert fold((step, MODEL), Unit()).loss == Pure(Fraction(1, 2))
    assert fold((step, MODEL), Unit(adjacency=Adjacency.REPLACE)).loss == Pure(Fraction(1))


@pytest.mark.parametrize("epsilon", VECTORS["rho"])
def test_the_budget_is_that_of_corollary_13(epsilon: str) -> None:
    assert float(largest_rho(epsilon, VECTORS["delta"])) == pytest.approx(VECTORS["rho"][epsilon], rel=1e-6)


@pytest.mark.parametrize("rho", VECTORS["untuned_eps"])
def test_one_run_costs_what_it_costs_untuned(rho: str) -> None:
    assert epsilon_of_rho(rho, VECTORS["delta"]) == pytest.approx(VECTORS["untuned_eps"][rho], abs=1e-4)


def test_full_batches_are_as_noisy_as_the_best_sampled_ones() -> None:
    """Noise on the mean of 30 gradients, in clips: what zCDP allows is within 8 % of what a loss distribution does."""
    told = VECTORS["sgd_noise_full_batch"]
    rho = largest_rho("1", VECTORS["delta"])
    scale = gaussian_scale(rho / told["rounds"], 1)
    assert told["by_pld"] <= float(scale) / math.sqrt(told["rounds"]) <= 1.08 * told["by_pld"]
