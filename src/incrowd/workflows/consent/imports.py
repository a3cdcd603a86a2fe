"""Imports: a file of decisions, checked as a whole, then recorded; what reaches nobody is listed by its place."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from incrowd.core.subjects import Subject
from incrowd.errors import InvalidParameter, Refused
from incrowd.governance.consent.event import ConsentEvent
from incrowd.governance.consent.fhir import FhirReading, SkippedResource, read_fhir
from incrowd.governance.consent.matching import Consents
from incrowd.governance.consent.record import ConsentRecord, read_27560, read_csv
from incrowd.governance.consent.registry import Registry
from incrowd.workflows.consent.decisions import ConsentDecision, corrected_time, require_purpose
from incrowd.workflows.consent.place import make_registry, person_column, subject_key
from incrowd.workflows.consent.table import TableIds
from incrowd.workflows.policy.policy import Policy

FORMATS = ("csv", "fhir", "27560")


@dataclass(frozen=True)
class Imported:
    """How many decisions of a file were recorded, and of which the holder should know something, by their places."""

    count: int
    notes: tuple[tuple[str, ConsentDecision], ...] = ()
    skipped: tuple[SkippedResource, ...] = ()
    """Resources that are not decisions, or not ones that can be taken whole, with the reason."""
    absent: int = 0
    """Decisions of ids that no row of the table has, and that resemble none of its ids."""
    overridden: int = 0
    """Decisions against that are older than a consent of the same person."""

    @property
    def ok(self) -> bool:
        """Whether every decision against reached somebody who had consented, and no decision was skipped."""
        return all(decision.ok for _, decision in self.notes) and all(one.harmless for one in self.skipped)

    def to_json(self) -> dict[str, Any]:
        """Return the plain form, for the data holder alone."""
        notes = [(decision.ok, {"place": place, "note": decision.note}) for place, decision in self.notes]
        unmatched, alike = ([note for ok, note in notes if ok is matched] for matched in (False, True))
        skipped = [{"place": one.place, "reason": one.reason} for one in self.skipped]
        counts = {"recorded": self.count, "absent": self.absent, "overridden": self.overridden}
        return counts | {"unmatched": unmatched, "alike": alike, "skipped": skipped}


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
    against = list[tuple[ConsentRecord, Subject, ConsentEvent]]()

    def events() -> Iterator[ConsentEvent]:
        for record, person, event in arrival.decisions():
            if event.gives:
                consents.add([event.to_row()])
            elif event.against and record.place:
                against.append((record, person, event))
            yield event

    consents.read(registry.rows() if arrival.people else ())
    registry.record(events())
    decisions = [(record.place, arrival.matched(record, consents, event, who)) for record, who, event in against]
    notes = [(place, decision) for place, decision in decisions if decision.note is not None]
    overridden = sum(consents.later(who, event) for _, who, event in against)
    listed = sorted((*notes, *arrival.misspelled), key=lambda note: int(note[0].split()[-1]))
    return Imported(arrival.count, tuple(listed), tuple(arrival.skipped), arrival.absent, overridden)


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
    corrects: dict[ConsentEvent, str] = field(default_factory=dict)
    """The time of the decision that a correction names."""
    table: TableIds | None = field(init=False)

    def __post_init__(self) -> None:
        self.table = TableIds.of(self.policy)

    def decisions(self) -> Iterator[tuple[ConsentRecord, Subject, ConsentEvent]]:
        """Yield the records with their people and events; a pause of earlier consents has no place of its own."""
        key, column = subject_key(self.policy), person_column(self.policy)
        for one in self._records():
            for record in (one,) if isinstance(one, ConsentRecord) else one.pauses:
                person = key.subject(record.subject, column)
                event = record.under(person).settled(self.now)
                yield record, person, replace(event, corrects=self.corrects.get(event, event.corrects))

    def check(self, registry: Registry) -> None:
        """Refuse the file, with nothing recorded, for what is wrong in it; the holder reads the place of the line.

        That is a time in the future, a purpose that nobody ever used, or a correction of what was never recorded.
        """
        purposes, corrections = dict[str, str](), dict[ConsentEvent, str]()
        self.skipped += [record for record in self._records() if isinstance(record, SkippedResource)]
        for record, person, event in self.decisions():
            if not record.place:
                continue
            self.count += 1
            if event.at > self.now:
                raise InvalidParameter(f"{record.place}: the time is in the future: correct it. Nothing was recorded.")
            purposes.setdefault(event.purpose, record.place)
            if event.gives:
                self._look_up(record, event)
            elif event.against:
                self.people.add(person)
            if event.corrects is not None:
                corrections[event] = record.place
        for purpose, place in purposes.items() if not self.rules.new_purposes else ():
            require_purpose(self.policy, registry, purpose, f"{place}: ")
        self.corrects = self._corrected(registry, corrections) if corrections else {}

    def matched(self, record: ConsentRecord, consents: Consents, event: ConsentEvent, who: Subject) -> ConsentDecision:
        """Return a decision against with whom it reaches; who consented and has no row any more is only counted."""
        match = consents.match(who, event.purpose)
        table = None if self.table is None else self.table.match(record.subject)
        if table is not None and not table.present and not table.alike:
            self.absent += 1
            table = None if match.ok else table
        return ConsentDecision(event, match, table)

    def _look_up(self, record: ConsentRecord, event: ConsentEvent) -> None:
        match = None if self.table is None else self.table.match(record.subject)
        if match is not None and match.alike:
            self.misspelled.append((record.place, ConsentDecision(event, table=match)))
        elif match is not None and not match.present:
            self.absent += 1

    def _corrected(self, registry: Registry, corrections: Mapping[ConsentEvent, str]) -> dict[ConsentEvent, str]:
        """Return which decision each correction names, among those of the registry and of the file."""
        people = {event.subject: Subject(event.subject, event.alike) for event in corrections}
        taken = [event for _, person, event in self.decisions() if person.pseudonym in people]
        taken += [event for person in people.values() for _, event in registry.decisions_of(person)]
        resolved = dict[ConsentEvent, str]()
        for event, place in corrections.items():
            times = (one.at for one in taken if (one.subject, one.purpose) == (event.subject, event.purpose))
            time = corrected_time((at for at in times if at != event.at), event.corrects or "")
            if time is None:
                raise Refused(
                    f"{place}: no decision of this person about this purpose was recorded with the time that it "
                    "corrects. Nothing was recorded. Correct the time: incrowd consent receipt shows those recorded."
                )
            resolved[event] = time
        return resolved

    def _records(self) -> Iterator[ConsentRecord | SkippedResource]:
        """Yield what the file holds, in whichever format."""
        file, form = self.file, self.rules.form
        try:
            if (form or _form_of(file)) == "csv":
                with file.open(encoding=_encoding(file), newline="") as opened:
                    yield from read_csv(opened)
                return
            plain = _plain(file.read_text(encoding=_encoding(file)))
        except OSError as error:
            raise InvalidParameter(f"{file} cannot be read: {error.strerror or 'no reason given'}.") from None
        except ValueError as error:
            if isinstance(error, InvalidParameter):
                raise
            raise InvalidParameter(f"{file} is not JSON in UTF-8.") from None
        reading = FhirReading(self.policy.section.purpose or "", self.now, self.rules.provisions_permit)
        yield from read_fhir(plain, reading) if (form or _kind_of(plain)) == "fhir" else read_27560(plain)


def _encoding(file: Path) -> str:
    """Return the encoding that the first bytes tell: spreadsheets write UTF-16 and UTF-8, both with a mark."""
    with file.open("rb") as opened:
        return "utf-16" if opened.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def _plain(text: str) -> Any:
    r"""Return what JSON says, or a list of what each line says, in which a line that is not JSON is None.

    >>> _plain("[1, 2]"), _plain('{"a": 1}\n\n{"a": 2\n{"a": 3}\n')
    ([1, 2], [{'a': 1}, None, {'a': 3}])
    """
    try:
        return json.loads(text)
    except ValueError:
        lines = [_line(line) for line in text.split("\n") if line.strip()]
        if not any(isinstance(line, dict) for line in lines):
            raise
        return lines


def _line(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _form_of(file: Path) -> str | None:
    return "csv" if file.suffix.lower() in (".csv", ".tsv", ".txt") else None


def _kind_of(plain: Any) -> str:
    one = next((one for one in plain if isinstance(one, dict)), None) if isinstance(plain, list) else plain
    return "fhir" if isinstance(one, dict) and "resourceType" in one else "27560"
