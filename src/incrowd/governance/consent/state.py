"""State: who consents to a purpose, as a fold over events as of two times: when it holds, and when it was recorded.

A decision about a purpose speaks of everything below it.  A later decision counts before an earlier one.  A consent to
a wide purpose does not undo the refusal of a narrower one; a consent to that one, or to one below it, does.  So
somebody consents if there is a consent, and every decision against is followed by a consent to the same purpose or a
narrower one.  Only the newest times are kept, whatever the order in which events arrive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from incrowd.governance.consent.event import ConsentEvent, Decided, check_purpose

Recorded = tuple[str, ConsentEvent]
"""When the registry learned of an event, and the event."""
RecordedRows = tuple[str, Sequence[Sequence[Any]]]
"""When the registry learned of some events, and the events in the form in which it stores them."""
_NEVER, _GIVES = "", str(Decided.GIVE)
_LAST = "9999-12-31T23:59:59.999999Z"


@dataclass(frozen=True)
class AsOf:
    """Two times: the moment that is asked about, and the moment up to which events were known."""

    valid: str
    recorded: str


@dataclass(frozen=True)
class Fold:
    """Gathers, for one purpose as of two times, the newest decisions for and against of each person."""

    purpose: str
    as_of: AsOf
    depths: Mapping[str, int] = field(init=False)
    changes: list[str] = field(init=False)
    """The next moment at which a decision begins or ends to hold, if one is known."""
    given: tuple[dict[str, str], ...] = field(init=False)
    against: tuple[dict[str, str], ...] = field(init=False)

    def __post_init__(self) -> None:
        names = check_purpose(self.purpose).split("/")
        wider = {"/".join(names[: depth + 1]): depth for depth in range(len(names))}
        object.__setattr__(self, "depths", wider)
        object.__setattr__(self, "changes", [_LAST])
        object.__setattr__(self, "given", tuple({} for _ in wider))
        object.__setattr__(self, "against", tuple({} for _ in wider))

    def add(self, recorded: str, rows: Sequence[Sequence[Any]]) -> None:
        """Take more events, in whatever order: those that were known then and speak of that moment and purpose.

        A decision of a kind that is not known here counts against.
        """
        if recorded > self.as_of.recorded:
            return
        valid, depths = self.as_of.valid, self.depths
        for subject, decided, purpose, at, begins, ends, *_ in rows:
            depth = depths.get(purpose)
            if depth is None:
                continue
            for change in (begins, ends):
                if change is not None and valid < change < self.changes[0]:
                    self.changes[0] = change
            if begins > valid or (ends is not None and ends <= valid):
                continue
            newest = (self.given if decided == _GIVES else self.against)[depth]
            if at > newest.get(subject, _NEVER):
                newest[subject] = at

    def consents(self, subject: str) -> bool:
        """Whether somebody consents: there is a consent, and one follows every decision against."""
        latest, some = _NEVER, False
        for given, against in zip(reversed(self.given), reversed(self.against), strict=True):
            at = given.get(subject)
            if at is not None:
                latest, some = max(latest, at), True
            if against.get(subject, _NEVER) >= latest and subject in against:
                return False
        return some

    def people(self) -> frozenset[str]:
        """Return the pseudonyms of all who consent."""
        return frozenset(subject for subject in set().union(*self.given) if self.consents(subject))


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
