"""Theorem 1's delta against every size, one by one."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from incrowd.accounting.suppression.theorems import log_theorem1_delta, theorem1_delta
from incrowd.errors import Infeasible, InvalidParameter
from tests.theorems.exact_laws import bad_mass, binomial, e_to_the, published_count
from tests.theorems.li_2010 import theorem1_smallest_epsilon


def every_size(k: int, rate: Fraction, ratio: Fraction, sizes: range) -> Fraction:
    """The most that counts j >= k with j > gamma n can weigh, gamma = 1 - (1 - rate) / ratio."""
    gamma = 1 - (1 - rate) / ratio
    bad = ([j for j in range(k, n + 1) if j > gamma * n] for n in sizes)
    return max(sum((binomial(n, j, rate) for j in js), Fraction(0)) for n, js in zip(sizes, bad, strict=True))


@pytest.mark.parametrize(
    ("k", "rate", "epsilon"),
    [
        (1, "0.1", "0.2"),
        (3, "1/4", "0.4"),
        (5, "0.5", "0.7"),
        (8, "0.25", "0.3"),
        (20, "0.8", "1.7"),
        (6, "0.9", "2.5"),
    ],
)
def test_the_search_over_the_first_bad_count_finds_what_a_search_over_all_sizes_finds(
    k: int, rate: str, epsilon: str
) -> None:
    truth = float(every_size(k, Fraction(rate), e_to_the(Fraction(epsilon)), range(1, 120)))
    assert truth <= theorem1_delta(k, rate, epsilon) <= truth * (1 + 1e-12)


@pytest.mark.parametrize(("k", "rate", "epsilon"), [(3, "1/4", "0.4"), (2, "0.1", "0.2"), (5, "0.5", "0.7")])
def test_it_is_the_largest_bad_mass_of_the_mechanism_itself(k: int, rate: str, epsilon: str) -> None:
    ratio = e_to_the(Fraction(epsilon))
    laws = [published_count(n, k, Fraction(rate)) for n in range(60)]
    truth = float(max(bad_mass(laws[n], laws[n - 1], ratio) for n in range(1, 60)))
    assert truth <= theorem1_delta(k, rate, epsilon) <= truth * (1 + 1e-12)


def test_a_tie_counts_as_bad() -> None:
    # rate 1/2, ratio 2: gamma = 3/4 and gamma * 4 = 3; from the written ln 2 nobody can tell on which side it lies.
    assert theorem1_delta(3, "0.5", math.log(2)) >= float(sum(binomial(4, j, Fraction(1, 2)) for j in (3, 4)))


def test_the_limit_itself_is_accepted_and_below_it_the_tight_delta_is_named() -> None:
    assert theorem1_delta(20, "0.5", math.log(2)) > 0
    with pytest.raises(InvalidParameter, match="use the tight delta, which has no such limit"):
        theorem1_delta(20, "0.5", 0.69)


def test_a_huge_epsilon_leaves_the_floor() -> None:
    assert log_theorem1_delta(7, "0.1", 10**9) == pytest.approx(7 * math.log(0.1), rel=1e-12)


def test_tails_that_equal_the_wanted_delta_exactly_are_accepted() -> None:
    # P[Bin(11, 1/10) >= 10] is 1e-9 exactly.
    assert theorem1_smallest_epsilon("1e-9", 10, "0.1") == pytest.approx(1.686398953570229, rel=1e-11)
    assert theorem1_smallest_epsilon("0.99999e-9", 10, "0.1") == pytest.approx(math.log(0.9 * 11), rel=1e-9)
    with pytest.raises(Infeasible):
        theorem1_smallest_epsilon("1e-9", 8, "0.1")
