"""Criterion: a condition on equivalence classes; a class that does not meet it is not released."""

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
"""The absolute error allowed to a computed share: sums of shares are rounded."""


class Monotone(IntEnum):
    """What follows from a criterion when classes merge in coarser nodes; a greater value implies the smaller ones.

    UPWARD: a class that contains a class which meets it meets it too.  Then the suppressed rows at a node are among
    those of every finer node, so a node that needs too much suppression rules out all finer ones.
    UNIONS: a union of classes that all meet it meets it too.  Then all nodes coarser than one that needs no suppression
    need none, and where nothing may be suppressed, a node that needs some rules out all finer ones.
    NEVER: no conclusion.
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
        """The sensitive columns that it reads."""
        return ()

    @property
    def whole(self) -> bool:
        """Whether it is about all released classes together and not about each on its own."""
        return False

    @abstractmethod
    def retained(self, partition: Partition, among: Mask) -> Mask:
        """Return which classes, among some, may be released."""

    def met(self, partition: Partition) -> Mask:
        """Return which of all classes may be released."""
        return self.retained(partition, np.ones(len(partition), np.bool_))

    @property
    def bounding(self) -> bool:
        """Whether `releasable` can be below `rows`."""
        return self.monotone is Monotone.UPWARD

    def releasable(self, partition: Partition, rows: Rows, met: Mask) -> Rows:
        """Return an upper bound of the rows of each class that any finer partition can release, at most `rows`.

        `met` says which classes meet it; classes without remaining rows may be present.  Where a class fails an upward
        criterion, every class within it fails: the bound is 0.  Otherwise it is `rows`.
        """
        del partition
        return np.where(met, rows, 0) if self.monotone is Monotone.UPWARD else rows

    def __and__(self, other: Criterion) -> All:
        """Return the criterion that is met where both are."""
        return All((*_parts(self), *_parts(other)))


@dataclass(frozen=True)
class All(Criterion):
    """Several criteria at once: a class is released if it meets every one.

    Criteria about single classes come first; those about all released classes together are then applied to the
    remaining classes in turn, until none removes more.  Every step only removes classes, so this ends.

    >>> from incrowd.criteria.k_anonymity import KAnonymity
    >>> (KAnonymity(2) & KAnonymity(5)).met(Partition(np.array([5, 2]))).tolist()
    [True, False]
    """

    parts: tuple[Criterion, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise InvalidParameter("a combination of criteria needs at least one.")

    @property
    def monotone(self) -> Monotone:
        return min(part.monotone for part in self.parts)

    @property
    def sensitive(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in self.parts for name in part.sensitive))

    @property
    def whole(self) -> bool:
        return any(part.whole for part in self.parts)

    def retained(self, partition: Partition, among: Mask) -> Mask:
        for part in self.parts:
            if not part.whole:
                among = part.retained(partition, among)
        together = [part for part in self.parts if part.whole]
        left = -1
        while together and (now := int(np.count_nonzero(among))) != left:
            left = now
            for part in together:
                among = part.retained(partition, among)
        return among


def _parts(criterion: Criterion) -> tuple[Criterion, ...]:
    return criterion.parts if isinstance(criterion, All) else (criterion,)
