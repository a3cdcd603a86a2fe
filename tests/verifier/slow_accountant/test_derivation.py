"""The slow accountant against the fast one: over every example of a method or question, and over random losses."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.accounting import accountant
from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import (
    THE_ROWS,
    Approximate,
    Crowd,
    Gaussian,
    Grouped,
    Laplace,
    Loss,
    NoisyWhenSmall,
    Parallel,
    Profile,
    Pure,
    RobustlySampled,
    Sampled,
    Sequence,
    Syntactic,
    ZeroConcentrated,
)
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.errors import DoesNotCompose, InvalidParameter, SampleReused
from incrowd.queries.batch import batch
from incrowd.queries.language.understanding import understand
from incrowd.queries.measurement import Measurement, measurement
from incrowd.queries.query import QueryTerms
from incrowd.verifier.slow_accountant import concentration, derive
from incrowd.verifier.slow_accountant.crowds import TOLERANCE
from incrowd.workflows.policy.policy import load_policy
from tests.contract.examples import EXAMPLES, POLICIES
from tests.contract.questions import QUESTIONS
from tests.losses import losses
from tests.queries.language.hospital import CATALOG

ROW, SMALL = Unit(), Fraction(1, 10**6)
REPLACED = Unit(adjacency=Adjacency.REPLACE)
TENTH = Fraction(1, 10)


def confirmed(loss: Loss, unit: Unit, delta: Fraction) -> bool:
    """Whether the slow accountant derives all of what the fast one charges, and no less than that at a smaller ε.

    Raises AssertionError if they contradict each other.
    """
    spend = accountant.charge_of(loss, delta, unit.adjacency)
    if not spend.epsilon.is_finite():
        return False
    found = derive(loss, unit, spend.epsilon, spend.delta)
    assert found is not None
    assert found.delta <= float(spend.delta) * TOLERANCE
    return found.whole


@pytest.mark.parametrize(("method", "name"), EXAMPLES)
def test_what_every_method_is_charged_is_derived_and_a_little_less_is_refuted(method: str, name: str) -> None:
    policy = load_policy(POLICIES[method][name])
    guarantee: Guarantee = policy.method.plan(policy.schema).guarantee
    spend = accountant.charge_of(guarantee.loss, guarantee.delta, guarantee.unit.adjacency)
    if not spend.epsilon.is_finite():
        assert derive(guarantee.loss, guarantee.unit, 100, guarantee.delta) in (
            None,
            derive(Crowd(5), guarantee.unit, 1, 0),
        )
        return
    crowded = isinstance(guarantee.loss, Sampled) and type(guarantee.loss.inner) is Crowd
    expected = not (crowded and guarantee.unit.adjacency is Adjacency.REPLACE)
    assert confirmed(guarantee.loss, guarantee.unit, guarantee.delta) is expected
    if expected:
        less = derive(guarantee.loss, guarantee.unit, Fraction(spend.epsilon) * Fraction(97, 100), guarantee.delta)
        assert less is not None
        assert less.delta > float(spend.delta) * TOLERANCE or not less.whole


TERMS = [
    QueryTerms(epsilon=Fraction(1)),
    QueryTerms(epsilon=Fraction(1), delta=SMALL),
    QueryTerms(rho=Fraction(1, 50), delta=SMALL),
]


def measured(sql: str, terms: QueryTerms) -> Measurement:
    question = understand(sql, CATALOG)
    return measurement(question, CATALOG[question.tables[0]].unit, terms)


def guarantees(terms: QueryTerms) -> list[Guarantee]:
    """Return what every question guarantees on these terms; those that need a delta are left out without one."""
    made = []
    for sql in QUESTIONS:
        with suppress(InvalidParameter) if terms.delta == 0 else nullcontext():
            made.append(measured(sql, terms).plan.guarantee)
    return made


@pytest.mark.parametrize("terms", TERMS, ids=["pure", "approximate", "concentrated"])
def test_what_every_question_is_charged_is_derived(terms: QueryTerms) -> None:
    made = guarantees(terms)
    assert len(made) > 40
    assert all(confirmed(guarantee.loss, guarantee.unit, guarantee.delta) for guarantee in made)


@pytest.mark.parametrize("delta", [Fraction(0), SMALL])
@pytest.mark.parametrize(("first", "number"), [(0, 2), (1, 3), (2, 12), (4, 5), (7, 30)])
def test_questions_that_are_paid_together_are_derived(first: int, number: int, delta: Fraction) -> None:
    asked = [understand(sql, CATALOG) for sql in QUESTIONS if delta or "GROUP BY" not in sql]
    rows = [question for question in asked if question.tables == ("rows",)]
    terms = QueryTerms(epsilon=Fraction(1), delta=delta)
    guarantee = batch(rows[first : first + number], CATALOG["rows"].unit, terms).plan.guarantee
    assert confirmed(guarantee.loss, guarantee.unit, guarantee.delta)


people = st.integers(1, 4)
ks, rates = st.integers(2, 40), st.fractions(Fraction(1, 50), Fraction(17, 20), max_denominator=100)
deltas = st.sampled_from([Fraction(1, 100), Fraction(1, 10**4), SMALL, Fraction(1, 10**9)])
noises = st.fractions(Fraction(1, 10), 3, max_denominator=10)


@settings(max_examples=40, deadline=None)
@given(ks, rates, deltas, people, st.one_of(st.none(), noises))
def test_crowds_of_people_are_derived(
    k: int, rate: Fraction, delta: Fraction, rows: int, noise: Fraction | None
) -> None:
    row = Sampled(rate, Crowd(k) if noise is None else NoisyWhenSmall(k, noise))
    unit = Unit(Kind.PERSON, column="id", max_rows=rows)
    assert (
        confirmed(Grouped(rows, row) if rows > 1 else row, unit, delta)
        or not accountant.charge_of(Grouped(rows, row), delta).epsilon.is_finite()
    )


@settings(max_examples=20, deadline=None)
@given(ks, rates, deltas, noises, people)
def test_a_choice_in_front_of_a_release_is_derived(
    k: int, rate: Fraction, delta: Fraction, choosing: Fraction, rows: int
) -> None:
    row = Sampled(rate, Crowd(k))
    loss = Sequence((Pure(choosing), Grouped(rows, row) if rows > 1 else row))
    unit = Unit(Kind.PERSON, column="id", max_rows=rows)
    confirmed(loss, unit, delta)


@settings(max_examples=8, deadline=None)
@given(st.integers(2, 25), rates, deltas, st.integers(2, 4), st.booleans())
def test_several_tables_are_derived(k: int, rate: Fraction, delta: Fraction, tables: int, chosen: bool) -> None:
    front = (Pure(Fraction(1, 4)),) if chosen else ()
    confirmed(Sequence((*front, *(Sampled(rate, Crowd(k)),) * tables)), ROW, delta)


@settings(max_examples=20, deadline=None)
@given(ks, rates, deltas, st.one_of(st.none(), noises))
def test_replaced_rows_are_never_contradicted(k: int, rate: Fraction, delta: Fraction, noise: Fraction | None) -> None:
    confirmed(Sampled(rate, Crowd(k) if noise is None else NoisyWhenSmall(k, noise)), REPLACED, delta)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([Laplace, Gaussian]), st.integers(1, 30), st.one_of(st.none(), rates), people, deltas)
def test_noise_on_samples_of_people_is_derived(
    kind: type[Laplace | Gaussian], scale: int, rate: Fraction | None, rows: int, delta: Fraction
) -> None:
    noise: Loss = kind(Fraction(scale)) if rate is None else Sampled(rate, kind(Fraction(scale)))
    loss = Grouped(rows, noise) if rows > 1 else noise
    unit = Unit(Kind.PERSON, column="id", max_rows=rows)
    at = Fraction(0) if kind is Laplace else delta
    assert confirmed(loss, unit, at) or not accountant.charge_of(loss, at).epsilon.is_finite()


@settings(max_examples=20, deadline=None)
@given(st.integers(5, 40), st.integers(0, 3), st.booleans(), deltas)
def test_biased_samples_are_derived(k: int, irregular: int, replaced: bool, delta: Fraction) -> None:
    largest = Fraction(1) if irregular else Fraction(1, 5)
    loss = RobustlySampled(TENTH, Fraction(1, 5), irregular, largest, Crowd(k), THE_ROWS)
    confirmed(loss, REPLACED if replaced else ROW, delta)


MIXED: list[tuple[Loss, Fraction]] = [
    (Sequence((ZeroConcentrated(Fraction(1, 50)), Approximate(Fraction(0), SMALL / 2))), SMALL),
    (Sequence((ZeroConcentrated(Fraction(1, 50)), Pure(Fraction(1, 3)), Laplace(Fraction(5)))), SMALL),
    (Sequence((Pure(TENTH), Laplace(Fraction(20), 2), Approximate(TENTH, SMALL / 2))), SMALL),
    (Sequence((Gaussian(Fraction(9)), Gaussian(Fraction(12)), ZeroConcentrated(TENTH))), SMALL),
    (Sequence((Sequence((Pure(TENTH),) * 3), Pure(Fraction(1)))), Fraction(0)),
    (Parallel((Pure(Fraction(1)), Sampled(TENTH, Crowd(20)))), SMALL),
    (Profile(((Fraction(1), SMALL), (Fraction(2), Fraction(0)))), SMALL),
    (ZeroConcentrated(TENTH), SMALL),
]


@pytest.mark.parametrize(("loss", "delta"), MIXED)
def test_mixed_losses_are_derived(loss: Loss, delta: Fraction) -> None:
    assert confirmed(loss, ROW, delta)


def test_what_has_no_epsilon_is_not_given_one() -> None:
    for loss in (Crowd(5), Syntactic("k-anonymity")):
        found = derive(loss, ROW, 1000, 0)
        assert found is not None
        assert found.delta == 1.0


def test_what_is_too_much_to_try_is_bounded_from_below() -> None:
    rare = Sampled(Fraction(1, 1000), Crowd(40))
    for loss in (rare, Sequence((rare, rare)), Grouped(2, rare)):
        found = derive(loss, ROW, 0.001, SMALL)
        assert found is not None
        assert not found.whole
        assert 0 < found.delta <= accountant.delta(loss, "0.001").value


UNKNOWN: list[tuple[Loss, Unit]] = [
    (Sampled(TENTH, Crowd(5, Fraction(1))), ROW),
    (RobustlySampled(TENTH, TENTH, 0, TENTH, Crowd(5, Fraction(1))), ROW),
    (Grouped(2, Gaussian(Fraction(3))), REPLACED),
    (Parallel((Gaussian(Fraction(3)),)), REPLACED),
    (Sequence((Sampled(TENTH, Crowd(5), "survey"), Sampled(TENTH, Crowd(5), "survey"))), ROW),
    (Gaussian(Fraction(10**7)), ROW),
    (Sequence((Profile(((Fraction(1), SMALL),)), Gaussian(Fraction(3)))), ROW),
]


@pytest.mark.parametrize(("loss", "unit"), UNKNOWN)
def test_what_has_no_derivation_is_not_answered(loss: Loss, unit: Unit) -> None:
    assert derive(loss, unit, 1, SMALL) is None


def test_rho_adds_up_and_what_has_none_gives_none() -> None:
    assert concentration(Gaussian(Fraction(10), 2)) == Fraction(1, 50)
    assert concentration(Sequence((Pure(Fraction(1)), Laplace(Fraction(1))))) == Fraction(1)
    assert concentration(Sampled(TENTH, Crowd(5))) is None
    assert concentration(Sequence((Pure(Fraction(1)), Crowd(5)))) is None
    assert concentration(Approximate(Fraction(1), SMALL)) is None


@settings(max_examples=80, deadline=None)
@given(losses, st.sampled_from([ROW, REPLACED]), st.fractions(0, 5, max_denominator=10))
def test_what_is_shown_at_least_is_never_above_what_the_accountant_vouches_for(
    loss: Loss, unit: Unit, epsilon: Fraction
) -> None:
    found = derive(loss, unit, epsilon, SMALL)
    if found is None or found.whole:
        return
    try:
        bound = accountant.delta(loss, epsilon, unit.adjacency).value
    except (DoesNotCompose, SampleReused):
        return
    assert found.delta <= bound * TOLERANCE
