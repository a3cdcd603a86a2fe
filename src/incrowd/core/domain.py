"""Domains: the public set of values a column draws from, declared before a row is read."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.rounding import Number, exact
from incrowd.errors import InvalidParameter

ENUMERABLE = 2**20
"""A range with more values than this is treated as one that cannot be listed."""

LARGEST = 2**62
"""Numbers beyond this, on either side, are outside every domain: arithmetic on the others never wraps."""

_FIRST, _LAST = date.min, date.max


class Type(StrEnum):
    """What a column's values are."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    TEXT = "text"
    DATE = "date"
    BOOLEAN = "boolean"

    @property
    def storage(self) -> pa.DataType:
        """The Arrow type in which values of this type are worked on; booleans are the texts false and true."""
        stored = {Type.INTEGER: pa.int64(), Type.DECIMAL: pa.float64(), Type.DATE: pa.date32()}
        return stored.get(self, pa.string())


class Weekday(StrEnum):
    """A day of the week, in order from Monday."""

    MON = "mon"
    TUE = "tue"
    WED = "wed"
    THU = "thu"
    FRI = "fri"
    SAT = "sat"
    SUN = "sun"


@dataclass(frozen=True)
class Provenance:
    """Where a domain or a hierarchy comes from: declared, or drafted from the rows it will be applied to.

    A draft depends on the rows, so no guarantee that is computed without the rows may depend on it, until the data
    holder names a public source that says the same.

    >>> Provenance().sound, Provenance(derived=True).sound, Provenance(True, "census tract list 2020").sound
    (True, False, True)
    """

    derived: bool = False
    public: str | None = None

    @property
    def sound(self) -> bool:
        """Whether a guarantee may depend on it."""
        return not self.derived or bool(self.public)

    def __str__(self) -> str:
        if not self.derived:
            return "declared"
        return f"drafted from rows, vouched for by {self.public}" if self.public else "drafted from rows"


DECLARED = Provenance()


@dataclass(frozen=True)
class Text:
    """Any text at all."""

    storage: ClassVar[pa.DataType] = pa.string()
    """The Arrow type of its values."""
    closed: ClassVar[bool] = False
    """Whether some value can be outside."""

    provenance: Provenance = DECLARED

    def members(self) -> pa.Array | None:
        """Return every value in order, or None where they cannot be listed."""
        return None

    def contains(self, values: pa.Array) -> NDArray[np.bool_]:
        """Return for each value whether it is inside; a null is not."""
        return _mask(pc.is_valid(values))


@dataclass(frozen=True)
class Categories:
    """A list of values, as written, in their own order.

    >>> Categories(("low", "medium", "high")).contains(pa.array(["high", "huge"])).tolist()
    [True, False]
    """

    storage: ClassVar[pa.DataType] = pa.string()
    closed: ClassVar[bool] = True

    values: tuple[str, ...]
    provenance: Provenance = DECLARED

    def __post_init__(self) -> None:
        if not self.values:
            raise InvalidParameter("a list of categories needs at least one value.")
        twice = [value for value, times in Counter(self.values).items() if times > 1]
        if twice:
            raise InvalidParameter(f"these categories are listed more than once: {listed(twice)}. Keep each one once.")

    def members(self) -> pa.Array:
        return self._array

    def contains(self, values: pa.Array) -> NDArray[np.bool_]:
        return _mask(pc.is_in(values, value_set=self._array))

    @cached_property
    def _array(self) -> pa.Array:
        return pa.array(self.values, pa.string())


@dataclass(frozen=True)
class Numbers:
    """Whole or decimal numbers from `low` to `high`, both included; None means no bound on that side.

    Decimal numbers are compared as the nearest double, on both sides of the comparison.

    >>> Numbers(10, 60).contains(pa.array([9, 10, 60, None], pa.int64())).tolist()
    [False, True, True, False]
    >>> Numbers(10, 60).clamp(pa.array([9, 10, 61], pa.int64())).to_pylist()
    [10, 10, 60]
    """

    low: Number | None = None
    high: Number | None = None
    type: Type = Type.INTEGER
    provenance: Provenance = DECLARED

    def __post_init__(self) -> None:
        if self.type not in (Type.INTEGER, Type.DECIMAL):
            raise InvalidParameter(f"numbers are of type integer or decimal, not {self.type}.")
        low, high = (None if end is None else exact(end, "a bound") for end in (self.low, self.high))
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        if low is not None and high is not None and low > high:
            raise InvalidParameter(f"bounds run from low to high, not from {low} to {high}: swap them.")
        for end in (low, high):
            if end is not None and abs(end) > LARGEST:
                raise InvalidParameter("bounds lie between -2^62 and 2^62: beyond it, leave the bound open.")
            if end is not None and self.type is Type.INTEGER and end.denominator != 1:
                raise InvalidParameter(f"an integer column has whole bounds, not {end}: round it, or use decimal.")

    @property
    def bounds(self) -> tuple[Fraction | None, Fraction | None]:
        """Both bounds, exactly."""
        return (None if self.low is None else exact(self.low), None if self.high is None else exact(self.high))

    @property
    def storage(self) -> pa.DataType:
        return self.type.storage

    @property
    def closed(self) -> bool:
        return self.low is not None or self.high is not None

    def members(self) -> pa.Array | None:
        low, high = self.bounds
        if self.type is not Type.INTEGER or low is None or high is None or high - low >= ENUMERABLE:
            return None
        return pa.array(np.arange(int(low), int(high) + 1), pa.int64())

    def contains(self, values: pa.Array) -> NDArray[np.bool_]:
        low, high = self.bounds
        return _between(
            values, self._end(-LARGEST if low is None else low), self._end(LARGEST if high is None else high)
        )

    def clamp(self, values: pa.Array) -> pa.Array:
        """Return the values with those beyond a bound moved to it."""
        return _clamped(values, *(None if end is None else self._end(end) for end in self.bounds))

    def spans(self, starts: Sequence[Fraction]) -> NDArray[np.float64] | None:
        """Return how many whole numbers, or what length of decimals, lie from each start to the next, within bounds.

        >>> Numbers(10, 60).spans([Fraction(0), Fraction(30)]).tolist()
        [20.0, 31.0]
        """
        low, high = self.bounds
        if low is None or high is None:
            return None
        end = high + 1 if self.type is Type.INTEGER else high
        edges = [*(min(max(start, low), end) for start in starts), end]
        return np.array([float(to - at) for at, to in itertools.pairwise(edges)])

    def _end(self, number: Fraction | int) -> pa.Scalar:
        return pa.scalar(int(number) if self.type is Type.INTEGER else float(number), self.storage)


@dataclass(frozen=True)
class Dates:
    """Days from `low` to `high`, both included; None means no bound on that side but the calendar's.

    >>> Dates("2020-02-28", "2020-03-01").members().to_pylist()[1]
    datetime.date(2020, 2, 29)
    """

    storage: ClassVar[pa.DataType] = pa.date32()

    low: date | str | None = None
    high: date | str | None = None
    provenance: Provenance = DECLARED

    def __post_init__(self) -> None:
        low, high = (_day(end) for end in (self.low, self.high))
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        if low is not None and high is not None and low > high:
            raise InvalidParameter(f"bounds run from low to high, not from {low} to {high}: swap them.")

    @property
    def bounds(self) -> tuple[date | None, date | None]:
        """Both bounds, as days."""
        return _day(self.low), _day(self.high)

    @property
    def closed(self) -> bool:
        return self.low is not None or self.high is not None

    def members(self) -> pa.Array | None:
        low, high = self.bounds
        if low is None or high is None or (high - low).days >= ENUMERABLE:
            return None
        return pa.array(np.arange(np.datetime64(low), np.datetime64(high) + 1), pa.date32())

    def contains(self, values: pa.Array) -> NDArray[np.bool_]:
        low, high = self.bounds
        return _between(values, pa.scalar(low or _FIRST, pa.date32()), pa.scalar(high or _LAST, pa.date32()))

    def clamp(self, values: pa.Array) -> pa.Array:
        return _clamped(values, *(None if end is None else pa.scalar(end, pa.date32()) for end in self.bounds))


Domain = Text | Categories | Numbers | Dates


def listed(values: Sequence[str], at_most: int = 10) -> str:
    """Return public values for an error message, the first few by name.

    >>> listed(["a", "b", "c"], at_most=2)
    "'a', 'b' and 1 more"
    """
    first = ", ".join(repr(value) for value in values[:at_most])
    return first + (f" and {len(values) - at_most} more" if len(values) > at_most else "")


def _day(end: date | str | None) -> date | None:
    if isinstance(end, str):
        try:
            return date.fromisoformat(end)
        except ValueError as error:
            raise InvalidParameter(f"a bound of dates is a day such as 2020-12-31, not {end!r}.") from error
    return end.date() if isinstance(end, datetime) else end


def _between(values: pa.Array, low: pa.Scalar, high: pa.Scalar) -> NDArray[np.bool_]:
    inside = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))
    return _mask(pc.fill_null(inside, False))


def _clamped(values: pa.Array, low: pa.Scalar | None, high: pa.Scalar | None) -> pa.Array:
    if low is not None:
        values = pc.if_else(pc.less(values, low), low, values)
    if high is not None:
        values = pc.if_else(pc.greater(values, high), high, values)
    return values


def _mask(flags: pa.Array) -> NDArray[np.bool_]:
    mask: NDArray[np.bool_] = flags.to_numpy(zero_copy_only=False)
    return mask
