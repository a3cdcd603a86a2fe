"""The published ε and the closed forms of δ."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.accounting.blending import sampled_crowd
from incrowd.accounting.blending.sampled_crowd import (
    divergence,
    theorem1_delta,
    theorem1_simple_delta,
    zero_knowledge_epsilon,
)
from incrowd.errors import InvalidParameter
from tests.theorems.exact_laws import binomial, e_to_the
from tests.theorems.gehrke_2012 import (
    chernoff_delta,
    lemma1_delta,
    lemma1_simple_delta,
    lemma2_delta,
    lemma2_simple_delta,
)

rates = st.decimals("0.01", "0.95", places=2).map(Fraction)
crowds = st.decimals("0", "3", places=2).map(Fraction)


@settings(deadline=None)
@given(crowds, rates)
def test_the_published_epsilon_is_rounded_up_and_covers_the_sampling(crowd: Fraction, rate: Fraction) -> None:
    found = Fraction(zero_knowledge_epsilon(crowd, rate))
    truth = rate * (2 - rate) / (1 - rate) * e_to_the(crowd) + 1 - rate
    assert truth <= e_to_the(found) < truth * (1 + Fraction(1, 10**10))
    assert e_to_the(found) * (1 - rate) >= 1  # ε ≥ −ln(1 − rate): adding a person costs no δ


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 80), crowds, rates)
def test_exact_is_below_divergence_is_below_simple(k: int, crowd: Fraction, rate: Fraction) -> None:
    exact = sampled_crowd.delta(k, crowd, rate, zero_knowledge_epsilon(crowd, rate))
    assert exact <= theorem1_delta(k, rate) <= theorem1_simple_delta(k, rate) * (1 + 1e-11)


@pytest.mark.parametrize("rate", ["0.1", "0.4"])
@pytest.mark.parametrize("k", [2, 6])
def test_lemma_2_bounds_the_crowd_that_is_too_small_to_be_ignored(k: int, rate: str) -> None:
    share = Fraction(rate)
    for others in range(math.floor((k - 1) / (share * (2 - share))) + 1):
        truth = share * sum((binomial(others, m, share) for m in range(k - 1, others + 1)), Fraction(0))
        assert truth <= lemma2_delta(k, rate) <= lemma2_simple_delta(k, rate)


@pytest.mark.parametrize("rate", ["0.1", "0.4"])
def test_lemma_1_bounds_the_large_crowd(rate: str) -> None:
    share = Fraction(rate)
    share_needed = share * (2 - share)
    for others in (1, 5, 30):
        truth = sum(
            (binomial(others + 1, j, share) for j in range(others + 2) if j > share_needed * (others + 1)), Fraction(0)
        )
        assert truth <= lemma1_delta(others, rate) <= lemma1_simple_delta(others, rate)


def test_a_closed_form_is_refused_where_it_does_not_hold() -> None:
    with pytest.raises(InvalidParameter, match="exact delta"):
        chernoff_delta(20, 0, "0.1", "0.1")  # below −ln(1 − rate)
    with pytest.raises(InvalidParameter, match="exact delta"):
        chernoff_delta(20, 3, "0.1", "0.5")  # below ln(1 + rate·(e³ − 1))
    assert chernoff_delta(20, 3, "0.1", "1.1") <= 1.0


def test_the_divergence_of_equal_coins_is_nothing() -> None:
    assert divergence(0.3, 0.3) == 0.0
    assert divergence(1.0, 0.5) == pytest.approx(math.log(2))


@pytest.mark.parametrize(("crowd", "rate"), [("-1", "0.1"), ("301", "0.1"), ("1", "0"), ("1", "1")])
def test_parameters_outside_their_range_are_refused(crowd: str, rate: str) -> None:
    with pytest.raises(InvalidParameter):
        zero_knowledge_epsilon(crowd, rate)
