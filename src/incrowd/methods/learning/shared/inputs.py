"""Inputs: the columns that a model reads, each as declared classes, and the integers that stand for them.

A record is a list of codes, and what it adds to any statistic is a list of integers that follows from its codes alone.
Numbers become the middle of their interval, between −`UNIT` and `UNIT` over the declared bounds.

An encoder gives the same codes as the recoding under which rows were counted, and is written into the model's file, so
that a model can be used where the policy is not known.  A row that would be left out while learning has the code −1
there, and adds nothing to a prediction.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.domain import Numbers, Text, Type
from incrowd.core.hierarchy.intervals import Intervals
from incrowd.core.reading import as_dictionary, canonical, read
from incrowd.core.recoding import LEFT_OUT, Classes, Recoding
from incrowd.core.schema import Column, Missing, Outside, Schema
from incrowd.errors import InvalidParameter
from incrowd.methods.shared.columns import text_of

MOST_VALUES = 50_000
"""A column with more listed values than this cannot be written into a model's file."""


@dataclass(frozen=True, eq=False)
class ColumnEncoder:
    """A column of a model: its labels, and where its numbers (`starts`) or its values (`places`) belong.

    `ends` are the bounds of numbers, to which values beyond them are moved if `moved`; `outside` and `missing` are the
    codes of what does not fit and of what is not there.
    """

    name: str
    type: Type
    labels: tuple[str | None, ...]
    outside: int
    missing: int
    starts: tuple[float, ...] | None = None
    ends: tuple[float, float] | None = None
    moved: bool = False
    places: Mapping[str, int] | None = None

    @property
    def ordered(self) -> bool:
        """Whether codes have the order of the numbers that they stand for."""
        return self.places is None

    @classmethod
    def of(cls, classes: Classes) -> ColumnEncoder:
        """Return how the column of some classes is read; refuse one whose values are too many to be listed."""
        column = classes.recoding.column
        labels = tuple(text_of(classes.labels()).to_pylist())
        missing = LEFT_OUT if column.missing == Missing.DROP else classes.missing
        if column.fill is not None:
            missing = int(classes.recoding.codes(pa.array([column.fill]))[0])
        rule = column.rule_outside
        outside = LEFT_OUT if rule is Outside.DROP else classes.other if column.has_other else missing
        if isinstance(column.domain, Numbers):
            starts = classes.marks.to_numpy(zero_copy_only=False).astype(np.float64)[1:]
            low, high = (float(bound) for bound in column.domain.bounds if bound is not None)
            moved = rule is Outside.ENDS
            return cls(column.name, column.type, labels, outside, missing, tuple(starts.tolist()), (low, high), moved)
        return cls(column.name, column.type, labels, outside, missing, places=_places(classes))

    def codes(self, array: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
        """Return the code of each value, −1 where a row would be left out."""
        values, indices = as_dictionary(array)
        stored = read(pa.concat_arrays([values, pa.nulls(1, values.type)]), self.type)
        present = stored.values.is_valid().to_numpy(zero_copy_only=False)
        codes = np.full(len(present), self.missing, np.int64)
        codes[stored.unreadable] = self.outside
        codes[present] = self._numbered(stored.values) if self.places is None else self._placed(stored.values)
        return codes[:-1] if indices is None else codes[indices]

    def _numbered(self, values: pa.Array) -> NDArray[np.int64]:
        numbers = values.drop_null().to_numpy(zero_copy_only=False).astype(np.float64)
        low, high = self.ends or (-np.inf, np.inf)
        if self.moved:
            numbers = np.clip(numbers, low, high)
        codes = np.searchsorted(np.array(self.starts or ()), numbers, side="right").astype(np.int64)
        inside: NDArray[np.int64] = np.where((numbers >= low) & (numbers <= high), codes, self.outside)
        return inside

    def _placed(self, values: pa.Array) -> NDArray[np.int64]:
        places = self.places or {}
        places_of = pc.index_in(canonical(values.drop_null()), value_set=pa.array(list(places), pa.string()))
        where = places_of.fill_null(len(places)).to_numpy(zero_copy_only=False)
        codes: NDArray[np.int64] = np.array([*places.values(), self.outside], np.int64)[where]
        return codes

    def to_json(self) -> dict[str, Any]:
        """Return the column as plain JSON."""
        plain: dict[str, Any] = {"name": self.name, "type": str(self.type), "classes": list(self.labels)}
        plain |= {"outside": self.outside, "missing": self.missing}
        if self.places is not None:
            return plain | {"values": dict(self.places)}
        return plain | {"starts": list(self.starts or ()), "bounds": list(self.ends or ()), "moved": self.moved}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> ColumnEncoder:
        """Read what `to_json` wrote; whatever else raises what its parts raise."""
        labels = tuple(None if label is None else str(label) for label in plain["classes"])
        shared = (str(plain["name"]), Type(plain["type"]), labels, int(plain["outside"]), int(plain["missing"]))
        codes = {*shared[3:], *plain.get("values", {}).values()}
        if not codes <= set(range(LEFT_OUT, len(labels))) or not labels:
            raise ValueError("codes")
        if "values" in plain:
            return cls(*shared, places={str(value): int(code) for value, code in plain["values"].items()})
        starts, ends = (tuple(map(float, plain[name])) for name in ("starts", "bounds"))
        if len(starts) >= len(labels) or list(starts) != sorted(starts) or len(ends) != 2:
            raise ValueError("starts")
        return cls(*shared, starts=starts, ends=(ends[0], ends[1]), moved=bool(plain["moved"]))


def _places(classes: Classes) -> dict[str, int]:
    """Return the code of every declared value."""
    column = classes.recoding.column
    values = Recoding(column, 0).classes
    if values is None or len(values.marks) > MOST_VALUES:
        raise InvalidParameter(
            f"{column.name!r} has too many values, or none that are listed, to be written into a model: list at most "
            f"{MOST_VALUES:,}, or leave it out of columns."
        )
    names = canonical(values.marks)
    codes = classes.recoding.codes(names)
    return dict(zip(names.to_pylist(), codes.tolist(), strict=True))


UNIT = 256
"""What half of a declared range is in integers, and what a category is."""
FINEST = 128
"""A column without numbers that has more classes than this is taken at a coarser level, if it has one."""
BINS = 16
"""In how many intervals numbers are taken, unless few rows are expected."""
_DIGITS = 3  # widths have three digits, rounded up


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
        inputs = tuple(self.classes(schema[_released(schema, name)]) for name in names)
        for item in inputs:
            if len(item) < 2:
                raise InvalidParameter(
                    f"{name_of(item)!r} has a single class by declaration, from which nothing can be learned: leave it "
                    "out of columns, or declare more."
                )
        return inputs

    def classes(self, column: Column) -> Classes:
        """Return the declared classes of a column: at its level, in so many intervals, or the finest that will do."""
        level = self.levels.get(column.name)
        if level is not None:
            return _listed(column, level)
        return interval_classes(column, self.bins) if isinstance(column.domain, Numbers) else _finest(column)


def usual_bins(expected_rows: int | None, rho: Fraction | None = None, coarse: int = 3) -> int:
    """Return in how many bins numbers are taken: the fewer rows are expected, and for a budget ρ, the fewer.

    `coarse` says how few they are for a budget.

    >>> usual_bins(None), usual_bins(400), usual_bins(10**6)
    (16, 6, 16)
    """
    if expected_rows is None:
        return BINS
    fine = math.cbrt(expected_rows) * 0.8 if rho is None else math.sqrt(expected_rows * math.sqrt(rho)) / coarse
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
    listed: Classes | None = None
    for level in range(int(column.pseudonymous or isinstance(column.domain, Text)), column.hierarchy.height):
        classes = Recoding(column, level).classes
        if classes is not None:
            listed = classes
            if len(classes) <= FINEST:
                break
    return listed or _listed(column, 0)


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
        """The integer that stands for each class, between −UNIT and UNIT; 0 where bounds leave a single number."""
        half = self.half or 1.0
        exact: NDArray[np.int64] = np.rint(UNIT * (self.middles - self.center) / half).astype(np.int64)
        return np.clip(exact, -UNIT, UNIT)


def features_of(classes: Classes) -> NDArray[np.int64]:
    """Return what each class of a column is as a vector: one integer for a number, else a place of its own.

    A number that is missing or outside its bounds lies in the middle of them.

    >>> age = Column("age", type=Type.INTEGER, hierarchy=Intervals(Numbers(0, 4), (1,)))
    >>> features_of(Recoding(age, 0).classes).ravel().tolist()     # 0 to 4, and missing
    [-256, -128, 0, 128, 256, 0]
    >>> from incrowd.core.hierarchy.flat import Flat
    >>> three = Column("wards", type=Type.INTEGER, hierarchy=Flat(Numbers(3, 3)))
    >>> features_of(Recoding(three, 0).classes).ravel().tolist()   # 3, and missing
    [0, 0]
    """
    scale = NumberScale.of(classes)
    if scale is None:
        return UNIT * np.eye(len(classes), dtype=np.int64)
    return np.append(scale.units, np.zeros(len(classes) - len(scale.units), np.int64))[:, None]
