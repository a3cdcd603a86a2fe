"""Again: the rarest combination of items in a written table, counted slowly, obviously, and without what made it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import pyarrow as pa

Baskets = Mapping[tuple[object, ...], Counter[frozenset[str]]]
"""For each class how often each set of items occurs in it."""


@dataclass(frozen=True)
class Asked:
    """Which column holds sets, what parts their items, and which other columns make a class."""

    items: str
    separator: str
    columns: tuple[str, ...]

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Asked:
        """Read what a claim or a step says."""
        return cls(str(told["items"]), str(told["separator"]), tuple(map(str, told["columns"])))


def baskets_of(batches: Iterable[pa.RecordBatch], asked: Asked) -> Baskets:
    """Count the sets of items in each class of a table.

    >>> table = pa.table({"sex": ["F", "F"], "ill": ["flu;gout", "gout;flu"]})
    >>> [each.total() for each in baskets_of(table.to_batches(), Asked("ill", ";", ("sex",))).values()]
    [2]
    """
    found: defaultdict[tuple[object, ...], Counter[frozenset[str]]] = defaultdict(Counter)
    names = [*asked.columns, asked.items]
    for batch in batches:
        counted = pa.Table.from_batches([batch]).select(names).group_by(names).aggregate([([], "count_all")])
        for *group, text, times in zip(
            *(counted.column(name).to_pylist() for name in [*names, "count_all"]), strict=True
        ):
            items = frozenset(str(text).split(asked.separator)) if text else frozenset()
            found[tuple(group)][items] += times
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
