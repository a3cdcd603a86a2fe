"""Decisions: recorded one by one or from files, told back as a receipt, counted, and the registry checked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incrowd.core.steps.around import gate_of
from incrowd.core.subjects import Subject
from incrowd.errors import InvalidParameter
from incrowd.governance.consent.event import ConsentEvent, Decided, moment
from incrowd.governance.consent.matching import Consents, IdMatch
from incrowd.governance.consent.record import ConsentReceipt, ConsentRecord, read_27560, read_csv, read_fhir
from incrowd.governance.consent.registry import RegistrySnapshot
from incrowd.governance.consent.state import AsOf, Fold
from incrowd.workflows.consent.place import make_registry, open_registry, person_column, subject_key
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.verify.verify import read_certificate

FORMATS = ("csv", "fhir", "27560")


@dataclass(frozen=True)
class ConsentDecision:
    """A decision that was recorded, and whom it reaches if it is one against."""

    event: ConsentEvent
    match: IdMatch | None = None

    @property
    def ok(self) -> bool:
        """Whether there was a consent to withdraw, restrict or end; whoever refuses need not have consented."""
        return self.match is None or self.match.ok or (self._refuses and not self.match.others)

    @property
    def note(self) -> str | None:
        """What the data holder should know of it, and nobody else; None where all is as it should be."""
        return None if self.match is None or (self._refuses and not self.match.others) else self.match.sentence

    @property
    def _refuses(self) -> bool:
        return self.event.decided is Decided.REFUSE


@dataclass(frozen=True)
class Imported:
    """How many decisions of a file were recorded, and of which the holder should know something, by their places."""

    count: int
    notes: tuple[tuple[str, ConsentDecision], ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every decision against reached somebody who had consented."""
        return all(decision.ok for _, decision in self.notes)

    def to_json(self) -> dict[str, Any]:
        """Return the plain form, for the data holder alone."""
        notes = [(decision.ok, {"place": place, "note": decision.note}) for place, decision in self.notes]
        unmatched, alike = ([note for ok, note in notes if ok is wished] for wished in (False, True))
        return {"recorded": self.count, "unmatched": unmatched, "alike": alike}


def import_records(policy: Policy, file: Path, form: str | None = None) -> Imported:
    """Read a file of decisions twice, once to check all of it, and record them; tell which reach nobody."""
    key, column = subject_key(policy), person_column(policy)
    registry = make_registry(policy)
    now, count, people = registry.decision_time(), 0, set[Subject]()
    for place, record in enumerate(_records(file, form), 1):
        person, count = key.subject(record.subject, column), place
        if record.event.at > now:
            raise InvalidParameter(f"decision {place} has a time in the future: correct it. Nothing was recorded.")
        if not record.event.gives:
            people.add(person)
    consents = Consents.among(people)
    against = list[tuple[str, Subject, ConsentEvent]]()

    def events() -> Iterator[ConsentEvent]:
        for record in _records(file, form):
            person = key.subject(record.subject, column)
            event = record.under(person)
            if event.gives:
                consents.add([event.to_row()])
            else:
                against.append((record.place, person, event))
            yield event

    consents.read(registry.rows() if people else ())
    registry.record(events())
    decisions = ((place, ConsentDecision(event, consents.match(who, event.purpose))) for place, who, event in against)
    return Imported(count, tuple((place, decision) for place, decision in decisions if decision.note is not None))


def decide(policy: Policy, person: str, decided: Decided, **more: str | None) -> ConsentDecision:
    """Record what somebody decides now, about the policy's purpose unless another one is named.

    A decision against that reaches nobody is recorded, too, so that nothing is lost; its note says so.
    """
    registry, who = make_registry(policy), subject_key(policy).subject(person, person_column(policy))
    fields = {name: value for name, value in more.items() if value is not None}
    times = {name: moment(fields.pop(name)) for name in ("valid_from", "valid_to") if name in fields}
    purpose = fields.pop("purpose", policy.section.purpose or "")
    at = registry.decision_time()
    event = ConsentEvent(who.pseudonym, decided, purpose, at, **times, **fields, alike=who.alike)
    match = None if event.gives else Consents.among([who]).read(registry.rows()).match(who, purpose)
    registry.record([event])
    return ConsentDecision(event, match)


def ever_consented(policy: Policy, person: str) -> bool:
    """Whether somebody with exactly this id ever consented to anything; only the data holder may know."""
    who = subject_key(policy).subject(person, person_column(policy))
    return who.pseudonym in Consents.among([who]).read(open_registry(policy).rows()).consented


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
    fold, people, counted = Fold(purpose, AsOf(now, now)), set[str](), Counter[str]()
    for recorded, rows in registry.rows():
        fold.add(recorded, rows)
        people.update(row[0] for row in rows)
        counted.update(row[1] for row in rows)
    consenting = len(fold.people())
    return ConsentStatus(purpose, now, consenting, len(people) - consenting, dict(sorted(counted.items())))


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


def _records(file: Path, form: str | None) -> Iterator[ConsentRecord]:
    try:
        if (form or _form_of(file)) == "csv":
            with file.open(encoding="utf-8-sig", newline="") as opened:
                yield from read_csv(opened)
            return
        plain = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidParameter(f"{file} cannot be read: {error.strerror or 'no reason given'}.") from None
    except ValueError as error:
        if isinstance(error, InvalidParameter):
            raise
        raise InvalidParameter(f"{file} is not JSON in UTF-8.") from None
    yield from read_fhir(plain) if (form or _kind_of(plain)) == "fhir" else read_27560(plain)


def _form_of(file: Path) -> str | None:
    return "csv" if file.suffix.lower() == ".csv" else None


def _kind_of(plain: Any) -> str:
    first = plain[0] if isinstance(plain, list) and plain else plain
    return "fhir" if isinstance(first, dict) and "resourceType" in first else "27560"
