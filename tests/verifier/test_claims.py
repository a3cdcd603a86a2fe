"""Numbers of claims: those of every plan hold, and a number that is told better than it is does not."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from incrowd.core.claims import privacy
from incrowd.core.claims.claim import Claim
from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import Approximate, Crowd, Gaussian, Loss, Pure, Sampled, Sequence, ZeroConcentrated
from incrowd.core.plan import Plan
from incrowd.core.steps.step import ClaimBasis
from incrowd.core.terms import Theorem
from incrowd.core.unit import Adjacency, Unit
from incrowd.verifier.judge import check_numbers
from incrowd.workflows.policy.policy import load_policy
from tests.contract.examples import POLICIES
from tests.policies import PEOPLE, changed

ROBUST: dict[str, Any] = {
    "release__rate": None,
    "release__k": 30,
    "release__epsilon": None,
    "release__delta": "1e-6",
    "release__robust": {"low": "0.05", "high": "0.1", "irregular": 2},
}
PLANS: dict[str, dict[str, Any]] = {
    **{
        f"{method}, {name}": POLICIES[method][name]
        for method in ("safe", "scheme", "slicing")
        for name in POLICIES[method]
    },
    "survey": changed(PEOPLE, **ROBUST),
    "survey, replaced": changed(PEOPLE, **ROBUST, dataset__unit={"adjacency": "replace-one"}),
}


def plan_of(policy: dict[str, Any]) -> Plan:
    loaded = load_policy(policy)
    plan: Plan = loaded.method.plan(loaded.schema)
    return plan


@pytest.mark.parametrize("name", PLANS)
def test_the_numbers_of_every_claim_hold_and_smaller_ones_do_not(name: str) -> None:
    plan = plan_of(PLANS[name])
    for claim in plan.claims:
        problem = check_numbers(claim, plan.basis)
        assert problem is None or problem.undecided
        if claim.numbers and problem is None:
            forged = check_numbers(_better(claim), plan.basis)
            assert forged is not None, claim.kind
            assert not forged.undecided


def _better(claim: Any) -> Claim:
    """Return a claim with a δ, or else an ε, that is a tenth smaller."""
    if isinstance(claim, privacy.PurePrivacy):
        return replace(claim, epsilon=Decimal(str(claim.epsilon)) * Decimal("0.9"))
    changed: Claim = replace(claim, delta=claim.delta * (0.9 if isinstance(claim.delta, float) else Fraction(9, 10)))
    return changed


@pytest.mark.parametrize("kind", [privacy.PublishedTheorem, privacy.Smooth, privacy.RobustTheorem])
def test_a_published_formula_is_not_stated_larger_either(kind: type[Claim]) -> None:
    plan = plan_of(PLANS["survey"] if kind is privacy.RobustTheorem else PLANS["safe, k solved"])
    claim: Any = next(each for each in plan.claims if isinstance(each, kind))
    problem = check_numbers(replace(claim, delta=claim.delta * 1.001), plan.basis)
    assert problem is not None
    assert "by the formula" in problem.text


def test_replaced_rows_are_left_undecided_with_their_reason() -> None:
    plan = plan_of(PLANS["safe, replaced"])
    (problem,) = filter(None, (check_numbers(claim, plan.basis) for claim in plan.claims))
    assert problem.undecided
    assert "no tried pair of crowds" in problem.text


def basis(loss: Loss, delta: Fraction = Fraction(0), unit: Unit | None = None) -> ClaimBasis:
    return ClaimBasis(Guarantee(loss, unit or Unit(), (Theorem("for-a-test", "for a test"),), delta=delta), ())


def private(epsilon: str, delta: str | None = None, unit: Unit | None = None) -> Claim:
    whom = unit or Unit()
    shared: dict[str, Any] = {"adjacency": whom.adjacency, "max_rows": 1, "unit": str(whom), "theorem": "none"}
    if delta is None:
        return privacy.PurePrivacy(epsilon=Decimal(epsilon), **shared)
    return privacy.ApproximatePrivacy(epsilon=Decimal(epsilon), delta=Fraction(delta), **shared)


def test_pure_claims_are_exact() -> None:
    twice = basis(Sequence((Pure(Fraction(1, 2)), Pure(Fraction(1, 2)))))
    assert check_numbers(private("1"), twice) is None
    assert check_numbers(private("0.99"), twice) is not None


def test_what_was_not_derived_is_undecided() -> None:
    problem = check_numbers(private("1", "1e-6"), basis(Gaussian(Fraction(10**8)), Fraction(1, 10**6)))
    assert problem is not None
    assert problem.undecided


def test_crowds_that_are_too_many_are_undecided_unless_the_worst_ones_refute_the_claim() -> None:
    rare = basis(Sampled(Fraction(1, 1000), Crowd(40)), Fraction(1, 10**6))
    held = check_numbers(private("0.001", "1e-6"), rare)
    assert held is not None
    assert held.undecided
    broken = check_numbers(private("0.001", "1e-300"), rare)
    assert broken is not None
    assert not broken.undecided
    assert "at least" in broken.text


def test_a_concentrated_claim_states_all_of_rho() -> None:
    both = basis(Sequence((ZeroConcentrated(Fraction(1, 10)), Pure(Fraction(1)))))
    shared: dict[str, Any] = {"adjacency": Adjacency.ADD_REMOVE, "max_rows": 1, "unit": "one row", "theorem": "none"}
    assert check_numbers(privacy.Concentrated(rho=Fraction(3, 5), **shared), both) is None
    less = check_numbers(privacy.Concentrated(rho=Fraction(1, 2), **shared), both)
    assert less is not None
    assert "at least" in less.text
    unknown = check_numbers(
        privacy.Concentrated(rho=Fraction(1), **shared), basis(Approximate(Fraction(1), Fraction(1, 9)))
    )
    assert unknown is not None
    assert unknown.undecided


def test_a_published_claim_with_too_many_crowds_is_held_to_its_worst_ones() -> None:
    shared: dict[str, Any] = {"k": 40, "rate": Fraction(1, 1000), "unit": "one row", "theorem": "none"}
    rare, epsilon = basis(Sampled(Fraction(1, 1000), Crowd(40))), Decimal("0.00101")
    held = check_numbers(privacy.PublishedTheorem(epsilon=epsilon, delta=0.5, **shared), rare)
    assert held is not None
    assert held.undecided
    broken = check_numbers(privacy.PublishedTheorem(epsilon=epsilon, delta=1e-300, **shared), rare)
    assert broken is not None
    assert not broken.undecided


def test_a_theorem_about_a_biased_sample_needs_one() -> None:
    plan = plan_of(PLANS["survey"])
    (claim,) = (each for each in plan.claims if isinstance(each, privacy.RobustTheorem))
    assert check_numbers(claim, basis(Sampled(Fraction(1, 10), Crowd(30)))) is not None
