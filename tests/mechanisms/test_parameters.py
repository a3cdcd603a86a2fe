"""Parameters of primitives."""

from __future__ import annotations

from fractions import Fraction

import pytest

from incrowd.core.rounding import Number
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.parameters import counting_number, positive, probability


def test_a_decimal_means_what_was_written() -> None:
    assert positive("0.1", "epsilon") == positive(0.1, "epsilon") == Fraction(1, 10)


@pytest.mark.parametrize("number", [0, -1, "nan", float("inf")])
def test_what_is_not_positive_is_refused_by_name(number: Number) -> None:
    with pytest.raises(InvalidParameter, match="epsilon"):
        positive(number, "epsilon")


@pytest.mark.parametrize("number", [0, 1, 2, -1])
def test_what_is_no_probability_is_refused_by_name(number: Number) -> None:
    with pytest.raises(InvalidParameter, match="delta"):
        probability(number, "delta")


@pytest.mark.parametrize("number", [0, -3, 1.0, True, "2"])
def test_what_does_not_count_is_refused_by_name(number: object) -> None:
    with pytest.raises(InvalidParameter, match="k must"):
        counting_number(number, "k")
