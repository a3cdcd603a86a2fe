"""Periods: the step of a release that reads the rows of one period."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.calendar import UNKNOWN, Every, PeriodCalendar, Undated, label_of, number_of
from incrowd.core.claims.claim import assumed, proved
from incrowd.core.claims.privacy import Concentrated, Private, SampledCrowd, Surveyed
from incrowd.core.steps.step import Step
from incrowd.core.terms import Assumption, Condition, Exposure
from incrowd.core.unit import Kind
from incrowd.core.words import counted
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim

ONE_PERIOD = Condition(
    "one-period",
    "each row belongs to one period, by its own date alone, and this release reads the rows of its period and nothing "
    "of others but what was published",
    "A neighboring history lacks one person's rows, of one period or of all, in every version of the file.  A row that "
    "is corrected from one period to another is read in both, and both are charged.",
)
HABITS = Exposure(
    "habits",
    "what is true of somebody in several periods: for that the losses of these periods add up, as the accounting says",
)

PEOPLE_LISTED = Assumption(
    "list-of-people-secret",
    "the list of who took part in which period, which the data holder keeps, stays as secret as the rows",
)


@dataclass(frozen=True)
class ReadPeriod(Step):
    """Only rows of one period are read; the period is a function of the row alone.

    Guarantee: unchanged.  For a person in one period, releases of other periods read none of that person's rows of this
    one (McSherry 2009).  For a person in several periods the losses add up, never as those of a group: each period has
    randomness of its own.

    `label` is None in a plan for any period.  `releases` is their number where they were charged at once; somebody then
    takes part in the first `participations` periods alone, if that is set.  A query can read several periods in a row,
    from `label` until `until`.
    """

    kind: ClassVar[str] = "read one period"
    title: ClassVar[str] = "Rows of one period"
    glyph: ClassVar[str | None] = "fewer"

    column: str
    every: Every
    first: str
    last: str
    label: str | None = None
    zone: str | None = None
    undated: Undated = Undated.DROP
    arrival: str | None = None
    releases: int | None = None
    until: str | None = None
    participations: int | None = None

    def __post_init__(self) -> None:
        if self.participations is not None and not (
            self.participations >= 1 and self.releases is not None and self.releases >= self.calendar.size
        ):
            raise InvalidParameter(
                "periods per person are at least 1, and bounded in a series that is charged at once."
            )
        if self.label is not None:
            self.calendar.require(self.label)
        if self.until is not None and self.periods is None:
            raise InvalidParameter("periods that are read together follow each other, the first one before the last.")

    @property
    def periods(self) -> tuple[str, ...] | None:
        """The periods that are read; None where none is chosen, or where these are not periods in a row."""
        if self.label is None:
            return None
        if self.until is None:
            return (self.label,)
        numbers = [number_of(self.calendar.require(end), self.every) for end in (self.label, self.until)]
        listed = tuple(label_of(number, self.every) for number in range(numbers[0], numbers[1] + 1))
        return listed if len(listed) > 1 else None

    @property
    def composed(self) -> int | None:
        """In how many releases of a series one person takes part at most: in its periods, and in every spare run."""
        if self.releases is None:
            return None
        size = self.calendar.size
        return self.releases - size + min(size, self.participations or size)

    @classmethod
    def of(
        cls, calendar: PeriodCalendar, label: str | None, releases: int | None, participations: int | None = None
    ) -> ReadPeriod:
        """Return the step that reads a period of a calendar."""
        first, last, zone = calendar.first, calendar.last, calendar.zone
        rules = (first, last, label, zone, calendar.undated, calendar.arrival)
        return cls(calendar.column, calendar.every, *rules, releases, participations=participations)

    @classmethod
    def among(cls, calendar: PeriodCalendar, labels: tuple[str, ...]) -> ReadPeriod:
        """Return the step that reads one period of a calendar, or several in a row."""
        return replace(cls.of(calendar, labels[0], None), until=labels[-1] if len(labels) > 1 else None)

    @property
    def calendar(self) -> PeriodCalendar:
        """The calendar that says which rows belong to which period."""
        return PeriodCalendar(self.column, self.every, self.first, self.last, self.zone, self.undated, self.arrival)

    @property
    def sentence(self) -> str:
        which = f"one {self.every}" if self.label is None else self.label
        if self.until is not None:
            which = f"{self.label} to {self.until}"
        where = self.arrival or self.column
        read = f"Only rows of {which} take part, by their own date in “{where}”"
        zone = f", read in the time zone {self.zone}" if self.zone else ""
        if self.label == UNKNOWN:
            read, zone = f"Only rows without a readable date in “{where}” take part", ""
        undated = (
            "Rows without a date are a period of their own."
            if self.undated is Undated.UNKNOWN
            else "Rows without a date take part in no release."
        )
        late = (
            f"A late row or a correction counts in the {self.every} in which it arrived."
            if self.arrival
            else "Rows that come after the release of their period take part in none."
        )
        series = "" if self.releases is None else f" {self._series}"
        return f"{read}{zone}. {undated} {late}{series}"

    @property
    def _series(self) -> str:
        whole = f"{counted(self.releases or 0, 'release')} were planned and charged together; fewer are not cheaper."
        if self.participations is None:
            return whole
        return (
            f"{whole} Each person takes part in at most {counted(self.participations, 'period')}, the first; the data "
            "holder keeps a secret list that enforces this."
        )

    def amend(self, claim: Claim) -> Claim:
        """Add what the period needs, and what one period's guarantee does not protect."""
        bounded = isinstance(claim, Private | SampledCrowd | Surveyed | Concentrated)
        listed = () if self.participations is None else assumed([PEOPLE_LISTED])
        open_ = (HABITS,) if bounded and claim.unit.kind is Kind.PERSON_PERIOD else ()
        return replace(
            claim,
            preconditions=(*claim.preconditions, *proved(ONE_PERIOD), *listed),
            not_protected=(*claim.not_protected, *open_),
        )
