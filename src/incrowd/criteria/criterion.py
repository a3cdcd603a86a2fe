"""Criterion: a condition on classes of rows that look alike; what does not meet it is not released."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from incrowd.criteria.partition import Partition
from incrowd.errors import InvalidParameter

Mask = NDArray[np.bool_]

Rows = NDArray[np.int64]
"""A number of rows for each class."""

SLACK = 1e-12
"""By so much a computed share may miss its bound: sums of shares are rounded."""


class Monotone(IntEnum):
    """What becomes of a criterion when classes merge on the way up the lattice; the greater includes the smaller.

    UPWARD: a class that contains a class which meets it meets it too.  Then the suppressed rows at a node are among
    those of every finer node, so a node that needs too much suppression rules out all finer ones.
    UNIONS: a union of classes that all meet it meets it too.  Then a node that needs no suppression vouches for all
    coarser ones, and one that needs some rules out all finer ones where nothing may be suppressed.
    NEVER: nothing can be concluded.
    """

    NEVER = 0
    UNIONS = 1
    UPWARD = 2


class Criterion(ABC):
    """What a class must meet to be released; criteria combine with `&`."""

    @property
    @abstractmethod
    def monotone(self) -> Monotone:
        """What follows for coarser nodes."""

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The sensitive columns it looks at."""
        return ()

    @property
    def whole(self) -> bool:
        """Whether it is about all released classes together and not about each on its own."""
        return False

    @abstractmethod
    def kept(self, partition: Partition, among: Mask) -> Mask:
        """Return which classes, among some, may be released."""

    def met(self, partition: Partition) -> Mask:
        """Return which of all classes may be released."""
        return self.kept(partition, np.ones(len(partition), np.bool_))

    @property
    def bounding(self) -> bool:
        """Whether `releasable` can take rows away."""
        return self.monotone is Monotone.UPWARD

    def releasable(self, partition: Partition, rows: Rows, met: Mask) -> Rows:
        """Return at most how many rows of each class any finer partition can release, given that it is at most `rows`.

        `met` tells which classes meet it; a class that has no rows left may be there or not.  An upward criterion that
        a class fails is failed by every class within it: none.  Otherwise nothing is known.
        """
        del partition
        return np.where(met, rows, 0) if self.monotone is Monotone.UPWARD else rows

    def __and__(self, other: Criterion) -> All:
        """Return the criterion that is met where both are."""
        return All((*_parts(self), *_parts(other)))


@dataclass(frozen=True)
class All(Criterion):
    """Several criteria at once: a class is released if it meets every one.

    Criteria about each class on its own come first; those about all released classes together then look at what is
    left, in turn, until none of them takes away more.  Each step only takes classes away, so this ends.

    >>> from incrowd.criteria.k_anonymity import KAnonymity
    >>> (KAnonymity(2) & KAnonymity(5)).met(Partition(np.array([5, 2]))).tolist()
    [True, False]
    """

    parts: tuple[Criterion, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise InvalidParameter("a criterion made of several needs at least one.")

    @property
    def monotone(self) -> Monotone:
        """The weakest of its parts."""
        return min(part.monotone for part in self.parts)

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The sensitive columns any of its parts looks at."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.sensitive))

    @property
    def whole(self) -> bool:
        """Whether some part is about all released classes together."""
        return any(part.whole for part in self.parts)

    def kept(self, partition: Partition, among: Mask) -> Mask:
        """Return which classes meet every part."""
        for part in self.parts:
            if not part.whole:
                among = part.kept(partition, among)
        together = [part for part in self.parts if part.whole]
        left = -1
        while together and (now := int(np.count_nonzero(among))) != left:
            left = now
            for part in together:
                among = part.kept(partition, among)
        return among


def _parts(criterion: Criterion) -> tuple[Criterion, ...]:
    return criterion.parts if isinstance(criterion, All) else (criterion,)
