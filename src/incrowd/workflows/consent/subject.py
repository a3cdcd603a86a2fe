"""Subject: the releases a person was eligible for, their total privacy loss, and the service that shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, Decimal, localcontext
from typing import Any

from incrowd.accounting.budget import Amount
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.accounting.ledger.status import Charged, Entry
from incrowd.core.steps.around import gate_of
from incrowd.core.subjects import Subject
from incrowd.core.words import short_up
from incrowd.errors import AccessDenied
from incrowd.governance.consent.event import ConsentEvent, Decided
from incrowd.governance.consent.phrases import phrase
from incrowd.governance.consent.registry import RegistrySnapshot
from incrowd.governance.consent.state import AsOf, Recorded, as_rows, consenting
from incrowd.workflows.consent.place import open_registry, person_column, subject_key
from incrowd.workflows.policy.ledger import find_book, same_people
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.registry import reasons
from incrowd.workflows.release.differences import published_release

BASIS = (
    "Computed from the consent registry and the ledger alone. Eligible means that consent was in force when the "
    "release read the registry. Sampling, suppression, limits and the holdout group are secret and were not used, so "
    "nobody is told whether a row was used. The total adds up the charged epsilon and delta; a series that was charged "
    "at once counts once, for all its releases. Charges to an account are shown in rho. A withdrawal does not lower "
    "the total: published releases cannot be recalled."
)
_UNBOUNDED = "Infinity"
"""The ε of a release without one, as data; people read "no bound on the privacy loss"."""


@dataclass(frozen=True)
class EligibleRelease:
    """A release that a person was eligible for: when it was charged, its guarantee and its cost."""

    release: str
    at: str
    dataset: str
    guarantee: str
    epsilon: str
    delta: str
    rho: str | None
    concluded: bool
    period: str | None = None
    series: str | None = None
    """The series that was charged at once, and not release by release; the amounts are those of the whole series."""

    @property
    def unbounded(self) -> bool:
        """Whether nothing bounds its privacy loss."""
        return self.epsilon == _UNBOUNDED

    @property
    def short_epsilon(self) -> str:
        """The ε of the release, rounded up to two digits."""
        return short_up(Decimal(self.epsilon), 2)

    @property
    def cost(self) -> str:
        """The privacy loss of the release, in words."""
        if self.unbounded:
            return "no bound on the privacy loss"
        together = "" if self.series is None else f", for all releases of series {self.series} together"
        return f"epsilon at most {self.short_epsilon}{together}"

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        optional = ("period", "series")
        return {name: part for name, part in vars(self).items() if part is not None or name not in optional}


@dataclass(frozen=True)
class SubjectReport:
    """What a data subject may know; an ε of `Infinity` says that some release has no bound on the privacy loss."""

    purpose: str
    as_of: str
    consents: bool
    releases: tuple[EligibleRelease, ...]
    epsilon: str
    delta: str
    basis: str = BASIS
    until: str | None = None
    """When the consent ends by itself, if it does."""

    @property
    def number(self) -> int | None:
        """In how many of 100 cases somebody guesses right, at most, whether the person is in it; None without bound."""
        return None if self.epsilon == _UNBOUNDED else guesses(Decimal(self.epsilon), Decimal(self.delta))

    def sentence(self, language: str = "en") -> str:
        """Return in one sentence what all releases together can tell about the person."""
        if self.number is None:
            return phrase(language, "tells_unbounded")
        most = self.number > _MOST
        return phrase(language, "tells_much") if most else phrase(language, "tells", number=self.number)

    @property
    def total(self) -> str:
        """The total privacy loss, in words."""
        if self.epsilon == _UNBOUNDED:
            return "no bound on the privacy loss"
        epsilon, delta = (short_up(Decimal(amount), 2) for amount in (self.epsilon, self.delta))
        return f"epsilon at most {epsilon}, delta at most {delta}"

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        listed = {"releases": [release.to_json() for release in self.releases]}
        return dict(vars(self)) | listed | {"guesses_of_100": self.number}


_MOST = 99


def guesses(epsilon: Decimal, delta: Decimal) -> int:
    """Return in how many of 100 cases a guess whether a person is in the data is right, at most, rounded up.

    Both are equally likely before.  Under (ε, δ)-differential privacy no test is right with a higher probability than
    (e^ε + δ) / (e^ε + 1).

    Source: Kairouz, Oh & Viswanath 2015, theorem 2.1.

    >>> guesses(Decimal(1), Decimal(0)), guesses(Decimal(0), Decimal(0)), guesses(Decimal(9000), Decimal(0))
    (74, 50, 100)
    """
    with localcontext() as context:
        context.prec = 50
        if epsilon > _LARGE:
            return 100
        factor = epsilon.exp()
        share = (factor + min(delta, Decimal(1))) / (factor + 1)
        return int((100 * share - _TINY).to_integral_value(ROUND_CEILING))


_LARGE, _TINY = 100, Decimal("1e-40")
"""Beyond this ε the bound rounds to 100; and less than this, a computed bound lies above the exact one."""


@dataclass(frozen=True)
class Decisions:
    """What counts for one person and one purpose."""

    person: Subject
    events: Sequence[Recorded]
    purpose: str

    def without(self, missed: Sequence[ConsentEvent]) -> Decisions:
        """Return the same without some decisions."""
        return replace(self, events=[(on, event) for on, event in self.events if event not in missed])

    def ends(self, now: str) -> str | None:
        """Return when the consent in force ends by itself, if nothing else is decided; None if it does not."""
        ends = sorted({event.ends for _, event in self.events if event.gives and event.ends and event.ends > now})
        return next((end for end in ends if not self._in_force(AsOf(end, now))), None)

    def consented(self, at: str, as_of: str | None) -> bool:
        """Whether consent was in force at a moment, by what was recorded until then, and as of the policy's time."""
        return self._in_force(AsOf(at, at), AsOf(as_of or at, at))

    def _in_force(self, *times: AsOf) -> bool:
        own = self.person.pseudonym
        linked = [
            (on, replace(event, alike=self.person.alike) if event.subject == own else event)
            for on, event in self.events
        ]
        return own in consenting(as_rows(linked), self.purpose, *times)


def subject_report(policy: Policy, person: str) -> SubjectReport:
    """Return the report of a person, by the ID in the data."""
    return report_of(policy, subject_key(policy).subject(person, person_column(policy)))


def report_of(policy: Policy, person: Subject) -> SubjectReport:
    """Return the report of a person, by pseudonyms; no row is read."""
    registry, purpose = open_registry(policy), policy.section.purpose or ""
    own = Decisions(person, registry.decisions_of(person), purpose)
    now = registry.decision_time()
    as_of = policy.gate.as_of if policy.gate is not None else None
    ledger = find_book(policy)
    paid = () if ledger is None else tuple(_charges(policy, ledger))
    eligible = [(entry, charged) for entry, charged in paid if _was_eligible(policy, own, ledger, entry, as_of)]
    total = _sum([charged for _, charged in eligible])
    unbounded = any(not charged.epsilon.is_finite() for _, charged in eligible)
    releases = tuple(_release(ledger, *charge) for charge in eligible if ledger is not None)
    amounts = total.to_json()
    return SubjectReport(
        purpose,
        now,
        own.consented(now, as_of),
        releases,
        _UNBOUNDED if unbounded else amounts["epsilon"],
        amounts["delta"],
        until=own.ends(now) if own.consented(now, as_of) else None,
    )


def _sum(eligible: Sequence[Charged]) -> Amount:
    """Return what eligible charges cost together; a series that was charged at once counts once, for all its releases.

    A person who was eligible for one release of a series may have been in all of them.
    """
    total, series = Amount(), set()
    for charged in eligible:
        epsilon, delta = _price(charged)
        key = None if charged.series is None else (charged.dataset, charged.series.name)
        if epsilon.is_finite() and charged.rho is None and (key is None or key not in series):
            total = total.plus(Amount(epsilon, delta))
        series.add(key)
    return total


def _price(charged: Charged) -> tuple[Decimal, Decimal]:
    """Return what a charge cost; a release of a series that was charged at once, what all of them cost."""
    if charged.series is None:
        return charged.epsilon, charged.delta
    return charged.series.epsilon, charged.series.delta


def _was_eligible(policy: Policy, own: Decisions, ledger: Ledger | None, entry: Entry, as_of: str | None) -> bool:
    """Whether a person was eligible: by the gate of the release where it is found, else at the time of its charge.

    The registry is read before the charge, perhaps long before it.  A release without a gate used everybody's rows.
    """
    name = str(entry.body["release"])
    certificate = None if ledger is None else published_release(policy, ledger, name).certificate
    if certificate is None:
        return own.consented(entry.at, as_of)
    gate = gate_of(certificate.steps)
    if gate is None or gate.run is None:
        return gate is None
    snapshot = RegistrySnapshot(gate.nonce or "", gate.mark or "")
    seen = own.without(open_registry(policy).missed(snapshot, own.person, gate.run))
    return replace(seen, purpose=gate.purpose).consented(gate.run, gate.as_of)


def _charges(policy: Policy, ledger: Ledger) -> Iterator[tuple[Entry, Charged]]:
    for entry in ledger.entries():
        for charged in entry.charged:
            if charged.dataset == policy.name or same_people(ledger, charged.dataset, policy.name):
                yield entry, charged


def _release(ledger: Ledger, entry: Entry, charged: Charged) -> EligibleRelease:
    name = str(entry.body["release"])
    epsilon, delta = map(_text, _price(charged))
    return EligibleRelease(
        name,
        entry.at,
        charged.dataset,
        reasons(charged.guarantee),
        epsilon,
        delta,
        None if charged.rho is None else str(charged.rho),
        any(ledger.conclusions(name)),
        entry.period,
        None if charged.series is None else charged.series.name,
    )


def _text(amount: Decimal) -> str:
    return f"{amount:f}" if amount.is_finite() else _UNBOUNDED


_NEXT = timedelta(minutes=15)
_UNKNOWN = "this token is unknown, used or expired: ask the data holder for another."


@dataclass(frozen=True)
class SubjectView:
    """What a data subject sees, and the next token: it works once, for 15 minutes."""

    report: SubjectReport
    token: str
    withdrawn: bool = False
    """Whether a withdrawal was recorded just now."""


@dataclass(frozen=True)
class DataSubjectService:
    """Serves data subjects, for the policies that check consent; only the registry stores anything."""

    policies: tuple[Policy, ...]

    def view(self, token: str) -> SubjectView:
        """Use up a token and return the report of its person."""
        return _view(*self._redeem(token))

    def withdraw(self, token: str) -> SubjectView:
        """Use up a token, record a withdrawal and return the new report; the page is the same for every ID."""
        policy, person = self._redeem(token)
        registry, purpose = open_registry(policy), policy.section.purpose or ""
        event = ConsentEvent(person.pseudonym, Decided.WITHDRAW, purpose, registry.decision_time(), alike=person.alike)
        registry.record([event])
        return replace(_view(policy, person), withdrawn=True)

    def _redeem(self, token: str) -> tuple[Policy, Subject]:
        for policy in self.policies:
            person = None if policy.gate is None else open_registry(policy).redeem(token, policy.name)
            if person is not None:
                return policy, person
        raise AccessDenied(_UNKNOWN)


def issue_token(policy: Policy, person: str, days: int = 7) -> str:
    """Return a one-time token for a person, known by the id that the data has."""
    subject = subject_key(policy).subject(person, person_column(policy))
    return open_registry(policy).issue(subject, policy.name, datetime.now(UTC) + timedelta(days=days))


def _view(policy: Policy, person: Subject) -> SubjectView:
    token = open_registry(policy).issue(person, policy.name, datetime.now(UTC) + _NEXT)
    return SubjectView(report_of(policy, person), token)
