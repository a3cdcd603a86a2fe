"""Marginals by least squares: the closed form is that of matrices, and the choice is near the best of all sets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from incrowd.queries.workloads.atoms import NoiseKind
from incrowd.queries.workloads.marginals import Axes, KeyMarginals, subsets
from tests.queries.workloads.dense import least_squares, marginal_matrix

PAIRS = tuple(itertools.combinations(range(6), 2))
SURVEY = (2, 3, 4, 5, 3, 2)
"""Sex, age group, region, work, school, home."""


def dense_error(asked: KeyMarginals, sets: tuple[Axes, ...], precisions: list[float]) -> float:
    numbers = np.concatenate([marginal_matrix(asked.sizes, axes) for axes in asked.questions])
    parts = [marginal_matrix(asked.sizes, axes) for axes in sets]
    return float(least_squares(numbers, parts, precisions)[1].sum())


@pytest.mark.parametrize("seed", range(6))
def test_answers_and_variances_are_those_of_matrices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = tuple(rng.integers(1, 4, 4).tolist())
    every = list(subsets((0, 1, 2, 3)))
    sets = [every[at] for at in rng.choice(len(every), 4, replace=False)]
    asked = tuple({each for axes in sets for each in subsets(axes)})
    found, precisions = KeyMarginals(sizes, asked), rng.uniform(0.1, 3.0, len(sets)).tolist()
    noisy = [rng.integers(-50, 50, found.cells(axes)) for axes in sets]
    numbers = np.concatenate([marginal_matrix(sizes, axes) for axes in asked])
    factors, variances = least_squares(numbers, [marginal_matrix(sizes, axes) for axes in sets], precisions)
    answers = np.concatenate([each.reshape(-1) for each in found.answers(sets, precisions, noisy)])
    assert np.allclose(answers, factors @ np.concatenate(noisy), rtol=1e-9, atol=1e-9)
    each = zip(found.variances(sets, precisions), asked, strict=True)
    told = np.concatenate([np.full(found.cells(axes), variance) for variance, axes in each])
    assert np.allclose(told, variances, rtol=1e-9)


@pytest.mark.parametrize("noise", NoiseKind)
@pytest.mark.parametrize(
    ("sizes", "asked"),
    [
        ((2, 2, 2), ((0, 1), (0, 2), (1, 2))),
        ((2, 5, 3), ((0, 1), (0, 2), (1, 2))),
        ((7, 2, 9), ((), (0,), (0, 1), (2,))),
        ((3, 4), ((0,), (1,), (0, 1))),
    ],
)
def test_what_is_chosen_is_near_the_best_of_all_sets_of_tables(
    sizes: tuple[int, ...], asked: tuple[Axes, ...], noise: NoiseKind
) -> None:
    found = KeyMarginals(sizes, asked)
    chosen = found.strategy(noise)
    assert chosen is not None
    every = list(subsets(tuple(range(len(sizes)))))
    best = np.inf
    for number in range(1, len(every) + 1):
        for sets in itertools.combinations(every, number):
            if all(any(set(each) <= set(axes) for axes in sets) for each in asked):
                best = min(best, sum(made.error for made in itertools.islice(found.weighed(sets, noise), 1)))
    assert chosen.error <= 1.1 * best
    shares = np.array(chosen.shares) / sum(chosen.shares)
    precisions = noise.precisions(shares).tolist()
    assert dense_error(found, chosen.sets, precisions) == pytest.approx(chosen.error, rel=1e-9)


@pytest.mark.parametrize("noise", NoiseKind)
def test_of_all_that_is_considered_nothing_is_much_better(noise: NoiseKind) -> None:
    found = KeyMarginals((2, 3, 2, 4), tuple(itertools.combinations(range(4), 2)))
    chosen = found.strategy(noise)
    assert chosen is not None
    for sets in found.candidates(noise):
        for made in found.weighed(sets, noise):
            shares = np.array(made.shares) / sum(made.shares)
            dense = dense_error(found, made.sets, noise.precisions(shares).tolist())
            assert dense == pytest.approx(made.error, rel=1e-9)
            assert chosen.error <= 1.1 * dense


def test_pairs_of_the_six_columns_of_a_survey_are_three_times_better_than_equal_shares() -> None:
    found = KeyMarginals(SURVEY, PAIRS)
    chosen = found.strategy(NoiseKind.LAPLACE)
    assert chosen is not None
    assert sum(found.cells(axes) for axes in PAIRS) * 15**2 > 4 * chosen.error


def test_a_domain_of_a_trillion_cells_is_planned_all_the_same() -> None:
    chosen = KeyMarginals((100,) * 6, PAIRS).strategy(NoiseKind.GAUSSIAN)
    assert chosen is not None
    assert chosen.error < 1.05 * 15 * 15 * 100**2


@pytest.mark.parametrize("noise", NoiseKind)
def test_work_of_planning_is_bounded_however_many_keys_are_told_apart(noise: NoiseKind) -> None:
    """Thousands of subsets of keys, and hundreds of tables that could be measured, are not held against each other."""
    rng = np.random.default_rng(4)
    asked = tuple(tuple(sorted(rng.choice(16, 13, replace=False).tolist())) for _ in range(7))
    found = KeyMarginals((2,) * 16, asked)
    needed = len({each for axes in asked for each in subsets(axes)})
    considered = found.candidates(noise)
    assert considered
    assert max(len(sets) * needed for sets in considered) <= 2**19
    assert KeyMarginals((2,) * 16, tuple(itertools.combinations(range(16), 14))).strategy(noise) is None
