"""The steps of points: a public box in cells, and points that are put into them as their counts say."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.domain import Type
from incrowd.core.loss import Crowd
from incrowd.core.schema import Outside
from incrowd.core.steps.counts import NoiseWhenSmall
from incrowd.core.steps.rows import PEOPLE
from incrowd.core.steps.samples import SecretSample
from incrowd.core.steps.step import Grounds, Promise, Step
from incrowd.methods.synthesis.points.slowly_changing import EXPECTED, LIKELY, MOVES, slowly_changing

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.unit import Unit

FINE = 2**32
"""A uniform point takes one of so many places, at equal distances, along each side of its cell."""

_MADE_OF_COUNTS = "points are made of the released counts: Gehrke, Hay, Lui & Pass 2012, Example 4"


class Place(StrEnum):
    """Where in its cell a point is put."""

    CENTERS = "centers"
    UNIFORM = "uniform"


@dataclass(frozen=True)
class SampleOfCells(SecretSample):
    """A secret coin for each row decides whether it counts in its cell."""

    words: ClassVar[tuple[str, ...]] = ("design",)


@dataclass(frozen=True)
class Side:
    """One side of the box: a column between its declared bounds, in pieces, and what becomes of other values."""

    column: str
    type: Type
    low: str
    high: str
    pieces: int
    missing: str
    outside: Outside


@dataclass(frozen=True)
class IntoCells(Step):
    """The declared bounds of some columns make a box, cut into cells; each row falls into one of them."""

    kind: ClassVar[str] = "grid"
    title: ClassVar[str] = "Into cells"
    words: ClassVar[tuple[str, ...]] = ("cells",)
    glyph: ClassVar[str | None] = "coarser"

    columns: tuple[Side, ...]

    @property
    def size(self) -> int:
        """How many cells there are."""
        return math.prod(side.pieces for side in self.columns)

    @property
    def cells(self) -> str:
        """How many cells there are, as text, since there may be very many."""
        return str(self.size)

    @property
    def names(self) -> tuple[str, ...]:
        """The coordinates."""
        return tuple(side.column for side in self.columns)

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        box = f"The declared bounds of {', '.join(self.names)} make a box, cut into {self.size:,} cells."
        return f"{box} Each row falls into one of them."

    def around(self, inner: Promise, unit: Unit) -> Promise:
        """Add that points are made of the counts of cells, which costs nothing; on a sample after all other reasons."""
        if not isinstance(inner.loss, Crowd):
            return inner
        people = f"; {PEOPLE}" if unit.max_rows > 1 else ""
        because = (*inner.because[:-1], f"{inner.because[-1]}, and 4")
        return replace(inner, because=because, on_sample=f"{inner.on_sample}{people}; {_MADE_OF_COUNTS}")


@dataclass(frozen=True)
class PlacePoints(Step):
    """Every cell gets as many new points as its count says; no row is published."""

    kind: ClassVar[str] = "place points"
    title: ClassVar[str] = "Make points"
    words: ClassVar[tuple[str, ...]] = ("rule", "order")
    glyph: ClassVar[str | None] = "sorted"

    at: Place

    @property
    def rule(self) -> str:
        """Where points are put."""
        if self.at is Place.CENTERS:
            return "every point at the center of its cell"
        return f"every point anywhere in its cell: one of {FINE} places along each side, or any whole number or day"

    @property
    def order(self) -> str:
        """In which order points are published."""
        return "by cell"

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return f"Every cell gets as many new points as its count says: {self.rule}. No row is published."

    def claims(self, grounds: Grounds) -> tuple[Claim, ...]:
        """Claim what is known about slowly changing functions before a row is read."""
        stated = (MOVES, EXPECTED, LIKELY) if grounds.find(NoiseWhenSmall) is not None else (MOVES,)
        numbers = {name: grounds.numbers[name] for name in stated}
        return (slowly_changing(numbers, str(self.at), grounds.need(IntoCells).names, str(grounds.unit)),)
