"""Rule: a suppression rule for tables of counts, reduced to the numbers that its promise hangs on."""

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


@dataclass(frozen=True)
class Rule:
    """Counts of at least `minimum` are published, smaller ones are not; then rounded to `base`, if there is one.

    `rate` is that of a secret sample drawn in front of the counting, if there is one.

    >>> Rule(8, base=5).minimum
    8
    """

    minimum: int
    base: int | None = None
    rate: Fraction | None = None
    zeros: Zeros = Zeros.UNSAID

    def __post_init__(self) -> None:
        if not 2 <= self.minimum <= _MOST:
            raise InvalidParameter(
                "a rule needs a minimum of at least 2, and of at most a million: a minimum of 1 publishes every count."
            )
        if self.base is not None and not 2 <= self.base <= _MOST:
            raise InvalidParameter("counts are rounded to a whole number of at least 2, such as 5 or 10.")
        if self.rate is not None and not 0 < self.rate < 1:
            raise InvalidParameter("a sample keeps a share strictly between 0 and 1, such as 10 % or 1/20.")


def minimum_after_rounding(minimum: int, base: int) -> int:
    """Return the least count that shows when counts are rounded first and compared with a minimum afterwards.

    A count of at least m − base/2 is rounded to m, the first multiple of the base that is not below the minimum; where
    half a base could be rounded either way, it is taken to be rounded up, which promises less.

    >>> minimum_after_rounding(10, 5), minimum_after_rounding(11, 5), minimum_after_rounding(10, 10)
    (8, 13, 5)
    """
    shown = math.ceil(Fraction(minimum, base)) * base
    return math.ceil(Fraction(2 * shown - base, 2))
