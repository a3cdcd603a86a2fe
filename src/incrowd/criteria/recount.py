"""Recount: a criterion checked in a published table, slowly and without the code that made the table.

Let s be the share of the rows that may be missing, and q′ the share of a value in the file.  Its share in all
rows is q = (1 − s′)·q′ + s′·r for some s′ ≤ s and some r from 0 to 1, so (1 − s)·q′ ≤ q ≤ (1 − s)·q′ + s, and the total
variation distance between the file and all rows is at most s.  A bound that holds at the one end and fails at the
other is undecided; without missing rows both ends are the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import pyarrow as pa

from incrowd.core.codec import named
from incrowd.core.domain import Type
from incrowd.core.reading import number_text

Label = str | None
"""A sensitive value as it is written; None where it is missing."""
Classes = Mapping[tuple[object, ...], Counter[Label]]
"""For each class how often each sensitive value occurs in it."""
NONE: frozenset[str] = frozenset()
SLACK = 1e-9
"""The error allowed to a computed number."""
_NOBODY = "no rows to check"
LEFT_OUT = "; suppressed rows count too, so the file alone does not decide it"


@dataclass(frozen=True)
class Recount:
    """The result as text, and whether the criterion holds; None where the file alone does not decide it."""

    text: str
    holds: bool | None = True


@dataclass(frozen=True)
class Places:
    """The domain of a sensitive column in its declared order, and the labels above each value, level by level."""

    in_order: tuple[Label, ...] = named("in order")
    labels_above: tuple[tuple[Label, ...], ...] | None = named("labels above", None)


@dataclass(frozen=True)
class WrittenTable:
    """A published table that anyone can count: its smallest class, its classes, and published facts about it.

    `left_out` is the share of the rows that may be missing from it; `places` and `types` define distances of the values
    of a sensitive column, by their declared order or by the order of numbers or days.
    """

    smallest: Callable[[], int | None]
    sizes: Callable[[], Sequence[int]]
    classes: Callable[[str], Classes]
    left_out: Fraction = Fraction(0)
    places: Mapping[str, Places] = field(default_factory=dict)
    types: Mapping[str, Type] = field(default_factory=dict)


def classes_of(batches: Iterable[pa.RecordBatch], quasi: Sequence[str], sensitive: str) -> Classes:
    """Count the values of a sensitive column in each class of a table.

    >>> table = pa.table({"age": ["30s", "30s", "40s"], "ill": ["flu", "gout", "flu"]})
    >>> {group[0]: dict(values) for group, values in classes_of(table.to_batches(), ["age"], "ill").items()}
    {'30s': {'flu': 1, 'gout': 1}, '40s': {'flu': 1}}
    """
    classes: defaultdict[tuple[object, ...], Counter[Label]] = defaultdict(Counter)
    names = [*quasi, sensitive]
    for batch in batches:
        plain = pa.Table.from_batches([batch]).select(names)
        counted = plain.group_by(names).aggregate([([], "count_all")])
        for *group, value, times in zip(
            *(counted.column(name).to_pylist() for name in [*names, "count_all"]), strict=True
        ):
            classes[tuple(group)][label_of(value)] += times
    return classes


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
    """Return whether a class has harmless values only.

    >>> spared(Counter(healthy=3), frozenset({"healthy"}))
    True
    """
    return all(value in harmless for value in values)


def hurting(classes: Classes, harmless: frozenset[str]) -> list[Counter[Label]]:
    """Return the classes with a value that is not harmless."""
    return [values for values in classes.values() if not spared(values, harmless)]


def whole(classes: Classes) -> Counter[Label]:
    """Return how often each value occurs in all classes together."""
    totals: Counter[Label] = Counter()
    for values in classes.values():
        totals.update(values)
    return totals


def shares(
    classes: Classes, harmless: frozenset[str], left_out: Fraction
) -> Iterator[tuple[float, float, float, float]]:
    """Return for each harmful value in each class its share there, in the file, and the ends of that in all rows."""
    met, rest = whole(classes), float(left_out)
    all_rows = met.total()
    for values in classes.values():
        rows = values.total()
        for value, times in values.items():
            if value not in harmless:
                everywhere = met[value] / all_rows
                low = (1 - rest) * everywhere
                yield times / rows, everywhere, low, low + rest


def at_least(value: float | None, least: int | Fraction, words: str) -> Recount:
    """Return whether a number is large enough; `words` has a place for it and for its bound.

    >>> at_least(3, 5, "{} rows, k is {}")
    Recount(text='3 rows, k is 5', holds=False)
    """
    if value is None:
        return Recount(_NOBODY)
    return Recount(words.format(value, least), value >= float(least) * (1 - SLACK))


def at_most(value: float | Fraction | None, most: Fraction, words: str) -> Recount:
    """Return whether a number is small enough; `words` has a place for it and for its bound.

    >>> at_most(Fraction(1, 5), Fraction(1, 4), "a risk of {}, at most {}")
    Recount(text='a risk of 0.2, at most 1/4', holds=True)
    """
    if value is None:
        return Recount(_NOBODY)
    return Recount(words.format(f"{float(value):.6g}", most), value <= float(most) + SLACK)


def decided(text: str, *, holds: bool, broken: bool, remark: str = LEFT_OUT) -> Recount:
    """Return what two ends decide: broken at the better one, or held at the worse one, or undecided."""
    if broken:
        return Recount(text, holds=False)
    return Recount(text) if holds else Recount(text + remark, holds=None)
