"""Intervals of least squares answers hold in 95 of 100, by the exact law of sums of integer noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import pytest
from numpy.typing import NDArray

from incrowd.queries.workloads.query_set import LAPLACE, half_width

Floats = NDArray[np.float64]
PARTS = 4
"""Factors are fourths, so that all sums lie on one grid."""


def masses(scale: float, *, gaussian: bool) -> Floats:
    """The law of integer noise, as far as it matters, around its middle."""
    far = math.ceil((9 if gaussian else 40) * scale) + 2
    at = np.abs(np.arange(-far, far + 1))
    weights = np.exp(-((at / scale) ** 2) / 2) if gaussian else np.exp(-at / scale)
    return np.asarray(weights / weights.sum())


@dataclass(frozen=True)
class Sum:
    """A sum of noises with factors, in fourths."""

    factors: tuple[int, ...]
    scales: tuple[float, ...]
    gaussian: bool

    def beyond(self, width: float) -> float:
        """The chance that the sum is further from zero than a width, exactly."""
        law = np.ones(1)
        for factor, scale in zip(self.factors, self.scales, strict=True):
            each = masses(scale, gaussian=self.gaussian)
            spread = np.zeros((len(each) - 1) * factor + 1)
            spread[::factor] = each
            law = np.convolve(law, spread)
        at = np.abs(np.arange(len(law)) - len(law) // 2) / PARTS
        return float(law[at > width + 1e-9].sum())

    @property
    def width(self) -> float:
        """The half-width of the interval of such an answer."""
        deviations = [scale * (1.0 if self.gaussian else math.sqrt(2.0)) for scale in self.scales]
        pairs = zip(self.factors, deviations, strict=True)
        variance = sum((factor / PARTS * deviation) ** 2 for factor, deviation in pairs)
        return float(half_width(np.array([variance]), min(deviations), laplace=not self.gaussian)[0])


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_no_sum_of_noises_leaves_its_interval_more_often_than_guaranteed(seed: int, *, gaussian: bool) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(40):
        number = int(rng.integers(1, 6))
        factors = tuple(rng.integers(1, 5, number).tolist()) if rng.random() < 0.7 else (4,) * number
        scales = np.exp(rng.uniform(math.log(0.05), math.log(3.0), number if rng.random() < 0.5 else 1))
        tried = Sum(factors, tuple(np.broadcast_to(scales, number).tolist()), gaussian)
        assert tried.beyond(tried.width) <= 0.05, tried


def test_one_noise_alone_and_many_of_them_are_not_far_from_their_bound() -> None:
    alone = Sum((4,), (20.0,), gaussian=False)
    assert 0.04 < alone.beyond(alone.width) <= 0.05
    many = Sum((4,) * 40, (3.0,) * 40, gaussian=False)
    assert 0.02 < many.beyond(many.width) <= 0.05


def test_the_bound_on_sums_of_laplace_noises_is_proved() -> None:
    """h and its tangent from where h stops being convex, averaged over the exponential law that is the widest."""
    t = LAPLACE
    turn = t * t / 3.0
    v = np.linspace(0.0, turn, 200_001)[1:]
    tail = np.array([2.0 * NormalDist().cdf(-t / math.sqrt(turn))])
    step = v[1] - v[0]
    erfc = np.frompyfunc(math.erfc, 1, 1)
    inside = np.asarray(erfc(t / np.sqrt(2.0 * v)), dtype=np.float64) * np.exp(
        -(v - step)
    )  # h grows and e^-v falls: from above
    slope = t * turn**-1.5 * NormalDist().pdf(t / math.sqrt(turn))
    assert float(inside.sum() * step + math.exp(-turn) * (tail[0] + slope)) < 0.05
