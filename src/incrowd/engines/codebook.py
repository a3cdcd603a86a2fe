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

    >>> book = Codebook()
    >>> book.codes(pa.array(["021", "945", "021"])).tolist(), book.codes(pa.array(["100", "945"])).tolist()
    ([2, 3, 2], [4, 3])
    """

    other = 0
    missing = 1

    def __init__(self) -> None:
        self._places: dict[Any, int] = {}
        self._type: pa.DataType = pa.string()

    def __len__(self) -> int:
        return len(self._places) + _RESERVED

    def codes(self, marks: pa.Array) -> Codes:
        """Return the code of each mark, a new one for a mark that was not met before."""
        self._type = marks.type
        met = marks.dictionary_encode()
        places = self._places
        plain = pc.cast(met.dictionary, pa.int32()) if pa.types.is_date32(marks.type) else met.dictionary
        codes = [places.setdefault(mark, len(places) + _RESERVED) for mark in plain.to_pylist()]
        found: Codes = np.array(codes, np.int32)[met.indices.to_numpy(zero_copy_only=False)]
        return found

    def classes(self, recoding: Recoding) -> tuple[Classes, Codes]:
        """Return the classes in the order of their marks, and for each code lent the one that is kept."""
        date = pa.types.is_date32(self._type)
        marks = pa.array(self._places, pa.int32() if date else self._type)
        order = pc.array_sort_indices(marks).to_numpy()
        kept = np.empty(len(self), np.int32)
        kept[order + _RESERVED] = np.arange(len(order))
        kept[[self.other, self.missing]] = len(order), len(order) + 1
        ordered = marks.take(pa.array(order))
        return Classes(recoding, pc.cast(ordered, self._type), has_other=True, has_missing=True), kept
