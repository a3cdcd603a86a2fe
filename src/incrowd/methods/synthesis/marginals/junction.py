"""Junction tree: the cliques in which a model of overlapping tables can be computed, and their marginals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter

Columns = tuple[int, ...]
"""Columns by their numbers, in order."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class JunctionTree:
    """Cliques of columns such that each table lies in one, and those that share a column hang together.

    `parents` says for each clique under which one it hangs, −1 for the first of each part; a clique stands after its
    parent.  `widths` are how many classes columns have in the end, where some are taken together meanwhile: columns
    are eliminated and cells are counted by those.

    >>> tree = JunctionTree.of((2, 3, 4), [(0, 1), (1, 2)])
    >>> tree.cliques, tree.parents, tree.cells
    (((0, 1), (1, 2)), (-1, 0), 18)
    """

    sizes: tuple[int, ...]
    cliques: tuple[Columns, ...]
    parents: tuple[int, ...]
    widths: tuple[int, ...] = ()

    @classmethod
    def of(cls, sizes: Sequence[int], tables: Iterable[Columns], widths: tuple[int, ...] = ()) -> JunctionTree:
        """Return the tree of the columns and tables, by eliminating the column with the smallest clique first."""
        cliques = _maximal(_eliminated(widths or sizes, tables))
        order, parents = _spanned(cliques)
        return cls(tuple(sizes), tuple(cliques[place] for place in order), parents, widths)

    @classmethod
    def hung(cls, sizes: Sequence[int], cliques: Sequence[Columns]) -> JunctionTree:
        """Return the tree of its cliques, in its order; each hangs under the one before that it shares most with.

        >>> JunctionTree.hung((2, 3, 4), [(0, 1), (1, 2)]) == JunctionTree.of((2, 3, 4), [(0, 1), (1, 2)])
        True
        """
        parents = []
        for place, clique in enumerate(cliques):
            shares = [len(set(clique) & set(other)) for other in cliques[:place]]
            parents.append(shares.index(max(shares)) if any(shares) else -1)
            if max(shares, default=0) < len(set(clique) & {column for other in cliques[:place] for column in other}):
                raise InvalidParameter("these cliques make no junction tree.")
        return cls(tuple(sizes), tuple(cliques), tuple(parents))

    @cached_property
    def cells(self) -> int:
        """How many numbers the model of these cliques has."""
        return sum(map(self._room, self.cliques))

    def _room(self, clique: Iterable[int]) -> int:
        """Return how many numbers a clique has in the end."""
        widths = self.widths or self.sizes
        return math.prod(widths[column] for column in clique)

    @cached_property
    def separators(self) -> tuple[Columns, ...]:
        """What each clique shares with the one it hangs under."""
        return tuple(
            () if parent < 0 else tuple(sorted(set(clique) & set(self.cliques[parent])))
            for clique, parent in zip(self.cliques, self.parents, strict=True)
        )

    def home(self, table: Columns) -> int:
        """Return the smallest clique that holds a table, or −1."""
        holding = [place for place, clique in enumerate(self.cliques) if set(table) <= set(clique)]
        return min(holding, key=lambda place: math.prod(self.sizes[c] for c in self.cliques[place]), default=-1)

    def cells_with(self, table: Columns) -> int:
        """Return about how many numbers the model has with a table more: its columns join the cliques between them.

        >>> JunctionTree.of((2, 3, 4), [(0, 1), (1, 2)]).cells_with((0, 2))
        48
        """
        path = self._between(table)
        if path is None:
            return self.cells + self._room(table)
        joined = [set(self.cliques[place]) | set(table) for place in path]
        before = sum(self._room(self.cliques[place]) for place in path)
        return self.cells - before + sum(map(self._room, joined))

    def _between(self, table: Columns) -> set[int] | None:
        """Return the cliques on the ways between one clique of each column; None if some hang apart."""
        ways = []
        for column in table:
            place, way = self._first[column], list[int]()
            while place >= 0:
                way.append(place)
                place = self.parents[place]
            ways.append(way)
        common = set(ways[0]).intersection(*ways[1:])
        if not common:
            return None
        return {place for way in ways for place in way if place not in common} | {max(common)}

    @cached_property
    def _first(self) -> dict[int, int]:
        return {column: place for place in range(len(self.cliques) - 1, -1, -1) for column in self.cliques[place]}

    def marginals(self, potentials: Sequence[Floats]) -> list[Floats]:
        """Return the probabilities of the cells of each clique; all are proportional to e^(sum of potentials)."""
        beliefs = list(potentials)
        upward: list[Floats] = [np.zeros(())] * len(beliefs)
        for place in range(len(beliefs) - 1, -1, -1):
            upward[place] = _log_sum(beliefs[place], self.cliques[place], self.separators[place])
            parent = self.parents[place]
            if parent >= 0:
                beliefs[parent] = beliefs[parent] + spread(upward[place], self.separators[place], self.cliques[parent])
        for place, parent in enumerate(self.parents):
            if parent >= 0:
                clique, shared = self.cliques[place], self.separators[place]
                down = _log_sum(beliefs[parent], self.cliques[parent], shared) - upward[place]
                beliefs[place] = beliefs[place] + spread(down, shared, clique)
        return [np.exp(belief - _log_sum(belief, (), ())) for belief in beliefs]


def cells_of(sizes: Sequence[int], tables: Iterable[Columns]) -> int:
    """Return how many numbers the model of the columns and tables has, without hanging its cliques into a tree.

    >>> cells_of((2, 3, 4), [(0, 1), (1, 2)])
    18
    """
    return sum(math.prod(sizes[column] for column in clique) for clique in _maximal(_eliminated(sizes, tables)))


def spread(table: Floats, columns: Columns, onto: Columns) -> Floats:
    """Return a table over some columns so that it can be added to one over more of them.

    >>> spread(np.array([1.0, 2.0]), (1,), (0, 1)).shape
    (1, 2)
    """
    sizes = dict(zip(columns, table.shape, strict=True))
    return table.reshape(tuple(sizes.get(column, 1) for column in onto))


def summed(table: Floats, columns: Columns, onto: Columns) -> Floats:
    """Return the sums of a table over the columns that are left out."""
    total: Floats = table.sum(axis=tuple(n for n, column in enumerate(columns) if column not in onto))
    return total


def _log_sum(table: Floats, columns: Columns, onto: Columns) -> Floats:
    axes = tuple(n for n, column in enumerate(columns) if column not in onto) if columns else None
    top = table.max(axis=axes, keepdims=True)
    shape = () if axes is None else _remaining(top, axes)
    total: Floats = np.log(np.exp(table - top).sum(axis=axes)) + top.reshape(shape)
    return total


def _remaining(table: Floats, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for n, size in enumerate(table.shape) if n not in axes)


def _eliminated(sizes: Sequence[int], tables: Iterable[Columns]) -> list[frozenset[int]]:
    """Return the cliques that eliminating columns one by one makes; each time the smallest one."""
    near: list[set[int]] = [{column} for column in range(len(sizes))]
    for table in tables:
        for column in table:
            near[column] |= set(table)
    left, cliques = set(range(len(sizes))), []
    weight = {column: math.prod(sizes[neighbor] for neighbor in near[column]) for column in left}
    while left:
        column = min(left, key=lambda neighbor: (weight[neighbor], neighbor))
        clique = frozenset(near[column])
        cliques.append(clique)
        left.discard(column)
        for other in clique - {column}:
            near[other] = (near[other] | clique) - {column}
            weight[other] = math.prod(sizes[neighbor] for neighbor in near[other])
    return cliques


def _maximal(cliques: list[frozenset[int]]) -> list[Columns]:
    largest: list[frozenset[int]] = []
    for clique in sorted(cliques, key=len, reverse=True):
        if not any(clique <= other for other in largest):
            largest.append(clique)
    return sorted(tuple(sorted(clique)) for clique in largest)


def _spanned(cliques: list[Columns]) -> tuple[list[int], tuple[int, ...]]:
    """Return an order of the cliques and under which each hangs: the one that it shares most columns with."""
    order, parents, place = [0], [-1], {0: 0}
    waiting = {n: (len(set(cliques[n]) & set(cliques[0])), 0) for n in range(1, len(cliques))}
    while waiting:
        chosen = max(waiting, key=lambda n: (waiting[n][0], -n))
        shared, parent = waiting.pop(chosen)
        place[chosen] = len(order)
        order.append(chosen)
        parents.append(place[parent] if shared else -1)
        for other, (most, _) in waiting.items():
            common = len(set(cliques[other]) & set(cliques[chosen]))
            if common > most:
                waiting[other] = (common, chosen)
    return order, tuple(parents)
