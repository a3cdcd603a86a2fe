"""Decisions: recorded one by one or from files, told back as a receipt, counted, and the registry checked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from incrowd.core.steps.around import gate_of
from incrowd.core.subjects import Subject
from incrowd.errors import InvalidParameter, Refused
from incrowd.governance.consent.event import ConsentEvent, Decided, check_purpose, moment
from incrowd.governance.consent.fhir import FhirReading, SkippedResource, read_fhir
from incrowd.governance.consent.matching import Consents, IdMatch, related
from incrowd.governance.consent.newest import NewestTable
from incrowd.governance.consent.record import ConsentReceipt, ConsentRecord, read_27560, read_csv
from incrowd.governance.consent.registry import Registry, RegistrySnapshot, columns_of
from incrowd.governance.consent.state import AsOf, consenting
from incrowd.workflows.consent.place import make_registry, open_registry, person_column, subject_key
from incrowd.workflows.consent.table import TableIds, TableMatch
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.verify.verify import read_certificate

FORMATS = ("csv", "fhir", "27560")
_TIMES = ("at", "valid_from", "valid_to", "of_age", "corrects")


@dataclass(frozen=True)
class ConsentDecision:
    """A decision that was recorded, whom it reaches if it is one against, and whether the table has the id."""

    event: ConsentEvent
    match: IdMatch | None = None
    table: TableMatch | None = None

    @property
    def ok(self) -> bool:
        """Whether there was a consent to withdraw, restrict or end; whoever refuses need not have consented."""
        if self.table is not None and not self.table.ok(gives=self.event.gives):
            return False
        return self.match is None or self.match.ok or (self._refuses and not self.match.others)

    @property
    def note(self) -> str | None:
        """What the data holder should know of it, and nobody else; None where all is as it should be."""
        match = None if self.match is None or (self._refuses and not self.match.others) else self.match.sentence
        table = None if self.table is None else self.table.sentence(gives=self.event.gives)
        return " ".join(filter(None, (match, table))) or None

    @property
    def _refuses(self) -> bool:
        return self.event.decided is Decided.REFUSE


@dataclass(frozen=True)
class Imported:
    """How many decisions of a file were recorded, and of which the holder should know something, by their places."""

    count: int
    notes: tuple[tuple[str, ConsentDecision], ...] = ()
    skipped: tuple[SkippedResource, ...] = ()
    """Resources that are not decisions, or not ones that can be taken whole, with the reason."""
    absent: int = 0
    """Consents of ids that no row of the table has, and that resemble none of its ids."""

    @property
    def ok(self) -> bool:
        """Whether every decision against reached somebody who had consented, and no decision was skipped."""
        return all(decision.ok for _, decision in self.notes) and all(one.harmless for one in self.skipped)

    def to_json(self) -> dict[str, Any]:
        """Return the plain form, for the data holder alone."""
        notes = [(decision.ok, {"place": place, "note": decision.note}) for place, decision in self.notes]
        unmatched, alike = ([note for ok, note in notes if ok is matched] for matched in (False, True))
        skipped = [{"place": one.place, "reason": one.reason} for one in self.skipped]
        return {"recorded": self.count, "unmatched": unmatched, "alike": alike, "skipped": skipped}


@dataclass(frozen=True)
class ImportRules:
    """How a file is read: its format, whether it may bring new purposes, and what provisions of FHIR R5 mean."""

    form: str | None = None
    new_purposes: bool = False
    provisions_permit: bool = False


def import_records(policy: Policy, file: Path, rules: ImportRules | None = None) -> Imported:
    """Read a file of decisions twice, once to check all of it, and record them; tell which reach nobody."""
    registry = make_registry(policy)
    arrival = _Arrival(policy, file, rules or ImportRules(), registry.decision_time())
    arrival.check(registry)
    consents = Consents.among(arrival.people)
    against = list[tuple[str, Subject, ConsentEvent]]()

    def events() -> Iterator[ConsentEvent]:
        for record, person in arrival.decisions():
            event = record.under(person)
            if event.gives:
                consents.add([event.to_row()])
            elif event.decided is not Decided.VOID:
                against.append((record.place, person, event))
            yield event

    consents.read(registry.rows() if arrival.people else ())
    registry.record(events())
    decisions = [(place, ConsentDecision(event, consents.match(who, event.purpose))) for place, who, event in against]
    notes = [(place, decision) for place, decision in decisions if decision.note is not None]
    return Imported(arrival.count, (*notes, *arrival.misspelled), tuple(arrival.skipped), arrival.absent)


@dataclass
class _Arrival:
    """A file of decisions on its way into the registry: checked as a whole before anything is recorded."""

    policy: Policy
    file: Path
    rules: ImportRules
    now: str
    count: int = 0
    absent: int = 0
    people: set[Subject] = field(default_factory=set)
    """Of whom there is a decision against."""
    skipped: list[SkippedResource] = field(default_factory=list)
    misspelled: list[tuple[str, ConsentDecision]] = field(default_factory=list)

    def decisions(self) -> Iterator[tuple[ConsentRecord, Subject]]:
        """Yield the records with their people."""
        key, column = subject_key(self.policy), person_column(self.policy)
        for record in self._records():
            if isinstance(record, ConsentRecord):
                yield record, key.subject(record.subject, column)

    def check(self, registry: Registry) -> None:
        """Refuse the file, with nothing recorded, for a time in the future or a purpose that nobody ever used."""
        key, column, table = subject_key(self.policy), person_column(self.policy), TableIds.of(self.policy)
        purposes = dict[str, str]()
        for record in self._records():
            if isinstance(record, SkippedResource):
                self.skipped.append(record)
                continue
            self.count += 1
            person, event = key.subject(record.subject, column), record.event
            if event.at > self.now:
                raise InvalidParameter(
                    f"decision {self.count} has a time in the future: correct it. Nothing was recorded."
                )
            purposes.setdefault(event.purpose, record.place)
            if event.gives:
                self._look_up(record, person, table)
            elif event.decided is not Decided.VOID:
                self.people.add(person)
        for purpose, place in purposes.items() if not self.rules.new_purposes else ():
            require_purpose(self.policy, registry, purpose, f"{place}: ")

    def _look_up(self, record: ConsentRecord, person: Subject, table: TableIds | None) -> None:
        match = None if table is None else table.match(record.subject)
        if match is not None and not match.ok(gives=True):
            self.misspelled.append((record.place, ConsentDecision(record.under(person), table=match)))
        elif match is not None and not match.present:
            self.absent += 1

    def _records(self) -> Iterator[ConsentRecord | SkippedResource]:
        """Yield what the file holds, in whichever format."""
        file, form = self.file, self.rules.form
        try:
            if (form or _form_of(file)) == "csv":
                with file.open(encoding=_encoding(file), newline="") as opened:
                    yield from read_csv(opened)
                return
            text = file.read_text(encoding=_encoding(file))
            plain = _lines(text) if file.suffix.lower() == ".ndjson" else json.loads(text)
        except OSError as error:
            raise InvalidParameter(f"{file} cannot be read: {error.strerror or 'no reason given'}.") from None
        except ValueError as error:
            if isinstance(error, InvalidParameter):
                raise
            raise InvalidParameter(f"{file} is not JSON in UTF-8.") from None
        reading = FhirReading(self.policy.section.purpose or "", self.now, self.rules.provisions_permit)
        yield from read_fhir(plain, reading) if (form or _kind_of(plain)) == "fhir" else read_27560(plain)


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
    at = times.pop("at", "") or registry.decision_time()
    event = ConsentEvent(who.pseudonym, decided, check_purpose(purpose), at, **times, **fields, alike=who.alike)
    if event.gives and strict:
        require_purpose(policy, registry, purpose)
    if event.corrects is not None:
        require_correctable(registry, who, event)
    match = None if event.gives or decided is Decided.VOID else _match(registry, who, purpose)
    table = None if (ids := TableIds.of(policy)) is None else ids.match(person)
    registry.record([event])
    return ConsentDecision(event, match, table)


def _match(registry: Registry, who: Subject, purpose: str) -> IdMatch:
    """Return whom a decision against reaches; only where the purpose is wrong are all entries read."""
    match = Consents.among([who]).read(registry.naming(who.pseudonym, who.alike)).match(who, purpose)
    return match if match.purpose else Consents.among([who]).read(registry.rows()).match(who, purpose)


def require_correctable(registry: Registry, who: Subject, event: ConsentEvent) -> None:
    """Refuse a correction of a decision that was never recorded: nothing would be corrected."""
    own = [one for _, one in registry.decisions_of(who) if one.subject == who.pseudonym]
    if not any((one.purpose, one.at) == (event.purpose, event.corrects) for one in own):
        times = ", ".join(sorted({one.at for one in own if one.purpose == event.purpose})) or "none"
        raise Refused(
            "no decision of this ID about this purpose was recorded with this time, so there is nothing to correct. "
            f"Nothing was recorded. The recorded times are: {times}."
        )


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
        people.merge(columns.subjects, np.zeros(len(columns), np.int64), columns.times["at"])
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


def _encoding(file: Path) -> str:
    """Return the encoding that the first bytes tell: spreadsheets write UTF-16 and UTF-8, both with a mark."""
    with file.open("rb") as opened:
        return "utf-16" if opened.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def _lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _form_of(file: Path) -> str | None:
    return "csv" if file.suffix.lower() in (".csv", ".tsv", ".txt") else None


def _kind_of(plain: Any) -> str:
    first = plain[0] if isinstance(plain, list) and plain else plain
    return "fhir" if isinstance(first, dict) and "resourceType" in first else "27560"
