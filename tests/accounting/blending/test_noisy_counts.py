"""The loss of noisy small counts: a crowd, and under a secret sample more than that."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.accounting import accountant
from incrowd.accounting.ledger.composition import footprint
from incrowd.accounting.suppression import tight_delta
from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import Crowd, Grouped, NoisyWhenSmall, Pure, RobustlySampled, Sampled, Sequence
from incrowd.core.terms import Theorem
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.errors import DoesNotCompose, InvalidParameter, SampleReused

TENTH, ONE = Fraction(1, 10), Fraction(1)
noises = st.fractions(Fraction(1, 20), 3, max_denominator=20)
rates = st.fractions(Fraction(1, 20), Fraction(9, 10), max_denominator=20)
epsilons = st.fractions(0, 3, max_denominator=20)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), noises, rates, epsilons)
def test_it_never_costs_more_than_the_worst_crowd_nor_less_than_suppression(
    k: int, noise: Fraction, rate: Fraction, epsilon: Fraction
) -> None:
    found = accountant.delta(Sampled(rate, NoisyWhenSmall(k, noise)), epsilon).value
    assert found <= accountant.delta(Sampled(rate, Crowd(k, noise)), epsilon).value * (1 + 1e-9)
    assert found >= accountant.delta(Sampled(rate, Crowd(k)), epsilon).value * (1 - 1e-9)


def test_noise_is_free_from_its_amplified_epsilon_on_and_not_below() -> None:
    noisy = Sampled(TENTH, NoisyWhenSmall(20, ONE))
    limit = math.log1p(0.1 * math.expm1(1.0))
    free = accountant.delta(noisy, repr(limit * 1.0001)).value
    assert math.isclose(free, tight_delta.delta(20, TENTH, limit * 1.0001), rel_tol=1e-9)
    assert accountant.delta(noisy, repr(limit * 0.9999)).value > 100 * free


def test_delta_falls_when_k_grows_and_rises_with_the_rate() -> None:
    deltas = [accountant.delta(Sampled(TENTH, NoisyWhenSmall(k, ONE)), "0.5").value for k in (5, 10, 20)]
    assert deltas == sorted(deltas, reverse=True)
    deltas = [accountant.delta(Sampled(Fraction(p, 20), NoisyWhenSmall(10, ONE)), "0.5").value for p in (1, 2, 4, 8)]
    assert deltas == sorted(deltas)


def test_without_a_sample_it_has_no_epsilon() -> None:
    assert math.isinf(accountant.epsilon(NoisyWhenSmall(20, ONE), "1e-6").value)
    assert accountant.delta(NoisyWhenSmall(20, ONE), 5).value == 1.0


def test_beside_a_private_release_from_the_same_sample_the_private_epsilon_counts_twice() -> None:
    together = Sampled(TENTH, Sequence((NoisyWhenSmall(20, ONE), Pure(Fraction(1, 4)))))
    assert accountant.delta(together, 1) == accountant.delta(Sampled(TENTH, Crowd(20, Fraction(3, 2))), 1)


def test_replaced_people_cost_one_removed_and_one_added() -> None:
    loss = Sampled(TENTH, NoisyWhenSmall(20, ONE))
    single = accountant.delta(loss, "0.5").value
    replaced = accountant.delta(loss, 1, Adjacency.REPLACE).value
    assert math.isclose(replaced, (1 + math.exp(0.5)) * single, rel_tol=1e-9)


def test_it_stands_beside_no_other_crowd_and_on_a_sample_beside_anything() -> None:
    assert footprint(NoisyWhenSmall(5, ONE)).crowds == 1
    assert footprint(Sampled(TENTH, NoisyWhenSmall(5, ONE))).crowds == 0
    with pytest.raises(DoesNotCompose):
        footprint(Sequence((NoisyWhenSmall(5, ONE), Crowd(5))))
    with pytest.raises(SampleReused):
        accountant.epsilon(Sampled(TENTH, Sequence((NoisyWhenSmall(5, ONE), NoisyWhenSmall(5, ONE)))), "1e-6")


def test_people_with_several_rows_are_grouped_around_it() -> None:
    people = Unit(Kind.PERSON, column="id", max_rows=2)
    loss = Sampled(TENTH, NoisyWhenSmall(20, ONE))
    with pytest.raises(InvalidParameter, match="Grouped"):
        Guarantee(loss, people, (Theorem("a-theorem", "a theorem"),))
    single, both = accountant.epsilon(loss, "1e-6").value, accountant.epsilon(Grouped(2, loss), "1e-6").value
    assert 2 * single < both < 3 * single


def test_noise_without_epsilon_and_biased_samples_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="suppressed"):
        NoisyWhenSmall(5, Fraction(0))
    with pytest.raises(InvalidParameter, match="biased"):
        RobustlySampled(TENTH, TENTH, 0, TENTH, NoisyWhenSmall(5, ONE))
