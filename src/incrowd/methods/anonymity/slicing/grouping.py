"""Grouping: every way to put columns into as few groups as their largest size allows, and the choice among them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from incrowd.core.coins import Coins
from incrowd.core.unit import Adjacency, Unit
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.noisy_max import NoisyMax
from incrowd.methods.anonymity.slicing.association import MOVED
from incrowd.methods.anonymity.slicing.steps import ChooseGroups

_MOST = 20_000
Group = tuple[int, ...]
"""The places of the columns of one group, rising."""


@dataclass(frozen=True)
class Grouping:
    """How so many columns are put into groups of at most `size`: into as few groups as that takes.

    How many groups there are, and so what their release costs, is known before a row is read.

    Promise: the groups are ε-differentially private.
    Assumes: `associations` are those of the rows (`association`), one row moving each by at most `MOVED`.
    Source: McKenna & Sheldon 2020 for the choice; the proof follows.

    Proof.  The candidates follow from the numbers of columns and their largest group.  A candidate's score is the sum
    of the associations of all pairs that it keeps together, at most `pairs` of them.  A unit of r rows, added or
    removed, moves each by at most r·MOVED, so a score by at most r·MOVED·pairs; a unit that is replaced is removed and
    added, which is twice that.  Permute-and-flip at this sensitivity is ε-private.  ∎

    >>> grouping = Grouping(columns=5, size=3)
    >>> grouping.groups, len(list(grouping.candidates())), grouping.pairs
    (2, 10, 4)
    """

    columns: int
    size: int

    def __post_init__(self) -> None:
        if not 2 <= self.size < self.columns:
            raise InvalidParameter(
                f"groups: auto puts {self.columns} columns into groups: size, the most columns in a group, is at "
                "least 2 and below that. With all columns in one table, use method safe."
            )

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return math.ceil(self.columns / self.size)

    @property
    def pairs(self) -> int:
        """How many pairs of columns a candidate keeps together at most: full groups, and what is left in one."""
        full, left = divmod(self.columns, self.size)
        return full * math.comb(self.size, 2) + math.comb(left, 2)

    def sensitivity(self, unit: Unit) -> int:
        """Return the most by which one unit of privacy moves a score."""
        return MOVED * self.pairs * unit.max_rows * (1 if unit.adjacency is Adjacency.ADD_REMOVE else 2)

    def candidates(self) -> Iterator[tuple[Group, ...]]:
        """Return every way in a fixed order, each once: groups in the order of their first columns."""
        return self._split(tuple(range(self.columns)), self.groups)

    def counted(self) -> int:
        """Return how many candidates there are, or refuse if they are too many to weigh."""
        for number, _ in enumerate(self.candidates()):
            if number >= _MOST:
                raise InvalidParameter(
                    f"{self.columns} columns can be put into groups of at most {self.size} in more than {_MOST:,} "
                    "ways, too many to weigh. Give the groups, release fewer columns, or choose another size."
                )
        return number + 1

    def choose(
        self, associations: NDArray[np.int64], choosing: Fraction, unit: Unit, coins: Coins
    ) -> tuple[Group, ...]:
        """Return the groups that a private selection chose."""
        candidates = list(self.candidates())
        scores = [sum(int(associations[pair]) for pair in kept_together(each)) for each in candidates]
        return candidates[NoisyMax(choosing, self.sensitivity(unit)).release(np.array(scores, np.int64), coins)]

    def step(self, choosing: Fraction, unit: Unit) -> ChooseGroups:
        """Return the choice as a step."""
        return ChooseGroups(choosing, self.size, self.counted(), self.sensitivity(unit))

    def _split(self, left: Group, groups: int) -> Iterator[tuple[Group, ...]]:
        if groups == 1:
            yield (left,)
            return
        first, *others = left
        for more in range(min(self.size, len(left) - groups + 1)):
            if len(others) - more > (groups - 1) * self.size:
                continue
            for beside in combinations(others, more):
                rest = tuple(each for each in others if each not in beside)
                for behind in self._split(rest, groups - 1):
                    yield ((first, *beside), *behind)


def kept_together(groups: tuple[Group, ...]) -> Iterator[tuple[int, int]]:
    """Return the pairs of columns that are in one group.

    >>> list(kept_together(((0, 2), (1,))))
    [(0, 2)]
    """
    for group in groups:
        yield from combinations(group, 2)
