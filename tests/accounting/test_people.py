"""People with several rows."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.accounting.people import bounding_rate, person_delta, require_one_row, smallest_person_epsilon
from incrowd.accounting.suppression import tight_delta
from incrowd.errors import Infeasible, InvalidParameter, Refused
from tests.theorems.exact_laws import e_to_the, excess, published_count


def suppression(epsilon: Fraction) -> float:
    return tight_delta.log_delta(20, "0.1", epsilon)


def test_one_row_is_the_row_itself() -> None:
    assert person_delta(suppression, "0.5", 1) == pytest.approx(tight_delta.delta(20, "0.1", "0.5"), rel=1e-11)


def test_at_epsilon_zero_every_row_counts_once() -> None:
    assert person_delta(suppression, 0, 4) == pytest.approx(4 * tight_delta.delta(20, "0.1", 0), rel=1e-11)


@settings(deadline=None)
@given(st.integers(1, 40), st.decimals("0.01", "30", places=2).map(Fraction))
def test_the_factor_is_a_sum_of_powers(rows: int, epsilon: Fraction) -> None:
    step = e_to_the(epsilon / rows)
    truth = Fraction(1, 10**20) * sum((step**i for i in range(rows)), Fraction(0))
    found = person_delta(lambda x: math.log(1e-20) if x == epsilon / rows else 0.0, epsilon, rows)
    assert min(truth, Fraction(1)) * (1 - Fraction(1, 10**12)) <= found <= min(1.0, float(truth) * (1 + 1e-10))


@pytest.mark.parametrize("rows", [2, 3])
@pytest.mark.parametrize("epsilon", ["0", "0.5", "2"])
def test_rows_in_one_cell_stay_below_the_bound(rows: int, epsilon: str) -> None:
    k, rate = 4, Fraction(1, 5)
    bound = person_delta(lambda x: tight_delta.log_delta(k, rate, x), epsilon, rows)
    for size in range(rows, 30):
        full, less = published_count(size, k, rate), published_count(size - rows, k, rate)
        ratio = e_to_the(Fraction(epsilon))
        assert max(excess(full, less, ratio), excess(less, full, ratio)) <= bound


def test_the_found_epsilon_keeps_its_delta_and_a_smaller_one_does_not() -> None:
    found = smallest_person_epsilon(suppression, "1e-9", 3)
    assert person_delta(suppression, found, 3) <= 1e-9
    assert person_delta(suppression, found * (1 - 1e-9), 3) > 1e-9


def test_no_epsilon_is_needed_for_a_generous_delta() -> None:
    assert smallest_person_epsilon(suppression, "0.9", 3) == 0.0


def test_a_delta_below_the_floor_is_infeasible() -> None:
    with pytest.raises(Infeasible, match="fewer rows"):
        smallest_person_epsilon(lambda epsilon: tight_delta.log_delta(3, "0.1", epsilon), "1e-3", 4)


def test_a_dip_of_the_bound_is_found_although_it_rises_again() -> None:
    k, rate, rows = 8, "0.1", 2

    def curve(epsilon: Fraction) -> float:
        return tight_delta.log_delta(k, rate, epsilon)

    found = smallest_person_epsilon(curve, "1e-5", rows)
    assert person_delta(curve, found, rows) <= 1e-5
    step_by_step = math.exp(curve(Fraction(10))) * (1 + math.exp(10))
    assert step_by_step > 1e-5  # at ε = 20 the floor is multiplied by a factor that has grown too much
    assert person_delta(curve, 20, rows) < 1e-6  # but what holds at a smaller ε holds there


def test_one_coin_per_person_needs_one_row_per_person() -> None:
    require_one_row(1)
    with pytest.raises(Refused, match="Keep one row"):
        require_one_row(2)


def test_the_largest_rate_stands_for_all() -> None:
    assert bounding_rate([Fraction(1, 3), "0.25", 0]) == Fraction(1, 3)
    for rates in ([], ["0.1", "1.5"], ["-0.1"]):
        with pytest.raises(InvalidParameter):
            bounding_rate(rates)


def test_parameters_outside_their_range_are_refused() -> None:
    with pytest.raises(InvalidParameter):
        person_delta(suppression, 1, 0)
    with pytest.raises(InvalidParameter):
        person_delta(suppression, -1, 1)
    with pytest.raises(InvalidParameter):
        smallest_person_epsilon(suppression, 0, 1)
