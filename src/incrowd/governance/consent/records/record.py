"""ConsentRecord: a decision as other programs write it, with the person's id in clear; and CSV, its plainest form."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from io import StringIO
from typing import TextIO

from incrowd.core.subjects import Subject
from incrowd.errors import InvalidParameter
from incrowd.governance.consent.event import ConsentEvent, Decided, moment

COLUMNS = ("subject", "event", "purpose", "at", "valid_from", "valid_to", "basis", "notice")
_NEEDED = COLUMNS[:4]
_NOBODY = "0" * 32


@dataclass(frozen=True)
class ConsentRecord:
    """Whose decision it is, by an id as it was written, and the decision; the event's own subject says nothing yet.

    >>> ConsentRecord.of("p17", "give", "research", "2026-05-01").event.at
    '2026-05-01T00:00:00.000000Z'
    """

    subject: str
    event: ConsentEvent
    place: str = field(default="", compare=False)
    """Where it stands in its file, for the data holder."""

    @classmethod
    def of(cls, subject: str, decided: str, purpose: str, at: str, **more: str) -> ConsentRecord:
        """Read what a record says, all of it as text; what is left empty is not said."""
        if not subject.strip():
            raise InvalidParameter("a record says of nobody whose it is.")
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
        """Return the event of a person who is known by pseudonyms."""
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
