"""Matching: whom a decision against reaches, by what was recorded; one that reaches nobody is told to the data holder.

All of this is for the holder alone.  The door of a data subject answers alike for ids that are known and that are not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import numpy as np

from incrowd.core.subjects import Subject
from incrowd.governance.consent.event import ConsentEvent, Decided, covers
from incrowd.governance.consent.registry import columns_of
from incrowd.governance.consent.state import RecordedRows, Rows

_GIVES = str(Decided.GIVE)
_SHOWN = 8
_RECORDED = "It is recorded all the same: rows under this id stay out until a consent is given."


@dataclass(frozen=True)
class IdMatch:
    """Whom a decision against reaches: the person of the id, others whose ids are written alike, and the purposes."""

    exact: bool
    others: int
    purpose: bool
    """Whether one of these people ever consented to the purpose, a wider or a narrower one."""
    in_use: tuple[str, ...] = ()
    """The purposes to which anybody ever consented."""

    @property
    def ok(self) -> bool:
        """Whether somebody of exactly this id had consented to what the decision speaks of."""
        return self.exact and self.purpose

    @property
    def sentence(self) -> str | None:
        """What the holder should know; None where the decision reaches one person, as it should."""
        if not self.exact and not self.others:
            return (
                "Nobody with this id ever consented, so nothing was withdrawn for a known person. "
                f"{_RECORDED} Check the id, and withdraw again with the right one."
            )
        if not self.purpose:
            return (
                "The person with this id never consented to this purpose, to a wider or to a narrower one, so no "
                f"consent was withdrawn. The decision is recorded. Check the purpose; {self._purposes}."
            )
        if not self.exact:
            return (
                f"Nobody with exactly this id ever consented. The decision counts for {_people(self.others)} whose id "
                f"is written alike: case, leading zeros and invisible characters do not matter. {_RECORDED} Check the "
                "id. If they are somebody else, record their consent again with incrowd consent give."
            )
        if self.others:
            return (
                f"The decision also counts for {_people(self.others)} whose id is written alike: case, leading zeros "
                "and invisible characters do not matter. If they are somebody else, record their consent again with "
                "incrowd consent give."
            )
        return None

    @property
    def _purposes(self) -> str:
        if not self.in_use:
            return "nobody ever consented to any"
        more = f" and {len(self.in_use) - _SHOWN} more" if len(self.in_use) > _SHOWN else ""
        return f"people consented to {', '.join(self.in_use[:_SHOWN])}{more}"


@dataclass
class Consents:
    """Who of some people, and of those with ids written alike, ever consented to what.

    >>> from incrowd.governance.consent.event import moment
    >>> ann = Subject("a" * 32, "c" * 32)
    >>> consents = Consents.among([ann])
    >>> consents.add([ConsentEvent("b" * 32, Decided.GIVE, "research", moment("2026-01-01"), alike="c" * 32).to_row()])
    >>> consents.match(ann, "research/births")
    IdMatch(exact=False, others=1, purpose=True, in_use=('research',))
    """

    subjects: frozenset[str]
    alikes: frozenset[str]
    consented: dict[str, dict[str, str]] = field(default_factory=dict)
    """For each person and purpose the time of the newest consent."""
    alike: dict[str, set[str]] = field(default_factory=dict)
    in_use: set[str] = field(default_factory=set)

    @classmethod
    def among(cls, people: Collection[Subject]) -> Consents:
        """Return what is known of some people before anything is read."""
        return cls(frozenset(person.pseudonym for person in people), frozenset(person.alike for person in people))

    def add(self, rows: Rows) -> None:
        """Learn from events in the form in which they are stored."""
        columns = columns_of(rows)
        gives = columns.of("decided", _GIVES)
        names = columns.names["purpose"]
        self.in_use.update(names[code] for code in np.unique(columns.codes["purpose"][gives]).tolist())
        for event in columns.taken(gives).named(self.subjects | self.alikes).events():
            if event.alike in self.alikes:
                self.alike.setdefault(event.alike, set()).add(event.subject)
            if event.alike in self.alikes or event.subject in self.subjects:
                times = self.consented.setdefault(event.subject, {})
                times[event.purpose] = max(event.at, times.get(event.purpose, ""))

    def read(self, events: Iterable[RecordedRows]) -> Consents:
        """Learn from all that a registry holds."""
        for _, rows in events:
            self.add(rows)
        return self

    def match(self, person: Subject, purpose: str) -> IdMatch:
        """Return whom a decision of a person against a purpose reaches."""
        exact = person.pseudonym in self.consented
        others = [
            other for other in self.alike.get(person.alike, set()) - {person.pseudonym} if self._met(other, purpose)
        ]
        met = self._met(person.pseudonym, purpose) if exact else bool(others)
        return IdMatch(exact, len(others), met, tuple(sorted(self.in_use)))

    def later(self, person: Subject, event: ConsentEvent) -> bool:
        """Whether a person consented to the purpose of an event, a wider or a narrower one, after that event."""
        times = self.consented.get(person.pseudonym, {})
        return any(at > event.at and related(event.purpose, purpose) for purpose, at in times.items())

    def _met(self, subject: str, purpose: str) -> bool:
        """Whether somebody ever consented to a purpose, a wider or a narrower one."""
        return any(related(purpose, other) for other in self.consented.get(subject, ()))


def related(one: str, other: str) -> bool:
    """Whether one of two purposes is the other, or wider or narrower."""
    return covers(one, other) or covers(other, one)


def _people(count: int) -> str:
    return "1 person" if count == 1 else f"{count} people"
