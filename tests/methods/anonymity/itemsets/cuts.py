"""Every cut of a small hierarchy, judged by definition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, product

import numpy as np

from incrowd.core.hierarchy.tree import TreeHierarchy
from incrowd.core.schema import Column, Outside, Role
from incrowd.methods.anonymity.itemsets.cuts import ItemTree

Row = tuple[int, frozenset[int]]
"""A row: its class, and its items by number."""


def column_of(tree: TreeHierarchy) -> Column:
    return Column("bought", Role.QUASI, hierarchy=tree, separator=";", outside=Outside.DROP)


def tree_of(shape: Sequence[int], wider: int) -> TreeHierarchy:
    """Return items `i0`, `i1`, … in groups of these sizes, and so many groups in each group of groups."""
    rows, item = [], 0
    for group, size in enumerate(shape):
        for _ in range(size):
            rows.append((f"i{item}", f"g{group}", f"h{group // wider}"))
            item += 1
    return TreeHierarchy(tuple(rows))


def cuts(tree: ItemTree) -> Iterator[tuple[int, ...]]:
    """Return every way to show all items under a node together, from `*` down to the items themselves."""
    yield from (tuple(shown[item] for item in range(len(tree))) for shown in _below(tree, tree.root))


def _below(tree: ItemTree, node: int) -> list[dict[int, int]]:
    items, level = tree.below(node).tolist(), int(tree.levels[node])
    whole = [dict.fromkeys(items, node)]
    if not level:
        return whole
    children = np.unique(tree.nodes[level - 1][items]).tolist()
    parts = [_below(tree, child) for child in children]
    return whole + [{item: at for part in chosen for item, at in part.items()} for chosen in product(*parts)]


def rarest(rows: Sequence[Row], shown: Sequence[int], m: int) -> int:
    """Return the support of the rarest combination of at most m shown items within a class, the empty one included."""
    times: Counter[tuple[int, tuple[int, ...]]] = Counter()
    for group, items in rows:
        seen = sorted({shown[item] for item in items} - {-1})
        times.update((group, chosen) for size in range(m + 1) for chosen in combinations(seen, size))
    return min(times.values(), default=0)


def loss_of(rows: Sequence[Row], shown: Sequence[int], tree: ItemTree) -> float:
    """Return the normalized certainty penalty, occurrence by occurrence."""
    each = []
    for _, items in rows:
        for item in items:
            under = len(tree.below(shown[item])) if shown[item] >= 0 else len(tree)
            each.append(under / len(tree) if under > 1 else 0.0)
    return sum(each) / max(1, len(each))
