"""Steps: the table is cut along its quasi-identifiers, again and again."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from incrowd.core.codec import named
from incrowd.criteria.demand import MINIMALITY
from incrowd.methods.anonymity.mondrian.labels import Show
from incrowd.methods.anonymity.syntactic.steps import Cut

EXTREMES = "extremes: a range shows the least and the greatest value in it, and they are somebody's"


class Where(StrEnum):
    """Where a piece of the table is cut."""

    MEDIAN = "the median, equal rows on one side"
    MIDDLE = "the middle, equal rows on either side"


@dataclass(frozen=True, kw_only=True)
class CutRows(Cut):
    """Every piece of the table is cut in two, as long as both parts meet what is demanded."""

    at: Where
    shown_as: Show = named("shown as")

    @property
    def shown(self) -> str:
        """As what a class is shown."""
        return str(self.shown_as)

    @property
    def left_open(self) -> tuple[str, ...]:
        """Which attacks the cut leaves open: that of every cut, and what ranges and means tell."""
        return (MINIMALITY,) if self.shown_as is Show.NODES else (EXTREMES, MINIMALITY)
