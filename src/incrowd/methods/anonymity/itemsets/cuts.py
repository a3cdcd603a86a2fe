"""Cuts: from one node for all items down the hierarchy, as far as no combination of a few items becomes rare.

A *cut* shows every item as one of the nodes above it, all items under a node together, or leaves it out everywhere.  If
a cut keeps the guarantee, so does every coarser one: a combination of coarse nodes that some row holds comes from a
combination of as many finer ones in that row, which k rows hold, and all of them hold the coarse one.  So a node that
cannot be split now can never be split later, when other nodes have become finer: each node is tried once, and without
left-out items no node of the result could be split any more.  A trial counts only combinations with one of the new
nodes, in the rows that have one.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from incrowd.core.keys import Codes
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Column
from incrowd.core.sets import Rows, Sets
from incrowd.criteria.itemsets import supports
from incrowd.errors import InvalidParameter

GONE = -1
"""The node of an item that is left out everywhere."""


@dataclass(frozen=True, eq=False)
class ItemTree:
    """For each level the node of each item, and for each node its label; nodes of all levels have different numbers.

    >>> from incrowd.core.hierarchy.tree import tree
    >>> ill = Column("ill", hierarchy=tree({"lungs": ["flu", "cough"], "heart": ["attack"]}), separator=";")
    >>> items = ItemTree.of(ill)
    >>> [nodes.tolist() for nodes in items.nodes], [items.labels[node] for node in items.nodes[1]]
    ([[0, 1, 2, 3], [4, 4, 5, 6], [7, 7, 7, 7]], ['lungs', 'lungs', 'heart', 'other'])
    """

    nodes: tuple[Codes, ...]
    labels: tuple[str, ...]
    levels: Codes
    """The level of each node."""

    @classmethod
    def of(cls, column: Column) -> ItemTree:
        """Read the hierarchy of the column's items; what is outside the domain is an item of its own."""
        lowest = Recoding(column.item, 0).classes
        if lowest is None:
            raise InvalidParameter(f"the items of {column.name!r} cannot be listed: declare them.")
        nodes, labels, levels = [], list[str](), list[int]()
        for level in range(column.hierarchy.height + 1):
            classes, table = lowest.rise(level)
            nodes.append((table[: lowest.missing] + len(labels)).astype(np.int32))
            labels += [str(label) for label in classes.labels().drop_null().to_pylist()]
            levels += [level] * (len(labels) - len(levels))
        return cls(tuple(nodes), tuple(labels), np.array(levels, np.int32))

    def __len__(self) -> int:
        """How many items there are."""
        return len(self.nodes[0])

    @property
    def root(self) -> int:
        """The node of everything."""
        return int(self.nodes[-1][0])

    def below(self, node: int) -> NDArray[np.intp]:
        """Return the items under a node."""
        return np.flatnonzero(self.nodes[self.levels[node]] == node)

    @cached_property
    def loss(self) -> NDArray[np.float64]:
        """What it costs to show an item as each node: the share of all items under it, and nothing for one alone.

        Source: Xu, Wang, Pei, Wang, Shi & Fu 2006, the normalized certainty penalty; Terrovitis, Mamoulis & Kalnis 2008
        take it over to items.
        """
        under = np.zeros(len(self.labels))
        for nodes in self.nodes:
            different, times = np.unique(nodes, return_counts=True)
            under[different] = times
        return np.where(under > 1, under / len(self), 0.0)


@dataclass(frozen=True)
class ItemDemand:
    """No combination of up to m items in fewer than k rows of a class; at most so many occurrences are left out."""

    k: int
    m: int
    left_out: int = 0


@dataclass(frozen=True, eq=False)
class ItemCut:
    """The node as which each item is shown (−1: left out everywhere), and what that loses, from 0 to 1."""

    nodes: Codes
    loss: float


def best_cut(sets: Sets, classes: Rows, tree: ItemTree, demand: ItemDemand) -> ItemCut:
    """Split nodes, those first whose items lose most, as long as the demand is met.

    Precondition: with every item shown as `*` it is met, which `joinable` makes so.

    Source: the model is the global recoding of Terrovitis, Mamoulis & Kalnis 2008, sections 3 and 4; this search goes
    down where theirs goes up, and ends at a cut that cannot be refined (the module says why).

    >>> from incrowd.core.hierarchy.tree import tree
    >>> from incrowd.core.schema import Column
    >>> kinds = tree({"lungs": ["flu", "cough"], "heart": ["attack"]})
    >>> ill = ItemTree.of(Column("ill", hierarchy=kinds, separator=";"))
    >>> rows = Sets.of(np.array([0, 0, 1, 1, 2]), np.array([0, 2, 1, 2, 2]), rows=3)
    >>> [ill.labels[node] for node in best_cut(rows, np.zeros(3, np.intp), ill, ItemDemand(2, 2)).nodes[:3]]
    ['lungs', 'lungs', 'attack']
    """
    search = _CutSearch.of(sets, classes, tree, demand)
    nodes = tree.nodes[-1].copy()
    queue = [(0.0, tree.root)]
    left = demand.left_out
    while queue:
        _, node = heapq.heappop(queue)
        level = int(tree.levels[node])
        items = tree.below(node)
        if not level or not search.times[items].any():
            continue
        finer = search.split(nodes, items, tree.nodes[level - 1][items], left)
        if finer is None:
            continue
        left -= int(search.times[items[finer == GONE]].sum())
        nodes[items] = finer
        for child in np.unique(finer[finer != GONE]).tolist():
            under = search.times[items[finer == child]].sum()
            heapq.heappush(queue, (-float(under * tree.loss[child]), child))
    return ItemCut(nodes, search.loss(nodes))


def joinable(sets: Sets, classes: Rows, k: int) -> NDArray[np.bool_]:
    """Return which rows can be kept: those of classes with k rows, and with items only where k rows have some.

    >>> joinable(Sets.of(np.array([0]), np.array([4]), rows=3), np.zeros(3, np.intp), 2).tolist()
    [False, True, True]
    """
    filled = sets.lengths > 0
    retained = ~filled | (np.bincount(classes[filled], minlength=int(classes.max(initial=0)) + 1) >= k)[classes]
    sizes = np.bincount(classes[retained], minlength=int(classes.max(initial=0)) + 1)
    return np.asarray(retained & (sizes >= k)[classes])


@dataclass(frozen=True, eq=False)
class _CutSearch:
    """The rows, where each item occurs, and how often."""

    sets: Sets
    classes: Rows
    tree: ItemTree
    demand: ItemDemand
    owners: Rows
    """The row of each occurrence, by item."""
    bounds: NDArray[np.intp]
    times: NDArray[np.intp]

    @classmethod
    def of(cls, sets: Sets, classes: Rows, tree: ItemTree, demand: ItemDemand) -> _CutSearch:
        times = np.bincount(sets.items, minlength=len(tree))
        owners = sets.owners[np.argsort(sets.items, kind="stable")]
        bounds = np.concatenate(([0], np.cumsum(times)))
        classes = np.unique(classes, return_inverse=True)[1]
        return cls(sets, classes, tree, demand, owners, bounds, times)

    def loss(self, nodes: Codes) -> float:
        """Return the mean over all occurrences of what each loses; what is left out loses all."""
        losses = np.where(nodes == GONE, 1.0, self.tree.loss[nodes])
        return float((losses * self.times).sum() / max(1, self.times.sum()))

    def split(self, nodes: Codes, items: Rows, finer: Codes, left: int) -> Codes | None:
        """Return the finer nodes of some items, perhaps some of them left out, or None if they cannot be had."""
        new = np.unique(finer[self.times[items] > 0])
        if len(new) == 1:
            return finer
        trial = nodes.copy()
        trial[items] = finer
        others = np.setdiff1d(trial[trial != GONE], new)
        places = np.full(len(self.tree.labels) + 1, GONE, np.int32)  # the last one is for items that are left out
        places[others], places[new] = np.arange(len(others)), np.arange(len(new)) + len(others)
        rows = self._rows(items)
        part = self.sets.take(rows).mapped(places[trial]).within(self.classes[rows])
        width = int(self.classes[rows].max(initial=0)) + 1
        rare: list[NDArray[np.int32]] = []
        for layout, keys, times in supports(part, self.demand.m, len(others) * width):
            scarce = layout.unpack(keys[times < self.demand.k])
            if len(scarce[0]) and not left:
                return None
            rare.append(np.stack(scarce, axis=1) // width - len(others))
        weights = np.array([self.times[items[finer == node]].sum() for node in new.tolist()])
        gone = _fewest(rare, weights, left)
        if gone is None:
            return None
        result = np.where(np.isin(finer, new[gone]), GONE, finer).astype(np.int32)
        after = trial.copy()
        after[items] = result
        return result if self.loss(after) <= self.loss(nodes) else None

    def _rows(self, items: Rows) -> Rows:
        """Return the rows that hold some of the items."""
        held = np.zeros(len(self.sets), np.bool_)
        for item in items.tolist():
            held[self.owners[self.bounds[item] : self.bounds[item + 1]]] = True
        return np.flatnonzero(held)


def _fewest(rare: list[NDArray[np.int32]], weights: NDArray[np.integer], left: int) -> NDArray[np.bool_] | None:
    """Return which new nodes to leave out so that no rare combination stays, or None if that takes too much.

    Those go first that are in most rare combinations for each of their occurrences.  Others' supports do not change.
    """
    gone = np.zeros(len(weights), np.bool_)
    while any(len(some) for some in rare):
        touched = np.zeros(len(weights), np.int64)
        for some in rare:
            mine = some[some >= 0]
            touched += np.bincount(mine, minlength=len(weights))
        worst = int(np.argmax(touched / np.maximum(1, weights)))
        gone[worst] = True
        left -= int(weights[worst])
        if left < 0:
            return None
        rare = [some[(some != worst).all(axis=1)] for some in rare]
    return gone
