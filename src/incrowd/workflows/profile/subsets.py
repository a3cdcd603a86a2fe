"""Subsets: how well every pair, and every triple of the widest columns, distinguishes rows, in bounded memory.

Where the columns of a subset have few values, its tuples are counted in a dense table; else by a sketch.  What dense
tables counted enters the sketches in the end: the result is the same, as if every tuple had been added to its sketch.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.fingerprints import Bits, coded_bits
from incrowd.core.reading import as_dictionary
from incrowd.core.table import Engine, Rows
from incrowd.engines.local.engine import LOCAL
from incrowd.measures.risk.sketch import Sketch, TupleSpread

MOST_COLUMNS, MOST_IN_TRIPLES = 12, 8
"""Of how many columns, those with the most values, pairs are counted, and triples."""
_TUPLES = 2**21
_SLICE = 2**16
_WAITING = 2**18  # rows: a table is added to in one go for so many
_DENSE, _CELLS = 2**16, 2**22  # cells of a dense table, and of all of them
_SPARE = 2  # places in a table for a missing value, and for one that was not expected

Names = tuple[str, ...]


@dataclass(frozen=True)
class Subset:
    """Some columns, and how well they distinguish rows."""

    columns: Names
    spread: TupleSpread


class ValueCodes:
    """The values of one column, numbered as they are met, by their bits; at most `room` of them."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.bits = np.zeros(0, np.uint64)
        self._order = np.zeros(0, np.int64)

    def codes(self, bits: Bits) -> NDArray[np.int32] | None:
        """Return the number of each value, or None once there are more values than room."""
        codes = self._numbers(bits)
        if (codes < 0).any():
            self.bits = np.append(self.bits, np.unique(bits[codes < 0]))
            self._order = np.argsort(self.bits)
            if len(self.bits) > self.room:
                return None
            codes = self._numbers(bits)
        return codes

    def _numbers(self, bits: Bits) -> NDArray[np.int32]:
        if not len(self.bits):
            return np.full(len(bits), -1, np.int32)
        places = np.searchsorted(self.bits, bits, sorter=self._order)
        codes = self._order[np.minimum(places, len(self.bits) - 1)]
        return np.where(self.bits[codes] == bits, codes, -1).astype(np.int32)


class Subsets:
    """Pairs and triples of some columns, each with its sketch; memory is about 100 MB, however many rows.

    `sizes` are numbers of different values, as far as they are known: they decide how tuples are counted, and of which
    columns triples are.

    >>> pairs = Subsets(("sex", "zip"), {"sex": 2, "zip": 1})
    >>> pairs.add(pa.record_batch({"sex": ["F", "F", "M"], "zip": ["1", "1", "1"]}))
    >>> [(subset.columns, subset.spread.unique) for subset in pairs.ranked()]
    [(('sex', 'zip'), 1)]
    """

    def __init__(self, columns: Names, sizes: Mapping[str, int] = MappingProxyType({})) -> None:
        self._columns = columns
        widest = sorted(columns, key=lambda name: -sizes.get(name, 0))[:MOST_IN_TRIPLES]
        self._triples = tuple(name for name in columns if name in widest)
        chosen = [*itertools.combinations(columns, 2), *itertools.combinations(self._triples, 3)]
        self._sketches = {subset: Sketch(max(2**12, _TUPLES // len(chosen))) for subset in chosen}
        self._values = {name: ValueCodes(sizes[name] + _SPARE) for name in columns if sizes.get(name)}
        self._tables: dict[Names, NDArray[np.int64]] = {}
        cells = {subset: self._cells(subset) for subset in chosen}
        for subset in sorted(chosen, key=lambda subset: cells[subset]):
            if cells[subset] <= min(_DENSE, _CELLS - sum(map(len, self._tables.values()))):
                self._tables[subset] = np.zeros(cells[subset], np.int64)
        in_tables = {name for subset in self._tables for name in subset}
        self._values = {name: codes for name, codes in self._values.items() if name in in_tables}
        self._waiting: list[dict[str, NDArray[np.int32]]] = []

    def _cells(self, subset: Names) -> int:
        return math.prod(self._values[name].room if name in self._values else _DENSE + 1 for name in subset)

    def add(self, batch: pa.RecordBatch) -> None:
        """Learn from some rows."""
        for start in range(0, len(batch), _SLICE):
            self._add(batch.slice(start, _SLICE))

    def _add(self, batch: pa.RecordBatch) -> None:
        bits: dict[str, Bits] = {}
        codes: dict[str, NDArray[np.int32]] = {}
        for salt, name in enumerate(self._columns, start=1):
            values, indices = as_dictionary(batch.column(name))
            bits[name] = coded_bits(values, indices, salt)
            if name in self._values:
                numbers = None if indices is None else self._coded(name, bits[name], indices, len(values) + 1)
                if numbers is None:
                    self._undo(name)
                else:
                    codes[name] = numbers
        self._waiting.append(codes)
        if sum(len(next(iter(part.values()), ())) for part in self._waiting) >= _WAITING:
            self._tabulate()
        self._sketch(bits)

    def _coded(self, name: str, bits: Bits, indices: NDArray[np.integer], size: int) -> NDArray[np.int32] | None:
        """Return the number of each row's value; None once the column has more values than expected."""
        first = np.zeros(size, np.int64)
        first[indices[::-1]] = np.arange(len(indices) - 1, -1, -1)
        used = np.flatnonzero(np.bincount(indices, minlength=size))
        codes = self._values[name].codes(bits[first[used]])
        if codes is None:
            return None
        table = np.zeros(size, np.int32)
        table[used] = codes
        row_codes: NDArray[np.int32] = table[indices]
        return row_codes

    def _sketch(self, bits: Mapping[str, Bits]) -> None:
        """Add the tuples that no table counts; a triple has at least as many different tuples as each of its pairs."""
        for first, second in itertools.combinations(self._columns, 2):
            pair = (first, second)
            ends = self._triples[self._triples.index(second) + 1 :] if {first, second} <= set(self._triples) else ()
            thirds = [third for third in ends if (*pair, third) not in self._tables]
            if pair in self._tables and not thirds:
                continue
            both = bits[first] + bits[second]
            if pair not in self._tables:
                self._sketches[pair].add(both)
            for third in thirds:
                sketch = self._sketches[*pair, third]
                pairs = ((first, second), (first, third), (second, third))
                sketch.expect(max(self._sketches[pair].halvings for pair in pairs) - 1)
                sketch.add(np.add(both, bits[third]))

    def _tabulate(self) -> None:
        """Count the rows that wait in the tables."""
        waiting, self._waiting = self._waiting, []
        names = {name for subset in self._tables for name in subset}
        codes = {name: np.concatenate([part[name] for part in waiting]) for name in names} if waiting else {}
        for subset in self._tables if codes else ():
            places = codes[subset[0]].astype(np.int64)
            for name in subset[1:]:
                places *= self._values[name].room
                places += codes[name]
            self._tables[subset] += np.bincount(places, minlength=len(self._tables[subset]))

    def _undo(self, name: str) -> None:
        """Let sketches count the subsets of a column that has more values than expected, or none that repeat."""
        self._tabulate()
        for subset in [subset for subset in self._tables if name in subset]:
            self._enter(subset)
        del self._values[name]

    def _enter(self, subset: Names) -> None:
        """Add to a sketch what a table counted."""
        table = self._tables.pop(subset)
        used = np.flatnonzero(table)
        keys = np.zeros(len(used), np.uint64)
        digits = used
        for name in reversed(subset):
            digits, codes = np.divmod(digits, self._values[name].room)
            keys += self._values[name].bits[codes]
        self._sketches[subset].add_counted(keys, table[used])

    def merge(self, other: Subsets) -> None:
        """Learn what was learned from other rows."""
        other_sketches = other.sketches()
        for subset, sketch in self.sketches().items():
            sketch.merge(other_sketches[subset])

    def sketches(self) -> dict[Names, Sketch]:
        """Return a sketch of each subset; from here on sketches count everything."""
        self._tabulate()
        for subset in list(self._tables):
            self._enter(subset)
        return self._sketches

    def ranked(self) -> tuple[Subset, ...]:
        """Return the pairs and triples, those that single out the most rows first."""
        ranked = [Subset(subset, sketch.spread()) for subset, sketch in self.sketches().items()]
        return tuple(sorted(ranked, key=lambda subset: (-subset.spread.unique_share, len(subset.columns))))


def subsets(
    rows: Rows, columns: Sequence[str], engine: Engine = LOCAL, sizes: Mapping[str, int] = MappingProxyType({})
) -> tuple[Subset, ...]:
    """Return pairs and triples of columns, those that single out the most rows first; one pass where rows live.

    >>> from incrowd.engines.readers.sources import open_source
    >>> rows = open_source(pa.table({"sex": ["F", "F", "M", "M"], "zip": ["1", "2", "1", "2"], "born": [1, 1, 1, 1]}))
    >>> [(subset.columns, subset.spread.unique_share) for subset in subsets(rows, ["sex", "zip", "born"])]
    [(('sex', 'zip'), 1.0), (('sex', 'zip', 'born'), 1.0), (('sex', 'born'), 0.0), (('zip', 'born'), 0.0)]
    """
    if len(columns) < 2:
        return ()
    return engine.learn(rows, columns, partial(Subsets, tuple(columns), dict(sizes))).ranked()
