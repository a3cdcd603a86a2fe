"""Roll-up: the classes of a node, from the counts of the finest node or of any node below it."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from incrowd.core.keys import Codes
from incrowd.criteria.groups import Groups, Histograms
from incrowd.criteria.partition import Partition
from incrowd.methods.anonymity.search.lattice import Lattice, Node
from incrowd.quality.tuples import Spread, Tuples, merged_spread, spread_table

Value = TypeVar("Value")
Grouper = Callable[[NDArray[np.int32], Sequence[Codes], Sequence[int]], tuple[Codes, Codes]]
"""Codes by column, a table for each column and how many numbers it gives: each tuple's class, one tuple of each."""

_DENSE = 8  # a dense table is used up to eight times the rows: beyond it is mostly empty; both give the same counts
_LIMIT = 2**62  # keys are signed numbers of 64 bits
_MANY = 2**24  # keys rolled up before Numba is loaded, whose start takes seconds


def grouped_by_numpy(codes: NDArray[np.int32], tables: Sequence[Codes], sizes: Sequence[int]) -> tuple[Codes, Codes]:
    """Return for each tuple the number of its class after recoding, and for each class the place of one tuple.

    >>> codes = np.array([[0, 1, 2], [0, 0, 1]], np.int32)
    >>> ids, first = grouped_by_numpy(codes, [np.array([0, 0, 1], np.int32), np.array([0, 0], np.int32)], [2, 1])
    >>> ids.tolist(), len(first)
    ([0, 0, 1], 2)
    """
    keys, room = np.zeros(codes.shape[1], np.int64), 1
    for column, table, size in zip(codes, tables, sizes, strict=True):
        if size == 1:
            continue
        if room * size >= _LIMIT:
            keys = np.unique(keys, return_inverse=True)[1].astype(np.int64)
            room = int(keys.max(initial=0)) + 1
        keys *= size
        keys += table[column]
        room *= size
    if room > _DENSE * len(keys) + 1024:
        _, places, numbers = np.unique(keys, return_index=True, return_inverse=True)
        return numbers.astype(np.int32), places.astype(np.int32)
    met = np.zeros(room, np.bool_)
    met[keys] = True
    ids = (np.cumsum(met, dtype=np.int32) - 1)[keys]
    first = np.empty(int(np.count_nonzero(met)), np.int32)
    first[ids] = np.arange(len(ids), dtype=np.int32)
    return ids, first


def grouped_by_numba(codes: NDArray[np.int32], tables: Sequence[Codes], sizes: Sequence[int]) -> tuple[Codes, Codes]:
    """Return the same as `grouped_by_numpy`, classes numbered as they are met; needs Numba."""
    active = [place for place, size in enumerate(sizes) if size > 1]
    strides, starts, room, length = [], [], 1, 0
    for place in active:
        strides.append(room)
        starts.append(length)
        room *= sizes[place]
        length += len(tables[place])
    if room >= _LIMIT or not active:
        return grouped_by_numpy(codes, tables, sizes)
    flat = np.concatenate([tables[place] for place in active])
    ids, first = _compiled(_hashed)(codes, flat, np.array((active, starts, strides), np.int64), room)
    return ids, first


def grouper(done: int) -> Grouper:
    """Return the kernel to go on with after so many tuples were grouped.

    Loading Numba takes longer than most searches.  It is loaded when NumPy has worked for about as long as that takes,
    so at worst twice the time of the better choice is spent; where it is loaded already, it is used.
    """
    compiled = "numba" in sys.modules or (done >= _MANY and _installed())
    return grouped_by_numba if compiled else grouped_by_numpy


@cache
def _installed() -> bool:
    return importlib.util.find_spec("numba") is not None


@cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    compiled: Callable[..., Any] = importlib.import_module("numba").njit(cache=True, nogil=True)(function)
    return compiled


def _hashed(
    codes: NDArray[np.int32], flat: NDArray[np.int32], columns: NDArray[np.int64], room: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    length = codes.shape[1]
    keys = np.zeros(length, np.int64)
    for place in range(columns.shape[1]):
        column, start, stride = columns[0, place], columns[1, place], columns[2, place]
        for at in range(length):
            keys[at] += flat[start + codes[column, at]] * stride
    slots = 16
    while slots < 2 * length:
        slots *= 2
    dense = room <= slots
    numbers = np.full(room if dense else slots, -1, np.int32)
    holders = np.empty(1 if dense else slots, np.int64)
    ids, first = np.empty(length, np.int32), np.empty(length, np.int32)
    met = 0
    for at in range(length):
        key = keys[at]
        slot = key
        if not dense:
            slot = ((key ^ (key >> 29)) * np.int64(0x2545F4914F6CDD1D) >> 20) & (slots - 1)
            while numbers[slot] >= 0 and holders[slot] != key:
                slot = (slot + 1) & (slots - 1)
            holders[slot] = key
        if numbers[slot] < 0:
            numbers[slot] = met
            first[met] = at
            met += 1
        ids[at] = numbers[slot]
    return ids, first[:met].copy()


_WORTH = 2
"""A node's classes are kept for coarser nodes if there are so many times fewer than where they came from."""

_FEW = 512
"""From a source of no more classes everything is rolled up at once."""

_LONG = 48
"""A search is long once it grouped so many times as many tuples as the finest node has: classes are then prepared."""

_WASTE = 4 * _FEW
"""Classes to start from are prepared for nodes that would be rolled up from more."""


@dataclass(frozen=True, eq=False)
class Rolled:
    """A node's classes, and which class each tuple of the source fell into."""

    lattice: Lattice
    source: Tuples
    tuples: Tuples
    ids: Codes
    added: dict[str, Spread] = field(default_factory=dict)
    grouped: dict[str, Groups] = field(default_factory=dict)
    written: dict[str, Histograms | None] = field(default_factory=dict)

    def partition(self) -> Partition:
        """Return the classes as criteria see them; sensitive columns are added up only where one is asked for."""
        people, names = self.tuples.population, self.lattice.sensitive
        groups, histograms = _ByColumn(names, self.groups), _ByColumn(names, self.histograms)
        return Partition(self.tuples.sizes, groups, people, self._outside(), histograms=histograms)

    def complete(self) -> Tuples:
        """Return the classes with the cells of sensitive columns, so that coarser nodes can start here."""
        return replace(self.tuples, spreads=_ByColumn(self.lattice.sensitive, self.spread))

    def spread(self, name: str) -> Spread:
        """Return how a sensitive column falls into the classes; it is added up once."""
        if name not in self.added:
            values = len(self.lattice.sensitive[name].labels)
            self.added[name] = merged_spread(self.source.spreads[name], self.ids, len(self.tuples), values)
        return self.added[name]

    def histograms(self, name: str) -> Histograms | None:
        """Return the same with every value written down, or None where that would be mostly zeros."""
        if name not in self.written:
            sensitive, spread = self.lattice.sensitive[name], self.source.spreads[name]
            rows = spread_table(spread, self.ids, len(self.tuples), len(sensitive.totals))
            self.written[name] = None if rows is None else Histograms(rows, sensitive.totals, sensitive.lifts)
        return self.written[name]

    def groups(self, name: str) -> Groups:
        """Return the same as criteria see it."""
        if name not in self.grouped:
            sensitive, spread = self.lattice.sensitive[name], self.spread(name)
            lengths = np.bincount(spread.owners, minlength=len(self.tuples))
            starts = np.cumsum(lengths) - lengths
            self.grouped[name] = Groups(starts, spread.values, spread.counts, sensitive.labels, sensitive.lifts)
        return self.grouped[name]

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
class _ByColumn(Mapping[str, Value]):
    """Something about each sensitive column, computed when it is first looked up; columns without it are not there."""

    names: Collection[str]
    of: Callable[[str], Value | None]

    def __getitem__(self, name: str) -> Value:
        value = self.of(name)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


@dataclass
class RollupCache:
    """Rolls up node after node, from the smallest of the nodes it kept; the only thing here that remembers.

    A search that begins at coarse nodes meets none that finer ones could start from.  So where it is long, the node one
    rung lower in every column is rolled up for the second of the nodes that could start there.

    Where it matters which of several like classes comes first, classes are `ordered` by their labels, as in a release.
    """

    lattice: Lattice
    ordered: bool = False
    keeps: int = 48
    done: int = 0
    cached: list[Tuples] = field(default_factory=list)
    starts: Counter[Node] = field(default_factory=Counter)
    nodes: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.nodes = np.zeros((0, len(self.lattice.ladders)), np.int64)

    def __call__(self, node: Node) -> Rolled:
        """Return the classes of a node."""
        source = self._source(node)
        if len(source) > _WASTE and self.done > _LONG * len(self.lattice.base):
            source = self._prepared(node, source)
        rolled = self._rolled(node, source)
        if len(source) > _FEW and len(self.cached) < self.keeps:
            self._keep(node, rolled)
        return rolled.released()

    def _prepared(self, node: Node, source: Tuples) -> Tuples:
        """Return classes to start from, if need be those of the node one rung lower in every column."""
        lower = tuple(max(0, rung - 1) for rung in node)
        self.starts[lower] += 1
        if self.starts[lower] != 2:
            return source
        if len(self.cached) >= self.keeps:
            del self.cached[0]
            self.nodes = self.nodes[1:]
        self._keep(lower, self._rolled(lower, self._source(lower)))
        return self._source(node)

    def _rolled(self, node: Node, source: Tuples) -> Rolled:
        tables = [column[rung] for column, rung in zip(self.lattice.tables, node, strict=True)]
        sizes = [column[rung] for column, rung in zip(self.lattice.sizes, node, strict=True)]
        group = grouped_by_numpy if self.ordered else grouper(self.done)
        ids, first = group(source.codes, tables, sizes)
        self.done += len(source)
        return Rolled(self.lattice, source, source.merged(ids, first), ids)

    def _keep(self, node: Node, rolled: Rolled) -> None:
        if _WORTH * len(rolled.tuples) > len(rolled.source):
            return
        tuples = rolled.complete()
        place = bisect([len(tuples_) for tuples_ in self.cached], len(tuples))
        self.cached.insert(place, tuples)
        self.nodes = np.insert(self.nodes, place, node, axis=0)

    def _source(self, node: Node) -> Tuples:
        finer = np.flatnonzero((self.nodes <= node).all(axis=1))
        return self.cached[finer[0]] if len(finer) else self.lattice.base
