"""Consent records: decisions as CSV, and as ISO/IEC TS 27560:2023 records and receipts.

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
from itertools import chain
from typing import Any, TextIO

from incrowd.core.codec import digest
from incrowd.core.subjects import Subject
from incrowd.errors import InvalidParameter
from incrowd.governance.consent.event import ConsentEvent, Decided, moment, written_moment
from incrowd.governance.consent.phrases import known_language, phrase

COLUMNS = ("subject", "event", "purpose", "at", "valid_from", "valid_to", "basis", "notice")
MORE = ("guardian", "of_age", "corrects")
_NEEDED = COLUMNS[:4]
_NOBODY = "0" * 32
_TIMES = ("valid_from", "valid_to", "of_age", "corrects")


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
        times = {name: moment(more[name]) for name in _TIMES if more.get(name)}
        texts = {"basis": more.get("basis") or "consent", "notice": more.get("notice") or ""}
        texts["guardian"] = more.get("guardian") or ""
        return cls(subject, ConsentEvent(_NOBODY, Decided(decided), purpose, moment(at), **texts, **times))

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
    line = 0
    try:
        first = text.readline()
        rows = csv.reader(chain([first], text), strict=True, delimiter=max(",;\t", key=first.count))
        names = [name.strip().casefold() for name in next(rows, [])]
        if not set(_NEEDED) <= set(names) or not set(names) <= {*COLUMNS, *MORE} or len(set(names)) < len(names):
            raise InvalidParameter(
                f"a file of decisions has the columns {','.join(COLUMNS)}, the first four at least; it may have "
                f"{', '.join(MORE)}."
            )
        for cells in rows:
            line = rows.line_num
            if any(cell.strip() for cell in cells):  # spreadsheets write empty lines
                yield _named(line, names, cells)
    except csv.Error:
        raise InvalidParameter(f"line {line + 1}: this cannot be read as CSV.") from None
    except UnicodeError:
        raise InvalidParameter(
            f"line {line + 1} or after it: this is not text in UTF-8 or UTF-16. Save the file as CSV UTF-8."
        ) from None


def write_csv(records: Iterable[ConsentRecord]) -> str:
    """Return records as CSV, such that they are read again as they are."""
    written = StringIO()
    rows = csv.writer(written, lineterminator="\n")
    rows.writerow((*COLUMNS, *MORE))
    for record in records:
        event = record.event
        decision = (record.subject, str(event.decided), *(getattr(event, name) or "" for name in COLUMNS[2:]))
        rows.writerow((*decision, *(getattr(event, name) or "" for name in MORE)))
    return written.getvalue()


def _named(line: int, names: Sequence[str], cells: Sequence[str]) -> ConsentRecord:
    if len(cells) != len(names):
        raise InvalidParameter(f"line {line}: there are more or fewer cells than columns.")
    whole = dict(zip(names, cells, strict=True))
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
    Decided.VOID: "void",
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
                **{name: str(event.get(name) or "") for name in MORE},
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
        **{name: getattr(event, name) for name in MORE if getattr(event, name)},
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


STYLE = """
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 44rem; margin: 1.5rem auto; padding: 0 1rem; color: #1a1a1a;
  background: #fff; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.2; } h2 { font-size: 1.2rem; }
section { border-top: 1px solid #bbb; padding: 0.5rem 0; break-inside: avoid; }
dl { display: grid; grid-template-columns: minmax(7rem, auto) 1fr; gap: 0.1rem 1rem; margin: 0.3rem 0; }
dt { color: #555; } dd { margin: 0; }
ul { padding-left: 0; list-style: none; }
label, input, select, button { font: inherit; } button { padding: 0.4rem 1rem; } input { max-width: 100%; }
nav { font-size: 0.9rem; } nav a { margin-right: 0.6rem; } small { color: #555; }
@media (prefers-color-scheme: dark) {
  body { color: #eee; background: #161616; } a { color: #9cf; }
  dt, small { color: #aaa; } section { border-color: #555; }
}
@media print { nav, form { display: none; } body { margin: 0; color: #000; background: #fff; } }
"""
"""The style of pages for data subjects: on a phone, in the dark and on paper."""
_DAY = 10


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

    def to_html(self, language: str = "en") -> str:
        """Return the receipt as a page in plain words that loads nothing."""
        own = known_language(language)
        intro = phrase(own, "for", person=self.subject, day=self.made[:_DAY])
        body = "".join(_section(own, at, record) for at, record in reversed(self.decisions))
        decisions = body or escape(phrase(own, "none"))
        return page(
            own, "receipt", f"<p>{escape(intro)}</p>{decisions}<section><p>{escape(phrase(own, 'how'))}</p></section>"
        )


def page(language: str, title: str, body: str) -> str:
    """Return a page for a data subject that loads nothing, to read or to print."""
    name, note = escape(phrase(language, title)), escape(phrase(language, "unreviewed"))
    return (
        f'<!doctype html><html lang="{language}"><head><meta charset="utf-8"><title>{name}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body><main>'
        f"<h1>{name}</h1>{body}</main><p><small>{note}</small></p></body></html>"
    )


def _section(language: str, at: str, record: ConsentRecord) -> str:
    """Return one decision in plain words, with its times."""
    event = record.event
    corrects = (event.corrects or "")[:_DAY]
    sentence = phrase(language, str(event.decided), purpose=event.purpose, corrects=corrects)
    if corrects and event.decided is not Decided.VOID:
        sentence = f"{sentence} {phrase(language, 'corrects', corrects=corrects)}"
    end = event.ends or (phrase(language, "open") if event.gives else "")
    facts = {"decided": _readable(event.at), "from": _readable(event.valid_from), "until": _readable(end)}
    facts |= {"notice": event.notice, "guardian": event.guardian, "of_age": _readable(event.of_age or "")}
    facts |= {"recorded": _readable(at)}
    rows = ((phrase(language, name), value) for name, value in facts.items() if value)
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in rows)
    return f"<section><p>{escape(sentence)}</p><dl>{listed}</dl></section>"


def _readable(time: str) -> str:
    """Return a moment as people read it: a day where it begins or ends one, else with its time in UTC.

    >>> _readable("2026-05-01T23:59:59.999999Z"), _readable("2026-05-01T09:30:00.000000Z")
    ('2026-05-01', '2026-05-01 09:30 UTC')
    """
    if not time.endswith("Z"):
        return time
    whole = time[_DAY:] in ("T00:00:00.000000Z", "T23:59:59.999999Z")
    return time[:_DAY] if whole else f"{time[:_DAY]} {time[11:16]} UTC"
