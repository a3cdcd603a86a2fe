"""Crowd-blending after a biased sample."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.accounting.blending import robust, sampled_crowd
from incrowd.accounting.blending.robust import Bias
from incrowd.errors import Infeasible, InvalidParameter

BIAS = Bias(Fraction(1, 10), Fraction(3, 25), 3, Fraction(1, 2))
ROUNDING = 3e-11


def test_a_known_person_costs_one_of_the_crowd_and_a_sure_one_his_rate() -> None:
    harmless = Bias(BIAS.low, BIAS.high, 3, BIAS.high)
    assert robust.log_delta(20, "0.1", harmless, 1) == sampled_crowd.log_delta(17, "0.1", BIAS.high, 1)
    assert robust.delta(20, "0.1", BIAS, 1) > robust.delta(20, "0.1", harmless, 1)


def test_the_lower_rate_plays_no_part_in_the_exact_delta() -> None:
    lower = Bias(Fraction(1, 1000), BIAS.high, BIAS.irregular, BIAS.max_rate)
    assert robust.delta(20, "0.1", BIAS, 1) == robust.delta(20, "0.1", lower, 1)
    assert robust.zero_knowledge_epsilon("0.1", BIAS) < robust.zero_knowledge_epsilon("0.1", lower)


def test_without_irregular_people_nobody_is_drawn_above_the_higher_rate() -> None:
    odd = Bias(BIAS.low, BIAS.high, 0, Fraction(1))
    assert robust.delta(20, "0.1", odd, 1) == sampled_crowd.delta(20, "0.1", BIAS.high, 1)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(10, 60),
    st.integers(0, 6),
    st.decimals("0.05", "0.4", places=2).map(Fraction),
    st.decimals("0", "1", places=1).map(Fraction),
    st.sampled_from(["k", "irregular", "rate", "epsilon"]),
)
def test_delta_falls_with_k_and_epsilon_and_rises_with_irregular_people_and_rates(
    k: int, irregular: int, high: Fraction, epsilon: Fraction, name: str
) -> None:
    bias = Bias(Fraction(1, 20), high, irregular, Fraction(1, 2))
    here = robust.log_delta(k, "0.2", bias, epsilon)
    wider = Bias(bias.low, high + Fraction(1, 20), irregular, bias.max_rate)
    more = Bias(bias.low, high, irregular + 1, bias.max_rate)
    lower, higher = {
        "k": lambda: (robust.log_delta(k + 1, "0.2", bias, epsilon), here),
        "irregular": lambda: (here, robust.log_delta(k, "0.2", more, epsilon)),
        "rate": lambda: (here, robust.log_delta(k, "0.2", wider, epsilon)),
        "epsilon": lambda: (robust.log_delta(k, "0.2", bias, epsilon + Fraction(1, 10)), here),
    }[name]()
    assert lower <= higher + ROUNDING


@pytest.mark.parametrize("k", [10, 40])
@pytest.mark.parametrize("crowd", ["0", "0.3"])
def test_the_closed_forms_lie_above_the_exact_delta(k: int, crowd: str) -> None:
    epsilon = robust.zero_knowledge_epsilon(crowd, BIAS)
    exact, closed, simple = (
        robust.delta(k, crowd, BIAS, epsilon),
        robust.theorem2_delta(k, BIAS),
        robust.theorem2_simple_delta(k, BIAS),
    )
    assert exact <= closed <= simple


def test_the_smallest_epsilon_keeps_its_delta_and_hardly_a_smaller_one_does() -> None:
    found = robust.smallest_epsilon("1e-6", 30, "0.1", BIAS)
    assert robust.delta(30, "0.1", BIAS, found) <= 1e-6 < robust.delta(30, "0.1", BIAS, found * (1 - 1e-9))


def test_an_impossible_delta_is_infeasible() -> None:
    with pytest.raises(Infeasible, match="Raise k"):
        robust.smallest_epsilon("1e-9", 6, "0.1", BIAS)


def test_a_member_drawn_for_sure_is_protected_by_the_crowd_alone() -> None:
    sure = Bias(BIAS.low, BIAS.high, 1, Fraction(1))
    assert robust.delta(12, 0, sure, 60) == pytest.approx(float(BIAS.high) ** 11, rel=1e-9)


def test_irregular_people_may_not_fill_the_crowd() -> None:
    with pytest.raises(InvalidParameter, match="at least 5"):
        robust.delta(4, 0, BIAS, 1)
    assert robust.delta(5, 0, BIAS, 1) < 0.5


@pytest.mark.parametrize(
    ("low", "high", "irregular", "most"),
    [
        ("0", "0.1", 0, "0.1"),
        ("0.2", "0.1", 0, "0.2"),
        ("0.1", "1", 0, "1"),
        ("0.1", "0.2", -1, "0.2"),
        ("0.1", "0.2", 0, "0.1"),
    ],
)
def test_rates_out_of_order_are_refused(low: str, high: str, irregular: int, most: str) -> None:
    with pytest.raises(InvalidParameter):
        Bias(Fraction(low), Fraction(high), irregular, Fraction(most))


def test_parameters_outside_their_range_are_refused() -> None:
    for k, crowd, epsilon in ((0, "0", "1"), (20, "-1", "1"), (20, "0", "-1")):
        with pytest.raises(InvalidParameter):
            robust.delta(k, crowd, BIAS, epsilon)
    with pytest.raises(InvalidParameter, match="300"):
        robust.zero_knowledge_epsilon(1000, BIAS)
    assert math.isfinite(robust.log_delta(20, 1000, BIAS, 1))
