"""Counts: how many rows fell into each cell; all that any release is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.keys import Codes, Keys, Layout, grouped, translated
from incrowd.core.recoding import Classes
from incrowd.errors import InvalidParameter

_BATCH = 2**17  # rows of an Arrow batch: some megabytes
_CHUNK = 2**20  # keys unpacked at a time: 8 MB a column


@dataclass(frozen=True, eq=False)
class Counts:
    """The cells that were met, in order, and how many rows each holds.

    The order is that of the declared classes, and of the values where none are declared, so that nothing in it
    depends on the order of the rows.

    >>> from incrowd.core.domain import Categories
    >>> from incrowd.core.hierarchy.flat import Flat
    >>> from incrowd.core.recoding import Recoding
    >>> from incrowd.core.schema import Column
    >>> sexes = Recoding(Column("sex", hierarchy=Flat(Categories(("F", "M")))), 0).classes
    >>> counts = Counts((sexes,), np.array([0, 1, 3]), np.array([2, 9, 1]))
    >>> counts.at_least(2).to_table().to_pylist()
    [{'sex': 'F', 'count': 2}, {'sex': 'M', 'count': 9}]
    >>> counts.rollup({"sex": 1}).to_table().to_pylist()
    [{'sex': '*', 'count': 12}]
    """

    classes: tuple[Classes, ...]
    keys: Keys
    counts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.recoding.column.name for column in self.classes)

    @property
    def levels(self) -> dict[str, int]:
        """The level of each column."""
        return {column.recoding.column.name: column.recoding.level for column in self.classes}

    @property
    def total(self) -> int:
        """How many rows were counted."""
        return int(self.counts.sum())

    @cached_property
    def layout(self) -> Layout:
        """How the tuples are laid out in keys."""
        return Layout(tuple(max(1, len(column)) for column in self.classes))

    def codes(self) -> list[Codes]:
        """Return for each column the code of each cell."""
        return self.layout.unpack(self.keys)

    def at_least(self, k: int) -> Counts:
        """Return the cells with at least k rows; what is in none of them is forgotten, labels included."""
        large = self.counts >= k
        return replace(self, keys=self.keys[large], counts=self.counts[large]).pruned()

    def pruned(self) -> Counts:
        """Return the same counts without the classes, met while reading, that no cell is in."""
        if all(column.recoding.classes is not None for column in self.classes):
            return self
        columns = [
            (column, None) if column.recoding.classes is not None else column.only(used)
            for column, used in zip(self.classes, self._used(), strict=True)
        ]
        return self._translated([(place, table) for place, (_, table) in enumerate(columns)], [c for c, _ in columns])

    def rollup(self, levels: Mapping[str, int]) -> Counts:
        """Return the counts with some columns at higher levels, as if they had been counted there."""
        for name in levels:
            self._place(name)
        higher = [column.rise(levels.get(name, column.recoding.level)) for name, column in self._named()]
        places = [(place, table) for place, (_, table) in enumerate(higher)]
        return _grouped(self._translated(places, [classes for classes, _ in higher]))

    def marginal(self, columns: Sequence[str]) -> Counts:
        """Return the counts over fewer columns, or over the same in another order."""
        if not columns:
            raise InvalidParameter("a marginal keeps at least one column.")
        places = [self._place(name) for name in columns]
        return _grouped(self._translated([(place, None) for place in places], [self.classes[p] for p in places]))

    def batches(self, rows: int = _BATCH) -> Iterator[pa.RecordBatch]:
        """Return one row for each row counted, in order, so many at a time.

        Columns of text are dictionaries of exactly the labels that occur.
        """
        released = self._released()
        ends = np.cumsum(self.counts)
        for start in range(0, self.total, rows):
            stop = min(start + rows, self.total)
            first, last = np.searchsorted(ends, (start, stop - 1), side="right")
            times = np.diff(np.concatenate(([start], np.minimum(ends[first : last + 1], stop))))
            cells = self.layout.unpack(self.keys[first : last + 1])
            columns = [column.rows(np.repeat(codes, times)) for column, codes in zip(released, cells, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def expand(self) -> pa.Table:
        """Return one row for each row counted, in order."""
        return pa.Table.from_batches(self.batches(), schema=self.schema)

    def to_table(self, count: str = "count") -> pa.Table:
        """Return one row for each cell, with its count in a last column."""
        released = self._released()
        columns = [column.rows(codes) for column, codes in zip(released, self.codes(), strict=True)]
        table = pa.Table.from_batches([pa.RecordBatch.from_arrays(columns, schema=self.schema)])
        return table.append_column(count, pa.array(self.counts))

    @cached_property
    def schema(self) -> pa.Schema:
        """The names and types of the released columns, known before a row is read."""
        types = [(name, column.values().type) for name, column in self._named()]
        text = pa.dictionary(pa.int32(), pa.string())
        return pa.schema([(name, text if pa.types.is_string(kind) else kind) for name, kind in types])

    def _named(self) -> list[tuple[str, Classes]]:
        return list(zip(self.names, self.classes, strict=True))

    def _place(self, name: str) -> int:
        if name not in self.names:
            raise InvalidParameter(f"{name!r} was not counted; there are {', '.join(self.names)}.")
        return self.names.index(name)

    def _used(self) -> list[NDArray[np.bool_]]:
        """Return for each column which of its classes some cell is in."""
        used = [np.zeros(max(1, len(column)), np.bool_) for column in self.classes]
        for start in range(0, len(self), _CHUNK):
            for which, codes in zip(used, self.layout.unpack(self.keys[start : start + _CHUNK]), strict=True):
                which[codes] = True
        return [which[: len(column)] for which, column in zip(used, self.classes, strict=True)]

    def _translated(self, columns: Sequence[tuple[int, Codes | None]], classes: Sequence[Classes]) -> Counts:
        """Return the counts of other tuples: of these columns, each code replaced where there is a table."""
        target = Layout(tuple(max(1, len(column)) for column in classes))
        return Counts(tuple(classes), translated(self.keys, self.layout, target, columns), self.counts)

    def _released(self) -> list[_Released]:
        return [_Released.of(column, used) for column, used in zip(self.classes, self._used(), strict=True)]


def _grouped(counts: Counts) -> Counts:
    keys, sums = grouped(counts.keys, counts.counts)
    return replace(counts, keys=keys, counts=sums)


@dataclass(frozen=True)
class _Released:
    """What a code is released as: a place among values that all occur, −1 for missing."""

    places: Codes
    values: pa.Array

    @classmethod
    def of(cls, column: Classes, used: NDArray[np.bool_]) -> _Released:
        values = column.values()
        occurring = used & values.is_valid().to_numpy(zero_copy_only=False)
        return cls(
            np.where(occurring, np.cumsum(occurring) - 1, -1).astype(np.int32), values.filter(pa.array(occurring))
        )

    def rows(self, codes: Codes) -> pa.Array:
        places = self.places[codes]
        indices = pa.array(places, pa.int32(), mask=places < 0)
        if pa.types.is_string(self.values.type):
            return pa.DictionaryArray.from_arrays(indices, self.values)
        return self.values.take(indices)
