"""The price of several tables: the third parameter is solved for all of them together."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.loss import Crowd, Grouped, Pure, Sampled, Sequence
from incrowd.core.unit import Kind, Unit
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.methods.shared.sampling import SampledSlices, Target, charged, solve

DELTA = Fraction(1, 10**6)
TENTH = Fraction(1, 10)


@given(st.integers(2, 5), st.sampled_from([Fraction(1, 20), TENTH, Fraction(1, 2)]), st.sampled_from(["0.5", "1", "3"]))
@settings(max_examples=6, deadline=None)
def test_the_least_k_is_enough_and_one_less_is_not(tables: int, rate: Fraction, epsilon: str) -> None:
    slices, wanted = SampledSlices(tables, Unit()), Fraction(epsilon)
    found = slices.solve(None, rate, Target(DELTA, wanted))
    assert found.solved == "k"
    assert found.epsilon <= wanted < slices.epsilon(found.k - 1, rate, DELTA)
    split = solve(None, rate, Target(DELTA / tables, wanted / tables), Unit())
    alone = solve(None, rate, Target(DELTA, wanted), Unit())
    assert alone.k <= found.k <= split.k


@pytest.mark.parametrize("tables", [2, 3])
def test_the_largest_rate_is_enough_and_a_little_more_is_not(tables: int) -> None:
    slices = SampledSlices(tables, Unit())
    found = slices.solve(20, None, Target(DELTA, Fraction(1)))
    assert found.solved == "rate"
    assert found.epsilon <= 1 < slices.epsilon(20, found.rate * Fraction(1001, 1000), DELTA)
    assert len(str(found.rate.numerator)) <= 4


def test_epsilon_is_below_the_sum_of_the_tables_and_grows_with_them() -> None:
    found = [SampledSlices(tables, Unit()).solve(20, TENTH, Target(DELTA)).epsilon for tables in (1, 2, 4, 8)]
    assert found == sorted(found)
    assert found[3] < 8 * found[0]


def test_one_sample_costs_what_one_release_costs() -> None:
    target = Target(DELTA, Fraction(1))
    assert SampledSlices(1, Unit()).solve(None, TENTH, target) == solve(None, TENTH, target, Unit())
    assert SampledSlices(1, Unit()).loss(5, TENTH) == Sampled(TENTH, Crowd(5))


def test_a_choice_stands_in_front_and_people_are_grouped() -> None:
    unit = Unit(Kind.PERSON, column="id", max_rows=2)
    row = Grouped(2, Sampled(TENTH, Crowd(9)))
    rows = SampledSlices(2, unit).loss(9, TENTH)
    assert rows == Sequence((row, row))
    behind = charged(Sequence((Pure(Fraction(1)), row, row)), DELTA, unit.adjacency)
    assert behind > SampledSlices(2, unit).epsilon(9, TENTH, DELTA)


def test_what_cannot_be_reached_is_said_with_a_way_out() -> None:
    with pytest.raises(Infeasible, match="raise k, lower the rate"):
        SampledSlices(3, Unit()).solve(4, Fraction(1, 2), Target(DELTA))
    with pytest.raises(InvalidParameter, match="exactly two of epsilon, k and rate"):
        SampledSlices(2, Unit()).solve(5, TENTH, Target(DELTA, Fraction(1)))
    with pytest.raises(InvalidParameter, match="exactly two of epsilon, k and rate"):
        SampledSlices(2, Unit()).solve(None, TENTH, Target(DELTA))
