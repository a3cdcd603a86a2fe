"""The published formulas, computed a second time."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.accounting.blending import robust
from incrowd.accounting.suppression import smooth, theorem1
from incrowd.core.loss import Crowd, RobustlySampled
from incrowd.verify.slow_accountant.theorems import smooth_delta, theorem1_delta, theorem2


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 60), st.integers(1, 9), st.floats(0.05, 2.0))
def test_theorems_1_and_6_are_the_accountant_s(k: int, tenths: int, above: float) -> None:
    rate = Fraction(tenths, 10)
    epsilon = above - math.log1p(-float(rate))
    assert theorem1_delta(k, rate, epsilon) == pytest.approx(
        theorem1.theorem1_delta(k, rate, Fraction(epsilon)), rel=1e-7
    )
    assert smooth_delta(k, rate, epsilon) == pytest.approx(smooth.theorem6_delta(k, rate, Fraction(epsilon)), rel=1e-7)


def test_crowds_that_are_too_many_are_not_tried() -> None:
    assert theorem1_delta(20, Fraction(1, 1000), 0.001) is None


@pytest.mark.parametrize(("irregular", "largest"), [(5, "1"), (0, "3/25"), (2, "1/2")])
def test_theorem_2_is_the_accountant_s(irregular: int, largest: str) -> None:
    bias = robust.Bias(Fraction(1, 10), Fraction(3, 25), irregular, Fraction(largest))
    epsilon, delta = theorem2(RobustlySampled(bias.low, bias.high, irregular, bias.max_rate, Crowd(50)))
    assert epsilon == pytest.approx(robust.zero_knowledge_epsilon(0, bias), rel=1e-9)
    assert delta == pytest.approx(robust.theorem2_delta(50, bias), rel=1e-9)
