"""Rule: which counts a suppression rule hides, how it rounds the others, and what else is published."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from incrowd.errors import InvalidParameter

_MOST = 10**6


class SmallCountRule(StrEnum):
    """What stands in place of a hidden count: a blank or a symbol, the number 0, or a label such as `<5`."""

    HIDDEN = "hidden"
    ZERO = "zero"
    LABEL = "label"


class Zeros(StrEnum):
    """Whether an empty cell is shown as 0, or looks like a hidden count."""

    SHOWN = "shown"
    HIDDEN = "hidden"


class Rounding(StrEnum):
    """Which multiple of the base a count becomes; at random: the upper one with the chance that keeps the mean."""

    NEAREST = "nearest"
    RANDOM = "random"
    UP = "up"
    DOWN = "down"


_MARKS = {
    SmallCountRule.HIDDEN: "hidden",
    SmallCountRule.ZERO: "published as 0",
    SmallCountRule.LABEL: "replaced by a label",
}
_BESIDE = {
    "totals": "totals over all cells are published",
    "percentages": "percentages of all rows are published",
    "secondary suppression": "further cells are hidden to protect the first ones",
    "further tables": "{} tables of the same people are published",
}
_ROUNDED = {
    Rounding.NEAREST: "rounded to the nearest multiple of {}",
    Rounding.RANDOM: "rounded at random to one of the two nearest multiples of {}",
    Rounding.UP: "rounded up to a multiple of {}",
    Rounding.DOWN: "rounded down to a multiple of {}",
}


@dataclass(frozen=True)
class Rule:
    """Counts below `threshold` are hidden and the others rounded to `base`; a threshold of 1 hides none.

    `totals`, `percentages` and further `tables` count all rows, those of hidden cells included.  `secondary` hides
    further cells so that totals do not disclose the first ones.  `rate` is that of a secret sample of the rows.

    >>> Rule(8, base=5).words
    'Counts below 8 are hidden, and so are empty cells; the others are rounded to the nearest multiple of 5'
    """

    threshold: int = 1
    small_counts: SmallCountRule = SmallCountRule.HIDDEN
    zeros: Zeros = Zeros.HIDDEN
    base: int | None = None
    rounding: Rounding = Rounding.NEAREST
    round_first: bool = False
    totals: bool = False
    percentages: bool = False
    secondary: bool = False
    tables: int = 1
    rate: Fraction | None = None

    def __post_init__(self) -> None:
        if not (2 if self.base is None else 1) <= self.threshold <= _MOST:
            raise InvalidParameter("a rule must hide counts below a number from 2 to a million.")
        if self.base is not None and not 2 <= self.base <= _MOST:
            raise InvalidParameter("counts must be rounded to a whole number from 2 to a million, such as 5 or 10.")
        if self.base is None and (self.round_first or self.rounding is not Rounding.NEAREST):
            raise InvalidParameter("the rule says how counts are rounded, but not to what: give a number, such as 5.")
        if self.zeros is Zeros.SHOWN and (self.threshold == 1 or self.small_counts is SmallCountRule.ZERO):
            raise InvalidParameter("small counts become 0 by this rule, like empty cells: leave zeros hidden.")
        if self.threshold == 1 and (self.secondary or self.small_counts is not SmallCountRule.HIDDEN):
            raise InvalidParameter("the rule says how counts are hidden, but not which: give a threshold, such as 5.")
        if not 1 <= self.tables <= _MOST:
            raise InvalidParameter("the number of tables must be at least 1.")
        if self.rate is not None and not 0 < self.rate < 1:
            raise InvalidParameter("the sampling rate must lie strictly between 0 and 1, such as 0.1 or 1/20.")

    @property
    def k(self) -> int:
        """The least count that a reader can tell from all smaller ones.

        Where counts are rounded first, the rounded count is compared with the threshold, and this may be a smaller or a
        larger number.

        >>> Rule(10, base=5).k, Rule(10, base=5, round_first=True).k, Rule(11, base=5, round_first=True).k
        (10, 8, 13)
        >>> Rule(base=5).k, Rule(base=3, rounding=Rounding.RANDOM).k
        (3, 1)
        """
        rounded_zeros = self.round_first and self.zeros is Zeros.SHOWN
        return self._least_at(1 if rounded_zeros else self.threshold)

    @property
    def least_published(self) -> int:
        """The least count that is published, or may be.

        >>> Rule(10, base=5, round_first=True, zeros=Zeros.SHOWN).least_published
        8
        """
        return self._least_at(self.threshold)

    def _least_at(self, threshold: int) -> int:
        """Return the least count that reaches a threshold, rounded if rounding comes first; halves are rounded up."""
        if self.base is None or not (self.round_first or self.threshold == 1):
            return threshold
        multiple = -(-threshold // self.base) * self.base
        below = {Rounding.NEAREST: self.base // 2, Rounding.DOWN: 0}
        return multiple - below.get(self.rounding, self.base - 1)

    @property
    def zeros_apart(self) -> bool:
        """Whether a reader can tell an empty cell from a cell of one person; a zero by rounding may be either."""
        return self.zeros is Zeros.SHOWN and not self.round_first

    @property
    def obstacles(self) -> tuple[str, ...]:
        """What is published or hidden besides one table of cells, so that no crowd is guaranteed."""
        applies = (self.totals, self.percentages, self.secondary, self.tables > 1)
        return tuple(name for name, present in zip(_BESIDE, applies, strict=True) if present)

    @property
    def protects(self) -> bool:
        """Whether a table by this rule is crowd-blending, with `k` people in a crowd."""
        return self.k > 1 and not self.zeros_apart and not self.obstacles

    @property
    def words(self) -> str:
        """The rule as one sentence without a full stop."""
        parts = [] if self.rate is None else [f"rows are sampled in secret at rate {self.rate}"]
        rounding = "" if self.base is None else _ROUNDED[self.rounding].format(self.base)
        if rounding and (self.round_first or self.threshold == 1):
            parts.append(f"all counts are {rounding}")
        if self.threshold > 1:
            compared = "rounded counts" if self.round_first else "counts"
            empty = ", and empty cells are shown as 0" if self.zeros is Zeros.SHOWN else ", and so are empty cells"
            parts.append(f"{compared} below {self.threshold} are {_MARKS[self.small_counts]}{empty}")
            if rounding and not self.round_first:
                parts.append(f"the others are {rounding}")
        parts += [_BESIDE[name].format(self.tables) for name in self.obstacles]
        return "; ".join(parts)[:1].upper() + "; ".join(parts)[1:]

    def multiple(self, count: int) -> int:
        """Return what a count is rounded to, halves upward; at random, the largest number that it may become.

        >>> Rule(8, base=5).multiple(12), Rule(8, base=5).multiple(13), Rule(2).multiple(3)
        (10, 15, 3)
        """
        match self.base, self.rounding:
            case None, _:
                return count
            case base, Rounding.NEAREST:
                return (2 * count + base) // (2 * base) * base
            case base, Rounding.DOWN:
                return count // base * base
            case base, _:
                return -(-count // base) * base

    @property
    def telling_count(self) -> int:
        """The least published count that one person more changes, after rounding.

        >>> Rule(8).telling_count, Rule(8, base=5).telling_count
        (8, 12)
        """
        least = self.least_published
        if self.base is None:
            return least
        if self.rounding is Rounding.RANDOM:
            return -(-least // self.base) * self.base
        return next(n for n in range(least, least + self.base) if self.multiple(n) != self.multiple(n + 1))
