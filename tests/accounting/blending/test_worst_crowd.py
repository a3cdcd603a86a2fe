"""One crowd's suppressed count, against sums over its outcomes."""

from __future__ import annotations

import math
from collections.abc import Hashable
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from incrowd.accounting.blending.worst_crowd import SuppressedCount
from tests.theorems.exact_laws import Law, binomial, excess

ratios = st.fractions(Fraction(1, 20), 20, max_denominator=60)


def laws(k: int, others: int, rate: Fraction) -> tuple[Law, Law]:
    """The suppressed count with t in the sample and without."""
    both: list[Law] = []
    for extra in (1, 0):
        law: dict[Hashable, Fraction] = {}
        for drawn in range(others + 1):
            shown = drawn + extra if drawn + extra >= k else 0
            law[shown] = law.get(shown, Fraction(0)) + binomial(others, drawn, rate)
        both.append(law)
    return both[0], both[1]


@settings(deadline=None)
@given(
    st.integers(1, 12), st.integers(0, 60), st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=50), ratios
)
def test_both_hockey_sticks_are_those_of_the_laws(k: int, others: int, rate: Fraction, ratio: Fraction) -> None:
    count = SuppressedCount(k, float(rate), float(1 - rate))
    present, absent = laws(k, others, rate)
    for found, truth in (
        (count.log_excess(others, float(ratio)), excess(present, absent, ratio)),
        (count.log_shortfall(others, float(ratio)), excess(absent, present, ratio)),
    ):
        # what cancels is made up for by a margin of a few roundings of the larger law's mass
        assert math.exp(found) == pytest.approx(float(truth), rel=1e-12, abs=1e-13)


@settings(deadline=None)
@given(st.integers(1, 12), st.fractions(Fraction(1, 20), Fraction(19, 20), max_denominator=20), ratios)
def test_both_rise_up_to_the_peak_and_fall_from_there(k: int, rate: Fraction, ratio: Fraction) -> None:
    count = SuppressedCount(k, float(rate), float(1 - rate))
    top, bottom = count.peak(float(ratio)), count.peak(float(1 / ratio))
    assume(max(top, bottom) <= 60)
    sticks = [laws(k, others, rate) for others in range(max(top, bottom) + 5)]
    excesses = [excess(present, absent, ratio) for present, absent in sticks]
    shortfalls = [excess(absent, present, ratio) for present, absent in sticks]
    assert excesses == sorted(excesses[: top + 1]) + sorted(excesses[top + 1 :], reverse=True)
    assert shortfalls == sorted(shortfalls[: bottom + 1]) + sorted(shortfalls[bottom + 1 :], reverse=True)
    assert max(excesses) == excesses[top]
    assert max(shortfalls) == shortfalls[bottom]


@pytest.mark.parametrize(
    ("k", "rate", "ratio"), [(1500, "0.1", 1.0), (1500, "0.01", 1.3), (3000, "0.5", 1.05), (3000, "0.3", 40.0)]
)
def test_large_crowds_keep_eleven_digits(k: int, rate: str, ratio: float) -> None:
    with mp.workdps(40):
        p = mp.mpf(rate)
        count = SuppressedCount(k, float(rate), float(1 - Fraction(rate)))
        others = count.peak(ratio)
        mass = mp.binomial(others, k - 1) * p ** (k - 1) * (1 - p) ** (others - k + 1)
        total = mp.mpf(0)
        for drawn in range(k - 1, others + 1):
            following = mass * (others - drawn) * p / ((drawn + 1) * (1 - p))
            total += max(mp.mpf(0), mass - ratio * following)
            mass = following
            if mass < total * mp.mpf(10) ** -25:
                break
        assert abs(count.log_excess(others, ratio) - mp.log(total)) < 1e-11


def test_a_crowd_too_small_to_show_betrays_nobody() -> None:
    count = SuppressedCount(5, 0.1, 0.9)
    assert count.log_excess(3, 1.0) == -math.inf
    assert count.log_shortfall(3, 1.0) == -math.inf
    assert math.exp(count.log_excess(3, 0.25)) == pytest.approx(0.75)
