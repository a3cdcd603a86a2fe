"""Rule: which counts a suppression rule publishes, how it rounds them, and what it says in one sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from incrowd.errors import InvalidParameter

_MOST = 10**6


class Zeros(StrEnum):
    """Whether a reader can tell an empty cell from a suppressed one."""

    HIDDEN = "hidden"
    UNSAID = "unsaid"
    SHOWN = "shown"


class Rounding(StrEnum):
    """Which multiple of the base a count becomes; at random: the upper one with the chance that keeps the mean."""

    NEAREST = "nearest"
    RANDOM = "random"
    UP = "up"
    DOWN = "down"


_ROUNDED = {
    Rounding.NEAREST: "rounded to multiples of {}",
    Rounding.RANDOM: "rounded at random to one of the two nearest multiples of {}",
    Rounding.UP: "rounded up to multiples of {}",
    Rounding.DOWN: "rounded down to multiples of {}",
}


@dataclass(frozen=True)
class Rule:
    """Counts of at least `minimum` are published, smaller ones are not; then rounded to `base`, if there is one.

    `rate` is that of a secret sample drawn in front of the counting, if there is one; `secondary` says that further
    cells are suppressed so that totals do not give the first ones away.  A minimum of 1 publishes every count, which
    only a rule that rounds may do.

    >>> Rule(8, base=5).words
    'counts of 8 or more are published; smaller ones are not; what is published is rounded to multiples of 5'
    """

    minimum: int
    base: int | None = None
    rate: Fraction | None = None
    zeros: Zeros = Zeros.UNSAID
    rounding: Rounding = Rounding.NEAREST
    secondary: bool = False

    def __post_init__(self) -> None:
        if not (1 if self.base is not None else 2) <= self.minimum <= _MOST:
            raise InvalidParameter(
                "a rule needs a minimum of at least 2, and of at most a million: a minimum of 1 publishes every count."
            )
        if self.base is not None and not 2 <= self.base <= _MOST:
            raise InvalidParameter("counts are rounded to a whole number of at least 2, such as 5 or 10.")
        if self.rate is not None and not 0 < self.rate < 1:
            raise InvalidParameter("a sample keeps a share strictly between 0 and 1, such as 10 % or 1/20.")

    @property
    def blending(self) -> bool:
        """Whether one such table is crowd-blending with k the minimum, as far as the rule is modelled."""
        return self.zeros is not Zeros.SHOWN and self.minimum > 1 and not self.secondary

    @property
    def words(self) -> str:
        """What the rule says, in one sentence without a stop."""
        parts = [f"rows enter by a secret sample at rate {self.rate}"] if self.rate is not None else []
        if self.minimum == 1:
            parts.append("every count is published")
        else:
            parts.append(f"counts of {self.minimum} or more are published; smaller ones are not" + _LOOKS[self.zeros])
        if self.base is not None:
            parts.append(f"what is published is {_ROUNDED[self.rounding].format(self.base)}")
        if self.secondary:
            parts.append("further cells are suppressed to protect the first ones")
        return "; ".join(parts)

    def multiple(self, count: int) -> int:
        """Return what a count is rounded to, halves upward; at random, the largest number that it may become.

        >>> Rule(8, 5).multiple(12), Rule(8, 5).multiple(13), Rule(2).multiple(3)
        (10, 15, 3)
        """
        return rounded_count(count, self.base, self.rounding)


_LOOKS = {
    Zeros.HIDDEN: ", and look like empty cells",
    Zeros.UNSAID: "",
    Zeros.SHOWN: ", and empty cells are told apart from them",
}


def rounded_count(count: int, base: int | None, rounding: Rounding) -> int:
    """Return a count as a multiple of the base, halves upward; at random, the largest multiple that it may become."""
    if base is None:
        return count
    match rounding:
        case Rounding.NEAREST:
            return (2 * count + base) // (2 * base) * base
        case Rounding.DOWN:
            return count // base * base
        case Rounding.UP | Rounding.RANDOM:
            return -(-count // base) * base


def minimum_after_rounding(minimum: int, base: int, rounding: Rounding = Rounding.NEAREST) -> int:
    """Return the least count that can show when counts are rounded first and compared with a minimum afterwards.

    It may be smaller than the stated minimum, or larger.  With m the first multiple of the base that is not below the
    minimum, a count from m − base/2 on is rounded to m; where half a base could be rounded either way, it is taken to
    be rounded up, which promises less.  Counts that are rounded up, or at random, may become m from m − base + 1 on;
    counts that are rounded down from m on.

    >>> minimum_after_rounding(10, 5), minimum_after_rounding(11, 5), minimum_after_rounding(10, 10)
    (8, 13, 5)
    >>> minimum_after_rounding(6, 3, Rounding.RANDOM), minimum_after_rounding(11, 5, Rounding.DOWN)
    (4, 15)
    """
    shown = -(-minimum // base) * base
    match rounding:
        case Rounding.NEAREST:
            return math.ceil(Fraction(2 * shown - base, 2))
        case Rounding.DOWN:
            return shown
        case Rounding.UP | Rounding.RANDOM:
            return shown - base + 1
