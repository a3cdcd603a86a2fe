"""Parameters stay exact and losses round up."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.core.rounding import exact, float_down, float_up, not_below, round_down, round_up
from incrowd.errors import InvalidParameter

fractions = st.fractions(min_value=0, max_value=1000)


@given(fractions)
def test_amounts_round_up_and_what_is_left_rounds_down(value: Fraction) -> None:
    assert Fraction(round_down(value)) <= value <= Fraction(round_up(value))
    assert Fraction(round_up(value)) - value < Fraction(1, 10**40)


@given(fractions)
def test_floats_bracket_the_fraction(value: Fraction) -> None:
    assert Fraction(float_down(value)) <= value <= Fraction(float_up(value))
    assert float_up(value) <= math.nextafter(float_down(value), math.inf)


def test_a_million_tiny_amounts_add_up_exactly() -> None:
    assert sum([round_up("1e-20")] * 10**6, Decimal(0)) == Decimal("1e-14")


def test_a_computed_float_is_not_rounded_down_through_its_printed_form() -> None:
    value = 0.1 + 0.2
    assert Fraction(round_up(value)) >= Fraction(value)


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_inflation_covers_the_stated_error(value: float) -> None:
    assert Fraction(not_below(value, 1e-9)) >= Fraction(value) * (1 + Fraction(99, 10**11))


@pytest.mark.parametrize("wrong", [math.nan, math.inf, "abc", "", True, "1/0", "NaN", "Infinity"])
def test_what_is_not_a_finite_number_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidParameter, match="epsilon"):
        exact(wrong, "epsilon")  # type: ignore[arg-type]


def test_a_float_means_the_decimal_it_is_printed_as() -> None:
    assert exact(0.1) == exact("0.1") == exact(Decimal("0.1")) == Fraction(1, 10)
