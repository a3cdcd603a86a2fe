"""State: who consents to a purpose, as a fold over events as of two times: when it holds, and when it was recorded.

A decision about a purpose speaks of everything below it.  A later decision counts before an earlier one, and of two at
one moment the one against.  A consent to a wide purpose does not undo the refusal of a narrower one; a consent to that
one, or to one below it, does.  A consent that ended replaces every consent that was given before it, or with it: it
said until when.  A restriction that ended replaces nothing.  So somebody consents if a consent is in force that was
given after all that ended, and every decision against is followed by such a consent to the same purpose or a narrower
one.

A guardian's consent ends when the person comes of age.  A correction names the moment of a decision of the same person
and purpose: from when it was recorded, that decision does not count, and the correction does.

A consent counts for one id.  A decision against counts for every id that is written alike: one that misses a person
for a capital letter does more harm than one that meets somebody else, who can consent again.

Only the newest times are kept, whatever the order in which events arrive.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.governance.consent.columns import LAST, NONE, EventColumns, Integers, Words, hexadecimal, moments
from incrowd.governance.consent.event import ConsentEvent, Decided, check_purpose, written_moment
from incrowd.governance.consent.newest import NewestTable

Recorded = tuple[str, ConsentEvent]
"""When the registry learned of an event, and the event."""
Rows = EventColumns | Sequence[Sequence[Any]]
RecordedRows = tuple[str, Rows]
"""When the registry learned of some events, and the events in the form in which it stores them."""
_GIVES, _VOIDS = str(Decided.GIVE), str(Decided.VOID)
_AT_ONCE, _ROWS = 2**20, 2**14  # bytes and rows that wait before they become arrays


@dataclass(frozen=True)
class AsOf:
    """Two times: the moment that is asked about, and the moment up to which events were known."""

    valid: str
    recorded: str


@dataclass(frozen=True)
class Correction:
    """Which decision no longer counts, from when this was recorded: of whom, about what, taken when."""

    subject: tuple[int, int]
    depth: int
    at: int
    recorded: str


@dataclass(frozen=True, eq=False)
class Unlinked:
    """People of whom no event tells which ids are written like theirs, and the decisions against such ids.

    Events of earlier versions have an exact pseudonym only.  Where rows are read, their ids are known, and with them
    whether a decision against reaches one of these people.
    """

    grants: dict[str, tuple[int, ...]] = field(default_factory=dict, repr=False)
    """For each person and depth the newest consent to this purpose or a narrower one."""
    against: dict[str, tuple[int, ...]] = field(default_factory=dict, repr=False)
    """For ids that are written alike, and each depth, the newest decision against."""

    def excludes(self, pseudonym: str, alike: str) -> bool:
        """Whether a decision against ids that are written alike is not followed by a consent of this person."""
        own, others = self.grants.get(pseudonym), self.against.get(alike[:16])
        if own is None or others is None:
            return False
        return any(left != NONE and left >= granted for granted, left in zip(own, others, strict=True))


@dataclass
class Fold:
    """Gathers, for one purpose as of two times, the newest decisions for and against of each person.

    Memory grows with people, not with events: some 80 bytes each, and 16 for each depth of the purpose.
    """

    purpose: str
    as_of: AsOf
    corrections: frozenset[Correction] = frozenset()
    met: set[Correction] = field(init=False, default_factory=set)
    """The corrections among the events."""
    _depths: dict[str, int] = field(init=False)
    _waiting: list[tuple[str, Sequence[Any]]] = field(init=False, default_factory=list)
    _parts: list[tuple[Words, Words, Integers, Integers]] = field(init=False, default_factory=list)
    _size: int = field(init=False, default=0)
    _people: NewestTable = field(init=False)
    """For each depth the newest consent and the newest decision against it, of each person, in microseconds; then the
    newest consent that ended; at last a number that all ids have that are written alike."""
    _alike: NewestTable = field(init=False)
    """By depth, and that number, the newest decision against all ids that are written alike."""
    _valid: int = field(init=False)
    _change: int = field(init=False, default=LAST)

    def __post_init__(self) -> None:
        names = check_purpose(self.purpose).split("/")
        self._depths = {"/".join(names[: depth + 1]): depth for depth in range(len(names))}
        self._people, self._alike = NewestTable(2 * len(names) + 2), NewestTable(len(names))
        self._valid = int(moments([self.as_of.valid])[0])

    def add(self, recorded: str, rows: Rows) -> None:
        """Take more events, in whatever order: those that were known then and speak of that moment and purpose.

        A decision of a kind that is not known here counts against.
        """
        if recorded > self.as_of.recorded:
            return
        if isinstance(rows, EventColumns):
            self._take((recorded,), rows)
            return
        self._waiting.extend((recorded, row) for row in rows)
        if len(self._waiting) >= _ROWS:
            self._take_waiting()

    def again(self) -> Fold | None:
        """Return a fold that leaves out what was corrected, to take all events again; None where nothing was."""
        self._merge()
        return Fold(self.purpose, self.as_of, frozenset(self.met)) if self.met != self.corrections else None

    def people(self) -> frozenset[str]:
        """Return the pseudonyms of all who consent: there is a consent, and one follows every decision against."""
        return self.standing()[0]

    def standing(self) -> tuple[frozenset[str], Unlinked]:
        """Return who consents, and what is to be asked of ids that no event links to others."""
        self._merge()
        grants, numbers = self._grants(), self._people.newest[-1]
        places, linked = self._alike.find(_keys(numbers)) if len(self._alike.keys) else (None, None)
        stands = grants[0] != NONE
        for depth in range(len(self._depths)):
            newest = self._people.newest[2 * depth + 1]
            if places is not None and linked is not None:
                alike = self._alike.newest[depth][np.minimum(places, len(self._alike.keys) - 1)]
                newest = np.maximum(newest, np.where(linked & (numbers != NONE), alike, NONE))
            stands &= (newest == NONE) | (newest < grants[depth])
        subjects = hexadecimal(self._people.keys[stands])
        return frozenset(subjects), self._unlinked(stands & (numbers == NONE), grants)

    def next_change(self) -> str:
        """Return the next moment at which a decision begins or ends to hold, as far as one is known."""
        self._merge()
        return written_moment(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=self._change))

    def _grants(self) -> Integers:
        """Return for each depth and person the newest consent in force to this purpose or a narrower one."""
        newest = self._people.newest
        ended, depths = newest[-2], len(self._depths)
        grants = np.where(newest[0 : 2 * depths : 2] > ended, newest[0 : 2 * depths : 2], NONE)
        latest: Integers = np.maximum.accumulate(grants[::-1], axis=0)[::-1]
        return latest

    def _unlinked(self, who: NDArray[np.bool_], grants: Integers) -> Unlinked:
        if not len(self._alike.keys) or not who.any():
            return Unlinked()
        own = zip(hexadecimal(self._people.keys[who]), grants[:, who].T.tolist(), strict=True)
        against = zip(hexadecimal(self._alike.keys), self._alike.newest.T.tolist(), strict=True)
        return Unlinked({name: tuple(times) for name, times in own}, {name[:16]: tuple(at) for name, at in against})

    def _take_waiting(self) -> None:
        """Take the rows that are waiting."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            recorded, rows = zip(*waiting, strict=True)
            self._take(recorded, EventColumns.of_rows(rows))

    def _take(self, recorded: Sequence[str], events: EventColumns) -> None:
        """Take the events that speak of the moment and the purpose; all were recorded at one moment, or each at one."""
        lookup = np.array([self._depths.get(name, -1) for name in events.names["purpose"]], np.int64)
        depths = lookup[events.codes["purpose"]]
        gives, about = events.of("decided", _GIVES), depths >= 0
        about &= self._counting(recorded, events, depths)
        starts, stops = events.times["valid_from"], _ends(events, gives)
        later = np.concatenate([starts[about & (starts > self._valid)], stops[about & (stops > self._valid)]])
        self._change = int(later.min(initial=self._change))
        over = stops <= self._valid
        about &= (starts <= self._valid) & (gives | ~over)
        slots = np.where(over, len(self._people.newest) - 2, 2 * depths + ~gives)
        part = (events.subjects, events.alikes, slots, events.times["at"])
        self._parts.append(tuple(column[about] for column in part))  # type: ignore[arg-type]
        self._size += len(self._parts[-1][0])
        if self._size >= _AT_ONCE:
            self._merge()

    def _counting(self, recorded: Sequence[str], events: EventColumns, depths: Integers) -> NDArray[np.bool_]:
        """Return which events count, of those about the purpose: none that voids another, none that was corrected."""
        counting = ~events.of("decided", _VOIDS)
        corrects, at = events.times["corrects"], events.times["at"]
        for place in np.flatnonzero((corrects != NONE) & (depths >= 0)).tolist():
            on = recorded[place % len(recorded)]
            self.met.add(Correction(_pair(events, place), int(depths[place]), int(corrects[place]), on))
        if self.corrections:
            subjects = np.array([one.subject[0] for one in self.corrections], np.uint64)
            for place in np.flatnonzero((depths >= 0) & np.isin(events.subjects[:, 0], subjects)).tolist():
                who, depth, taken = _pair(events, place), int(depths[place]), int(at[place])
                first, on = corrects[place] == NONE, recorded[place % len(recorded)]
                counting[place] &= not any(
                    (one.subject, one.depth, one.at) == (who, depth, taken)
                    and (one.recorded > on or (one.recorded == on and first))
                    for one in self.corrections
                )
        return counting

    def _merge(self) -> None:
        """Put what was taken beside what is known of each person."""
        self._take_waiting()
        parts, self._parts, self._size = self._parts, [], 0
        if not parts:
            return
        subjects, alikes, slots, at = (np.concatenate(column) for column in zip(*parts, strict=True))
        numbers = alikes[:, 0].view(np.int64)
        linked = numbers != 0
        links = np.full(len(numbers), len(self._people.newest) - 1), np.where(linked, numbers, NONE)
        self._people.merge(subjects, (slots, at), links)
        against = linked & (slots % 2 == 1) & (slots < 2 * len(self._depths))
        self._alike.merge(_keys(numbers[against]), (slots[against] // 2, at[against]))


def _keys(numbers: Integers) -> Words:
    """Return numbers as keys of a table."""
    return np.stack([numbers.view(np.uint64), np.zeros(len(numbers), np.uint64)], axis=1)


def _pair(events: EventColumns, place: int) -> tuple[int, int]:
    return int(events.subjects[place, 0]), int(events.subjects[place, 1])


def _ends(events: EventColumns, gives: NDArray[np.bool_]) -> Integers:
    """Return when events cease to hold: at their end, or for a guardian's consent when the person comes of age."""
    stops, ages = events.times["valid_to"], events.times["of_age"]
    stops = np.where(stops == NONE, LAST, stops)
    return np.where(gives & (ages != NONE), np.minimum(stops, ages), stops)


def folded(events: Iterable[RecordedRows], folds: Sequence[Fold]) -> list[Fold]:
    """Return folds that took all events; those that met corrections take them a second time, without what was wrong."""
    source = events if not hasattr(events, "__next__") else list(events)
    for recorded, rows in source:
        for fold in folds:
            fold.add(recorded, rows)
    again = [fold.again() or fold for fold in folds]
    new = [fold for fold, old in zip(again, folds, strict=True) if fold is not old]
    for recorded, rows in source if new else ():
        for fold in new:
            fold.add(recorded, rows)
    return again


def consenting(events: Iterable[RecordedRows], purpose: str, *as_of: AsOf) -> frozenset[str]:
    """Return who consents to a purpose at every one of some times; memory grows with people, not with events.

    >>> from incrowd.governance.consent.event import Decided, moment
    >>> may, june = moment("2026-05-01"), moment("2026-06-01")
    >>> ann = "a" * 32
    >>> consent = (may, ConsentEvent(ann, Decided.GIVE, "research", may))
    >>> left = (june, ConsentEvent(ann, Decided.WITHDRAW, "research", june))
    >>> rows = as_rows([consent, left])
    >>> [sorted(consenting(rows, "research/births", AsOf(at, june))) == [ann] for at in (may, june)]
    [True, False]
    """
    folds = folded(events, [Fold(purpose, moment) for moment in as_of])
    return frozenset.intersection(*(fold.people() for fold in folds))


def as_rows(events: Iterable[Recorded]) -> list[RecordedRows]:
    """Return events in the form in which the registry stores them."""
    return [(recorded, [event.to_row()]) for recorded, event in events]
