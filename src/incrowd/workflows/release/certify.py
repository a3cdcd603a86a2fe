"""Certify: the public certificate of a release, from its plan, the ledger's entry and the output alone."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from incrowd import __version__
from incrowd.accounting.budget import Amount, plain
from incrowd.accounting.ledger.status import BudgetStatus, Charged
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
    release_id,
    tellable,
)
from incrowd.core.claims.claim import Claim
from incrowd.core.glossary import meaning_digest
from incrowd.core.guarantee import Guarantee
from incrowd.core.plan import Plan
from incrowd.core.schema import Schema
from incrowd.core.steps.step import Step
from incrowd.store.chain_entry import Anchor
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.registry import method_version
from incrowd.workflows.release.perform import ExecutedPlan


@dataclass(frozen=True)
class Stated:
    """What a release's name binds before anything is charged: its plan and its policy."""

    method: Named
    policy_hash: str
    guarantee: Guarantee
    claims: tuple[Claim, ...]
    steps: tuple[Step, ...]

    @classmethod
    def of(cls, plan: Plan, policy: Policy) -> Stated:
        """Return what is bound of a plan under a policy; what could not be told is refused before a charge."""
        return cls(
            method_version(plan.method), policy.hash, plan.guarantee, tellable(plan.claims), tellable(plan.steps)
        )

    @property
    def glossary(self) -> str:
        """The digest of what its words mean."""
        return meaning_digest(self.guarantee, self.claims, self.steps)

    def fresh_id(self) -> str:
        """Return a new name for a release of this."""
        return release_id(secrets.token_bytes(NONCE_BYTES), self)


def certify(id_: str, stated: Stated, performed: ExecutedPlan, dataset: Dataset, columns: Columns) -> Certificate:
    """Return the public certificate of a release: only what the guarantee covers; files are named later."""
    charged = performed.entry.charged[0]
    return Certificate(
        id=id_,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        tool=f"incrowd {__version__}",
        method=stated.method,
        policy_hash=stated.policy_hash,
        dataset=dataset,
        guarantee=stated.guarantee,
        claims=stated.claims,
        steps=stated.steps,
        glossary=stated.glossary,
        accounting=accounting_of(charged, performed.entry.standings[0]),
        ledger=place_of(performed.entry.anchor),
        schema=columns,
        evidence=performed.output.evidence(stated.guarantee.unit, private=charged.epsilon.is_finite()),
    )


def derive_certificate(parent: Certificate, stated: Stated, output: Any, columns: Columns) -> Certificate:
    """Return the certificate of a table that was made from a released one: nothing was charged for it."""
    private = parent.accounting.spent.epsilon != "Infinity"
    return replace(
        parent,
        id=stated.fresh_id(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        tool=f"incrowd {__version__}",
        method=stated.method,
        claims=stated.claims,
        steps=stated.steps,
        glossary=stated.glossary,
        schema=columns,
        evidence=output.evidence(stated.guarantee.unit, private=private),
        outputs=(),
        approvals=(),
        signature=None,
    )


def dataset_of(policy: Policy, commitment: str | None = None, others: tuple[str, ...] = ()) -> Dataset:
    """Return what a certificate says about the input without betraying it."""
    told = policy.section.dataset
    return Dataset(
        policy.name,
        commitment,
        told.version,
        told.period,
        told.separate or None,
        told.same_people_as or None,
        others or None,
    )


def columns_of(schema: Schema, published: list[str]) -> Columns:
    """Return the columns of the input, and which of them were published."""
    released = {column.name for column in schema.released}
    facts = (ColumnFact(column.name, str(column.role), str(column.type)) for column in schema.columns)
    return Columns(tuple(facts), tuple(name for name in published if name in released))


def accounting_of(charged: Charged, standing: BudgetStatus) -> Accounting:
    """Return what was spent, in total and here, and what is left, as the ledger tells it."""
    unbounded = standing.terms.budget.unbounded if standing.terms.budget else None
    return Accounting(
        spent=Amounts(_text(charged.epsilon), _text(charged.delta)),
        total=Amounts(_text(standing.epsilon), _text(standing.delta)),
        releases=standing.totals.charges,
        rule=charged.rule,
        left=_amounts(standing.left),
        unbounded=unbounded if standing.totals.unbounded else None,
    )


def place_of(anchor: Anchor) -> LedgerPlace:
    """Return the place of a charge as a certificate tells it."""
    return LedgerPlace(anchor.chain, anchor.sequence, anchor.hash)


def _amounts(left: Amount | None) -> Amounts | None:
    return None if left is None else Amounts(**left.to_json())


def _text(amount: Decimal) -> str:
    return plain(amount) if amount.is_finite() else "Infinity"
