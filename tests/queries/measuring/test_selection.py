"""Groups that passed a threshold: intervals hold the truth in 95 of 100 cases among those that were shown."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from incrowd.mechanisms.vector_noise import GaussianLaw
from incrowd.noise.tails import CubeLaw
from incrowd.queries.measuring.intervals import NoiseLaw, ShownGroup

Floats = NDArray[np.float64]
LAWS: dict[str, NoiseLaw] = {
    "Laplace 0.05": CubeLaw((1,), 1, Fraction(20)),
    "Laplace 0.5": CubeLaw((1,), 1, Fraction(2)),
    "Laplace 5": CubeLaw((1,), 1, Fraction(1, 5)),
    "Gaussian 0.4": GaussianLaw((Fraction(2, 5),)),
    "Gaussian 7": GaussianLaw((Fraction(7),)),
}


def masses(law: NoiseLaw, noise: Floats) -> Floats:
    """Return weights of whole numbers under a law, from its definition."""
    if isinstance(law, CubeLaw):
        return np.exp(-np.abs(noise) / float(law.scale))
    assert isinstance(law, GaussianLaw)
    return np.exp(-((noise / float(law.scales[0])) ** 2) / 2)


@pytest.mark.parametrize("delta", [Fraction(1, 100), Fraction(1, 10**8)], ids=["often", "hardly ever"])
@pytest.mark.parametrize("name", LAWS)
def test_a_count_that_was_shown_lies_in_its_interval_in_95_of_100_cases(name: str, delta: Fraction) -> None:
    """The chance is added up over all noise with which the group is shown: nothing is drawn."""
    law = LAWS[name]
    shown = ShownGroup(0, 1 + law.reach(0, delta), law)
    far = 40 * max(1, law.within(0, 0.05))
    for true in {1, 2, *np.linspace(1, 3 * shown.least, 40).astype(int).tolist()}:
        noisy = np.arange(shown.least, max(shown.least, true) + far, dtype=np.float64)
        low, high = shown.counts(noisy, 0.05)
        chances = masses(law, noisy - true)
        held = float(chances[(low <= true) & (true <= high)].sum() / chances.sum())
        assert held >= 0.95 - 1e-6
        assert (low >= 1).all()
        assert ((low <= noisy) & (noisy <= high)).all()


def test_far_above_the_threshold_the_interval_is_that_of_the_noise_alone() -> None:
    law = CubeLaw((1,), 1, Fraction(2))
    shown = ShownGroup(0, 30, law)
    low, high = shown.counts(np.array([10_000.0]), 0.05)
    assert (low[0], high[0]) == (10_000 - law.within(0, 0.05), 10_000 + law.within(0, 0.05))


def test_a_count_at_the_threshold_may_be_anything_below_it() -> None:
    law = CubeLaw((1,), 1, Fraction(2))
    low, high = ShownGroup(0, 30, law).counts(np.array([30.0]), 0.05)
    assert low[0] == 1
    assert 30 <= high[0] < 30 + law.within(0, 0.05) + 1


def test_a_wide_law_has_few_nodes_and_errs_on_the_safe_side() -> None:
    law = CubeLaw((1,), 1, Fraction(10**6))
    shown = ShownGroup(0, 20 * 10**6, law)
    noisy = shown.least + np.array([0.0, 1e5, 3e6, 1e7, 1e9])
    low, high = shown.counts(noisy, 0.05)
    assert (low <= noisy).all()
    assert (noisy <= high).all()
    assert low[0] == 1
    half = law.within(0, 0.05)
    assert abs(high[-1] - noisy[-1] - half) < 0.02 * half


def test_given_how_far_one_coordinate_is_off_the_others_stay_in_their_box() -> None:
    """Enumerate a small law: P[x] ∝ e^(−J(x) / scale) with J(x) = max ⌈fine · |x_j| / width_j⌉."""
    law = CubeLaw((1, 2), 4, Fraction(6))
    reach = 60
    y = np.arange(-2 * reach, 2 * reach + 1)
    for off in (0, 1, 3, 8):
        radius = np.maximum(np.ceil(4 * off), np.ceil(4 * np.abs(y) / 2))
        chances = np.exp(-radius / 6.0)
        half = law.conditional(0, off, 0.05)[1]
        outside = float(chances[np.abs(y) > half].sum() / chances.sum())
        assert outside <= 0.05
        assert float(chances[np.abs(y) > half - 2].sum() / chances.sum()) > 0.03


@pytest.mark.parametrize("name", LAWS)
def test_marginals_are_those_of_the_law(name: str) -> None:
    law = LAWS[name]
    noise = np.arange(-4000.0, 4001.0)
    chances = masses(law, noise) / masses(law, noise).sum()
    marginal = law.marginal(0)
    for k in (-30, -3, -1, 0, 1, 2, 5, 17):
        assert math.isclose(float(marginal.above(k)), float(chances[noise >= k].sum()), rel_tol=1e-6, abs_tol=1e-12)


def test_a_threshold_that_everything_passes_says_nothing() -> None:
    law = CubeLaw((1,), 1, Fraction(2))
    low, high = ShownGroup(0, -1000, law).counts(np.array([-5.0, 3.0, 50.0]), 0.05)
    half = law.within(0, 0.05)
    assert high.tolist() == [half - 5, 3 + half, 50 + half]
    assert low.tolist() == [1 + (noisy > half + 1) * (noisy - half - 1) for noisy in (-5, 3, 50)]
