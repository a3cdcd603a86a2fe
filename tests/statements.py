"""What a certificate would say of a plan, for tests of checks; and changes to single steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from incrowd.core.claims.claim import Claim
from incrowd.core.plan import Plan
from incrowd.core.schema import Schema
from incrowd.core.statement import Statement
from incrowd.core.steps.step import Step


def statement_of(plan: Plan, schema: Schema, **evidence: Any) -> Statement:
    """Return what is said about a release of this plan."""
    roles = {column.name: str(column.role) for column in schema.columns}
    return Statement(plan.basis, plan.claims, tuple(column.name for column in schema.released), evidence, roles)


def with_step(statement: Statement, kind: type[Step], **changes: Any) -> Statement:
    """Return a statement whose step of a class says something else."""
    steps = tuple(
        replace(step, **changes) if isinstance(step, kind) else step  # type: ignore[type-var]
        for step in statement.steps
    )
    return replace(statement, basis=replace(statement.basis, steps=steps))


def numbers_of(claims: tuple[Claim, ...]) -> dict[str, Any]:
    """Return the accountants' numbers as claims state them."""
    return {name: getattr(claim, field) for claim in claims for field, name in claim.numbers.items()}
