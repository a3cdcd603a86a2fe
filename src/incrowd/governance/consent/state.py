"""State: who consents to a purpose, as a fold over events as of two times: when it holds, and when it was recorded.

A decision about a purpose speaks of everything below it.  A later decision counts before an earlier one, and of two at
one moment the one against.  A consent to a wide purpose does not undo the refusal of a narrower one; a consent to that
one, or to one below it, does.  A consent that ended replaces every consent that was given before it, or with it: it
said until when.  A restriction that ended replaces nothing.  So somebody consents if a consent is in force that was
given after all that ended, and every decision against is followed by such a consent to the same purpose or a narrower
one.

A consent counts for one id.  A decision against counts for every id that is written alike: one that misses a person
for a capital letter does more harm than one that meets somebody else, who can consent again.

Only the newest times are kept, whatever the order in which events arrive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import compress, repeat
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.errors import LedgerCorrupted
from incrowd.governance.consent.event import ConsentEvent, Decided, check_purpose, written_moment

Recorded = tuple[str, ConsentEvent]
"""When the registry learned of an event, and the event."""
RecordedRows = tuple[str, Sequence[Sequence[Any]]]
"""When the registry learned of some events, and the events in the form in which it stores them."""
_GIVES = str(Decided.GIVE)
_NEVER = np.iinfo(np.int64).min
_LAST = 253_402_300_799_999_999
"""The last microsecond of the year 9999."""
_AT_ONCE, _FIRST = 2**14, 64
ALIKE = 8
"""Where a row tells which ids are written alike; rows of earlier versions end before."""
_UNTOLD = "0" * 32


@dataclass(frozen=True)
class AsOf:
    """Two times: the moment that is asked about, and the moment up to which events were known."""

    valid: str
    recorded: str


@dataclass
class Fold:
    """Gathers, for one purpose as of two times, the newest decisions for and against of each person.

    Memory grows with people, not with events: some 220 bytes each, and 16 for each depth of the purpose.
    """

    purpose: str
    as_of: AsOf
    _depths: dict[str, int] = field(init=False)
    _waiting: list[Sequence[Any]] = field(init=False, default_factory=list)
    _people: dict[str, int] = field(init=False, default_factory=dict)
    _newest: NDArray[np.int64] = field(init=False)
    """For each depth the newest consent and the newest decision against it, of each person, in microseconds; at last
    the newest consent that ended."""
    _alike: NDArray[np.uint64] = field(init=False)
    """For each person a number that all ids have that are written alike; 0 where no event tells it."""
    _against_alike: dict[tuple[int, int], int] = field(init=False, default_factory=dict)
    """By depth, as above, and that number the newest decision against all ids that are written alike."""
    _valid: int = field(init=False)
    _change: int = field(init=False, default=_LAST)

    def __post_init__(self) -> None:
        names = check_purpose(self.purpose).split("/")
        self._depths = {"/".join(names[: depth + 1]): depth for depth in range(len(names))}
        self._newest = np.full((2 * len(names) + 1, _FIRST), _NEVER)
        self._alike = np.zeros(_FIRST, np.uint64)
        self._valid = int(_moments([self.as_of.valid])[0])

    def add(self, recorded: str, rows: Sequence[Sequence[Any]]) -> None:
        """Take more events, in whatever order: those that were known then and speak of that moment and purpose.

        A decision of a kind that is not known here counts against.
        """
        if recorded > self.as_of.recorded:
            return
        self._waiting.extend(rows)
        if len(self._waiting) >= _AT_ONCE:
            self._take()

    def people(self) -> frozenset[str]:
        """Return the pseudonyms of all who consent: there is a consent, and one follows every decision against."""
        self._take()
        ended = self._newest[-1]
        latest = np.full(len(ended), _NEVER)
        stands = np.ones(len(ended), np.bool_)
        for depth in reversed(range(len(self._depths))):
            granted, against = self._newest[2 * depth], self._newest[2 * depth + 1]
            np.maximum(latest, np.where(granted > ended, granted, _NEVER), out=latest)
            newest = np.maximum(against, self._newest_alike(2 * depth + 1))
            stands &= (newest == _NEVER) | (newest < latest)
        stands &= latest != _NEVER
        return frozenset(compress(self._people, stands.tolist()))

    def next_change(self) -> str:
        """Return the next moment at which a decision begins or ends to hold, as far as one is known."""
        self._take()
        return written_moment(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=self._change))

    def _take(self) -> None:
        """Take what is waiting."""
        if not self._waiting:
            return
        rows, self._waiting = self._waiting, []
        columns = tuple(zip(*rows, strict=False))  # as many as the shortest row has
        subjects, decided, purposes, at, begins, ends = columns[:6]
        depths = np.fromiter(map(self._depths.get, purposes, repeat(-1)), np.int64, len(purposes))
        starts, stops, taken = _moments(begins), _moments(ends), _moments(at)
        about = depths >= 0
        later = np.concatenate([starts[about & (starts > self._valid)], stops[about & (stops > self._valid)]])
        self._change = int(later.min(initial=self._change))
        about &= starts <= self._valid
        against = np.fromiter((decision != _GIVES for decision in decided), np.bool_, len(decided))
        over = stops <= self._valid
        about &= ~(against & over)
        slots = np.where(over, len(self._newest) - 1, 2 * depths + against)
        codes = self._codes(subjects, about)
        np.maximum.at(self._newest.reshape(-1), slots[about] * self._newest.shape[1] + codes, taken[about])
        alike = (
            columns[ALIKE] if len(columns) > ALIKE else [row[ALIKE] if len(row) > ALIKE else _UNTOLD for row in rows]
        )
        self._take_alike(_numbers(compress(alike, about.tolist())), codes, slots[about], taken[about])

    def _codes(self, subjects: Sequence[str], about: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the place of each person who is met, and make room for new ones."""
        people = self._people
        met = compress(subjects, about.tolist())
        codes = np.fromiter((people.setdefault(subject, len(people)) for subject in met), np.int64)
        size = self._newest.shape[1]
        if len(people) > size:
            more = max(size, len(people) - size)
            self._newest = np.concatenate([self._newest, np.full((len(self._newest), more), _NEVER)], axis=1)
            self._alike = np.concatenate([self._alike, np.zeros(more, np.uint64)])
        return codes

    def _take_alike(
        self, numbers: NDArray[np.uint64], codes: NDArray[np.int64], slots: NDArray[np.int64], at: NDArray[np.int64]
    ) -> None:
        """Take which ids are written alike, and the decisions against, which count for all of them."""
        linked = numbers > 0
        self._alike[codes[linked]] = numbers[linked]
        against = np.flatnonzero(linked & (slots % 2 == 1))
        for key, taken in zip(
            zip(slots[against].tolist(), numbers[against].tolist(), strict=True), at[against].tolist(), strict=True
        ):
            self._against_alike[key] = max(self._against_alike.get(key, _NEVER), taken)

    def _newest_alike(self, slot: int) -> NDArray[np.int64]:
        """Return for each person the newest decision of a depth against all ids that are written like theirs."""
        own = {number: at for (other, number), at in self._against_alike.items() if other == slot}
        numbers = np.array(sorted(own), np.uint64)
        if not len(numbers):
            return np.full(len(self._alike), _NEVER)
        places = np.minimum(np.searchsorted(numbers, self._alike), len(numbers) - 1)
        newest = np.array([own[number] for number in numbers.tolist()], np.int64)
        newest_alike: NDArray[np.int64] = np.where(numbers[places] == self._alike, newest[places], _NEVER)
        return newest_alike


def _numbers(pseudonyms: Iterable[str]) -> NDArray[np.uint64]:
    """Return the first 64 bits of pseudonyms."""
    read = None
    with suppress(ValueError):
        read = bytes.fromhex("".join(pseudonyms))
    if read is None:
        raise LedgerCorrupted("the consent registry holds a pseudonym that is not one: run incrowd consent check.")
    return np.frombuffer(read, ">u8")[::2].astype(np.uint64)


def _moments(texts: Sequence[str | None]) -> NDArray[np.int64]:
    """Return moments in microseconds since 1970; one that is not told is later than all."""
    try:
        read = pa.array(texts, pa.string()).cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    except pa.ArrowException:
        read = None
    if read is None:
        raise LedgerCorrupted("the consent registry holds a moment that is none: run incrowd consent check.")
    moments: NDArray[np.int64] = read.fill_null(_LAST).to_numpy()
    return moments


def consenting(events: Iterable[RecordedRows], purpose: str, *as_of: AsOf) -> frozenset[str]:
    """Return who consents to a purpose at every one of some times; memory grows with people, not with events.

    >>> from incrowd.governance.consent.event import Decided, moment
    >>> may, june = moment("2026-05-01"), moment("2026-06-01")
    >>> ann = "a" * 32
    >>> given = (may, ConsentEvent(ann, Decided.GIVE, "research", may))
    >>> left = (june, ConsentEvent(ann, Decided.WITHDRAW, "research", june))
    >>> rows = list(as_rows([given, left]))
    >>> [sorted(consenting(rows, "research/births", AsOf(at, june))) == [ann] for at in (may, june)]
    [True, False]
    """
    folds = [Fold(purpose, moment) for moment in as_of]
    for recorded, rows in events:
        for fold in folds:
            fold.add(recorded, rows)
    return frozenset.intersection(*(fold.people() for fold in folds))


def as_rows(events: Iterable[Recorded]) -> Iterator[RecordedRows]:
    """Yield events in the form in which the registry stores them."""
    for recorded, event in events:
        yield recorded, [event.to_row()]
