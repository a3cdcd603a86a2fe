"""What the methods claim, the second route confirms: no honest certificate is ever called false."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from incrowd.accounting.accountant import charge_of
from incrowd.accounting.budget import plain
from incrowd.core.certificate import (
    NONCE_BYTES,
    Accounting,
    Amounts,
    Certificate,
    ColumnFact,
    Columns,
    Dataset,
    LedgerPlace,
    Named,
    meaning_digest,
    release_id,
)
from incrowd.core.claims.privacy import Concentrated
from incrowd.core.domain import Categories
from incrowd.core.guarantee import Guarantee
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.loss import ZeroConcentrated
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.steps.around import ConsentGate
from incrowd.core.steps.rows import KeepRows
from incrowd.core.steps.step import ClaimBasis
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.errors import Infeasible
from incrowd.methods.anonymity.safe import Safe
from incrowd.verifier.check import CheckOutcome
from incrowd.verifier.judge import check_numbers, judge
from incrowd.workflows.registry import check_of

SEX = Column("sex", Role.QUASI, hierarchy=Flat(Categories(("F", "M"))))
ID = Column("id", Role.IDENTIFIER)
UNITS = (
    Unit(),
    Unit(adjacency=Adjacency.REPLACE),
    Unit(Kind.PERSON, column="id"),
    Unit(Kind.PERSON, column="id", max_rows=2),
    Unit(Kind.PERSON, column="id", max_rows=5),
)

rates = st.fractions(Fraction(1, 20), Fraction(9, 10), max_denominator=60)
deltas = st.integers(1, 25).map(lambda n: Fraction(1, 10**n))
given_two = st.one_of(
    st.builds(lambda k, rate: {"k": k, "rate": rate}, st.integers(1, 60), rates),
    st.builds(
        lambda rate, e: {"rate": rate, "epsilon": e}, rates, st.fractions(Fraction(1, 10), 4, max_denominator=10)
    ),
)


def certificate(safe: Safe, schema: Schema) -> Certificate:
    """Return what a release would certify, without releasing anything."""
    plan = safe.plan(schema)
    cost = charge_of(plan.guarantee.loss, plan.guarantee.delta, plan.unit.adjacency)
    amounts = Amounts(plain(cost.epsilon), plain(cost.delta))
    made = Certificate(
        id="",
        created="2026-01-01T00:00:00+00:00",
        tool="incrowd 0.1.0",
        method=Named("safe"),
        policy_hash="ab" * 32,
        dataset=Dataset("people"),
        guarantee=plan.guarantee,
        claims=plan.claims,
        steps=plan.steps,
        glossary=meaning_digest(plan.guarantee, plan.claims, plan.steps),
        accounting=Accounting(amounts, amounts, 1, cost.rule),
        ledger=LedgerPlace("ab" * 16, 1, "cd" * 32),
        schema=Columns((ColumnFact("sex", "quasi", "text"),), ("sex",)),
    )
    return replace(made, id=release_id(bytes(NONCE_BYTES), made))


def decided(made: Certificate) -> list[CheckOutcome]:
    """Return what is found to be wrong."""
    return [look for look in judge(made, check_of("safe")) if look.problem is not None and not look.problem.undecided]


@given(given_two, deltas, st.sampled_from(UNITS))
@settings(deadline=None, max_examples=100)
def test_every_claim_is_confirmed_or_said_to_be_too_large_to_try(
    two: dict[str, Fraction], delta: Fraction, unit: Unit
) -> None:
    safe = Safe({}, delta=delta, **two)  # type: ignore[arg-type]
    schema = Schema((SEX, ID) if unit.column else (SEX,), unit)
    try:
        made = certificate(safe, schema)
    except Infeasible:
        assume(False)
    assert decided(made) == []


def test_a_small_release_is_decided_in_full() -> None:
    made = certificate(Safe({}, epsilon=Fraction(1), delta=Fraction(1, 10**6), rate=Fraction(1, 10)), Schema((SEX,)))
    assert len(made.claims) == 6
    assert [look for look in judge(made, check_of("safe")) if look.problem is not None] == []


def test_a_step_that_keeps_more_rows_of_a_person_than_the_unit_has_fails() -> None:
    """For a unit of one row the fold is the same, whatever the step says."""
    schema = Schema((SEX, ID), Unit(Kind.PERSON, column="id"))
    made = certificate(Safe({}, epsilon=Fraction(1), delta=Fraction(1, 10**6), rate=Fraction(1, 10)), schema)
    assert decided(made) == []
    steps = tuple(replace(step, rows=5) if isinstance(step, KeepRows) else step for step in made.steps)
    forged = replace(made, steps=steps)
    assert steps != made.steps
    assert "the rows per person do not match the guarantee's unit" in [
        outcome.problem.text for outcome in decided(forged) if outcome.problem is not None
    ]


SMALL = Safe({}, epsilon=Fraction(1), delta=Fraction(1, 10**6), rate=Fraction(1, 10))


def texts(made: Certificate) -> list[str]:
    """Return what is found to be wrong, in words."""
    return [outcome.problem.text for outcome in decided(made) if outcome.problem is not None]


def test_amounts_that_the_release_did_not_cost_fail() -> None:
    made = certificate(SMALL, Schema((SEX,)))
    spent = made.accounting.spent
    free, more = replace(spent, delta="0"), Amounts("99", "0.1")
    for accounting, problem in (
        (replace(made.accounting, spent=free, total=free), "the charge is not the cost of the claim"),
        (replace(made.accounting, total=free, releases=2), "the total is smaller than the cost of this release"),
        (replace(made.accounting, total=more), "the total does not match the number of releases"),
    ):
        assert texts(replace(made, accounting=accounting)).count(problem) == 1
    assert "the total" not in "".join(texts(replace(made, accounting=replace(made.accounting, total=more, releases=2))))


def test_a_consent_gate_that_read_no_registry_fails() -> None:
    schema = Schema((SEX, ID), Unit(Kind.PERSON, column="id"))
    made = certificate(SMALL, schema)
    gated = replace(made, steps=(ConsentGate("research"), *made.steps))
    assert "its consent gate has no run and no registry snapshot" in texts(gated)


def test_a_rho_below_that_of_the_loss_fails() -> None:
    guarantee = Guarantee(ZeroConcentrated(Fraction(1, 10)), Unit(), ())
    basis = ClaimBasis(guarantee, (), {})
    for rho, wrong in ((Fraction(1, 10), False), (Fraction(9, 100), True)):
        claim = Concentrated(unit=Unit(), theorem=(), rho=rho, adjacency=Adjacency.ADD_REMOVE, max_rows=1)
        assert (check_numbers(claim, basis) is not None) == wrong


def test_steps_that_such_a_release_does_not_have_fail() -> None:
    made = certificate(SMALL, Schema((SEX,)))
    assert "such a release does not have these steps in this order" in texts(replace(made, steps=made.steps[::-1]))
    assert "such a release does not have these steps in this order" in texts(
        replace(made, steps=(*made.steps, made.steps[-1]))
    )


def test_claims_in_another_order_or_twice_fail() -> None:
    made = certificate(SMALL, Schema((SEX,)))
    for claims in (made.claims[::-1], (*made.claims, made.claims[0])):
        assert "they are in the wrong order" in texts(replace(made, claims=claims))
