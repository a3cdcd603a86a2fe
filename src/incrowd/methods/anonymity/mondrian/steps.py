"""Steps: the table is cut along its quasi-identifiers, again and again."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from incrowd.core.terms import Exposure
from incrowd.criteria.demand import MINIMALITY
from incrowd.methods.anonymity.mondrian.labels import Show
from incrowd.methods.anonymity.syntactic.steps import Cut

EXTREMES = Exposure(
    "extremes", "extremes: a range shows the least and the greatest value in it, and they are somebody's"
)


class Where(StrEnum):
    """Where a piece of the table is cut."""

    MEDIAN = "median"
    """Equal rows come to one side."""
    MIDDLE = "middle"
    """Equal rows may come to either side."""


@dataclass(frozen=True, kw_only=True)
class CutRows(Cut):
    """Every piece of the table is cut in two, as long as both parts meet what is demanded."""

    at: Where
    show: Show

    @property
    def where(self) -> str:
        """Where the table is cut, for people."""
        return f"the {self.at}, equal rows on {'one' if self.at is Where.MEDIAN else 'either'} side"

    @property
    def shown(self) -> str:
        """As what a class is shown, for people."""
        return str(self.show)

    @property
    def left_open(self) -> tuple[Exposure, ...]:
        """Which attacks the cut leaves open: that of every cut, and what ranges and means tell."""
        return (MINIMALITY,) if self.show is Show.NODES else (EXTREMES, MINIMALITY)
