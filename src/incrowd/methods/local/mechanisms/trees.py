"""Trees: one of several levels is drawn for each person, who reports at that level with all of ε.

Ordered values are answered by the levels of a tree over them; words by the lengths of their prefixes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter
from incrowd.methods.local.mechanisms.randomizer import Categorical, Values, check_values

if TYPE_CHECKING:
    from incrowd.core.coins import Coins

Levelled = tuple[NDArray[np.int64], tuple[Any, ...]]
"""For each report its level, and the reports level by level in the order of people."""


@dataclass(frozen=True)
class LevelTree:
    """Levels from the coarsest to the finest; at each, a value belongs to node value // step.

    Guarantee: the largest loss of a level, since the level is drawn without the value.
    Assumes: one report is sent, once; every draw is uniform.
    Source: Cormode, Kulkarni & Srivastava 2019 (ranges); Bassily, Nissim, Stemmer & Thakurta 2017 (prefixes).
    """

    size: int
    steps: tuple[int, ...]
    levels: tuple[Categorical, ...]

    def __post_init__(self) -> None:
        sizes = tuple(-(-self.size // step) for step in self.steps)
        if not self.levels or tuple(level.size for level in self.levels) != sizes or self.steps[-1] != 1:
            raise InvalidParameter("each level of a tree has a randomizer of as many values as it has nodes.")

    @property
    def ratio(self) -> Fraction:
        """By how much a report is likelier for one value than for another, at most."""
        return max(level.ratio for level in self.levels)

    def randomize(self, values: Values, coins: Coins) -> Levelled:
        """Draw a level for each person, and report the node there."""
        check_values(values, self.size)
        drawn = coins.below(len(self.levels), len(values))
        parts = tuple(
            level.randomize(values[drawn == place] // step, coins)
            for place, (step, level) in enumerate(zip(self.steps, self.levels, strict=True))
        )
        return drawn, parts

    def plain(self, reports: Levelled) -> list[Any]:
        """Return reports as pairs of a level and what was reported there, in the order of people."""
        drawn, parts = reports
        found: list[Any] = [None] * len(drawn)
        for place, (level, part) in enumerate(zip(self.levels, parts, strict=True)):
            for at, each in zip(np.flatnonzero(drawn == place), level.plain(part), strict=True):
                found[at] = [place, each]
        return found

    def read(self, plain: Sequence[Any]) -> Levelled:
        """Read reports, or refuse what no such report can be."""
        if not all(isinstance(each, list) and len(each) == 2 and type(each[0]) is int for each in plain):
            raise InvalidParameter("a report does not have the shape of this survey's reports: it is refused.")
        drawn = np.array([each[0] for each in plain], np.int64)
        if drawn.size and not 0 <= drawn.min() <= drawn.max() < len(self.levels):
            raise InvalidParameter("a report names a level that this question does not have: it is refused.")
        parts = (level.read([each[1] for each in plain if each[0] == at]) for at, level in enumerate(self.levels))
        return drawn, tuple(parts)

    def nodes(self, first: int, last: int) -> tuple[tuple[int, int], ...]:
        """Return the fewest nodes, as level and place, that make up the values from `first` to `last`.

        >>> from incrowd.methods.local.mechanisms.ratio import Weights
        >>> from incrowd.methods.local.mechanisms.response import Response
        >>> tree = LevelTree(8, (4, 2, 1), tuple(Response(n, Weights(3, 1)) for n in (2, 4, 8)))
        >>> tree.nodes(2, 7), tree.nodes(3, 3)
        (((1, 1), (0, 1)), ((2, 3),))
        """
        if not 0 <= first <= last < self.size:
            raise InvalidParameter("a range begins at a value of the question and ends at it or at a later one.")
        found = []
        while first <= last:
            fits = (
                place
                for place, step in enumerate(self.steps)
                if first % step == 0 and min(first + step, self.size) - 1 <= last
            )
            place = next(fits)
            found.append((place, first // self.steps[place]))
            first += self.steps[place]
        return tuple(found)

    @cached_property
    def bits(self) -> int:
        """How large the largest report is."""
        return max(level.bits for level in self.levels)
