"""Relational distances: how far linked tables are from the original, in what joins them.

*Cardinality* is the total variation of how many rows a parent has below it, and *by parent* its mean with each column
of the parent.  *Parent-child* is the mean total variation over pairs of a parent's column and an own one, *child-child*
over own columns beside those of the next row of the same parent.  *Integrity* is the share of foreign keys that name a
row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.utility.distances import variation

Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LinkedRows:
    """The rows of a table as codes, a line for each column, with the sizes of the columns and places of parents.

    The rows of a parent are in sequence; a parent of -1 names no row.
    """

    sizes: tuple[int, ...]
    codes: Codes
    parent: Codes

    def numbers(self, parents: int, most: int) -> Codes:
        """Return how many rows each of so many parents has; more than `most` count as so many."""
        own = self.parent[(self.parent >= 0) & (self.parent < parents)]
        return np.minimum(np.bincount(own, minlength=parents), most).astype(np.int64)

    def followed(self) -> NDArray[np.bool_]:
        """Return which rows stand right before another of the same parent."""
        followed: NDArray[np.bool_] = (self.parent[:-1] == self.parent[1:]) & (self.parent[:-1] >= 0)
        return followed


@dataclass(frozen=True)
class LinkDistance:
    """How far one table is from the original; a mean over no pair is None."""

    rows: int
    rows_before: int
    integrity: float
    cardinality: float
    by_parent: float | None
    parent_child: float | None
    child_child: float | None

    def to_json(self) -> dict[str, Any]:
        """Return the values for JSON."""
        return {item.name.replace("_", " "): getattr(self, item.name) for item in fields(self)}


@dataclass(frozen=True, eq=False)
class Link:
    """A table with its parent, and how many rows a parent may have."""

    parent: LinkedRows
    child: LinkedRows
    most: int

    @property
    def integrity(self) -> float:
        """The share of rows whose parent is there."""
        inside = (self.child.parent >= 0) & (self.child.parent < self.parent.codes.shape[1])
        return float(inside.mean()) if len(inside) else 1.0

    def distance(self, before: Link) -> LinkDistance:
        """Return how far this is from the original."""
        return LinkDistance(
            self.child.codes.shape[1],
            before.child.codes.shape[1],
            self.integrity,
            _mean(self, before, Link._cardinality) or 0.0,
            _mean(self, before, Link._by_parent),
            _mean(self, before, Link._parent_child),
            _mean(self, before, Link._child_child),
        )

    def _numbers(self) -> Codes:
        return self.child.numbers(self.parent.codes.shape[1], self.most)

    def _cardinality(self) -> Iterator[NDArray[np.float64]]:
        yield _shares([self._numbers()], [self.most + 1])

    def _by_parent(self) -> Iterator[NDArray[np.float64]]:
        for line, size in zip(self.parent.codes, self.parent.sizes, strict=True):
            yield _shares([self._numbers(), line], [self.most + 1, size])

    def _parent_child(self) -> Iterator[NDArray[np.float64]]:
        linked = (self.child.parent >= 0) & (self.child.parent < self.parent.codes.shape[1])
        places = self.child.parent[linked]
        for above, size in zip(self.parent.codes, self.parent.sizes, strict=True):
            for line, own in zip(self.child.codes, self.child.sizes, strict=True):
                yield _shares([above[places], line[linked]], [size, own])

    def _child_child(self) -> Iterator[NDArray[np.float64]]:
        followed = self.child.followed()
        for line, size in zip(self.child.codes, self.child.sizes, strict=True):
            yield _shares([line[:-1][followed], line[1:][followed]], [size, size])


def _mean(one: Link, other: Link, tables: Callable[[Link], Iterator[NDArray[np.float64]]]) -> float | None:
    distances = [variation(p, q) for p, q in zip(tables(one), tables(other), strict=True)]
    return float(np.mean(distances)) if distances else None


def _shares(lines: Sequence[Codes], sizes: Sequence[int]) -> NDArray[np.float64]:
    """Return the shares of rows over all combinations; of no rows, none has any."""
    place = np.zeros(len(lines[0]), np.int64)
    for line, size in zip(lines, sizes, strict=True):
        place = place * size + line
    counts = np.bincount(place, minlength=int(np.prod(sizes)))
    shares: NDArray[np.float64] = counts / max(1, counts.sum())
    return shares
