"""Subject: what somebody may ask: for which releases was I eligible, under which guarantees, at what total loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from incrowd.accounting.budget import Amount
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.accounting.ledger.status import Charged, Entry
from incrowd.core.subjects import Subject
from incrowd.governance.consent.state import AsOf, Recorded, as_rows, consenting
from incrowd.workflows.consent.place import open_registry, person_column, subject_key
from incrowd.workflows.policy.ledger import find_book, same_people
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.registry import reasons

BASIS = (
    "Computed from the events of the consent registry and from the ledger alone: eligible means that consent stood "
    "when the release was charged. Coins, suppression, limits and people held out are secret and were not consulted, "
    "so whether a row was used is told to nobody. The total is the sum of what was charged in epsilon and delta; what "
    "an account paid is told in rho beside its release. It stays after a withdrawal: what is out cannot be called back."
)


@dataclass(frozen=True)
class EligibleRelease:
    """A release for which somebody was eligible: when it was charged, why its guarantee holds, and what it cost."""

    release: str
    at: str
    dataset: str
    guarantee: str
    epsilon: str
    delta: str
    rho: str | None
    concluded: bool

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        return dict(vars(self))


@dataclass(frozen=True)
class SubjectReport:
    """What there is to tell somebody; an ε of `Infinity` says that a release without one was made."""

    purpose: str
    as_of: str
    consents: bool
    releases: tuple[EligibleRelease, ...]
    epsilon: str
    delta: str
    basis: str = BASIS

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        return dict(vars(self)) | {"releases": [release.to_json() for release in self.releases]}


@dataclass(frozen=True)
class Decisions:
    """What counts for one person and one purpose."""

    person: Subject
    events: Sequence[Recorded]
    purpose: str

    def consented(self, at: str, as_of: str | None) -> bool:
        """Whether consent was in force at a moment, by what was recorded until then, and as of the policy's time."""
        times = AsOf(at, at), AsOf(as_of or at, at)
        return self.person.pseudonym in consenting(as_rows(self.events), self.purpose, *times)


def subject_report(policy: Policy, person: str) -> SubjectReport:
    """Return what somebody may ask, by the id that the data knows."""
    return report_of(policy, subject_key(policy).subject(person, person_column(policy)))


def report_of(policy: Policy, person: Subject) -> SubjectReport:
    """Return what somebody may ask who is known by pseudonyms; no row is read."""
    registry, purpose = open_registry(policy), policy.section.purpose or ""
    own = Decisions(person, registry.decisions_of(person), purpose)
    now = registry.decision_time()
    told = policy.gate.as_of if policy.gate is not None else None
    ledger = find_book(policy)
    paid = () if ledger is None else tuple(_charges(policy, ledger))
    found = [(entry, charged) for entry, charged in paid if own.consented(entry.at, told)]
    total = Amount()
    for _, charged in found:
        if charged.epsilon.is_finite() and charged.rho is None:
            total = total.plus(Amount(charged.epsilon, charged.delta))
    unbounded = any(not charged.epsilon.is_finite() for _, charged in found)
    releases = tuple(_release(ledger, *each) for each in found if ledger is not None)
    amounts = total.to_json()
    return SubjectReport(
        purpose,
        now,
        own.consented(now, told),
        releases,
        "Infinity" if unbounded else amounts["epsilon"],
        amounts["delta"],
    )


def _charges(policy: Policy, ledger: Ledger) -> Iterator[tuple[Entry, Charged]]:
    for entry in ledger.entries():
        for charged in entry.charged:
            if charged.dataset == policy.name or same_people(ledger, charged.dataset, policy.name):
                yield entry, charged


def _release(ledger: Ledger, entry: Entry, charged: Charged) -> EligibleRelease:
    name = str(entry.body["release"])
    return EligibleRelease(
        name,
        entry.at,
        charged.dataset,
        reasons(charged.guarantee),
        _text(charged.epsilon),
        _text(charged.delta),
        None if charged.rho is None else str(charged.rho),
        any(ledger.conclusions(name)),
    )


def _text(amount: Decimal) -> str:
    return f"{amount:f}" if amount.is_finite() else "Infinity"
