"""Intervals that say 95 % cover at least that, whatever the population is like."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from incrowd.measures.risk.frequency_bounds import _exponent, _means_of, frequency_bounds

PEOPLE = 20_000
SHAPES = ("even", "pairs", "long tail", "many uniques", "one class")
RATES = (0.01, 0.05, 0.2)


def classes(shape: str) -> NDArray[np.int64]:
    """Return a population as the class of each person."""
    chance = np.random.default_rng(4)
    return {
        "even": np.arange(PEOPLE) // 7,
        "pairs": np.arange(PEOPLE) // 2,
        "long tail": chance.zipf(1.4, PEOPLE) % 9_000,
        "many uniques": np.where(np.arange(PEOPLE) % 3 > 0, np.arange(PEOPLE), -1 - np.arange(PEOPLE) % 50),
        "one class": np.zeros(PEOPLE, np.int64),
    }[shape]


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_truth_lies_in_the_interval_of_every_population(shape: str, rate: float) -> None:
    """At a confidence of 1 − 1e-8 in each of 30 runs: a correct interval fails with probability at most 3e-7."""
    _, people = np.unique(classes(shape), return_inverse=True)
    size = np.bincount(people)
    chance = np.random.default_rng(8)
    for _ in range(2):
        rows = np.bincount(people[chance.random(PEOPLE) < rate], minlength=len(size))
        bounds = frequency_bounds(rows[rows > 0], rate, 1 - 1e-8)
        alone = size[rows == 1]
        assert bounds.possible
        assert bounds.tau1[0] <= np.count_nonzero(alone == 1) <= bounds.tau1[1]
        assert bounds.tau2[0] <= (1.0 / alone).sum() <= bounds.tau2[1]


def test_uniques_are_shown_where_the_sample_is_large() -> None:
    """A sample of half the people of a population of uniques has no pairs: nobody can be one of many."""
    bounds = frequency_bounds(np.ones(5_000, np.int64), 0.5)
    assert bounds.tau1[0] > 4_500
    twins = frequency_bounds(np.repeat([1, 2], [5_000, 2_500]), 0.5)
    assert twins.tau1[1] < 2_000


def test_sizes_that_no_random_sample_has_are_called_so() -> None:
    bounds = frequency_bounds(np.full(5_000, 3), 0.01)
    assert not bounds.possible
    assert bounds.tau1 == (0.0, 0.0)


@pytest.mark.parametrize("mean", [0.02, 0.5, 3.0, 40.0])
def test_sums_leave_the_range_of_their_mean_no_oftener_than_stated(mean: float) -> None:
    """Compared with the exact tails of a sum of 200 indicators."""
    values = np.arange(201)
    for tail, side in (
        (binom.sf(values - 1, 200, mean / 200), values >= mean),
        (binom.cdf(values, 200, mean / 200), values <= mean),
    ):
        limits = np.exp([-_exponent(float(value), mean) for value in values])
        assert (tail[side] <= limits[side] + 1e-15).all()


def test_the_means_of_a_sum_are_those_from_which_it_is_not_far() -> None:
    for value in (0.0, 1.0, 17.0):
        low, high = _means_of(value, 5.0)
        assert all(_exponent(value, end) == pytest.approx(5.0, abs=1e-6) for end in (low, high) if end > 1e-9)
