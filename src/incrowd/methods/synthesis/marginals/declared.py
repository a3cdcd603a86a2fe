"""Declared: everything a policy says of all rows of a table, by labels for certificates and by cells for a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.schema import Outside
from incrowd.errors import InvalidParameter
from incrowd.methods.shared.columns import text_of
from incrowd.methods.synthesis.marginals.constraints import (
    Constraint,
    ConstraintKind,
    NumberConstraint,
    closed_orders,
    number_constraint,
    require_compatible,
    stated_zeros,
)
from incrowd.methods.synthesis.marginals.detail import drawn_number, range_of
from incrowd.methods.synthesis.marginals.model import Zero, ZeroTable, codes_of, declared_zeros
from incrowd.methods.synthesis.marginals.number_range import NumberRange
from incrowd.methods.synthesis.marginals.steps import DeclaredZero

if TYPE_CHECKING:
    from incrowd.core.recoding import Classes

_MOST_ROWS = 10**8


class _Stating(Protocol):
    @property
    def zeros(self) -> tuple[Mapping[str, Any], ...]: ...
    @property
    def constraints(self) -> tuple[Constraint, ...]: ...


@dataclass(frozen=True)
class DeclaredConstraints:
    """Labels that never occur together, and what holds between columns of numbers."""

    zeros: tuple[DeclaredZero, ...]
    numbers: tuple[NumberConstraint, ...]

    @classmethod
    def of(cls, method: _Stating, classes: Sequence[Classes]) -> DeclaredConstraints:
        """Return what a method's parameters declare, or refuse what cannot be."""
        named = {item.recoding.column.name: item for item in classes}
        stated = [zero for constraint in method.constraints for zero in stated_zeros(constraint, named)]
        zeros = declared_zeros((*method.zeros, *stated), classes)
        numbers = tuple(own for item in method.constraints if (own := number_constraint(item)) is not None)
        ranges = {name: range_of(item) for name, item in named.items() if drawn_number(item)}
        require_compatible(numbers, ranges)
        unique = {item.columns[0] for item in numbers if item.kind is ConstraintKind.UNIQUE}
        both = [name for zero in zeros for name in zero.columns if name in unique]
        if both:
            raise InvalidParameter(f"{both[0]!r} is unique and part of another constraint: keep one.")
        closed_orders(numbers)
        return cls((*zeros, *day_zeros(classes)), numbers)

    def codes(self, classes: Sequence[Classes]) -> tuple[Zero | ZeroTable, ...]:
        """Return the cells that never occur."""
        names = [item.recoding.column.name for item in classes]
        ranges = {item.recoding.column.name: range_of(item) for item in classes if drawn_number(item)}
        sizes = {item.recoding.column.name: len(item) for item in classes}
        return (*codes_of(self.zeros, classes), *number_zeros(self.numbers, names, (ranges, sizes)))

    @staticmethod
    def faint(classes: Sequence[Classes]) -> tuple[tuple[int, int], ...]:
        """Return the classes for values outside and for missing ones, by column and code."""
        return tuple(
            (place, code)
            for place, item in enumerate(classes)
            if len(item.marks) and not item.recoding.top
            for code in (*([item.other] if item.has_other else ()), *([item.missing] if item.has_missing else ()))
        )

    @staticmethod
    def ordered(classes: Sequence[Classes]) -> tuple[tuple[int, int], ...]:
        """Return the columns of numbers that are drawn, each with how many of its classes are in order."""
        return tuple((place, len(item.marks)) for place, item in enumerate(classes) if drawn_number(item))

    def most_rows(self, classes: Sequence[Classes]) -> int:
        """Return how many rows can be drawn: as many as a column has values of which each occurs once."""
        unique = {item.columns[0] for item in self.numbers if item.kind is ConstraintKind.UNIQUE}
        own = [range_of(item) for item in classes if item.recoding.column.name in unique]
        return min([_MOST_ROWS, *(int(numbers.values.sum()) for numbers in own)])


def day_zeros(classes: Sequence[Classes]) -> tuple[DeclaredZero, ...]:
    """Return the classes without a declared day, which never occur: single days, short intervals.

    A first or last day that stands for those beyond it, too, can occur; such an interval must have a day to draw.
    """
    zeros = []
    for item in classes:
        column, labels = item.recoding.column, text_of(item.values()).to_pylist()
        if column.days is None:
            continue
        if drawn_number(item):
            own = range_of(item)
            low, high = own.ends(np.arange(own.size))
            empty = np.flatnonzero(low > high)
            if column.rule_outside is Outside.ENDS and {0, own.size - 1} & set(empty.tolist()):
                raise InvalidParameter(
                    f"the first or last interval of {column.name!r} stands for days beyond its bounds and has no "
                    "declared day: let the bounds be such days, or let outside be drop."
                )
        elif item.recoding.level == 0:
            days = item.marks.to_pylist()
            own_days = set(column.days.between(min(days), max(days)).tolist())
            beyond = {place for place, end in zip((0, len(days) - 1), item.ends, strict=True) if end}
            empty = np.array(
                [
                    p
                    for p, day in enumerate(item.marks.cast(pa.int32()).to_pylist())
                    if day not in own_days and p not in beyond
                ]
            )
        else:
            continue
        if len(empty):
            zeros.append(DeclaredZero((column.name,), (tuple(labels[place] for place in empty.tolist()),)))
    return tuple(zeros)


def number_zeros(
    constraints: Sequence[NumberConstraint],
    names: Sequence[str],
    columns: tuple[Mapping[str, NumberRange], Mapping[str, int]],
) -> tuple[ZeroTable, ...]:
    """Return the cells in which no numbers fulfil a constraint; classes of missing values fulfil every one."""
    ranges, sizes = columns
    zeros = []
    for constraint in closed_orders(constraints):
        for table in constraint.tables:
            ends = [ranges[name].ends(np.arange(ranges[name].size)) for name in table]
            never: NDArray[np.bool_] = np.zeros([sizes[name] for name in table], np.bool_)
            never[tuple(slice(len(low)) for low, _ in ends)] = ~constraint.possible(ends)
            places = [names.index(name) for name in table]
            order = sorted(range(len(places)), key=places.__getitem__)
            zeros.append(ZeroTable(tuple(sorted(places)), never.transpose(order)))
    return tuple(zeros)
