"""Conditions: which pieces of a table may stand alone, by the same criteria that any anonymized table is held to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.counts import Counts
from incrowd.core.keys import Codes
from incrowd.criteria.criterion import Criterion
from incrowd.criteria.groups import Groups
from incrowd.criteria.partition import Partition, lifts
from incrowd.methods.anonymity.mondrian.pieces import Pieces, tally


@dataclass(frozen=True, eq=False)
class Sensitive:
    """One sensitive column: the value of each tuple, values that occur being numbered in order, and their labels."""

    values: NDArray[np.intp]
    totals: NDArray[np.int64]
    labels: pa.Array
    lifts: tuple[Codes, ...]

    @classmethod
    def of(cls, counts: Counts, column: str) -> Sensitive:
        """Read a column off counts."""
        place = counts.names.index(column)
        met, values = np.unique(counts.codes()[place], return_inverse=True)
        totals = np.bincount(values, counts.counts, len(met)).astype(np.int64)
        classes = counts.classes[place]
        return cls(values, totals, classes.labels().take(pa.array(met)), lifts(classes, met))

    def groups(self, pieces: Pieces) -> Groups:
        """Return how the column falls into the pieces and, last, into the rest of the table."""
        none = np.zeros(len(pieces), np.int64)
        counted = tally(pieces, self.values[pieces.tuples], none, none + len(self.totals) - 1)
        rest = self.totals - np.bincount(counted.values, counted.rows, len(self.totals)).astype(np.int64)
        left = np.flatnonzero(rest)
        starts = np.append(counted.starts, len(counted.rows)) if len(left) else counted.starts
        values = np.concatenate([counted.values, left]).astype(np.int32)
        return Groups(starts, values, np.concatenate([counted.rows, rest[left]]), self.labels, self.lifts)


def condition(criterion: Criterion, counts: Counts) -> Callable[[Pieces], NDArray[np.bool_]]:
    """Return what tells which pieces of a table meet a criterion about each class on its own.

    A criterion that compares with the whole table needs all of it, so the rest of the table stands beside the pieces.
    """
    columns = {name: Sensitive.of(counts, name) for name in criterion.sensitive}
    total = counts.total

    def met(pieces: Pieces) -> NDArray[np.bool_]:
        rest = total - int(pieces.sizes.sum())
        sizes = np.append(pieces.sizes, rest) if rest else pieces.sizes
        groups = {name: column.groups(pieces) for name, column in columns.items()}
        return criterion.met(Partition(sizes, groups))[: len(pieces)]

    return met


def criteria(parts: Sequence[Criterion]) -> Criterion:
    """Return all of several criteria as one.

    >>> from incrowd.criteria.k_anonymity import KAnonymity
    >>> criteria([KAnonymity(5)])
    KAnonymity(k=5)
    """
    first, *others = parts
    for part in others:
        first &= part
    return first
