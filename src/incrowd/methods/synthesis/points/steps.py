"""The steps of points: a public box in cells, and points that are put into them as their counts say."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.core.claims.claim import Claim, checked, proved
from incrowd.core.codec import named
from incrowd.core.domain import Type
from incrowd.core.loss import Crowd
from incrowd.core.schema import Outside
from incrowd.core.steps.counts import NoiseWhenSmall
from incrowd.core.steps.rows import PEOPLE
from incrowd.core.steps.samples import SecretSample
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee
from incrowd.core.terms import Condition, Exposure, Theorem
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.core.unit import Unit


MOVES = "points move at most"
EXPECTED = "points added or lost, expected at most"
LIKELY = "points added or lost, 19 times in 20 at most"
_THEOREM = Theorem(
    "gehrke-2012-example-4",
    "Gehrke, Hay, Lui & Pass 2012, Example 4: |mean over points − mean over rows| ≤ L·moves +"
    " 2·B·changed/points for every function that changes by at most L times the Euclidean "
    "distance of two places, sides of the box being 1 long, and lies between −B and B",
)
_ON_TOP = Exposure(
    "sampling-error",
    "what sampling, clipping and left-out rows change: the error compares with rows as they were drawn and counted",
)
_INSIDE = Exposure("jumping-functions", "functions that jump, or that tell places inside one cell apart")
_HIDDEN = Exposure(
    "rows-in-small-cells", "how many rows lie in cells with fewer than k: that depends on the rows and is not published"
)
_CONDITIONS = (
    *proved(
        Condition("points-stand-for-rows", "each point stands for a row of its cell, apart from those added or lost")
    ),
    *checked(Condition("points-lie-in-cells", "every point of the written output lies where its cell says")),
)


@dataclass(frozen=True, kw_only=True)
class LipschitzError(Claim):
    """How far points move at most, in units of the box, and how many noise adds or takes away; all of it public.

    Source: Gehrke, Hay, Lui & Pass 2012, Example 4; the proof is with `accuracy`.
    """

    kind = "Lipschitz error"
    sentence = (
        "For every function that changes slowly from place to place, its mean over the published points is near its "
        "mean over the rows behind them."
    )
    rank: ClassVar[int] = 60
    numbers: ClassVar[Mapping[str, str]] = {"moves": MOVES, "expected": EXPECTED, "likely": LIKELY}

    columns: tuple[str, ...]
    place: str
    moves: Decimal = named(MOVES)
    expected: Decimal | None = named(EXPECTED, None)
    likely: Decimal | None = named(LIKELY, None)

    def __post_init__(self) -> None:
        stated = (self.moves, self.expected, self.likely)
        if any(number is not None and not (number.is_finite() and number >= 0) for number in stated):
            raise InvalidParameter("how far points move, and how many noise changes, are numbers from 0 on.")


def slowly_changing(numbers: Mapping[str, Any], place: str, names: tuple[str, ...], unit: Unit) -> Claim:
    """Return the claim; every number in it is known before a row is read, and suppression leaves some of them out."""
    return LipschitzError(
        columns=names,
        place=place,
        moves=numbers[MOVES],
        expected=numbers.get(EXPECTED),
        likely=numbers.get(LIKELY),
        unit=unit,
        theorem=(_THEOREM,),
        preconditions=_CONDITIONS,
        not_protected=(_ON_TOP, _INSIDE) if numbers.get(LIKELY) is not None else (_ON_TOP, _INSIDE, _HIDDEN),
    )


FINE = 2**32
"""A uniform point takes one of so many places, at equal distances, along each side of its cell."""

_MADE_OF_COUNTS = Theorem(
    "points-from-counts", "points are made of the released counts: Gehrke, Hay, Lui & Pass 2012, Example 4"
)


class Placement(StrEnum):
    """Where in its cell a point is put."""

    CENTERS = "centers"
    UNIFORM = "uniform"


@dataclass(frozen=True)
class SampleOfCells(SecretSample):
    """Each row is sampled independently, in secret, before its cell is counted."""


@dataclass(frozen=True)
class Side:
    """One side of the box: a column between its declared bounds, in pieces, and what becomes of other values."""

    column: str
    type: Type
    low: str
    high: str
    pieces: int
    outside: Outside
    fill: str | None = None
    """What a missing value counts as; without it, the row is left out."""


@dataclass(frozen=True)
class IntoCells(Step):
    """The declared bounds of some columns make a box, cut into cells; each row falls into one of them."""

    kind: ClassVar[str] = "grid"
    title: ClassVar[str] = "Into cells"
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
        box = f"The declared bounds of {', '.join(self.names)} make a box, cut into {self.size:,} cells."
        return f"{box} Each row falls into one of them."

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        if not isinstance(inner.loss, Crowd):
            return inner
        people = (PEOPLE,) if unit.max_rows > 1 else ()
        because, on_sample = (
            (*reasons, *more, _MADE_OF_COUNTS) for reasons, more in ((inner.because, ()), (inner.on_sample, people))
        )
        return replace(inner, because=because, on_sample=on_sample)


@dataclass(frozen=True)
class PlacePoints(Step):
    """Every cell gets as many new points as its count says; no row is published."""

    kind: ClassVar[str] = "place points"
    title: ClassVar[str] = "Make points"
    glyph: ClassVar[str | None] = "sorted"

    at: Placement

    @property
    def rule(self) -> str:
        """Where points are put."""
        if self.at is Placement.CENTERS:
            return "every point at the center of its cell"
        return f"every point anywhere in its cell: one of {FINE} places along each side, or any whole number or day"

    @property
    def order(self) -> str:
        """In which order points are published."""
        return "by cell"

    @property
    def sentence(self) -> str:
        return f"Every cell gets as many new points as its count says: {self.rule}. No row is published."

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        stated = (MOVES, EXPECTED, LIKELY) if basis.find(NoiseWhenSmall) is not None else (MOVES,)
        numbers = {name: basis.numbers[name] for name in stated}
        return (slowly_changing(numbers, str(self.at), basis.need(IntoCells).names, basis.unit),)
