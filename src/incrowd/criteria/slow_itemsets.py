"""Slow itemsets: the rarest combination of items in a published table, counted obviously, without what made it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import pyarrow as pa

Baskets = Mapping[tuple[object, ...], Counter[frozenset[str]]]
"""For each class how often each set of items occurs in it."""


def baskets_of(batches: Iterable[pa.RecordBatch], columns: Sequence[str], items: str, separator: str) -> Baskets:
    """Count the sets of items in each class of a table.

    >>> table = pa.table({"sex": ["F", "F"], "ill": ["flu;gout", "gout;flu"]})
    >>> [each.total() for each in baskets_of(table.to_batches(), ["sex"], "ill", ";").values()]
    [2]
    """
    found: defaultdict[tuple[object, ...], Counter[frozenset[str]]] = defaultdict(Counter)
    names = [*columns, items]
    for batch in batches:
        counted = pa.Table.from_batches([batch]).select(names).group_by(names).aggregate([([], "count_all")])
        for *group, text, times in zip(
            *(counted.column(name).to_pylist() for name in [*names, "count_all"]), strict=True
        ):
            found[tuple(group)][frozenset(str(text).split(separator)) if text else frozenset()] += times
    return found


def rarest(baskets: Baskets, m: int) -> int | None:
    """Return the fewest rows of a class that hold a combination of up to m items which occurs; None without rows.

    >>> rarest({(): Counter({frozenset({"flu", "gout"}): 2, frozenset({"flu"}): 1})}, 2)
    2
    """
    return min((_rarest(sets, m) for sets in baskets.values()), default=None)


def _rarest(sets: Counter[frozenset[str]], m: int) -> int:
    """Go through the items: of all combinations that start with one, counters are held for one item at a time."""
    holding: defaultdict[str, list[tuple[Sequence[str], int]]] = defaultdict(list)
    for items, times in sets.items():
        order = sorted(items)
        for place, item in enumerate(order):
            holding[item].append((order[place + 1 :], times))
    least = sets.total()
    for some in holding.values():
        found: Counter[tuple[str, ...]] = Counter()
        for others, times in some:
            for size in range(m):
                for chosen in combinations(others, size):
                    found[chosen] += times
        least = min(least, *found.values())
    return least
