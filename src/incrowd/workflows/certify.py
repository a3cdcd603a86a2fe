"""Certify: the public certificate of a release, from the promise, the ledger's entry and the output alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from incrowd import __version__
from incrowd.accounting.budget import plain
from incrowd.accounting.ledger.entry import Charged
from incrowd.accounting.ledger.standing import Standing
from incrowd.core.certificate import Certificate
from incrowd.core.schema import Schema
from incrowd.workflows.perform import Performed
from incrowd.workflows.policy import Policy

LIMITS = (
    (
        "The promise holds for all releases charged to this dataset together, as the accounting says; releases about "
        "the same people that were made elsewhere, or charged to another dataset, are not in it."
    ),
    "The certificate states what the mechanism guarantees; it is evidence for an assessment, not the assessment.",
)


@dataclass(frozen=True)
class Inputs:
    """What a certificate says about the input without betraying it: a commitment under a fresh key."""

    id: str
    commitment: str


def certificate_of(
    policy: Policy, performed: Performed, inputs: Inputs, outputs: tuple[Mapping[str, Any], ...]
) -> Certificate:
    """Return the public certificate: only what the promise covers."""
    return Certificate(
        id=inputs.id,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        tool=f"incrowd {__version__}",
        policy_hash=policy.hash,
        dataset=_dataset(policy, inputs),
        guarantee=performed.promise,
        claims=policy.method.claims(policy.schema),
        chain=policy.method.chain(policy.schema),
        accounting=accounting_of(performed.entry.charged[0], performed.entry.standings[0]),
        ledger=performed.entry.anchor.to_json(),
        outputs=outputs,
        schema=_schema(policy.schema, performed.outcome.schema.names),
        evidence=performed.outcome.evidence(policy.schema.unit, private=performed.entry.charged[0].epsilon.is_finite()),
        limits=LIMITS,
    )


def _dataset(policy: Policy, inputs: Inputs) -> dict[str, Any]:
    known = {"name": policy.name, "unit": str(policy.schema.unit), "commitment": inputs.commitment}
    told = policy.section.dataset
    known |= {"separate": told.separate} if told.separate else {}
    known |= {"same people as": told.same_people_as} if told.same_people_as else {}
    return known | ({"period": policy.section.dataset.period} if policy.section.dataset.period else {})


def accounting_of(charged: Charged, standing: Standing) -> dict[str, Any]:
    """Return what was spent, in total and here, and what is left, as the ledger tells it."""
    left = standing.left
    unbounded = standing.terms.budget.unbounded if standing.terms.budget else None
    return {
        "spent": {"epsilon": _amount(charged.epsilon), "delta": _amount(charged.delta)},
        "total": {"epsilon": _amount(standing.epsilon), "delta": _amount(standing.delta)},
        "left": None if left is None else left.to_json(),
        "releases": standing.totals.charges,
        "rule": charged.rule,
        "composition": "sums of epsilon and delta over all releases charged to this dataset",
        "unbounded": unbounded if standing.totals.unbounded else None,
    }


def _amount(amount: Any) -> str:
    return plain(amount) if amount.is_finite() else "Infinity"


def _schema(schema: Schema, published: list[str]) -> dict[str, Any]:
    return {
        "columns": [
            {"name": column.name, "role": str(column.role), "type": str(column.type)} for column in schema.columns
        ],
        "released": [name for name in published if name in {column.name for column in schema.released}],
    }
