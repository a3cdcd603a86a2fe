"""The claim about every function that changes slowly: what it states, what it needs and what it leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

from incrowd.core.claims.claim import Claim, checked, proved
from incrowd.core.codec import named
from incrowd.errors import InvalidParameter

MOVES = "points move at most"
EXPECTED = "points added or lost, expected at most"
LIKELY = "points added or lost, 19 times in 20 at most"
_THEOREM = (
    "Gehrke, Hay, Lui & Pass 2012, Example 4: |mean over points − mean over rows| ≤ L·moves + 2·B·changed/points for "
    "every function that changes by at most L times the Euclidean distance of two places, sides of the box being 1 "
    "long, and lies between −B and B"
)
_ON_TOP = (
    "what sampling, clipping and left-out rows change: the error compares with rows as they were drawn and counted"
)
_INSIDE = "functions that jump, or that tell places inside one cell apart"
_HIDDEN = "how many rows lie in cells with fewer than k: that depends on the rows and is not published"
_CONDITIONS = (
    *proved("each point stands for a row of its cell, apart from those added or lost"),
    *checked("every point of the written output lies where its cell says"),
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


def slowly_changing(numbers: Mapping[str, Any], place: str, names: tuple[str, ...], unit: str) -> Claim:
    """Return the claim; every number in it is known before a row is read, and suppression leaves some of them out."""
    return LipschitzError(
        columns=names,
        place=place,
        moves=numbers[MOVES],
        expected=numbers.get(EXPECTED),
        likely=numbers.get(LIKELY),
        unit=unit,
        theorem=_THEOREM,
        preconditions=_CONDITIONS,
        not_protected=(_ON_TOP, _INSIDE) if numbers.get(LIKELY) is not None else (_ON_TOP, _INSIDE, _HIDDEN),
    )
