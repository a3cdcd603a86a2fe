"""Slow distances: how far the classes of a published table are from all its rows, value by value, in fractions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from incrowd.core.domain import Type
from incrowd.core.hierarchy.hierarchy import ANY, end_value
from incrowd.core.reading import parse
from incrowd.core.schema import OTHER
from incrowd.criteria.recount import (
    LEFT_OUT,
    SLACK,
    Classes,
    Label,
    Places,
    Recount,
    WrittenTable,
    decided,
    hurting,
    whole,
)

_DISTANT = "; the distances of its values are not published, so the file alone does not decide it"
Distance = Callable[[Counter[Label], Counter[Label]], Fraction]


@dataclass(frozen=True)
class SlowDistance:
    """A distance between a class and all rows; steady if missing rows change it by at most their share."""

    of: Distance
    steady: bool = True


def recount_closeness(
    distance: str, table: WrittenTable, column: str, t: Fraction, harmless: frozenset[str]
) -> Recount:
    """Return how far the farthest class is from the file, and whether all are within t of all rows."""
    classes = table.classes(column)
    measure = measure_of(distance, classes, table.types.get(column), table.places.get(column))
    farthest, holds, broken = closeness(hurting(classes, harmless), whole(classes), t, (measure, table.left_out))
    text = f"the farthest class is {float(farthest):.6g} from all rows of the file, t is {t}"
    return decided(text, holds=holds, broken=broken, remark=LEFT_OUT if table.left_out else _DISTANT)


def closeness(
    harmed: Sequence[Counter[Label]], met: Counter[Label], t: Fraction, by: tuple[SlowDistance | None, Fraction]
) -> tuple[Fraction, bool, bool]:
    """Return how far the farthest class is from the file, whether t is shown to hold, and whether it is broken.

    `by` is the distance, where one is known, and the share of rows that may have been left out.  Every distance is at
    most that in which values are equally far apart, so where no other is known, or where it is not steady, that one
    can show that a bound holds, but not that it is broken.
    """
    measure, left_out = by
    if measure is not None and (measure.steady or not left_out):
        farthest, slack = _farthest(harmed, met, measure.of), t + Fraction(SLACK)
        return farthest, farthest + left_out <= slack, farthest - left_out > slack
    loosest = _farthest(harmed, met, equal)
    distance = loosest if measure is None else _farthest(harmed, met, measure.of)
    return distance, loosest + left_out <= t, False


def equal(here: Counter[Label], everywhere: Counter[Label]) -> Fraction:
    """Return the distance where any two values are equally far apart: all that the class has too much of.

    That is half the sum of |p − q|, since what it has too much and too little of is the same.

    >>> equal(Counter(flu=4), Counter(flu=4, gout=4))
    Fraction(1, 2)
    """
    rows, all_rows = here.total(), everywhere.total()
    surplus = (times * all_rows - everywhere[value] * rows for value, times in here.items())
    return Fraction(sum(excess for excess in surplus if excess > 0), rows * all_rows)


def ordered(order: Sequence[Label]) -> Distance:
    """Return the distance where the i-th and the j-th of m values that occur are |i − j|/(m − 1) apart.

    >>> ordered(["1", "2", "3"])(Counter({"1": 1}), Counter({"1": 1, "3": 1}))
    Fraction(1, 2)
    """

    def distance(here: Counter[Label], everywhere: Counter[Label]) -> Fraction:
        rows, all_rows, met = here.total(), everywhere.total(), [value for value in order if everywhere[value]]
        upto, moved = 0, 0
        for value in met:
            upto += here[value] * all_rows - everywhere[value] * rows
            moved += abs(upto)
        return Fraction(moved, rows * all_rows * max(1, len(met) - 1))

    return distance


def hierarchical(values: Sequence[Label], above: Sequence[Sequence[Label]]) -> Distance:
    """Return the distance where two values are as far apart as the lowest label that they share is high.

    It is the mean over the levels below `*` of the distance in which a level's labels are equally far apart.

    >>> hierarchical(["flu", "cough"], [["lungs", "lungs"]])(Counter(flu=1), Counter(flu=1, cough=1))
    Fraction(1, 4)
    """
    lifts = [dict(zip(values, labels, strict=True)) for labels in above]

    def distance(here: Counter[Label], everywhere: Counter[Label]) -> Fraction:
        lifted = [(_lifted(here, lift), _lifted(everywhere, lift)) for lift in lifts]
        distances = [equal(here, everywhere), *(equal(*both) for both in lifted)]
        return sum(distances, Fraction(0)) / len(distances)

    return distance


def measure_of(distance: str, classes: Classes, kind: Type | None, places: Places | None) -> SlowDistance | None:
    """Return how a distance is measured; None if the distances of values are not published.

    `kind` is the type of values that lie in the order of numbers or days.  A mean of distances in which labels are
    equally far apart is as steady as they are.  The ordered distance is not: values that the file lacks would lie
    between others.
    """
    if distance == "equal":
        return SlowDistance(equal)
    met = whole(classes)
    values = () if places is None else places.in_order
    listed = set(met) <= set(values)
    if distance == "hierarchical":
        above = None if places is None else places.labels_above
        return SlowDistance(hierarchical(values, above)) if listed and above is not None else None
    if kind is not None and all(parse(end_value(v), kind) is not None for v in met if v not in (None, OTHER, ANY)):
        return SlowDistance(ordered(sorted(met, key=lambda value: place(value, kind))), steady=False)
    return SlowDistance(ordered(values), steady=False) if listed else None


def place(value: Label, kind: Type) -> tuple[int, Any]:
    """Return what to sort by: values as they are, then what is outside the domain, then what is missing."""
    if value is None:
        return 2, 0
    read = parse(end_value(value), kind)
    return (1, 0) if read is None else (0, read)


def _farthest(harmed: Sequence[Counter[Label]], met: Counter[Label], distance: Distance) -> Fraction:
    return max((distance(values, met) for values in harmed), default=Fraction(0))


def _lifted(values: Counter[Label], lift: Mapping[Label, Label]) -> Counter[Label]:
    labels: Counter[Label] = Counter()
    for value, times in values.items():
        labels[lift[value]] += times
    return labels
