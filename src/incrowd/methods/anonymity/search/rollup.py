"""Roll-up: the classes of a node, from the counts of the finest node or of any node below it."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from incrowd.core.keys import Codes
from incrowd.criteria.groups import Groups
from incrowd.criteria.partition import Partition
from incrowd.methods.anonymity.search.kernels import grouper
from incrowd.methods.anonymity.search.lattice import Lattice, Node
from incrowd.quality.tuples import Spread, Tuples, merged_spread

_WORTH = 2
"""A node's classes are kept for coarser nodes if there are so many times fewer than where they came from."""

_FEW = 512
"""From a source of no more classes everything is rolled up at once."""


@dataclass(frozen=True, eq=False)
class Rolled:
    """A node's classes, and which class each tuple of the source fell into."""

    lattice: Lattice
    source: Tuples
    tuples: Tuples
    ids: Codes
    added: dict[str, Spread] = field(default_factory=dict)

    def partition(self) -> Partition:
        """Return the classes as criteria see them; sensitive columns are added up only where one is asked for."""
        return Partition(self.tuples.sizes, _Sensitive(self), self.tuples.population, self._outside())

    def complete(self) -> Tuples:
        """Return the classes with the cells of sensitive columns, so that coarser nodes can start here."""
        return replace(self.tuples, spreads=_Spreads(self))

    def spread(self, name: str) -> Spread:
        """Return how a sensitive column falls into the classes; it is added up once."""
        if name not in self.added:
            values = len(self.lattice.sensitive[name].labels)
            self.added[name] = merged_spread(self.source.spreads[name], self.ids, len(self.tuples), values)
        return self.added[name]

    def released(self) -> Rolled:
        """Return the same without classes that no row of the table is in, only people of the population."""
        there = self.tuples.sizes > 0
        if self.tuples.population is None or there.all():
            return self
        ids = (np.cumsum(there, dtype=np.int32) - 1)[self.ids]
        people = self.tuples.population[there]
        tuples = Tuples(self.tuples.codes[:, there], self.tuples.sizes[there], people)
        return Rolled(self.lattice, self.source, tuples, ids)

    def _outside(self) -> int:
        if self.source.population is None or self.tuples.population is None:
            return 0
        return int(self.source.population.sum() - self.tuples.population.sum())


@dataclass(frozen=True, eq=False)
class _Spreads(Mapping[str, Spread]):
    """The sensitive columns of a node, each added up when it is first asked for."""

    rolled: Rolled

    def __getitem__(self, name: str) -> Spread:
        return self.rolled.spread(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.rolled.lattice.sensitive)

    def __len__(self) -> int:
        return len(self.rolled.lattice.sensitive)


@dataclass(frozen=True, eq=False)
class _Sensitive(Mapping[str, Groups]):
    rolled: Rolled

    def __getitem__(self, name: str) -> Groups:
        sensitive = self.rolled.lattice.sensitive[name]
        spread = self.rolled.spread(name)
        starts = np.searchsorted(spread.owners, np.arange(len(self.rolled.tuples)))
        return Groups(starts, spread.values, spread.counts, sensitive.labels, sensitive.lifts)

    def __iter__(self) -> Iterator[str]:
        return iter(self.rolled.lattice.sensitive)

    def __len__(self) -> int:
        return len(self.rolled.lattice.sensitive)


@dataclass
class Roller:
    """Rolls up node after node, from the smallest of the nodes it kept; the only thing here that remembers."""

    lattice: Lattice
    keeps: int = 48
    done: int = 0
    kept: list[Tuples] = field(default_factory=list)
    nodes: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.nodes = np.zeros((0, len(self.lattice.ladders)), np.int64)

    def __call__(self, node: Node) -> Rolled:
        """Return the classes of a node."""
        source = self._source(node)
        tables = [column[rung] for column, rung in zip(self.lattice.tables, node, strict=True)]
        sizes = [column[rung] for column, rung in zip(self.lattice.sizes, node, strict=True)]
        ids, first = grouper(self.done)(source.codes, tables, sizes)
        self.done += len(source)
        rolled = Rolled(self.lattice, source, source.merged(ids, first), ids)
        if _WORTH * len(first) <= len(source) and len(self.kept) < self.keeps and len(source) > _FEW:
            self._keep(node, rolled.complete())
        return rolled.released()

    def _keep(self, node: Node, tuples: Tuples) -> None:
        place = bisect([len(each) for each in self.kept], len(tuples))
        self.kept.insert(place, tuples)
        self.nodes = np.insert(self.nodes, place, node, axis=0)

    def _source(self, node: Node) -> Tuples:
        finer = np.flatnonzero((self.nodes <= node).all(axis=1))
        return self.kept[finer[0]] if len(finer) else self.lattice.base
