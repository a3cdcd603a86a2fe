"""What the methods claim, the second route confirms: no honest certificate is ever called false."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from incrowd.accounting.accountant import charge_of
from incrowd.accounting.budget import plain
from incrowd.core.certificate import Certificate
from incrowd.core.domain import Categories
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.errors import Infeasible
from incrowd.methods.anonymity.safe.method import Safe
from incrowd.methods.crowds.parameters import Target
from incrowd.workflows.consistency import check_accounting
from incrowd.workflows.forms.microdata.claims import check_claim
from incrowd.workflows.forms.microdata.steps import check_steps

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
    promise = safe.guarantee(schema)
    cost = charge_of(promise.loss, promise.delta, promise.unit.adjacency)
    amount = {"epsilon": plain(cost.epsilon), "delta": plain(cost.delta)}
    return Certificate(
        id="1",
        created="",
        tool="",
        policy_hash="",
        dataset={},
        guarantee=promise,
        claims=safe.claims(schema),
        chain=safe.chain(schema),
        accounting={"spent": amount, "total": amount, "releases": 1},
        ledger={},
        schema={"released": ["sex"]},
    )


@given(given_two, deltas, st.sampled_from(UNITS))
@settings(deadline=None, max_examples=100)
def test_every_claim_is_confirmed_or_said_to_be_too_large_to_try(
    two: dict[str, Fraction], delta: Fraction, unit: Unit
) -> None:
    chosen = dict(two)
    target = Target(delta, chosen.pop("epsilon", None))
    safe = Safe({}, target, **chosen)  # type: ignore[arg-type]
    schema = Schema((SEX, ID) if unit.column else (SEX,), unit)
    try:
        made = certificate(safe, schema)
    except Infeasible:
        assume(False)
    for claim in made.claims:
        problem = check_claim(claim, made)
        assert problem is None or problem.undecided, (claim.kind, problem)
    assert check_steps(made) is None
    assert check_accounting(made) is None


def test_a_small_release_is_decided_in_full() -> None:
    made = certificate(Safe({}, Target(Fraction(1, 10**6), Fraction(1)), Fraction(1, 10)), Schema((SEX,)))
    assert [check_claim(claim, made) for claim in made.claims] == [None] * 6
