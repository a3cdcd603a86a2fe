"""Losses on a sample, derived by the slow accountant, beside every outcome written out."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from incrowd.core.loss import Approximate, Gaussian, Sampled, Sequence
from incrowd.core.unit import Unit
from incrowd.verifier.slow_accountant import derive

RATE, SCALE = Fraction(3, 10), Fraction(4)


def exact(epsilon: float) -> float:
    """Return δ of one count with integer Gaussian noise on a sample, over all outcomes: the worse direction."""
    outcomes = np.arange(-80, 82, dtype=float)
    law = np.exp(-(outcomes**2) / (2 * float(SCALE) ** 2))
    without, with_row = law / law.sum(), np.exp(-((outcomes - 1) ** 2) / (2 * float(SCALE) ** 2)) / law.sum()
    mixed = float(1 - RATE) * without + float(RATE) * with_row
    sides = ((mixed, without), (without, mixed))
    return max(float(np.maximum(0.0, one - math.exp(epsilon) * other).sum()) for one, other in sides)


@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(1, 5)])
def test_one_answer_on_a_sample_costs_what_all_outcomes_show(epsilon: Fraction) -> None:
    derived = derive(Sampled(RATE, Gaussian(SCALE, 1)), Unit(), epsilon, Fraction(1))
    assert derived is not None
    assert derived.delta == pytest.approx(exact(float(epsilon)), rel=1e-6)


def test_a_stated_delta_beside_a_sample_is_added() -> None:
    beside = Approximate(Fraction(1, 10), Fraction(1, 1000))
    loss = Sequence((beside, Sampled(RATE, Gaussian(SCALE, 1))))
    derived = derive(loss, Unit(), Fraction(3, 10), Fraction(1))
    assert derived is not None
    assert derived.delta == pytest.approx(1e-3 + exact(0.2), rel=1e-6)
