"""Shares: how far the classes of a written table are from all rows, of which the file may lack some.

Let s be the share of the rows that may have been left out, and q′ the share of a value in the file.  Its share in all
rows is q = (1 − s′)·q′ + s′·r for some s′ ≤ s and some r from 0 to 1, so (1 − s)·q′ ≤ q ≤ (1 − s)·q′ + s, and the total
variation distance between the file and all rows is at most s.  A bound that holds at the one end and fails at the
other is left open; with nothing left out both ends are the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

from incrowd.core.domain import Type
from incrowd.core.reading import parse
from incrowd.core.schema import OTHER
from incrowd.workflows.forms.anonymized.classes import NONE, Classes, Label, spared

SLACK = 1e-9
_ORDERED = (Type.INTEGER, Type.DECIMAL, Type.DATE)
Distance = Callable[[Counter[Label], Counter[Label]], Fraction]


@dataclass(frozen=True)
class Measure:
    """A distance between a class and all rows; steady if rows left out change it by their share at most."""

    of: Distance
    steady: bool = True


class Verdict(Enum):
    """What a file shows of a bound."""

    HOLDS = "holds"
    OPEN = "open"
    BROKEN = "broken"


@dataclass(frozen=True)
class Found:
    """What was measured in the file, at most, and what follows from it."""

    most: float
    verdict: Verdict


@dataclass(frozen=True)
class Hidden:
    """What a file does not show: the share of rows that may be missing from it, and values that hurt nobody."""

    left_out: Fraction = Fraction(0)
    harmless: frozenset[str] = NONE


def whole(classes: Classes) -> Counter[Label]:
    """Return how often each value occurs in all classes together."""
    found: Counter[Label] = Counter()
    for values in classes.values():
        found.update(values)
    return found


def equal(here: Counter[Label], everywhere: Counter[Label]) -> Fraction:
    """Return the distance where any two values are equally far apart: all that the class has too much of.

    That is half the sum of |p − q|, since what it has too much and too little of is the same.

    >>> equal(Counter(flu=4), Counter(flu=4, gout=4))
    Fraction(1, 2)
    """
    rows, all_rows = here.total(), everywhere.total()
    surplus = (times * all_rows - everywhere[value] * rows for value, times in here.items())
    return Fraction(sum(each for each in surplus if each > 0), rows * all_rows)


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
        each = [equal(here, everywhere), *(equal(*both) for both in lifted)]
        return sum(each, Fraction(0)) / len(each)

    return distance


def measure_of(given: str, classes: Classes, kind: Type | None, places: Mapping[str, Any]) -> Measure | None:
    """Return the distance of a claim; None if neither the column's type nor the steps say how far values are apart.

    A mean of distances in which labels are equally far apart is as steady as they are.  The ordered distance is not:
    values that the file lacks would lie between others.
    """
    if given == "equal":
        return Measure(equal)
    values, met = places.get("in order", ()), whole(classes)
    listed = set(met) <= set(values)
    if given == "hierarchical":
        return Measure(hierarchical(values, places["labels above"])) if listed and "labels above" in places else None
    if (
        kind is not None
        and kind in _ORDERED
        and all(parse(value, kind) is not None for value in met if value not in (None, OTHER))
    ):
        return Measure(ordered(sorted(met, key=lambda value: _place(value, kind))), steady=False)
    return Measure(ordered(values), steady=False) if listed else None


def closeness(classes: Classes, t: Fraction, measure: Measure | None, hidden: Hidden) -> Found:
    """Return how far the farthest class is from the file, and whether all are within t of all rows.

    Every distance is at most that in which values are equally far apart, so where no other is known, or where it is not
    steady, that one can show that a bound holds, but not that it is broken.
    """
    met = whole(classes)
    hurting = [values for values in classes.values() if not spared(values, hidden.harmless)]
    farthest = max((measure.of(values, met) for values in hurting), default=Fraction(0)) if measure else None
    if measure is not None and farthest is not None and (measure.steady or not hidden.left_out):
        broken = farthest - hidden.left_out > t + Fraction(SLACK)
        holds = farthest + hidden.left_out <= t + Fraction(SLACK)
        return Found(float(farthest), _verdict(holds=holds, broken=broken))
    loosest = max((equal(values, met) for values in hurting), default=Fraction(0))
    found = loosest if farthest is None else farthest
    return Found(float(found), _verdict(holds=loosest + hidden.left_out <= t, broken=False))


def likeness(classes: Classes, most: Callable[[float], float], hidden: Hidden) -> Found:
    """Return the greatest gain of a value in a class, and whether no share is above what `most` makes of its share.

    `most` grows with the share in all rows, so the ends of that share decide.
    """
    gains, holds, broken = [0.0], True, False
    for here, everywhere, low, high in _shares(classes, hidden):
        gains.append(here / everywhere - 1)
        holds &= here <= most(low) + SLACK
        broken |= here > most(high) + SLACK
    return Found(max(gains), _verdict(holds=holds, broken=broken))


def disclosure(classes: Classes, delta: float, hidden: Hidden) -> Found:
    """Return the largest |log₂ p/q| in the file, and whether all are below δ; a value that a class lacks breaks it.

    Rows left out may have values that the file lacks, so then nothing is shown to hold.
    """
    hurting = [value for value in whole(classes) if value not in hidden.harmless]
    lacking = any(not values[value] for values in classes.values() for value in hurting)
    logs, broken = [math.inf if lacking else 0.0], lacking
    for here, everywhere, low, high in _shares(classes, hidden):
        logs.append(abs(math.log2(here / everywhere)))
        broken |= here >= high * 2**delta * (1 + SLACK) or here <= low * 2**-delta * (1 - SLACK)
    return Found(max(logs), _verdict(holds=not hidden.left_out, broken=broken))


def _verdict(*, holds: bool, broken: bool) -> Verdict:
    return Verdict.BROKEN if broken else Verdict.HOLDS if holds else Verdict.OPEN


def _shares(classes: Classes, hidden: Hidden) -> Iterator[tuple[float, float, float, float]]:
    """Return for each harmful value in each class its share there, in the file, and the ends of that in all rows."""
    met, rest = whole(classes), float(hidden.left_out)
    all_rows = met.total()
    for values in classes.values():
        rows = values.total()
        for value, times in values.items():
            if value not in hidden.harmless:
                everywhere = met[value] / all_rows
                low = (1 - rest) * everywhere
                yield times / rows, everywhere, low, low + rest


def _lifted(values: Counter[Label], lift: Mapping[Label, Label]) -> Counter[Label]:
    found: Counter[Label] = Counter()
    for value, times in values.items():
        found[lift[value]] += times
    return found


def _place(value: Label, kind: Type | None) -> tuple[int, Any]:
    """Return what to sort by: values as they are, then what is outside the domain, then what is missing."""
    if value is None or kind is None:
        return 2, 0
    read = parse(value, kind)
    return (1, 0) if read is None else (0, read)
