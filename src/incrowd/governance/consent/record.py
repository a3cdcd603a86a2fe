"""Consent records: decisions as CSV, as ISO/IEC TS 27560:2023 records and receipts, and as FHIR R4 Consent resources.

ISO/IEC TS 27560 names the fields and leaves their notation open; here names are in snake case.  A record has one
person, and holds for each of its purposes and each of its events one decision.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from html import escape
from io import StringIO
from typing import Any, TextIO

from incrowd.core.codec import digest
from incrowd.core.subjects import Subject, patient_of
from incrowd.errors import InvalidParameter
from incrowd.governance.consent.event import ConsentEvent, Decided, moment, written_moment

COLUMNS = ("subject", "event", "purpose", "at", "valid_from", "valid_to", "basis", "notice")
_NEEDED = COLUMNS[:4]
_NOBODY = "0" * 32


@dataclass(frozen=True)
class ConsentRecord:
    """A decision, and the ID of its data subject as it was written; the event has no pseudonym yet.

    >>> ConsentRecord.of("p17", "give", "research", "2026-05-01").event.at
    '2026-05-01T00:00:00.000000Z'
    """

    subject: str
    event: ConsentEvent
    place: str = field(default="", compare=False)
    """Its place in its file, for the data holder."""

    @classmethod
    def of(cls, subject: str, decided: str, purpose: str, at: str, **more: str) -> ConsentRecord:
        """Read a record from texts; an empty text is not stated."""
        if not subject.strip():
            raise InvalidParameter("a record has no data subject: write the ID in the column subject.")
        if decided not in list(Decided):
            raise InvalidParameter(f"an event is one of {', '.join(Decided)}.")
        ends = more.get("valid_to") or ""
        event = ConsentEvent(
            _NOBODY,
            Decided(decided),
            purpose,
            moment(at),
            moment(more["valid_from"]) if more.get("valid_from") else "",
            moment(ends) if ends else None,
            more.get("basis") or "consent",
            more.get("notice") or "",
        )
        return cls(subject, event)

    def at_place(self, place: str) -> ConsentRecord:
        """Return the same record with its place in a file."""
        return replace(self, place=place)

    def under(self, person: Subject) -> ConsentEvent:
        """Return the event under a person's pseudonyms."""
        return replace(self.event, subject=person.pseudonym, alike=person.alike)


def read_csv(text: TextIO) -> Iterator[ConsentRecord]:
    r"""Yield the records of a CSV file; a wrong one is named by its line.

    >>> list(read_csv(StringIO("subject,event,purpose,at\np17,give,research,May\n")))
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: line 2: a moment is a day such as 2026-05-01, or a time with its zone such as ...
    """
    rows = csv.DictReader(text, strict=True)
    try:
        names = rows.fieldnames or []
        if not set(_NEEDED) <= set(names) or not set(names) <= set(COLUMNS):
            raise InvalidParameter(f"a file of decisions has the columns {','.join(COLUMNS)}, the first four at least.")
        for row in rows:
            yield _named(rows.line_num, row)
    except (csv.Error, UnicodeDecodeError):
        raise InvalidParameter(f"line {rows.line_num + 1}: this cannot be read as CSV in UTF-8.") from None


def write_csv(records: Iterable[ConsentRecord]) -> str:
    """Return records as CSV, such that they are read again as they are."""
    written = StringIO()
    rows = csv.writer(written, lineterminator="\n")
    rows.writerow(COLUMNS)
    for record in records:
        event = record.event
        times = (event.at, event.valid_from, event.valid_to or "")
        rows.writerow((record.subject, str(event.decided), event.purpose, *times, event.basis, event.notice))
    return written.getvalue()


def _named(line: int, row: dict[str, str]) -> ConsentRecord:
    whole = dict(row)
    if None in whole or None in whole.values():
        raise InvalidParameter(f"line {line}: there are more or fewer cells than columns.")
    try:
        decided = whole.pop("event").strip()
        record = ConsentRecord.of(whole.pop("subject"), decided, whole.pop("purpose"), whole.pop("at"), **whole)
        return record.at_place(f"line {line}")
    except InvalidParameter as error:
        raise InvalidParameter(f"line {line}: {error}") from None


SCHEMA = "ISO/IEC TS 27560:2023"
_STATES = {
    Decided.GIVE: "given",
    Decided.REFUSE: "refused",
    Decided.WITHDRAW: "withdrawn",
    Decided.EXPIRE: "expired",
    Decided.RESTRICT: "restricted",
}
_DECIDED = {state: decided for decided, state in _STATES.items()}
_DURATION = re.compile(r"P(\d{1,5})([DW])")


def read_27560(plain: Any) -> Iterator[ConsentRecord]:
    """Yield the decisions of records; one that cannot be read is named by its place."""
    for number, record in enumerate(plain if isinstance(plain, list) else [plain], 1):
        try:
            yield from (decision.at_place(f"record {number}") for decision in _read(record))
        except InvalidParameter as error:
            raise InvalidParameter(f"record {number}: {error}") from None
        except (KeyError, TypeError, AttributeError, ValueError):
            raise InvalidParameter(f"record {number}: this is not a consent record of {SCHEMA}.") from None


def write_27560(records: Iterable[ConsentRecord]) -> list[dict[str, Any]]:
    """Return decisions as consent records, one for each."""
    return [_written(record) for record in records]


def _read(record: Mapping[str, Any]) -> Iterator[ConsentRecord]:
    header, processing = record["record_header"], record["pii_processing"]
    if header["schema_version"] != SCHEMA:
        raise InvalidParameter(f"its schema is not {SCHEMA}.")
    for event in record["events"]:
        state = str(event["event_state"]).removeprefix("Consent").lower()
        if state not in _DECIDED:
            raise InvalidParameter(f"the state of an event is one of {', '.join(_DECIDED)}.")
        start, end = _validity(event)
        for purpose in processing["purposes"]:
            yield ConsentRecord.of(
                str(header["pii_principal_id"]),
                str(_DECIDED[state]),
                purpose["purpose"],
                event["event_time"],
                valid_from=start,
                valid_to=end,
                basis=purpose.get("lawful_basis", ""),
                notice=processing.get("privacy_notice", ""),
            )


def _validity(event: Mapping[str, Any]) -> tuple[str, str]:
    """Return from when until when an event holds: an interval of two times, or a duration in days or weeks."""
    duration = event.get("validity_duration", "")
    if "/" in duration:
        start, end = duration.split("/")
        return start, "" if end == ".." else end
    match = _DURATION.fullmatch(duration)
    if duration and match is None:
        raise InvalidParameter("a duration is told in days or weeks such as P365D, or as an interval of two times.")
    if match is None:
        return "", ""
    days = int(match[1]) * (7 if match[2] == "W" else 1)
    return "", written_moment(datetime.fromisoformat(moment(event["event_time"])) + timedelta(days=days))


def _written(record: ConsentRecord) -> dict[str, Any]:
    event = record.event
    header = {
        "event_time": event.at,
        "validity_duration": f"{event.valid_from}/{event.valid_to or '..'}",
        "event_type": "explicit",
        "event_state": _STATES[event.decided],
        "entity_id": record.subject,
    }
    purpose = {"purpose": event.purpose, "lawful_basis": event.basis}
    return {
        "record_header": {
            "schema_version": SCHEMA,
            "record_id": digest("incrowd consent record 1", [record.subject, event.to_row()])[:32],
            "pii_principal_id": record.subject,
        },
        "pii_processing": {"privacy_notice": event.notice, "purposes": [purpose]},
        "events": [header],
    }


_STYLE = (
    "body{font:16px/1.5 sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}td,th{padding:.3rem;text-align:left}"
)
_HEADER = ("decision", "purpose", "taken", "holds from", "until", "basis", "notice", "recorded")


@dataclass(frozen=True)
class ConsentReceipt:
    """All decisions of one person, each with the time at which the registry learned of it."""

    subject: str
    made: str
    decisions: Sequence[tuple[str, ConsentRecord]]

    def to_json(self) -> dict[str, Any]:
        """Return the receipt as JSON."""
        records = write_27560(record for _, record in self.decisions)
        recorded = [at for at, _ in self.decisions]
        header = {"schema_version": SCHEMA, "pii_principal_id": self.subject, "receipt_time": self.made}
        return {"receipt_metadata": header, "consent_records": records, "recorded": recorded}

    def to_html(self) -> str:
        """Return the receipt as a page that loads nothing."""
        head = "".join(f'<th scope="col">{name}</th>' for name in _HEADER)
        body = "".join(_row(at, record) for at, record in self.decisions)
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Receipt of consent</title>'
            f"<style>{_STYLE}</style></head><body><main><h1>Receipt of consent</h1>"
            f"<p>Of {escape(self.subject)}, made {escape(self.made)}.</p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></main></body></html>"
        )


def _row(at: str, record: ConsentRecord) -> str:
    event = record.event
    cells = (str(event.decided), event.purpose, event.at, event.valid_from, event.valid_to or "")
    values = (*cells, event.basis, event.notice, at)
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in values) + "</tr>"


EVENT = "urn:incrowd:consent-event"
_PROVISION = frozenset({"type", "period", "purpose"})
_DAY = 10
_ADDRESS = "/:#?"
"""What stands in references and in no id of FHIR."""


def read_fhir(plain: Any) -> Iterator[ConsentRecord]:
    """Yield the decision of each Consent resource; one that cannot be taken whole is named by its place."""
    for number, resource in enumerate(_resources(plain), 1):
        try:
            yield _read_resource(resource).at_place(f"resource {number}")
        except InvalidParameter as error:
            raise InvalidParameter(f"resource {number}: {error}") from None
        except (KeyError, TypeError, AttributeError, IndexError, ValueError):
            raise InvalidParameter(f"resource {number}: this is not a Consent resource of FHIR R4.") from None


def _resources(plain: Any) -> list[Mapping[str, Any]]:
    if isinstance(plain, list):
        return plain
    if isinstance(plain, Mapping) and plain.get("resourceType") == "Bundle":
        return [entry["resource"] for entry in plain.get("entry", ())]
    return [plain]


def _read_resource(resource: Mapping[str, Any]) -> ConsentRecord:
    if resource["resourceType"] != "Consent":
        raise InvalidParameter("this is not a Consent resource.")
    provision = resource.get("provision", {})
    if "modifierExtension" in resource or not set(provision) <= _PROVISION:
        raise InvalidParameter(
            "it is limited in ways that a purpose and a period do not tell, and would give too much without them."
        )
    (purpose,) = provision["purpose"]
    period = provision.get("period", {})
    policies = resource.get("policy", ())
    return ConsentRecord.of(
        _subject(resource["patient"]),
        str(_decided(resource, provision.get("type"))),
        purpose["code"],
        resource["dateTime"],
        valid_from=period.get("start", ""),
        valid_to=_end(period["end"]) if "end" in period else "",
        basis=resource.get("policyRule", {}).get("text", ""),
        notice=policies[0]["uri"] if policies else "",
    )


def _subject(patient: Mapping[str, Any]) -> str:
    if "identifier" in patient:
        return str(patient["identifier"]["value"])
    reference = str(patient["reference"]).strip()
    named = patient_of(reference)
    if named is None and any(mark in reference for mark in _ADDRESS):
        raise InvalidParameter(
            "its patient is named by a reference that is not one to a Patient with an id: write Patient/ID, or an "
            "identifier."
        )
    return named or reference


def _decided(resource: Mapping[str, Any], rule: str | None) -> Decided:
    own = [extension["valueCode"] for extension in resource.get("extension", ()) if extension.get("url") == EVENT]
    match resource["status"], rule:
        case "active", "permit":
            return Decided.GIVE
        case ("active", "deny") | ("rejected", _):
            return Decided.REFUSE
        case "inactive", _:
            return Decided(own[0]) if own else Decided.WITHDRAW
    raise InvalidParameter("only consents that are active, inactive or rejected, and permit or deny, are decisions.")


def _end(text: str) -> str:
    """Return the first moment after a period: FHIR's last day is part of it; at a time, it ends there."""
    ends = datetime.fromisoformat(moment(text))
    return written_moment(ends + timedelta(days=1) if len(text) == _DAY else ends)
