"""Inputs: the columns that a model reads, each as declared classes, and the integers that stand for them.

A record is a list of codes, and what it adds to any statistic is a list of integers that follows from its codes alone.
Numbers become the middle of their interval, between −`UNIT` and `UNIT` over the declared bounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.core.domain import Numbers, Text, Type
from incrowd.core.hierarchy.intervals import Intervals
from incrowd.core.recoding import Classes, Recoding
from incrowd.core.schema import Column, Schema
from incrowd.errors import InvalidParameter

UNIT = 256
"""What half of a declared range is in integers, and what a category is."""
FINEST = 128
"""A column without numbers that has more classes than this is taken at a coarser level, if it has one."""
BINS = 16
"""In how many intervals numbers are taken, unless few rows are expected."""
_DIGITS = 3


@dataclass(frozen=True)
class Inputs:
    """Which columns a model reads and how fine: names (all but the target if none), levels, and bins for numbers."""

    columns: tuple[str, ...]
    levels: Mapping[str, int]
    bins: int

    def of(self, schema: Schema, target: str | None = None) -> tuple[Classes, ...]:
        """Return the classes of every column that is read; refuse what was drafted from rows, and what says nothing."""
        _refuse_drafts(schema)
        names = self.columns or tuple(column.name for column in schema.released if column.name != target)
        if not names or len(set(names)) < len(names) or target in names:
            raise InvalidParameter("a model reads one column or more, each once, and not the one that it predicts.")
        found = tuple(self.classes(schema[_released(schema, name)]) for name in names)
        for each in found:
            if len(each) < 2:
                raise InvalidParameter(
                    f"{name_of(each)!r} has a single class by declaration, from which nothing can be learned: leave it "
                    "out of columns, or declare more."
                )
        return found

    def classes(self, column: Column) -> Classes:
        """Return the declared classes of a column: at its level, in so many intervals, or the finest that will do."""
        level = self.levels.get(column.name)
        if level is not None:
            return _listed(column, level)
        return interval_classes(column, self.bins) if isinstance(column.domain, Numbers) else _finest(column)


def usual_bins(expected_rows: int | None, rho: Fraction | None = None) -> int:
    """Return in how many bins numbers are taken: the fewer rows are expected, and for a budget ρ, the fewer.

    >>> usual_bins(None), usual_bins(400), usual_bins(10**6)
    (16, 6, 16)
    """
    if expected_rows is None:
        return BINS
    fine = math.cbrt(expected_rows) * 0.8 if rho is None else math.sqrt(expected_rows * math.sqrt(rho)) / 3.0
    return min(BINS, max(4, round(fine)))


def interval_classes(column: Column, bins: int) -> Classes:
    """Return the classes of a column of numbers: its whole numbers if they are few, else at most so many intervals.

    >>> age = Column("age", type=Type.INTEGER, hierarchy=Intervals(Numbers(0, 99), (10,)), missing="drop")
    >>> interval_classes(age, 4).labels().to_pylist()
    ['< 25', '[25, 50)', '[50, 75)', '>= 75']
    """
    domain = column.domain
    low, high = domain.bounds if isinstance(domain, Numbers) else (None, None)
    if not isinstance(domain, Numbers) or low is None or high is None:
        raise InvalidParameter(
            f"the numbers of {column.name!r} have no declared bounds: write bounds: [low, high], from what is known "
            "without looking at the rows."
        )
    whole = domain.type is Type.INTEGER
    if low == high or (whole and high - low < bins):
        return _listed(column, 0 if whole else column.hierarchy.height)
    width = Fraction(math.ceil((high - low + 1) / bins)) if whole else _above((high - low) / bins)
    return _listed(replace(column, hierarchy=Intervals(domain, (width,), provenance=domain.provenance)), 1)


def _above(width: Fraction) -> Fraction:
    """Return a number of few digits that is a little above a width."""
    fine = Fraction(10) ** (_DIGITS - 1 - math.floor(math.log10(width)))
    return (math.floor(width * fine) + 1) / fine


def _listed(column: Column, level: int) -> Classes:
    classes = Recoding(column, level).classes
    if classes is None:
        raise InvalidParameter(
            f"the classes of {column.name!r} at level {level} are not declared: list its categories or bounds, take a "
            "higher level, or leave it out of columns."
        )
    return classes


def _finest(column: Column) -> Classes:
    found: Classes | None = None
    for level in range(int(column.pseudonymous or isinstance(column.domain, Text)), column.hierarchy.height):
        classes = Recoding(column, level).classes
        if classes is not None:
            found = classes
            if len(classes) <= FINEST:
                break
    return found or _listed(column, 0)


def _released(schema: Schema, name: str) -> str:
    if schema[name] not in schema.released:
        raise InvalidParameter(f"{name!r} is an identifier: no model reads it. Leave it out of columns.")
    return name


def _refuse_drafts(schema: Schema) -> None:
    if schema.drafted:
        raise InvalidParameter(
            f"the values of {schema.drafted[0]!r} were drafted from rows, so a model would show rows. Where the same "
            "is public, write public: with its source."
        )


def name_of(classes: Classes) -> str:
    """Return the name of the column of some classes."""
    return classes.recoding.column.name


@dataclass(frozen=True, eq=False)
class NumberScale:
    """Where the classes of numbers lie: the middle of each, the middle of the bounds and half of their distance."""

    middles: NDArray[np.float64]
    center: float
    half: float

    @classmethod
    def of(cls, classes: Classes) -> NumberScale | None:
        """Return the scale of a column of numbers with bounds; None for any other, or if all is one class."""
        column = classes.recoding.column
        domain = column.domain
        if not isinstance(domain, Numbers) or None in domain.bounds or classes.recoding.top:
            return None
        low, high = (float(bound) for bound in domain.bounds if bound is not None)
        whole = domain.type is Type.INTEGER
        starts = np.clip(classes.marks.to_numpy(zero_copy_only=False).astype(np.float64), low, high)
        ends = np.append(starts[1:] - whole, high)
        return cls((starts + np.maximum(ends, starts)) / 2.0, (low + high) / 2.0, (high - low) / 2.0)

    @property
    def units(self) -> NDArray[np.int64]:
        """The integer that stands for each class, between −UNIT and UNIT."""
        exact: NDArray[np.int64] = np.rint(UNIT * (self.middles - self.center) / self.half).astype(np.int64)
        return np.clip(exact, -UNIT, UNIT)


def features_of(classes: Classes) -> NDArray[np.int64]:
    """Return what each class of a column is as a vector: one integer for a number, else a place of its own.

    A number that is missing or outside its bounds lies in the middle of them.

    >>> age = Column("age", type=Type.INTEGER, hierarchy=Intervals(Numbers(0, 4), (1,)))
    >>> features_of(Recoding(age, 0).classes).ravel().tolist()     # 0 to 4, and missing
    [-256, -128, 0, 128, 256, 0]
    """
    scale = NumberScale.of(classes)
    if scale is None:
        return UNIT * np.eye(len(classes), dtype=np.int64)
    return np.append(scale.units, np.zeros(len(classes) - len(scale.units), np.int64))[:, None]
