"""Certify: the public certificate of a release, from its plan, the ledger entry of its charge and the output alone."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal

from incrowd import __version__
from incrowd.accounting.budget import Amount, plain
from incrowd.accounting.ledger.status import INFINITY, BudgetStatus, Charged
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
    PeriodAccount,
    meaning_digest,
    release_id,
    tellable,
)
from incrowd.core.claims.claim import Claim
from incrowd.core.guarantee import Guarantee
from incrowd.core.plan import Output, Plan
from incrowd.core.schema import Schema
from incrowd.core.steps.step import Step
from incrowd.store.chain_entry import Anchor
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.registry import method_version
from incrowd.workflows.release.perform import ExecutedPlan


@dataclass(frozen=True)
class PlanFacts:
    """The facts of a plan that the id of a release binds before the charge and that its certificate states."""

    method: Named
    policy_hash: str
    guarantee: Guarantee
    claims: tuple[Claim, ...]
    steps: tuple[Step, ...]

    @classmethod
    def of(cls, plan: Plan, policy_hash: str) -> PlanFacts:
        """Compute the claims of a plan; refuse, before the charge, steps and claims that no reader could render."""
        method = method_version(plan.method)
        return cls(method, policy_hash, plan.guarantee, tellable(plan.claims), tellable(plan.steps))

    @property
    def glossary(self) -> str:
        """The digest of the meaning of its terms."""
        return meaning_digest(self.guarantee, self.claims, self.steps)

    def new_id(self) -> str:
        """Return a new id for a release of this plan."""
        return release_id(secrets.token_bytes(NONCE_BYTES), self)


def certify(id_: str, facts: PlanFacts, executed: ExecutedPlan, dataset: Dataset, columns: Columns) -> Certificate:
    """Return the public certificate of a release: it holds only what the guarantee covers; files are added later."""
    charged = executed.entry.charged[0]
    return Certificate(
        id=id_,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        tool=f"incrowd {__version__}",
        method=facts.method,
        policy_hash=facts.policy_hash,
        dataset=dataset,
        guarantee=facts.guarantee,
        claims=facts.claims,
        steps=facts.steps,
        glossary=facts.glossary,
        accounting=accounting_of(charged, executed.entry.standings[0], executed.entry.period),
        ledger=place_of(executed.entry.anchor),
        schema=columns,
        evidence=executed.output.evidence(facts.guarantee.unit, private=charged.epsilon.is_finite()),
    )


def derive_certificate(parent: Certificate, facts: PlanFacts, output: Output, columns: Columns) -> Certificate:
    """Return the certificate of a table that was computed from a released one: it charges nothing."""
    private = parent.accounting.spent.epsilon != "Infinity"
    return replace(
        parent,
        id=facts.new_id(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        tool=f"incrowd {__version__}",
        method=facts.method,
        claims=facts.claims,
        steps=facts.steps,
        glossary=facts.glossary,
        schema=columns,
        evidence=output.evidence(facts.guarantee.unit, private=private),
        outputs=(),
        approvals=(),
        signature=None,
    )


def dataset_of(policy: Policy, commitment: str | None = None, others: tuple[str, ...] = ()) -> Dataset:
    """Return what a certificate says about the input without revealing its rows."""
    declared = policy.section.dataset
    return Dataset(
        policy.name,
        commitment,
        declared.version,
        declared.period,
        declared.separate or None,
        declared.same_people_as or None,
        others or None,
        declared.population,
    )


def columns_of(schema: Schema, output_names: Sequence[str]) -> Columns:
    """Return the columns of the input, and which of them were released."""
    released = {column.name for column in schema.released}
    facts = (ColumnFact(column.name, str(column.role), str(column.type)) for column in schema.everywhere)
    return Columns(tuple(facts), tuple(name for name in output_names if name in released))


def accounting_of(charged: Charged, standing: BudgetStatus, period: str | None = None) -> Accounting:
    """Return what this release and all releases spent, and what remains, by the ledger.

    A release of a series that was charged at once states what the whole series cost.
    """
    series = charged.series
    spent = (charged.epsilon, charged.delta) if series is None else (series.epsilon, series.delta)
    unbounded = standing.terms.budget.unbounded if standing.terms.budget else None
    return Accounting(
        spent=Amounts(*map(_text, spent)),
        total=Amounts(_text(standing.epsilon), _text(standing.delta)),
        releases=standing.totals.charges,
        rule=charged.rule,
        left=_amounts(standing.left),
        unbounded=unbounded if standing.totals.unbounded else None,
        period=None if period is None else _period(charged, standing, period),
    )


def _period(charged: Charged, standing: BudgetStatus, label: str) -> PeriodAccount | None:
    """Return what the ledger says of the period of a release: what was charged for it and for all periods."""
    if standing.periods is None or standing.here is None:
        return None
    releases = None if charged.series is None else charged.series.releases
    here = standing.here.epsilon if standing.here_bounded else INFINITY
    spent = Amounts(_text(here), _text(standing.here.delta))
    return PeriodAccount(label, standing.periods.published, spent, releases)


def place_of(anchor: Anchor) -> LedgerPlace:
    """Return the place of a charge in the form of a certificate."""
    return LedgerPlace(anchor.chain, anchor.sequence, anchor.hash)


def _amounts(remaining: Amount | None) -> Amounts | None:
    return None if remaining is None else Amounts(**remaining.to_json())


def _text(amount: Decimal) -> str:
    return plain(amount) if amount.is_finite() else "Infinity"
