"""No sentence guarantees more than its number does."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.core.rounding import exact
from incrowd.core.words import chance, counted, listed, percent_up, share, short_down, short_up, times_up
from incrowd.workflows.bounds.odds import guess_right

SIZES = {"million": 10**6, "billion": 10**9, "trillion": 10**12}
PROBABILITIES = st.fractions(Fraction(1, 10**30), Fraction(49, 100))
LOSSES = st.decimals("0", "12", places=6)


def said_by(text: str) -> Fraction:
    """Read "1 in so many" back."""
    found = re.fullmatch(r"at most 1 in (?:([\d,.]+)(?: (\w+))?|10([⁰¹²³⁴⁵⁶⁷⁸⁹]+))", text)
    assert found is not None, text
    if found[3]:
        return Fraction(1, 10 ** int(found[3].translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789"))))
    return 1 / (Fraction(found[1].replace(",", "")) * SIZES.get(found[2], 1))


def number(text: str) -> Fraction:
    return Fraction(text.replace(",", "").removesuffix(" %"))


@given(PROBABILITIES)
def test_a_chance_is_never_said_to_be_rarer_than_it_is(probability: Fraction) -> None:
    said = said_by(chance(probability))
    assert probability <= said <= probability * (2 if probability > Fraction(1, 10**15) else 11)


@pytest.mark.parametrize(
    ("probability", "words"),
    [
        ("1e-8", "at most 1 in 100 million"),
        ("1e-6", "at most 1 in 1 million"),
        ("0.01", "at most 1 in 100"),
        ("2e-7", "at most 1 in 5 million"),
        ("1e-9", "at most 1 in 1 billion"),
        ("1e-30", "at most 1 in 10³⁰"),
        ("0", "none"),
        ("0.5", "up to 50 %"),
        ("1", "up to 100 %"),
    ],
)
def test_round_chances_read_well(probability: str, words: str) -> None:
    assert chance(probability) == words


@given(st.fractions(Fraction(1, 10**6), Fraction(99, 100)))
def test_a_rate_is_never_said_to_be_smaller_than_it_is(rate: Fraction) -> None:
    found = re.fullmatch(r"(about )?([\d,]+) rows? in ([\d,]+)", share(rate))
    assert found is not None
    said = Fraction(int(found[2]), int(found[3].replace(",", "")))
    assert rate <= said <= rate * 2
    assert (said == rate) == (found[1] is None)


@given(st.fractions(0, 1))
def test_a_percentage_is_rounded_up(probability: Fraction) -> None:
    said = number(percent_up(probability))
    assert probability * 100 <= said <= probability * 100 + Fraction(1, 10)


@given(st.integers(1, 10**5))
def test_what_is_not_certain_is_not_called_certain(parts: int) -> None:
    assert percent_up(1 - Fraction(1, parts + 1)) != "100 %"


@given(LOSSES)
def test_the_factor_on_the_odds_is_rounded_up(epsilon: Decimal) -> None:
    true = mpmath.e ** mpmath.mpf(str(epsilon))
    said = mpmath.mpf(times_up(epsilon).replace(",", ""))
    assert true * (1 - mpmath.mpf("1e-14")) <= said <= true * mpmath.mpf("1.01")


def test_a_huge_factor_is_a_power_of_ten_that_is_not_below_it() -> None:
    assert times_up(30) == "10¹⁴"
    assert mpmath.e**30 <= 10**14
    assert times_up(10**6).startswith("more than")


@given(st.decimals("1e-30", "1e12"), st.integers(2, 8))
def test_short_amounts_lie_on_the_safe_side(amount: Decimal, digits: int) -> None:
    assert exact(short_down(amount, digits).replace(",", "")) <= exact(amount)
    assert exact(short_up(amount, digits).replace(",", "")) >= exact(amount)


def test_no_bound_is_said_where_there_is_none() -> None:
    assert short_up(Decimal("Infinity")) == "no bound"
    assert guess_right("Infinity", 0) == "100 %"


@given(LOSSES, st.decimals("0", "0.5", places=9))
def test_a_guess_gets_no_worse_as_losses_grow(epsilon: Decimal, delta: Decimal) -> None:
    right = number(guess_right(epsilon, delta))
    assert right >= 50
    assert number(guess_right(epsilon + 1, delta)) >= right
    assert number(guess_right(epsilon, delta / 2)) <= right


def test_things_are_counted_and_listed_as_people_do() -> None:
    assert counted(1, "release") == "1 release"
    assert counted(1234, "class") == "1,234 classes"
    assert listed([]) == ""
    assert listed(["a", "b"]) == "a and b"
