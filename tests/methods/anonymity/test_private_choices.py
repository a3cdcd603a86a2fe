"""Plans behind private choices and of several tables: steps and claims read back, and follow from each other."""

from __future__ import annotations

from typing import Any

import pytest

from incrowd.core.claims.claim import claim_of
from incrowd.core.loss import Crowd, Grouped, Pure, Sampled, Sequence
from incrowd.core.plan import Plan
from incrowd.core.steps.step import ClaimBasis, claims_of, fold, step_of
from incrowd.errors import InvalidParameter
from incrowd.verifier.check import in_order
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.registry import check_of
from tests.contract.examples import POLICIES
from tests.policies import changed
from tests.statements import numbers_of, statement_of

CHECKS = {name: check_of(name) for name in ("scheme", "partition", "slicing")}
PEOPLE: dict[str, Any] = {
    "columns__id": {"role": "identifier"},
    "dataset__unit": {"column": "id"},
    "dataset__unit__max_rows": 2,
    "release__epsilon": 4,
}
DRAFTED: dict[str, Any] = {"columns__sex__derived": "rows", "budget": {"unbounded": "for the archive"}}
REPLACED: dict[str, Any] = {"dataset__unit": {"adjacency": "replace-one"}, "release__epsilon": 4}
POLICY_OF = {(method, name): policy for method in CHECKS for name, policy in POLICIES[method].items()} | {
    ("scheme", "drafted"): changed(POLICIES["scheme"]["k solved"], **DRAFTED),
    ("scheme", "two rows"): changed(POLICIES["scheme"]["k solved"], **PEOPLE),
    ("scheme", "replaced"): changed(POLICIES["scheme"]["k solved"], **REPLACED),
    ("partition", "drafted"): changed(POLICIES["partition"]["k solved"], **DRAFTED),
    ("slicing", "drafted"): changed(POLICIES["slicing"]["k solved"], **DRAFTED),
    ("slicing", "replaced"): changed(POLICIES["slicing"]["k solved"], **REPLACED),
    ("slicing", "chosen, split, two rows"): changed(
        POLICIES["slicing"]["groups chosen"], release__sample="joint", **PEOPLE
    ),
}


def plan_of(method: str, name: str) -> Plan:
    policy = load_policy(POLICY_OF[method, name])
    plan: Plan = policy.method.plan(policy.schema)
    return plan


@pytest.mark.parametrize(("method", "name"), POLICY_OF)
def test_steps_and_claims_read_back_and_the_claims_follow_from_the_steps(method: str, name: str) -> None:
    plan, check = plan_of(method, name), CHECKS[method]
    assert tuple(step_of(step.to_json(), check.steps) for step in plan.steps) == plan.steps
    assert tuple(claim_of(claim.to_json(), check.claims) for claim in plan.claims) == plan.claims
    assert in_order(plan.steps, check.order)
    guarantee = fold(plan.steps, plan.unit, plan.guarantee.delta)
    assert guarantee == plan.guarantee
    assert claims_of(ClaimBasis(guarantee, plan.steps, numbers_of(plan.claims))) == plan.claims
    assert all(step.sentence and step.title for step in plan.steps)


@pytest.mark.parametrize(("method", "name"), POLICY_OF)
def test_what_a_plan_says_does_not_contradict_itself(method: str, name: str) -> None:
    schema = load_policy(POLICY_OF[method, name]).schema
    assert CHECKS[method].contradiction(statement_of(plan_of(method, name), schema)) is None


@pytest.mark.parametrize(("method", "name"), [(method, "k solved") for method in CHECKS])
def test_a_step_with_a_key_too_many_or_another_word_is_refused(method: str, name: str) -> None:
    for step in plan_of(method, name).steps:
        forged = [step.to_json() | {"more": 1}]
        forged.append(step.to_json() | {"by": "otherwise"})
        for plain in forged:
            with pytest.raises(InvalidParameter):
                step_of(plain, CHECKS[method].steps)


def test_rows_of_people_are_grouped_in_each_table_and_never_in_the_choice() -> None:
    rate = "1/2"
    loss = plan_of("slicing", "people with two rows").guarantee.loss
    assert isinstance(loss, Sequence)
    assert loss.parts == (loss.parts[0],) * 2
    assert isinstance(loss.parts[0], Grouped)
    chosen = plan_of("slicing", "chosen, split, two rows").guarantee.loss
    assert isinstance(chosen, Sequence)
    choice, together = chosen.parts
    assert isinstance(choice, Pure)
    assert isinstance(together, Grouped)
    assert isinstance(together.inner, Sampled)
    assert isinstance(together.inner.inner, Crowd)
    assert str(together.inner.rate) == rate


def test_where_rules_were_drafted_no_epsilon_is_told() -> None:
    for method in CHECKS:
        plan = plan_of(method, "drafted")
        assert plan.guarantee.syntactic
        assert "epsilon" not in plan.settings
        assert [claim.kind for claim in plan.claims] == ["k-anonymity"]
