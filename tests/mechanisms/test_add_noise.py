"""Added noise: what it costs and what it refuses."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from incrowd.core.loss import Gaussian, Laplace, Sequence
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.add_noise import AddGaussian, AddLaplace
from incrowd.mechanisms.integers import WIDEST
from incrowd.noise.system import SystemCoins
from tests.coins import ScriptedCoins

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


def test_promises_follow_from_the_parameters() -> None:
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
