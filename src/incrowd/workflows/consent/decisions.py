"""Decisions: recorded one by one, told back as a receipt, counted, and the registry checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from incrowd.core.steps.around import gate_of
from incrowd.core.subjects import Subject
from incrowd.errors import InvalidParameter, Refused
from incrowd.governance.consent.event import ConsentEvent, Decided, check_purpose, covers, moment
from incrowd.governance.consent.matching import Consents, IdMatch, related
from incrowd.governance.consent.newest import NewestTable
from incrowd.governance.consent.record import ConsentReceipt, ConsentRecord
from incrowd.governance.consent.registry import Registry, RegistrySnapshot, columns_of
from incrowd.governance.consent.state import AsOf, consenting
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.consent.place import make_registry, open_registry, person_column, subject_key
from incrowd.workflows.consent.subject import Decisions
from incrowd.workflows.consent.table import TableIds, TableMatch
from incrowd.workflows.policy.policy import Policy

_TIMES = ("at", "valid_from", "valid_to", "of_age", "corrects")


@dataclass(frozen=True)
class ConsentDecision:
    """A decision that was recorded, whom it reaches if it is one against, and whether the table has the id."""

    event: ConsentEvent
    match: IdMatch | None = None
    table: TableMatch | None = None
    overridden: bool = False
    """Whether it is one against, and the person still consents by a later decision."""

    @property
    def ok(self) -> bool:
        """Whether there was a consent to withdraw, restrict or end; whoever refuses need not have consented."""
        if self.overridden or not self._in_table:
            return False
        return self.match is None or self.match.ok or (self._refuses and not self.match.others)

    @property
    def note(self) -> str | None:
        """What the data holder should know of it, and nobody else; None where all is as it should be."""
        match = None if self.match is None or (self._refuses and not self.match.others) else self.match.sentence
        quiet = self.table is None or (self._refuses and self._in_table)
        table = None if quiet or self.table is None else self.table.sentence(gives=self.event.gives)
        return " ".join(filter(None, (_OVERRIDDEN if self.overridden else None, match, table))) or None

    @property
    def _in_table(self) -> bool:
        """Whether the table has the id; before its rows a consent or a refusal may be there, unless ids resemble it."""
        early = self.event.gives or self._refuses
        return self.table is None or self.table.present or (early and not self.table.alike)

    @property
    def _refuses(self) -> bool:
        return self.event.decided is Decided.REFUSE


_OVERRIDDEN = (
    "The person still consents: a consent with a later time counts before this decision. Check both times with incrowd "
    "consent receipt. If the person withdrew after that consent, withdraw again with the right time."
)


def require_purpose(policy: Policy, registry: Registry, purpose: str, place: str = "") -> None:
    """Refuse a purpose that nobody ever used and that is neither wider nor narrower than the policy's own."""
    if not related(purpose, policy.section.purpose or "") and not registry.uses(purpose):
        raise Refused(
            f"{place}no decision was ever about the purpose {purpose!r}, and the policy's purpose is "
            f"{policy.section.purpose!r}. Nothing was recorded. Correct it, or repeat with --new-purpose."
        )


def decide(policy: Policy, person: str, decided: Decided, **more: str | None) -> ConsentDecision:
    """Record what somebody decides, now or at a stated time, about the policy's purpose unless another one is named.

    A decision against that reaches nobody is recorded, too, so that nothing is lost; its note says so.
    """
    registry, who = make_registry(policy), subject_key(policy).subject(person, person_column(policy))
    fields = {name: value for name, value in more.items() if value is not None}
    times = {name: moment(fields.pop(name)) for name in _TIMES if name in fields}
    purpose, strict = fields.pop("purpose", policy.section.purpose or ""), not fields.pop("new_purpose", "")
    now = registry.decision_time()
    at = times.pop("at", "") or now
    event = ConsentEvent(who.pseudonym, decided, check_purpose(purpose), at, **times, **fields, alike=who.alike)
    event = event.settled(now)
    if event.gives and strict:
        require_purpose(policy, registry, purpose)
    if event.corrects is not None:
        event = replace(event, corrects=_correctable(registry, who, event))
    match = _match(registry, who, purpose) if event.against else None
    table = None if (ids := TableIds.of(policy)) is None else ids.match(person)
    registry.record([event])
    return ConsentDecision(event, match, table, event.against and _still_consents(policy, registry, who, purpose))


def _match(registry: Registry, who: Subject, purpose: str) -> IdMatch:
    """Return whom a decision against reaches; only where the purpose is wrong are all entries read."""
    match = Consents.among([who]).read(registry.naming(who.pseudonym, who.alike)).match(who, purpose)
    return match if match.purpose else Consents.among([who]).read(registry.rows()).match(who, purpose)


def _still_consents(policy: Policy, registry: Registry, who: Subject, purpose: str) -> bool:
    """Whether a person consents to what a decision against was about, though it is recorded."""
    own, events, now = policy.section.purpose or "", registry.decisions_of(who), registry.decision_time()
    purposes = {purpose, *([own] if covers(purpose, own) else [])}
    return any(Decisions(who, events, one).consented(now, None) for one in purposes)


def _correctable(registry: Registry, who: Subject, event: ConsentEvent) -> str:
    """Return the time of the decision that is corrected; refuse if none was recorded: nothing would be corrected."""
    own = [one for _, one in registry.decisions_of(who) if one.subject == who.pseudonym]
    times = sorted({one.at for one in own if one.purpose == event.purpose})
    time = corrected_time(times, event.corrects or "")
    if time is None:
        raise Refused(
            "no decision of this ID about this purpose was recorded with this time, so there is nothing to correct. "
            f"Nothing was recorded. The recorded times are: {', '.join(times) or 'none'}."
        )
    return time


def corrected_time(times: Iterable[str], corrects: str) -> str | None:
    """Return which of some times a correction names: exactly, or as the only one of a day; None for none of them.

    >>> corrected_time(["2026-05-01T23:59:59.999999Z"], moment("2026-05-01"))
    '2026-05-01T23:59:59.999999Z'
    """
    known_times = set(times)
    day = [time for time in known_times if moment(time[: len("2026-05-01")]) == corrects]
    if corrects in known_times:
        return corrects
    return day[0] if len(day) == 1 else None


def ever_consented(policy: Policy, person: str) -> bool:
    """Whether somebody with exactly this id ever consented to anything; only the data holder may know."""
    who = subject_key(policy).subject(person, person_column(policy))
    return who.pseudonym in Consents.among([who]).read(open_registry(policy).naming(who.pseudonym)).consented


def receipt(policy: Policy, person: str) -> ConsentReceipt:
    """Return all decisions of one person."""
    registry, who = open_registry(policy), subject_key(policy).subject(person, person_column(policy))
    own = tuple((at, ConsentRecord(person, event)) for at, event in registry.decisions_of(who))
    return ConsentReceipt(person, registry.now(), own)


@dataclass(frozen=True)
class ConsentStatus:
    """How many people consent to the policy's purpose now and how many do not, and how often what was decided."""

    purpose: str
    as_of: str
    consenting: int
    others: int
    events: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """Return the plain form, for the data holder alone."""
        return dict(vars(self))


def status(policy: Policy) -> ConsentStatus:
    """Count who consents now; these numbers are the data holder's and are never published."""
    registry, purpose = open_registry(policy), policy.section.purpose or ""
    now = registry.decision_time()
    counted, people = Counter[str](), NewestTable(1)
    for _, rows in registry.rows():
        columns = columns_of(rows)
        numbers = np.bincount(columns.codes["decided"]).tolist()
        counted.update(dict(zip(columns.names["decided"], numbers, strict=True)))
        people.merge(columns.subjects, (np.zeros(len(columns), np.int64), columns.times["at"]))
    consents = len(consenting(registry.rows(), purpose, AsOf(now, now)))
    return ConsentStatus(purpose, now, consents, len(people.keys) - consents, dict(sorted(counted.items())))


@dataclass(frozen=True)
class RegistryCheck:
    """What a check of the registry found; None where it is in order."""

    finding: str | None
    against: str | None = None

    @property
    def ok(self) -> bool:
        """Whether it is in order."""
        return self.finding is None


def check_registry(policy: Policy, against: Path | None = None) -> RegistryCheck:
    """Recompute the registry from its first entry, and compare it with the state that a certificate names."""
    registry = open_registry(policy)
    finding = registry.check().finding
    if finding is not None or against is None:
        return RegistryCheck(finding)
    certificate = read_certificate(against)
    gate = gate_of(certificate.steps)
    if gate is None or gate.nonce is None or gate.mark is None:
        raise InvalidParameter("this certificate names no consent: give one of a release that checked consent.")
    held = registry.holds(RegistrySnapshot(gate.nonce, gate.mark))
    lost = (
        "the registry was never in the state that this certificate names: an old copy was restored, or it was changed."
    )
    return RegistryCheck(None if held else lost, certificate.id)
