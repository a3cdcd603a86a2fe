"""Zero-knowledge privacy of releases from samples of their own."""

from __future__ import annotations

from fractions import Fraction

import pytest

from incrowd.accounting.blending import sampled_crowd
from incrowd.errors import InvalidParameter
from tests.theorems.crowd_laws import Database, delta, on_sample, suppressed_histogram
from tests.theorems.exact_laws import Law, e_to_the, pair
from tests.theorems.zero_knowledge import ZeroKnowledge, compose, from_sampled, replaced

RATE, K = Fraction(2, 5), 2
SCHEMES = ({"a": "x", "t": "x"}, {"a": "a", "t": "t"})
PEOPLE: Database = ("a", "a", "a")


def release(scheme: dict[str, str], people: Database) -> Law:
    return on_sample(suppressed_histogram(scheme, K), [(person, RATE) for person in people])


@pytest.mark.parametrize("epsilon", ["0.2", "0.6"])
def test_the_simulator_without_t_is_as_good_as_the_release(epsilon: str) -> None:
    claim = from_sampled(epsilon, Fraction(sampled_crowd.delta(K, 0, RATE, epsilon)), RATE)
    for scheme in SCHEMES:
        simulated, released = release(scheme, PEOPLE), release(scheme, (*PEOPLE, "t"))
        assert delta(released, simulated, e_to_the(claim.epsilon)) <= claim.delta


@pytest.mark.parametrize("epsilon", ["0.2", "0.6"])
def test_two_releases_from_two_samples_are_simulated_by_two_samples(epsilon: str) -> None:
    claim = from_sampled(epsilon, Fraction(sampled_crowd.delta(K, 0, RATE, epsilon)), RATE)
    both = compose([claim, claim])
    simulated = pair(*(release(scheme, PEOPLE) for scheme in SCHEMES))
    released = pair(*(release(scheme, (*PEOPLE, "t")) for scheme in SCHEMES))
    assert delta(released, simulated, e_to_the(both.epsilon)) <= both.delta
    assert both.rates == (RATE, RATE)


def test_two_releases_from_one_sample_are_not_simulated() -> None:
    def together(database: Database) -> Law:
        return pair(*(suppressed_histogram(scheme, K)(database) for scheme in SCHEMES))

    released, simulated = (
        on_sample(together, [(person, RATE) for person in people]) for people in ((*PEOPLE, "t"), PEOPLE)
    )
    claim = from_sampled(5, Fraction(sampled_crowd.delta(K, 0, RATE, 5)), RATE)
    both = compose([claim, claim])
    assert delta(released, simulated, e_to_the(both.epsilon)) > both.delta / 2


def test_a_replaced_person_costs_the_way_there_and_back() -> None:
    claim = from_sampled("0.3", Fraction(sampled_crowd.delta(K, 0, RATE, "0.3")), RATE)
    epsilon, failing = replaced(claim)
    one, other = (release(SCHEMES[1], (*PEOPLE, person)) for person in "at")
    assert delta(one, other, e_to_the(epsilon)) <= failing
    assert Fraction(failing) >= (1 + e_to_the(claim.epsilon)) * claim.delta


def test_nothing_composes_to_nothing_and_a_huge_loss_to_no_guarantee() -> None:
    assert compose([]) == ZeroKnowledge(Fraction(0), Fraction(0), ())
    assert replaced(from_sampled(1000, "1e-9", 1))[1] == 1.0
    assert replaced(from_sampled(1000, 0, 1))[1] == 0.0


@pytest.mark.parametrize(("epsilon", "failing", "rate"), [("-1", "0", "0.1"), ("1", "2", "0.1"), ("1", "0", "0")])
def test_parameters_outside_their_range_are_refused(epsilon: str, failing: str, rate: str) -> None:
    with pytest.raises(InvalidParameter):
        from_sampled(epsilon, failing, rate)
