"""Classes: k, l and risk of a written table, counted again: slowly, obviously, without the criteria that made it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import pyarrow as pa

from incrowd.core.reading import number_text

Label = str | None
"""A sensitive value as it is written; None where it is missing."""
Classes = Mapping[tuple[object, ...], Counter[Label]]
"""For each class how often each sensitive value occurs in it."""
NONE: frozenset[str] = frozenset()


def classes_of(batches: Iterable[pa.RecordBatch], quasi: Sequence[str], sensitive: str) -> Classes:
    """Count the values of a sensitive column in each class of a table.

    >>> table = pa.table({"age": ["30s", "30s", "40s"], "ill": ["flu", "gout", "flu"]})
    >>> {group[0]: dict(values) for group, values in classes_of(table.to_batches(), ["age"], "ill").items()}
    {'30s': {'flu': 1, 'gout': 1}, '40s': {'flu': 1}}
    """
    found: defaultdict[tuple[object, ...], Counter[Label]] = defaultdict(Counter)
    names = [*quasi, sensitive]
    for batch in batches:
        plain = pa.Table.from_batches([batch]).select(names)
        counted = plain.group_by(names).aggregate([([], "count_all")])
        for *group, value, times in zip(
            *(counted.column(name).to_pylist() for name in [*names, "count_all"]), strict=True
        ):
            found[tuple(group)][label_of(value)] += times
    return found


def label_of(value: object) -> Label:
    """Return how a value is written.

    >>> label_of(5), label_of(2.50), label_of(True), label_of(None)
    ('5', '2.5', 'true', None)
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return number_text(value) if isinstance(value, float) else str(value)


def spared(values: Counter[Label], harmless: frozenset[str]) -> bool:
    """Return whether a class shows nothing that hurts.

    >>> spared(Counter(healthy=3), frozenset({"healthy"}))
    True
    """
    return all(value in harmless for value in values)


def distinct(classes: Classes, harmless: frozenset[str] = NONE) -> int | None:
    """Return how many different values the least diverse class shows; None without rows, or if nothing can hurt."""
    return min((len(values) for values in classes.values() if not spared(values, harmless)), default=None)


def least_entropy(classes: Classes, harmless: frozenset[str] = NONE) -> float | None:
    """Return e to the least entropy of a class; None without rows, or if nothing can hurt.

    >>> least_entropy({("30s",): Counter(flu=2, gout=2)})
    2.0
    """
    entropies = [
        -math.fsum(n / values.total() * math.log(n / values.total()) for n in values.values())
        for values in classes.values()
        if not spared(values, harmless)
    ]
    return round(math.exp(min(entropies)), 12) if entropies else None


def greatest_ratio(classes: Classes, l: int, harmless: frozenset[str] = NONE) -> float | None:  # noqa: E741
    """Return the most frequent harmful value over what is left without it and the l − 2 most frequent others, at most.

    A table is recursively (c,l)-diverse for every c above it.  None without rows, or if nothing can hurt.

    >>> greatest_ratio({("30s",): Counter(flu=3, gout=2, cold=1)}, 3)
    3.0
    """
    ratios = []
    for values in classes.values():
        if spared(values, harmless):
            continue
        worst = max((value for value in values if value not in harmless), key=lambda value: values[value])
        others = sorted((n for value, n in values.items() if value != worst), reverse=True)
        left = sum(others[max(0, l - 2) :])
        ratios.append(values[worst] / left if left else math.inf)
    return max(ratios, default=None)


def average_risk(sizes: Sequence[int]) -> Fraction | None:
    """Return the mean over rows of one over the size of their class; None without rows.

    >>> average_risk([2, 8])
    Fraction(1, 5)
    """
    return Fraction(len(sizes), sum(sizes)) if sizes else None


def unique_share(sizes: Sequence[int], people: int) -> float | None:
    """Return Zayatz's estimate of the share of rows that are unique among so many people; None if they cannot be.

    A class of i people leaves one of n sampled rows i·C(N−i, n−1) times in C(N, n); from i to i + 1 the binomial falls
    by the factor (N−i−n+1)/(N−i).

    >>> round(unique_share([1, 1, 2], 4), 9)
    0.5
    """
    rows, times = sum(sizes), Counter(sizes)
    if rows > people:
        return None
    if not times[1]:
        return 0.0
    chance, weights = 1.0, {}
    for size in range(1, max(times) + 1):
        weights[size] = times[size] * size * chance
        chance *= max(0, people - size - rows + 1) / max(1, people - size)
    return weights[1] / math.fsum(weights.values()) * times[1] / rows
