"""Rappor: bits that are made random once and for all, and again for every report; what that costs over time."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter
from incrowd.methods.local.mechanisms.flips import flips
from incrowd.methods.local.mechanisms.randomizer import Values, check_values

if TYPE_CHECKING:
    from incrowd.core.coins import Coins

Bits = NDArray[np.bool_]


@dataclass(frozen=True)
class Rappor:
    """One bit for each of `size` values; `keep_not` (f), `low` (p) and `high` (q) are the paper's three chances.

    A bit is first replaced by a fair coin with chance f: that is kept for ever (memoize it before the first report).
    Each report then shows 1 with chance q where the kept bit is 1, and with chance p where it is 0.

    Guarantee: ln of `ratio(T)` for T reports about one value; `permanent` for any number of them.  A changed value
    costs all of it again, and that it changed can show.
    Assumes: the kept bits of a person and a value are drawn once and never again.
    Source: Erlingsson, Pihur & Korolova 2014.

    >>> chances = Rappor(8, Fraction(1, 2), Fraction(1, 2), Fraction(3, 4))
    >>> import math
    >>> round(math.log(chances.ratio(1, hashes=2)), 4), round(math.log(chances.permanent(hashes=2)), 4)
    (1.0743, 4.3944)
    """

    size: int
    keep_not: Fraction
    low: Fraction
    high: Fraction

    def __post_init__(self) -> None:
        if not 2 <= self.size <= 2**16:
            raise InvalidParameter("RAPPOR has a bit for each of 2 to 65,536 values.")
        if not 0 < self.keep_not <= 1 or not 0 < self.low < self.high < 1:
            raise InvalidParameter(
                "RAPPOR needs 0 < f ≤ 1 and 0 < p < q < 1: else a report shows everything or nothing."
            )

    @property
    def p(self) -> Fraction:
        """The chance that the own bit of a report is 1."""
        half = self.keep_not / 2
        return (1 - half) * self.high + half * self.low

    @property
    def q(self) -> Fraction:
        """The chance that another bit of a report is 1."""
        half = self.keep_not / 2
        return half * self.high + (1 - half) * self.low

    def kept(self, values: Values, coins: Coins) -> Bits:
        """Draw the bits that are kept for ever, a row for each value."""
        check_values(values, self.size)
        bits = flips(coins, self.keep_not / 2, len(values) * self.size).reshape(len(values), self.size)
        bits[np.arange(len(values)), values] ^= True
        return bits

    def report(self, kept: Bits, coins: Coins) -> Bits:
        """Draw one report from kept bits."""
        ones = flips(coins, self.high, kept.size).reshape(kept.shape)
        zeros = flips(coins, self.low, kept.size).reshape(kept.shape)
        return np.where(kept, ones, zeros)

    def ratio(self, reports: int, hashes: int = 1) -> Fraction:
        """Return by how much a series of so many reports is likelier for one value than for another, at most.

        Two values differ in two bits for every hash: one that is on for the first, and one that is on for the second.
        """
        if reports < 1 or hashes < 1:
            raise InvalidParameter("the cost over time is that of one report or more, with one hash or more.")
        on, off = ([law(ones, reports) for ones in range(reports + 1)] for law in (self.p_of, self.q_of))
        more = max(one / other for one, other in zip(on, off, strict=True))
        less = max(other / one for one, other in zip(on, off, strict=True))
        return (more * less) ** hashes

    def permanent(self, hashes: int = 1) -> Fraction:
        """Return the same for any number of reports: all that the kept bits can show."""
        half = self.keep_not / 2
        return ((1 - half) / half) ** (2 * hashes)

    def p_of(self, ones: int, reports: int) -> Fraction:
        """Return the chance of a series with so many ones in a bit that is on."""
        half = self.keep_not / 2
        return (1 - half) * _series(self.high, ones, reports) + half * _series(self.low, ones, reports)

    def q_of(self, ones: int, reports: int) -> Fraction:
        """Return the chance of a series with so many ones in a bit that is off."""
        half = self.keep_not / 2
        return half * _series(self.high, ones, reports) + (1 - half) * _series(self.low, ones, reports)


def _series(chance: Fraction, ones: int, reports: int) -> Fraction:
    return chance**ones * (1 - chance) ** (reports - ones)
