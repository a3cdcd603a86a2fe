"""Baskets: what is read of a table with a set-valued column: the other columns as tuples, the sets row by row."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from incrowd.core.cells import Cells
from incrowd.core.keys import Keys
from incrowd.core.schema import Column
from incrowd.core.sets import Sets, read_sets


@dataclass
class Baskets:
    """A summary that keeps every row's items, four bytes each, and the key of its other columns.

    >>> from incrowd.core.domain import Categories
    >>> from incrowd.core.hierarchy.flat import Flat
    >>> bought = Column("bought", hierarchy=Flat(Categories(("tea", "milk"))), separator=",")
    >>> baskets = Baskets(bought)
    >>> baskets.add(pa.record_batch({"bought": ["milk,tea", "tea"]}))
    >>> baskets.sets().items.tolist()
    [0, 1, 0]
    """

    column: Column
    cells: Cells | None = None
    _keys: list[Keys] = field(default_factory=list)
    _sets: list[Sets] = field(default_factory=list)

    def add(self, batch: pa.RecordBatch) -> None:
        """Read some rows; those that a rule of the schema leaves out are forgotten."""
        sets, kept = read_sets(batch.column(self.column.name), self.column)
        recodings = () if self.cells is None else self.cells.recodings
        codes = [
            each.codes(batch.column(each.column.name)) if each.needs_rows else np.zeros(len(batch), np.int32)
            for each in recodings
        ]
        for column in codes:
            kept &= column >= 0
        self._sets.append(sets if kept.all() else sets.take(np.flatnonzero(kept)))
        if self.cells is not None:
            self._keys.append(self.cells.layout.pack([column[kept] for column in codes]))

    def merge(self, other: Baskets) -> None:
        """Take over what another one read of other rows."""
        self._keys += other._keys
        self._sets += other._sets

    def sets(self) -> Sets:
        """Return the items of all rows."""
        return Sets.joined(self._sets)

    def keys(self) -> Keys:
        """Return the keys of the other columns, row by row; only where there are other columns."""
        empty = np.zeros(0, np.int64 if self.cells is None else self.cells.layout.dtype)
        return np.concatenate([empty, *self._keys])
