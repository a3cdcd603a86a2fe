"""Rare classes: those of a large column that its noisy counts do not show, taken together while a model is fitted.

Where a column has many classes, noise hides most of them.  Those that their own counts do not show above it are one
class of the fit, so tables with the column have fewer cells, and what is hidden depends on other columns as a whole; at
the end its rows are spread over them evenly.  Noisy counts and public numbers alone decide (post-processing), and a row
is in one cell of each table as before, so a unit moves a table as far as before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from incrowd.methods.synthesis.marginals.budget import MANY_CLASSES
from incrowd.methods.synthesis.marginals.evaluation import WeightedRows
from incrowd.methods.synthesis.marginals.junction import Columns, Floats
from incrowd.methods.synthesis.marginals.model import Codes, NoisyTable, TableModel

_ABOVE = 3.0  # standard deviations of noise; a class below that is hidden


@dataclass(frozen=True, eq=False)
class RareClasses:
    """For each column and each of its classes, the class that it is in while a model is fitted; hidden ones last.

    >>> table = NoisyTable((0,), np.array([500, 3, 300, -8, 12] + [0] * 50), 10.0)
    >>> rare = RareClasses.of([table], [])
    >>> rare.places[0].tolist()[:5], rare.tables([table], 840.0)[0].counts.tolist()
    ([0, 2, 1, 2, 2], [500, 300, 40])
    """

    places: tuple[Codes, ...]

    @classmethod
    def of(cls, tables: Sequence[NoisyTable], single: Collection[tuple[int, int | None]]) -> RareClasses:
        """Take together what tables of large columns do not show.

        What is `single`, a column or a class of one, stays as it is.
        """
        places = []
        for table in tables:
            (column,), number = table.columns, len(table.counts)
            hidden = table.counts < _ABOVE * table.scale
            hidden[[code for own, code in single if own == column and code is not None]] = False
            if number <= MANY_CLASSES or (column, None) in single or hidden.sum() < 2:
                places.append(np.arange(number))
            else:
                places.append(np.where(hidden, number - hidden.sum(), np.cumsum(~hidden) - 1))
        return cls(tuple(places))

    @property
    def widths(self) -> tuple[int, ...]:
        """How many classes each column has."""
        return tuple(map(len, self.places))

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many classes each column has while a model is fitted."""
        return tuple(int(own.max()) + 1 for own in self.places)

    def rows(self, rows: WeightedRows) -> WeightedRows:
        """Return rows as codes of the classes of the fit."""
        codes = np.empty_like(rows.codes)
        for column, own in enumerate(self.places):
            codes[column] = own[rows.codes[column]]
        return WeightedRows(self.sizes, codes, rows.times)

    def tables(self, tables: Sequence[NoisyTable], total: float) -> list[NoisyTable]:
        """Return tables of single columns over the classes of the fit: those that are hidden have what others leave."""
        merged = []
        for table, own, size in zip(tables, self.places, self.sizes, strict=True):
            counts = np.zeros(size, np.int64)
            np.add.at(counts, own, table.counts)
            if size < len(own):
                counts[-1] = max(0, round(total) - int(counts[:-1].sum()))
            merged.append(replace(table, counts=counts))
        return merged

    def spread(self, model: TableModel) -> TableModel:
        """Return a model over all classes, in which those that are hidden have the same chance each."""
        tree = replace(model.tree, sizes=self.widths, widths=())
        tables = tuple(map(self._spread, model.tables, model.tree.cliques))
        return TableModel(tree, tables, model.total)

    def _spread(self, table: Floats, clique: Columns) -> Floats:
        wide = table
        for axis, column in enumerate(clique):
            own = self.places[column]
            share = 1.0 / np.bincount(own)[own]
            wide = wide.take(own, axis=axis) * share.reshape([-1 if n == axis else 1 for n in range(wide.ndim)])
        return wide
