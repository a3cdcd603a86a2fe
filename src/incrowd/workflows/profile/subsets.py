"""Subsets: which two or three columns together single people out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from incrowd.core.hashing import Bits, row_bits
from incrowd.core.table import Engine, Rows
from incrowd.engines.local.engine import LOCAL
from incrowd.measures.sketch import Sketch, Spread

MOST_COLUMNS = 15
"""With more columns than this, only subsets of so many are looked at: those with the most different values."""

_KEPT = 2**22
_SLICE = 2**16


@dataclass(frozen=True)
class Subset:
    """Some columns, and how the rows fall apart when they are known."""

    columns: tuple[str, ...]
    spread: Spread


class Subsets:
    """Every pair and triple of some columns, each with its sketch; memory is about 100 MB, however many rows.

    >>> pairs = Subsets(("sex", "zip"))
    >>> pairs.add(pa.record_batch({"sex": ["F", "F", "M"], "zip": ["1", "1", "1"]}))
    >>> [(subset.columns, subset.spread.unique) for subset in pairs.found()]
    [(('sex', 'zip'), 1)]
    """

    def __init__(self, columns: tuple[str, ...]) -> None:
        self._columns = columns
        chosen = [*itertools.combinations(columns, 2), *itertools.combinations(columns, 3)]
        self._sketches = {subset: Sketch(max(2**12, _KEPT // len(chosen))) for subset in chosen}

    def add(self, batch: pa.RecordBatch) -> None:
        """Learn from some rows."""
        for start in range(0, len(batch), _SLICE):
            for subset, bits in _sums(batch.slice(start, _SLICE), self._columns):
                self._sketches[subset].add(bits)

    def merge(self, other: Subsets) -> None:
        """Learn what was learned from other rows."""
        for subset, sketch in self._sketches.items():
            sketch.merge(other._sketches[subset])

    def found(self) -> tuple[Subset, ...]:
        """Return the pairs and triples, those that single out the most rows first."""
        found = [Subset(subset, sketch.spread()) for subset, sketch in self._sketches.items()]
        return tuple(sorted(found, key=lambda subset: (-subset.spread.unique_share, len(subset.columns))))


def subsets(rows: Rows, columns: Sequence[str], engine: Engine = LOCAL) -> tuple[Subset, ...]:
    """Return every pair and triple of columns, those that single out the most rows first; one pass where rows live.

    >>> from incrowd.engines.readers.sources import open_source
    >>> rows = open_source(pa.table({"sex": ["F", "F", "M", "M"], "zip": ["1", "2", "1", "2"], "born": [1, 1, 1, 1]}))
    >>> [(subset.columns, subset.spread.unique_share) for subset in subsets(rows, ["sex", "zip", "born"])]
    [(('sex', 'zip'), 1.0), (('sex', 'zip', 'born'), 1.0), (('sex', 'born'), 0.0), (('zip', 'born'), 0.0)]
    """
    if len(columns) < 2:
        return ()
    return engine.learn(rows, columns, partial(Subsets, tuple(columns))).found()


def _sums(batch: pa.RecordBatch, columns: Sequence[str]) -> Iterator[tuple[tuple[str, ...], Bits]]:
    """Yield the bits of every pair and triple."""
    each = {name: row_bits(batch.column(name), salt) for salt, name in enumerate(columns, start=1)}
    for first, second in itertools.combinations(columns, 2):
        both = each[first] + each[second]
        yield (first, second), both
        for third in columns[columns.index(second) + 1 :]:
            yield (first, second, third), np.add(both, each[third])
