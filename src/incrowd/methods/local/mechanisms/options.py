"""Options: several answers to one question; every option is kept or flipped by itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from incrowd.errors import InvalidParameter
from incrowd.methods.local.mechanisms.randomizer import Family, Randomness, Values
from incrowd.methods.local.mechanisms.sets import Bits, SetReports, flips

if TYPE_CHECKING:
    from incrowd.core.coins import Coins

MOST_OPTIONS = 32


@dataclass(frozen=True)
class OptionBits(SetReports):
    """A bit for each option, kept with weight `own` and flipped with weight `other`; values are sets, as bits.

    `width` is the largest number of options in which two answers can differ: all of them, or twice the number that may
    be chosen.

    Guarantee: ε = width · ln(own / other), since at most `width` bits differ, and each is randomized by itself.
    Assumes: one report is sent, once; every draw is uniform; no answer has more options than the survey allows.
    Source: Warner 1965 for each option; losses of independent parts add.

    >>> from incrowd.methods.local.mechanisms.ratio import Weights
    >>> OptionBits(3, Weights(2, 1), 3).ratio
    Fraction(8, 1)
    """

    family: ClassVar[Family] = Family.OPTIONS

    width: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2 <= self.width <= self.size <= MOST_OPTIONS:
            raise InvalidParameter(
                f"a question with several answers has 2 to {MOST_OPTIONS} options, and two answers differ in at least "
                "two of them."
            )

    @property
    def values(self) -> int:
        return int(2**self.size)

    @property
    def ratio(self) -> Fraction:
        return self.weights.value**self.width

    @property
    def randomness(self) -> Randomness:
        return replace(super().randomness, width=self.width)

    @property
    def p(self) -> Fraction:
        return Fraction(self.weights.own, self.total)

    @property
    def q(self) -> Fraction:
        return Fraction(self.weights.other, self.total)

    @property
    def error(self) -> Fraction:
        return self.size * self.q * self.p / (self.p - self.q) ** 2

    def draw(self, values: Values, coins: Coins) -> Bits:
        chosen = values[:, None] >> np.arange(self.size)[None, :] & 1
        flipped = flips(coins, self.q, len(values) * self.size).reshape(len(values), self.size)
        bits: Bits = np.not_equal(flipped, chosen == 1)
        return bits

    def law(self, value: int) -> Mapping[Any, Fraction]:
        law = {}
        for report in range(self.values):
            flipped = (report ^ value).bit_count()
            members = tuple(place for place in range(self.size) if report >> place & 1)
            law[members] = math.prod([self.q] * flipped + [self.p] * (self.size - flipped), start=Fraction(1))
        return law
