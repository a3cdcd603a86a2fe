"""Conditional: columns drawn from a model of a table, given what others of its columns are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from incrowd.methods.synthesis.marginals.junction import Columns, Floats, spread, summed
from incrowd.methods.synthesis.marginals.model import Codes, TableModel, ZeroTable

_ROOM = 2**22  # cells held at once: 32 MB
_SMALLEST = 1e-300  # no division by zero
_FAINT = 1e-12  # of the largest chance of a table: less than any draw shows


@dataclass(frozen=True, eq=False)
class ConditionalModel:
    """A model, and the columns of it that are given; all others are drawn.

    The junction tree is passed twice for the given values of some rows: upwards for the likelihood of what is given
    below each clique, downwards to draw.  That is exact: the columns have the model's joint law, given the rest.  What
    `zeros` do not forbid has a chance, however small, so that given values of which the model has none lead nowhere
    that is forbidden.
    """

    model: TableModel
    predictors: Columns
    zeros: tuple[ZeroTable, ...] = ()

    def draw(self, values: Codes, chance: np.random.Generator) -> Codes:
        """Return a row of all columns for each column of `values`, which holds the given codes, a line each.

        >>> from incrowd.methods.synthesis.marginals.junction import JunctionTree
        >>> tree = JunctionTree.of((2, 2), [(0, 1)])
        >>> model = TableModel(tree, (np.array([[0.5, 0.0], [0.0, 0.5]]),), 1.0)
        >>> ConditionalModel(model, (0,)).draw(np.array([[0, 1, 1]]), np.random.default_rng(1)).tolist()
        [[0, 1, 1], [0, 1, 1]]
        """
        rows = values.shape[1]
        sample = np.zeros((len(self.model.tree.sizes), rows), np.int64)
        for line, column in zip(values, self.predictors, strict=True):
            sample[column] = line
        largest = max(int(np.prod(self._shape(clique))) for clique in self.model.tree.cliques)
        width = max(1, _ROOM // largest)
        for start in range(0, rows, width):
            piece = sample[:, start : start + width]
            self._downward(piece, self._upward(piece), chance)
        return sample

    @cached_property
    def _tables(self) -> tuple[Floats, ...]:
        """The tables of the cliques, with a chance for every cell that may occur."""
        tables = []
        for clique, table in zip(self.model.tree.cliques, self.model.tables, strict=True):
            never = np.zeros(table.shape, np.bool_)
            for zero in self.zeros:
                if set(zero.columns) <= set(clique):
                    never |= spread(zero.never.astype(np.float64), zero.columns, clique) > 0
            tables.append(np.where(never, 0.0, np.maximum(table, _FAINT * float(table.max()))))
        return tuple(tables)

    def _shape(self, clique: Columns) -> tuple[int, ...]:
        return tuple(self.model.tree.sizes[column] for column in self._free(clique))

    def _free(self, columns: Columns) -> Columns:
        return tuple(column for column in columns if column not in self.predictors)

    def _upward(self, sample: Codes) -> list[Floats]:
        """Return for each clique and row the weight of each combination of its columns that are not given."""
        tree, rows = self.model.tree, sample.shape[1]
        weights = [self._sliced(place, sample) for place in range(len(tree.cliques))]
        for place in range(len(tree.cliques) - 1, 0, -1):
            parent = tree.parents[place]
            if parent < 0:
                continue
            clique, shared = self._free(tree.cliques[place]), self._free(tree.separators[place])
            message = weights[place].sum(axis=tuple(n + 1 for n, c in enumerate(clique) if c not in shared))
            flat = message.reshape(rows, -1)
            flat = flat / np.maximum(flat.max(axis=1, keepdims=True), _SMALLEST)
            sizes = dict(zip(shared, self._shape(shared), strict=True))
            above = self._free(tree.cliques[parent])
            weights[parent] = weights[parent] * flat.reshape(rows, *(sizes.get(column, 1) for column in above))
        return weights

    def _sliced(self, place: int, sample: Codes) -> Floats:
        """Return the probabilities of a clique given what it shares with the one above, at the given codes of rows."""
        tree = self.model.tree
        clique, shared, table = tree.cliques[place], tree.separators[place], self._tables[place]
        if tree.parents[place] >= 0:
            sums = summed(table, clique, shared)
            table = table / np.maximum(sums.reshape([_size(table, clique, c, shared) for c in clique]), _SMALLEST)
        fixed = [column for column in clique if column in self.predictors]
        order = [*map(clique.index, fixed), *(n for n, column in enumerate(clique) if column not in self.predictors)]
        lines = table.transpose(order)
        if not fixed:
            return np.broadcast_to(lines, (sample.shape[1], *lines.shape))
        picked: Floats = lines[tuple(sample[column] for column in fixed)]
        return picked

    def _downward(self, sample: Codes, weights: list[Floats], chance: np.random.Generator) -> None:
        """Draw clique by clique, each given what it shares with the one above."""
        rows = np.arange(sample.shape[1])
        for clique, shared, table in zip(self.model.tree.cliques, self.model.tree.separators, weights, strict=True):
            free, earlier = self._free(clique), self._free(shared)
            fresh = [column for column in free if column not in earlier]
            if not fresh:
                continue
            order = (0, *(free.index(column) + 1 for column in (*earlier, *fresh)))
            lines = table.transpose(order)[(rows, *(sample[column] for column in earlier))].reshape(len(rows), -1)
            cells = _chosen(lines, chance)
            for column in reversed(fresh):
                size = self.model.tree.sizes[column]
                sample[column] = cells % size
                cells = cells // size


def _size(table: Floats, clique: Columns, column: int, shared: Columns) -> int:
    size: int = table.shape[clique.index(column)]
    return size if column in shared else 1


def _chosen(lines: Floats, chance: np.random.Generator) -> NDArray[np.int64]:
    """Return for each line of weights a place, drawn by them; where all are zero, any."""
    ends = np.cumsum(lines, axis=1)
    none = ends[:, -1] <= 0
    if none.any():
        ends = np.where(none[:, None], np.arange(1.0, lines.shape[1] + 1), ends)
    target = chance.random(len(lines)) * ends[:, -1]
    places: NDArray[np.int64] = np.minimum((ends <= target[:, None]).sum(axis=1), lines.shape[1] - 1)
    return places
