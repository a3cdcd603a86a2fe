"""ConsentEvent: one decision of one data subject about one purpose, with the times when it is valid."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from incrowd.errors import InvalidParameter

_PURPOSE = re.compile(r"[^\W_](?:[\w .-]{0,62}[\w.])?(?:/[^\W_](?:[\w .-]{0,62}[\w.])?){0,7}")
_SUBJECT = re.compile(r"[0-9a-f]{32}")
_TEXT = 500  # characters, so that an entry stays small; the document itself is elsewhere
_DAY = 10
_MIDNIGHT = "T00:00:00.000000Z"


class Decided(StrEnum):
    """What a data subject decided, or what happened to a decision."""

    GIVE = "give"
    REFUSE = "refuse"
    WITHDRAW = "withdraw"
    EXPIRE = "expire"
    RESTRICT = "restrict"
    VOID = "void"
    """The decision that it corrects was never taken."""


_ENDING = (Decided.GIVE, Decided.RESTRICT)
RARE = ("guardian", "of_age", "corrects")
"""Fields that few events have; a row names them."""


@dataclass(frozen=True)
class ConsentEvent:
    """A decision: whose, what, about which purpose, when it was taken, from when until when it holds.

    `at` orders decisions: the later one counts, and of two at one moment the one that does not give.  The
    registry stores when it was recorded.  `valid_to` is the first moment at which it is no longer valid; only a consent
    and a restriction have one, since the end of a withdrawal would be a consent that nobody gave.  `alike` is one
    pseudonym for all ids that are written alike; events of earlier versions have none.  `guardian` says who decided in
    the person's place, and `of_age` the day from which the person decides alone: a guardian's consent ends then.
    `corrects` is the moment of an earlier decision of the same person and purpose that was recorded wrongly: it no
    longer counts, and this one does.

    >>> ConsentEvent("0" * 32, Decided.GIVE, "research/births", moment("2026-01-01")).valid_from
    '2026-01-01T00:00:00.000000Z'
    """

    subject: str
    decided: Decided
    purpose: str
    at: str
    valid_from: str = ""
    valid_to: str | None = None
    basis: str = "consent"
    notice: str = ""
    alike: str = ""
    guardian: str = ""
    of_age: str | None = None
    corrects: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "valid_from", self.valid_from or self.at)
        if not _SUBJECT.fullmatch(self.subject) or (self.alike and not _SUBJECT.fullmatch(self.alike)):
            raise InvalidParameter("a subject is a pseudonym of 32 hexadecimal digits.")
        check_purpose(self.purpose)
        if self.valid_to is not None and self.decided not in _ENDING:
            raise InvalidParameter(
                f"{self.decided} has no end: a person who consents again gives a new consent. Omit valid_to."
            )
        if self.valid_to is not None and self.valid_to <= self.valid_from:
            raise InvalidParameter("a decision holds for some time: valid_to comes after valid_from.")
        if max(len(self.basis), len(self.notice), len(self.guardian)) > _TEXT:
            raise InvalidParameter(f"basis, notice and guardian have at most {_TEXT} characters.")
        if self.decided is Decided.VOID and self.corrects is None:
            raise InvalidParameter("void corrects an earlier decision: name its time.")
        self._check_age()

    def _check_age(self) -> None:
        if self.of_age is None:
            return
        if not self.guardian:
            raise InvalidParameter("the day of coming of age belongs to a guardian's decision: name the guardian.")
        if self.of_age <= max(self.at, self.valid_from):
            raise InvalidParameter("a guardian decides only before the day on which the person comes of age.")

    @property
    def gives(self) -> bool:
        """Whether it is a consent; every other decision excludes the person, but for one that voids another."""
        return self.decided is Decided.GIVE

    @property
    def against(self) -> bool:
        """Whether it excludes the person."""
        return self.decided not in (Decided.GIVE, Decided.VOID)

    @property
    def ends(self) -> str | None:
        """The first moment at which it no longer holds: its own end, or for a guardian's consent the coming of age."""
        age = self.of_age if self.gives else None
        return min(filter(None, (self.valid_to, age)), default=None)

    def settled(self, now: str) -> ConsentEvent:
        """Return a decision against that names a day as one that was taken at the day's end, or now.

        Midnight in UTC is how a day is written.  A consent of the same day, whose time is known, does not undo it.

        >>> left = ConsentEvent("0" * 32, Decided.WITHDRAW, "research", moment("2026-01-01"))
        >>> left.settled("2027").at, left.settled("2027").valid_from
        ('2026-01-01T23:59:59.999999Z', '2026-01-01T00:00:00.000000Z')
        """
        if not self.against or not self.at.endswith(_MIDNIGHT):
            return self
        return replace(self, at=max(self.at, min(f"{self.at[:_DAY]}T23:59:59.999999Z", now)))

    def to_row(self) -> list[Any]:
        """Return the plain form that the registry stores."""
        more = {name: getattr(self, name) for name in RARE if getattr(self, name)}
        row = [self.subject, str(self.decided), self.purpose, self.at, self.valid_from, self.valid_to]
        row += [self.basis, self.notice]
        return [*row, self.alike, more] if more else [*row, *filter(None, [self.alike])]

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> ConsentEvent:
        """Read what `to_row` wrote."""
        subject, decided, *rest = row
        more = rest.pop() if isinstance(rest[-1], Mapping) else {}
        return cls(subject, Decided(decided), *rest, **more)


def check_purpose(purpose: str) -> str:
    """Return a purpose, or refuse a text that is not one: names of a tree, the widest first, separated by slashes.

    >>> check_purpose("research/newborns"), depth_of("research/newborns")
    ('research/newborns', 1)
    >>> check_purpose("/research")
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: a purpose is up to 8 names separated by slashes, the widest first, such as ...
    """
    if not _PURPOSE.fullmatch(purpose):
        raise InvalidParameter(
            "a purpose is up to 8 names separated by slashes, the widest first, such as research/newborns."
        )
    return purpose


def depth_of(purpose: str) -> int:
    """Return the depth of a purpose below the widest one."""
    return purpose.count("/")


def covers(wide: str, purpose: str) -> bool:
    """Whether a decision about one purpose covers another: itself, and all below it.

    >>> covers("research", "research/births"), covers("research/births", "research"), covers("re", "research")
    (True, False, False)
    """
    return purpose == wide or purpose.startswith(f"{wide}/")


def moment(text: str) -> str:
    """Return a moment in the one notation of events, whose texts sort by time.

    >>> moment("2026-05-01"), moment("2026-05-01T02:00:00+02:00")
    ('2026-05-01T00:00:00.000000Z', '2026-05-01T00:00:00.000000Z')
    >>> moment("May")
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: a moment is a day such as 2026-05-01, or a time with its zone such as ...
    """
    try:
        read = datetime.fromisoformat(text if len(text) > _DAY else f"{text}T00:00:00Z")
    except ValueError:
        read = None
    if read is None or read.tzinfo is None or len(text) < _DAY:
        raise InvalidParameter(
            "a moment is a day such as 2026-05-01, or a time with its zone such as 2026-05-01T12:00:00Z."
        )
    return written_moment(read)


def written_moment(at: datetime) -> str:
    """Return a time as events and entries write it."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
