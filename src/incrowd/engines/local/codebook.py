"""Codebook: codes for the classes of an open level, given as they are met; it never leaves the engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.keys import Codes
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
