"""Encoding: batches of rows become codes, each dictionary looked at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.cells import Cells
from incrowd.core.keys import Codes
from incrowd.core.reading import as_dictionary
from incrowd.core.recoding import Classes, Recoding

_RESERVED = 2


class Codebook:
    """Codes in order of appearance, which is why they are only lent: `classes` gives the ones that are kept.

    >>> from incrowd.core.schema import Column
    >>> book = Codebook(Recoding(Column("zip"), 0))
    >>> book.codes(pa.array(["021", "945", "021"])).tolist(), book.codes(pa.array(["100", "945"])).tolist()
    ([2, 3, 2], [4, 3])
    """

    other = 0
    missing = 1

    def __init__(self, recoding: Recoding) -> None:
        self._recoding = recoding
        self._places: dict[Any, int] = {}
        storage = recoding.column.domain.storage
        self._plain = pa.int32() if storage == pa.date32() else storage  # days are numbered: no object for each

    def __len__(self) -> int:
        return len(self._places) + _RESERVED

    def codes(self, marks: pa.Array) -> Codes:
        """Return the code of each mark, a new one for a mark that was not met before."""
        met, places = marks.dictionary_encode(), self._places
        plain = pc.cast(met.dictionary, self._plain).to_pylist()
        codes = [places.setdefault(mark, len(places) + _RESERVED) for mark in plain]
        found: Codes = np.array(codes, np.int32)[met.indices.to_numpy(zero_copy_only=False)]
        return found

    def classes(self) -> tuple[Classes, Codes]:
        """Return the classes in the order of their marks, and for each code lent the one that is kept."""
        marks = pa.array(self._places, self._plain)
        order = pc.array_sort_indices(marks).to_numpy()
        kept = np.empty(len(self), np.int32)
        kept[order + _RESERVED] = np.arange(len(order))
        kept[[self.other, self.missing]] = len(order), len(order) + 1
        ordered = pc.cast(marks.take(pa.array(order)), self._recoding.column.domain.storage)
        return Classes(self._recoding, ordered, has_other=True, has_missing=True), kept


class Encoder:
    """The codes of the rows of one table, batch by batch; remembers dictionaries and the classes of open levels."""

    def __init__(self, cells: Cells) -> None:
        self._columns = [_Column(recoding) for recoding in cells.recodings]

    @property
    def sizes(self) -> tuple[int, ...]:
        """For each column a number of codes that none reaches; it may grow from batch to batch, in few steps."""
        return tuple(column.size for column in self._columns)

    def codes(self, batch: pa.RecordBatch, chosen: NDArray[np.intp] | None) -> list[Codes]:
        """Return for each column the codes of the chosen rows, without the rows that are left out."""
        codes = self._codes(batch, chosen)
        dropping = [found for found, c in zip(codes, self._columns, strict=True) if c.recoding.column.may_drop]
        if not dropping:
            return codes
        kept = np.flatnonzero(np.logical_and.reduce([found >= 0 for found in dropping]))
        return codes if len(kept) == len(codes[0]) else [found[kept] for found in codes]

    def codes_of_all(self, batch: pa.RecordBatch) -> list[Codes]:
        """Return for each column the codes of all rows, −1 where a row is left out."""
        return self._codes(batch, None)

    def _codes(self, batch: pa.RecordBatch, chosen: NDArray[np.intp] | None) -> list[Codes]:
        return [column.codes(batch, chosen) for column in self._columns]

    def classes(self) -> list[tuple[Classes, Codes | None]]:
        """Return for each column its classes, and for each code the one to use in its place, if it changes."""
        return [column.classes() for column in self._columns]


class _Column:
    """One column's codes; a file repeats its dictionaries from batch to batch."""

    def __init__(self, recoding: Recoding) -> None:
        self.recoding = recoding
        self._book = Codebook(recoding) if recoding.classes is None else None
        self._dictionary: pa.Array | None = None
        self._codes: Codes = np.zeros(0, np.int32)

    @property
    def size(self) -> int:
        if self.recoding.classes is not None:
            return len(self.recoding.classes)
        room = 64
        while room < len(self._book or ()):
            room *= 4
        return room

    def codes(self, batch: pa.RecordBatch, chosen: NDArray[np.intp] | None) -> Codes:
        if not self.recoding.needs_rows:
            return np.zeros(len(batch) if chosen is None else len(chosen), np.int32)
        array = batch.column(self.recoding.column.name)
        if chosen is not None and not pa.types.is_dictionary(array.type):
            array, chosen = array.take(pa.array(chosen)), None
        values, indices = as_dictionary(array)
        if indices is None:
            return self.recoding.codes_of(values, self._book)[:-1]
        return np.take(self._known(values), indices if chosen is None else indices[chosen])

    def _known(self, dictionary: pa.Array) -> Codes:
        if self._dictionary is None or not self._dictionary.equals(dictionary):
            self._codes = self.recoding.codes_of(dictionary, self._book)
            self._dictionary = dictionary
        return self._codes

    def classes(self) -> tuple[Classes, Codes | None]:
        if self.recoding.classes is not None:
            return self.recoding.classes, None
        return (self._book or Codebook(self.recoding)).classes()
