"""What every plan of typed steps must do: be read back, and make its guarantee and claims again from what was read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from incrowd.core.claims.claim import claim_of
from incrowd.core.plan import Method, Plan
from incrowd.core.schema import Schema
from incrowd.core.steps.step import ClaimBasis, Step, claims_of, fold, step_of
from incrowd.errors import InvalidParameter
from incrowd.verifier.check import Check, in_order
from incrowd.workflows.registry import check_of
from tests.released import leaves, other
from tests.statements import numbers_of


def assert_read_back(plan: Plan) -> None:
    """Steps and claims are read back as they were, and guarantee and claims follow from them again."""
    check = check_of(plan.method)
    steps = tuple(step_of(step.to_json(), check.steps) for step in plan.steps)
    claims = tuple(claim_of(claim.to_json(), check.claims) for claim in plan.claims)
    assert steps == plan.steps
    assert claims == plan.claims
    assert in_order(steps, check.order)
    guarantee = fold(steps, plan.unit, plan.guarantee.delta)
    assert guarantee == plan.guarantee
    assert claims_of(ClaimBasis(guarantee, steps, numbers_of(claims))) == plan.claims


def assert_changes_refused(plan: Plan) -> None:
    """A step with a key too many is refused, and one with a changed word says something else or is refused."""
    check = check_of(plan.method)
    for step in plan.steps:
        assert step.title
        assert step.sentence.endswith(".")
        with pytest.raises(InvalidParameter):
            step_of(step.to_json() | {"note": "x"}, check.steps)
        for plain in _changed(step.to_json()):
            assert _read(plain, check) != step
    for claim in plan.claims:
        assert claim.sentence
        with pytest.raises(InvalidParameter):
            claim_of(claim.to_json() | {"note": "x"}, check.claims)


def _read(plain: dict[str, Any], check: Check) -> Step | None:
    try:
        return step_of(plain, check.steps)
    except InvalidParameter:
        return None


def _changed(plain: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for way in leaves(plain):
        yield _with(plain, way)


def _with(plain: Any, way: tuple[str | int, ...]) -> Any:
    if not way:
        return other(plain)
    if isinstance(plain, dict):
        return {name: _with(part, way[1:]) if name == way[0] else part for name, part in plain.items()}
    return [_with(part, way[1:]) if number == way[0] else part for number, part in enumerate(plain)]


def steps_json(method: Method, schema: Schema) -> list[dict[str, Any]]:
    """Return the steps of a method's plan as a certificate writes them."""
    return [step.to_json() for step in method.plan(schema).steps]
