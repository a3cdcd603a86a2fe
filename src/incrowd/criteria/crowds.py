"""Crowds: criteria that count the rows, or the people, in a class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from incrowd.criteria.criterion import Criterion, Mask, Monotone, Rows
from incrowd.criteria.partition import Partition
from incrowd.errors import InvalidParameter


@dataclass(frozen=True)
class KAnonymity(Criterion):
    """At least k rows look alike.  Classes only grow when they merge: upward.

    Source: Samarati & Sweeney 1998; Samarati 2001; Sweeney 2002.

    >>> KAnonymity(3).met(Partition(np.array([5, 2]))).tolist()
    [True, False]
    """

    k: int

    def __post_init__(self) -> None:
        if self.k < 1:
            raise InvalidParameter("k is at least 1: with 1, every class passes.")

    @property
    def monotone(self) -> Monotone:
        """Upward."""
        return Monotone.UPWARD

    def kept(self, partition: Partition, among: Mask) -> Mask:
        """Return which classes hold at least k rows."""
        return np.asarray(among & (partition.sizes >= self.k))

    def releasable(self, partition: Partition, rows: Rows) -> Rows:
        """Return none where fewer than k are left."""
        del partition
        return np.where(rows >= self.k, rows, 0)


@dataclass(frozen=True)
class KMap(Criterion):
    """At least k people of the population look like each released row.  People only join when classes merge: upward.

    Source: Sweeney 2001 (doctoral thesis), the model k-map; El Emam & Dankar 2008.

    >>> KMap(3).met(Partition(np.array([1, 1]), population=np.array([9, 2]))).tolist()
    [True, False]
    """

    k: int

    def __post_init__(self) -> None:
        if self.k < 1:
            raise InvalidParameter("k is at least 1: with 1, every class passes.")

    @property
    def monotone(self) -> Monotone:
        """Upward."""
        return Monotone.UPWARD

    def kept(self, partition: Partition, among: Mask) -> Mask:
        """Return which classes hold at least k people of the population."""
        return np.asarray(among & (partition.people() >= self.k))
