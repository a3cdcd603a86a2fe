"""Classes: k, l and t of a written table, counted again: slowly, obviously, and without the criteria that made it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import pyarrow as pa

from incrowd.core.domain import Type
from incrowd.core.reading import parse
from incrowd.engines.sources import open_source

Classes = Mapping[tuple[object, ...], Counter[object]]
"""For each class how often each sensitive value occurs in it."""
_ORDERED = (Type.INTEGER, Type.DECIMAL, Type.DATE)


def classes_of(batches: Iterable[pa.RecordBatch], quasi: Sequence[str], sensitive: str) -> Classes:
    """Count the values of a sensitive column in each class of a table.

    >>> table = pa.table({"age": ["30s", "30s", "40s"], "ill": ["flu", "gout", "flu"]})
    >>> {group[0]: dict(values) for group, values in classes_of(table.to_batches(), ["age"], "ill").items()}
    {'30s': {'flu': 1, 'gout': 1}, '40s': {'flu': 1}}
    """
    found: defaultdict[tuple[object, ...], Counter[object]] = defaultdict(Counter)
    names = [*quasi, sensitive]
    for batch in batches:
        plain = pa.Table.from_batches([batch]).select(names)
        counted = plain.group_by(names).aggregate([([], "count_all")])
        for *group, value, times in zip(
            *(counted.column(name).to_pylist() for name in [*names, "count_all"]), strict=True
        ):
            found[tuple(group)][value] += times
    return found


def read_classes(file: Path, quasi: Sequence[str], sensitive: str) -> Classes:
    """Count the values of a sensitive column in each class of a file."""
    return classes_of(open_source(str(file)).batches([*quasi, sensitive]), quasi, sensitive)


def distinct(classes: Classes) -> int | None:
    """Return how many different values the least diverse class shows; None without rows."""
    return min(map(len, classes.values()), default=None)


def least_entropy(classes: Classes) -> float | None:
    """Return e to the least entropy of a class; None without rows.

    >>> least_entropy({("30s",): Counter(flu=2, gout=2)})
    2.0
    """
    entropies = [
        -math.fsum(n / values.total() * math.log(n / values.total()) for n in values.values())
        for values in classes.values()
    ]
    return round(math.exp(min(entropies)), 12) if entropies else None


def farthest(classes: Classes, kind: Type | None) -> Fraction | None:
    """Return the greatest distance of a class from the whole table, exactly; None without rows.

    With a type that has an order, the earth mover's distance of values |i − j|/(m − 1) apart, what is missing being
    last; else any two values are equally far apart.

    >>> farthest({("30s",): Counter(flu=4), ("40s",): Counter(gout=4)}, None)
    Fraction(1, 2)
    """
    whole: Counter[object] = Counter()
    for values in classes.values():
        whole.update(values)
    order = sorted(whole, key=lambda value: _place(value, kind)) if kind in _ORDERED else list(whole)
    distances = []
    for values in classes.values():
        gaps = [Fraction(values[each], values.total()) - Fraction(whole[each], whole.total()) for each in order]
        if kind not in _ORDERED:
            distances.append(sum(map(abs, gaps), Fraction(0)) / 2)
            continue
        upto, moved = Fraction(0), Fraction(0)
        for gap in gaps:
            upto += gap
            moved += abs(upto)
        distances.append(moved / max(1, len(order) - 1))
    return max(distances, default=None)


def _place(value: object, kind: Type | None) -> tuple[int, object]:
    """Return what to sort by: values as they are, then what is outside the domain, then what is missing."""
    if value is None:
        return 2, 0
    read = parse(value, kind) if isinstance(value, str) and kind is not None else value
    return (1, 0) if read is None else (0, read)
