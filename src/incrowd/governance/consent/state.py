"""State: who consents to a purpose, as a fold over events as of two times: when it holds, and when it was recorded.

A decision about a purpose speaks of everything below it.  A later decision counts before an earlier one.  A consent to
a wide purpose does not undo the refusal of a narrower one; a consent to that one, or to one below it, does.  So
somebody consents if there is a consent, and every decision against is followed by a consent to the same purpose or a
narrower one.  Only the newest times are kept, whatever the order in which events arrive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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


@dataclass(frozen=True)
class AsOf:
    """Two times: the moment that is asked about, and the moment up to which events were known."""

    valid: str
    recorded: str


@dataclass
class Fold:
    """Gathers, for one purpose as of two times, the newest decisions for and against of each person.

    Memory grows with people, not with events: some 200 bytes each, and 16 for each depth of the purpose.
    """

    purpose: str
    as_of: AsOf
    _depths: dict[str, int] = field(init=False)
    _waiting: list[Sequence[Any]] = field(init=False, default_factory=list)
    _people: dict[str, int] = field(init=False, default_factory=dict)
    _newest: NDArray[np.int64] = field(init=False)
    """For each depth the newest consent and the newest decision against it, of each person, in microseconds."""
    _valid: int = field(init=False)
    _change: int = field(init=False, default=_LAST)

    def __post_init__(self) -> None:
        names = check_purpose(self.purpose).split("/")
        self._depths = {"/".join(names[: depth + 1]): depth for depth in range(len(names))}
        self._newest = np.full((2 * len(names), _FIRST), _NEVER)
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
        latest = np.full(self._newest.shape[1], _NEVER)
        stands = np.ones(len(latest), np.bool_)
        for given, against in zip(self._newest[-2::-2], self._newest[::-2], strict=True):
            np.maximum(latest, given, out=latest)
            stands &= (against == _NEVER) | (against < latest)
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
        subjects, decided, purposes, at, begins, ends, *_ = zip(*self._waiting, strict=True)
        self._waiting.clear()
        depths = np.fromiter(map(self._depths.get, purposes, repeat(-1)), np.int64, len(purposes))
        starts, stops = _moments(begins), _moments(ends)
        chosen = depths >= 0
        later = np.concatenate([starts[chosen & (starts > self._valid)], stops[chosen & (stops > self._valid)]])
        self._change = int(later.min(initial=self._change))
        chosen &= (starts <= self._valid) & (stops > self._valid)
        against = np.fromiter((each != _GIVES for each in decided), np.bool_, len(decided))
        known = self._people
        met = compress(subjects, chosen.tolist())
        codes = np.fromiter((known.setdefault(each, len(known)) for each in met), np.int64)
        size = self._newest.shape[1]
        if len(known) > size:
            more = np.full((len(self._newest), max(size, len(known) - size)), _NEVER)
            self._newest = np.concatenate([self._newest, more], axis=1)
        places = (2 * depths[chosen] + against[chosen]) * self._newest.shape[1] + codes
        np.maximum.at(self._newest.reshape(-1), places, _moments(at)[chosen])


def _moments(texts: Sequence[str | None]) -> NDArray[np.int64]:
    """Return moments in microseconds since 1970; one that is not told is later than all."""
    try:
        read = pa.array(texts, pa.string()).cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    except pa.ArrowException:
        read = None
    if read is None:
        raise LedgerCorrupted("the consent registry holds a moment that is none: run incrowd consent check.")
    found: NDArray[np.int64] = read.fill_null(_LAST).to_numpy()
    return found


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
    folds = [Fold(purpose, each) for each in as_of]
    for recorded, rows in events:
        for fold in folds:
            fold.add(recorded, rows)
    return frozenset.intersection(*(fold.people() for fold in folds))


def as_rows(events: Iterable[Recorded]) -> Iterator[RecordedRows]:
    """Yield events in the form in which the registry stores them."""
    for recorded, event in events:
        yield recorded, [event.to_row()]
