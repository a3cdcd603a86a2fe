"""Added noise: what it costs and what it refuses."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from incrowd.core.coins import Coins
from incrowd.core.loss import Approximate, Gaussian, Laplace, Sequence
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.add_noise import AddGaussian, AddLaplace, Threshold
from incrowd.mechanisms.numbers import WIDEST
from incrowd.noise.system import SystemCoins
from tests.coins import ScriptedCoins, law_of

ONE = Fraction(1)


def test_noise_is_added_number_by_number() -> None:
    assert AddLaplace(ONE).release(np.array([10, 20]), ScriptedCoins(laplace=[-3, 4])).tolist() == [7, 24]
    assert AddGaussian(ONE).release(np.array([10, 20]), ScriptedCoins(gaussian=[1, 0])).tolist() == [11, 20]


def test_a_table_of_numbers_keeps_its_shape() -> None:
    noisy = AddLaplace(ONE).release(np.array([[1, 2], [3, 4]]), ScriptedCoins(laplace=[10, 20, 30, 40]))
    assert noisy.tolist() == [[11, 22], [33, 44]]


def test_epsilon_becomes_a_scale_exactly() -> None:
    mechanism = AddLaplace.costing("0.3", sensitivity=2, groups=3)
    assert mechanism.scale == 20
    assert mechanism.loss == Sequence((Laplace(Fraction(20), 2),) * 3)


def test_guarantees_follow_from_the_parameters() -> None:
    assert AddLaplace(ONE).loss == Laplace(ONE)
    assert AddGaussian(Fraction(7, 2), 3, 2).loss == Sequence((Gaussian(Fraction(7, 2), 3),) * 2)


def test_noise_does_not_wrap_around() -> None:
    top = np.array([2**63 - 1, -(2**63)])
    noisy = AddLaplace(ONE).release(top, ScriptedCoins(laplace=[2**62, -(2**62)]))
    assert noisy.tolist() == [WIDEST, -WIDEST]


def test_the_input_is_left_alone() -> None:
    counts: NDArray[np.int64] = np.array([1, 2, 3])
    AddLaplace(Fraction(1000)).release(counts, SystemCoins())
    assert counts.tolist() == [1, 2, 3]


def test_floating_point_numbers_are_refused() -> None:
    for mechanism in (AddLaplace(ONE), AddGaussian(ONE)):
        with pytest.raises(InvalidParameter, match="fixed factor"):
            mechanism.release(np.array([0.5]), SystemCoins())


@pytest.mark.parametrize(("scale", "sensitivity", "groups"), [(0, 1, 1), (1, 0, 1), (1, 1, 0), (-1, 1, 1)])
def test_parameters_without_meaning_are_refused(scale: int, sensitivity: int, groups: int) -> None:
    for kind in (AddLaplace, AddGaussian):
        with pytest.raises(InvalidParameter):
            kind(Fraction(scale), sensitivity, groups)


Released = tuple[tuple[str, int], ...]


def released(mechanism: Threshold, counts: dict[str, int]) -> dict[Released, float]:
    keys = list(counts)

    def run(coins: Coins) -> Released:
        kept, noisy = mechanism.release(np.array(list(counts.values()), dtype=np.int64), coins)
        return tuple((keys[i], count) for i, count in zip(kept.tolist(), noisy.tolist(), strict=True))

    return law_of(run, reach=40)


def excess(one: dict[Released, float], other: dict[Released, float], epsilon: float) -> float:
    """Return the least delta at epsilon, in one direction."""
    return math.fsum(max(0.0, mass - math.exp(epsilon) * other.get(out, 0.0)) for out, mass in one.items())


@pytest.mark.parametrize("delta", [Fraction(1, 100), Fraction(1, 20), Fraction(1, 5)])
def test_a_person_with_a_key_of_her_own_is_protected(delta: Fraction) -> None:
    mechanism = Threshold(AddLaplace.costing(1, groups=2), delta)
    without, with_her = released(mechanism, {"a": 4}), released(mechanism, {"a": 5, "hers": 1})
    assert excess(with_her, without, 1.0) <= float(delta)
    assert excess(without, with_her, 1.0) <= float(delta)


@pytest.mark.parametrize("amount", [1, 3])
def test_the_threshold_is_the_least_that_keeps_delta(amount: int) -> None:
    delta, scale = Fraction(1, 1000), Fraction(5, 2)
    mechanism = Threshold(AddLaplace(scale, amount), delta)
    a = math.exp(-1 / scale)
    passes = [a ** (t - amount) / (1 + a) for t in (mechanism.threshold, mechanism.threshold - 1)]
    assert passes[0] <= delta < passes[1]


def test_a_person_with_several_keys_shares_one_delta_among_them() -> None:
    one, four = (Threshold(AddLaplace(Fraction(3), 1, groups), Fraction(1, 10**4)) for groups in (1, 4))
    quarter = Threshold(AddLaplace(Fraction(3)), Fraction(1, 4 * 10**4))
    assert one.threshold < four.threshold == quarter.threshold


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(6), Fraction(40)])
def test_gaussian_noise_rarely_lifts_one_person_over_the_threshold(scale: Fraction) -> None:
    delta = Fraction(1, 10**9)
    threshold = Threshold(AddGaussian(scale), delta).threshold
    with mpmath.workdps(40):
        weights = [mpmath.exp(-(mpmath.mpf(z) ** 2) / (2 * float(scale) ** 2)) for z in range(-1000, 1001)]
        assert mpmath.fsum(weights[1000 + threshold - 1 :]) / mpmath.fsum(weights) <= float(delta)


def test_what_reaches_the_threshold_is_released_and_nothing_else() -> None:
    mechanism = Threshold(AddLaplace(Fraction(1)), Fraction(1, 1000))
    t = mechanism.threshold
    keys, counts = mechanism.release(np.array([t, t, 1]), ScriptedCoins(laplace=[0, -1, t - 1]))
    assert keys.tolist() == [0, 2]
    assert counts.tolist() == [t, t]


def test_the_guarantee_is_that_of_the_noise_and_delta_once() -> None:
    mechanism = Threshold(AddLaplace(Fraction(2), 1, 2), Fraction(1, 10**6))
    assert mechanism.loss == Sequence(
        (Sequence((Laplace(Fraction(2)),) * 2), Approximate(Fraction(0), Fraction(1, 10**6)))
    )


@pytest.mark.parametrize("delta", [0, 1, -1])
def test_a_delta_that_guarantees_nothing_or_too_much_is_refused(delta: int) -> None:
    with pytest.raises(InvalidParameter, match="delta"):
        Threshold(AddLaplace(Fraction(1)), Fraction(delta))
