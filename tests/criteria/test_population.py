"""Estimates of how many people are unique: simulated populations, limiting cases, and what is done without one."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from incrowd.criteria.partition import Partition
from incrowd.criteria.uniqueness.criterion import Estimator, PopulationUniqueness, estimate_uniques, unique_share
from incrowd.criteria.uniqueness.models import Pitman, classes_of_population, fit_pitman, reciprocals, snb_uniques
from incrowd.errors import InvalidParameter

Sizes = NDArray[np.int64]
SIZES = st.lists(st.integers(1, 12), min_size=2, max_size=30).map(lambda each: np.array(each, np.int64))


def restaurant(people: int, theta: float, alpha: float) -> NDArray[np.int64]:
    """Return the class of each person: who comes joins a class of i with weight i − α, or founds one."""
    chance, owners, sizes = random.Random(4), [0], [1]
    for seated in range(1, people):
        if chance.random() * (theta + seated) < theta + len(sizes) * alpha:
            owners.append(len(sizes))
            sizes.append(1)
            continue
        joined = owners[chance.randrange(seated)]
        while chance.random() < alpha / sizes[joined]:
            joined = owners[chance.randrange(seated)]
        owners.append(joined)
        sizes[joined] += 1
    return np.array(owners)


def sampled(owners: NDArray[np.int64], share: float, seed: int = 6) -> Sizes:
    drawn = np.random.default_rng(seed).choice(owners, int(share * len(owners)), replace=False)
    sizes = np.bincount(drawn)
    return sizes[sizes > 0]


def likelihood(sizes: Sizes, theta: float, alpha: float) -> float:
    founding = sum(math.log(theta + place * alpha) for place in range(1, len(sizes)))
    coming = sum(math.log(theta + place) for place in range(1, int(sizes.sum())))
    return founding - coming + sum(math.log(place - alpha) for size in sizes.tolist() for place in range(1, size))


@settings(max_examples=60)
@given(SIZES, st.floats(-3, 3), st.floats(-0.3, 0.3))
def test_no_other_parameters_are_more_likely(sizes: Sizes, log: float, shift: float) -> None:
    found = fit_pitman(sizes)
    if found is None:
        assert len(sizes) in (1, sizes.sum())
        return
    assert 0 <= found.alpha < 1
    assert found.theta > -found.alpha
    alpha = min(max(found.alpha + shift, 0.0), 0.999)
    theta = (found.theta + found.alpha) * math.exp(log) - alpha
    if theta > -alpha:
        assert likelihood(sizes, theta, alpha) <= likelihood(sizes, found.theta, found.alpha) + 1e-9


def test_without_alpha_the_score_is_that_of_ewens() -> None:
    sizes = np.array([3, 3, 3, 3, 4, 2])
    found = fit_pitman(sizes)
    assert found is not None
    assert found.alpha == 0
    expected = sum(found.theta / (found.theta + place) for place in range(int(sizes.sum())))
    assert expected == pytest.approx(len(sizes), rel=1e-12)
    assert found.uniques(1000) == pytest.approx(1000 * found.theta / (found.theta + 999), rel=1e-10)


@given(st.floats(0.01, 200), st.floats(0, 1), st.integers(0, 400))
def test_sums_of_reciprocals_are_right(start: float, step: float, terms: int) -> None:
    expected = math.fsum(1 / (start + place * step) for place in range(1, terms + 1))
    assert reciprocals(start, step, terms) == pytest.approx(expected, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize(("theta", "alpha"), [(50.0, 0.3), (200.0, 0.6), (500.0, 0.8)])
def test_the_expected_number_of_uniques_is_that_of_simulated_populations(theta: float, alpha: float) -> None:
    seen = float((np.bincount(restaurant(20_000, theta, alpha)) == 1).sum())
    expected = Pitman(theta, alpha).uniques(20_000)
    assert seen == pytest.approx(expected, rel=0.1)


def test_pitman_finds_its_own_populations_from_small_samples() -> None:
    owners = restaurant(40_000, 300.0, 0.6)
    truth = float((np.bincount(owners) == 1).sum())
    found = fit_pitman(sampled(owners, 0.05))
    assert found is not None
    assert found.alpha == pytest.approx(0.6, abs=0.05)
    assert found.uniques(40_000) == pytest.approx(truth, rel=0.15)


@pytest.mark.parametrize(("alpha", "beta"), [(0.5, 0.2), (0.2, 0.02), (2.0, 0.5)])
def test_snb_finds_its_own_populations_from_large_samples(alpha: float, beta: float) -> None:
    chance = np.random.default_rng(8)
    people = 1 + chance.negative_binomial(alpha, beta, 20_000)
    owners = np.repeat(np.arange(len(people)), people)
    sizes = sampled(owners, 0.6)
    assert classes_of_population(sizes, 0.6) == pytest.approx(20_000, rel=0.03)
    assert snb_uniques(sizes, len(owners)) == pytest.approx(float((people == 1).sum()), rel=0.08)


def test_the_rule_chooses_by_the_share_that_was_drawn() -> None:
    owners = restaurant(20_000, 100.0, 0.5)
    small, large = sampled(owners, 0.05), sampled(owners, 0.4)
    assert estimate_uniques(small, 20_000, "dankar") == (unique_share(small, 20_000, "pitman"), "pitman")
    models: list[Estimator] = ["snb", "zayatz"]
    share, model = estimate_uniques(large, 20_000, "dankar")
    assert model in models
    assert share == min(unique_share(large, 20_000, each) for each in models)


def test_where_a_model_has_no_estimate_zayatz_stands_in() -> None:
    alone, odd = np.ones(20, np.int64), np.array([1, 1, 3, 3])
    assert fit_pitman(alone) is None
    assert snb_uniques(odd, 20) is None
    for sizes, people, model in ((alone, 1000, "pitman"), (odd, 20, "snb")):
        for estimator in (model, "dankar"):
            found = estimate_uniques(sizes, people, estimator)  # type: ignore[arg-type]
            assert found == (unique_share(sizes, people), "zayatz")


@pytest.mark.parametrize("estimator", ["zayatz", "pitman", "snb", "dankar"])
def test_what_is_known_is_not_estimated(estimator: Estimator) -> None:
    assert unique_share(np.array([1, 1, 2]), 4, estimator) == 0.5
    assert unique_share(np.array([2, 5]), 100, estimator) == 0.0
    assert unique_share(np.zeros(0, np.int64), 100, estimator) == 0.0
    with pytest.raises(InvalidParameter, match="does not fit"):
        unique_share(np.array([5]), 4, estimator)


@given(SIZES, st.integers(1, 50), st.sampled_from(["zayatz", "pitman", "snb", "dankar"]))
def test_shares_are_shares_and_the_criterion_follows_them(sizes: Sizes, times: int, estimator: Estimator) -> None:
    people = int(sizes.sum()) * times
    share = unique_share(sizes, people, estimator)
    assert 0 <= share <= 1
    kept = PopulationUniqueness("0.05", people, estimator).met(Partition(sizes))
    assert kept.tolist() == (sizes > (0 if share <= 0.05 else 1)).tolist()


def test_an_estimator_that_nobody_knows_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="zayatz, pitman, snb, dankar"):
        PopulationUniqueness("0.05", 100, "guess")  # type: ignore[arg-type]
