"""Recoding: one column at one level; each row is recoded by its own value alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.domain import Dates, Numbers, Type
from incrowd.core.hierarchy.hierarchy import ANY
from incrowd.core.keys import Codes
from incrowd.core.reading import as_dictionary, canonical, read
from incrowd.core.schema import OTHER, Column, Missing, Outside
from incrowd.errors import InvalidParameter

LEFT_OUT = -1
"""The code of a suppressed row."""


class CodeTable(Protocol):
    """Gives codes to classes: by the declaration, or at an open level by an engine as it reads them."""

    @property
    def other(self) -> int:
        """The code of values outside the domain."""

    @property
    def missing(self) -> int:
        """The code of missing values."""

    def codes(self, marks: pa.Array) -> Codes:
        """Return the code of each mark; no mark is null."""


@dataclass(frozen=True)
class Recoding:
    """A column at a level of its hierarchy.

    >>> from incrowd.core.domain import Numbers, Type
    >>> from incrowd.core.hierarchy.intervals import Intervals
    >>> age = Column("age", type=Type.INTEGER, hierarchy=Intervals(Numbers(0, 39), (20,)), outside=Outside.OTHER)
    >>> Recoding(age, 1).classes.labels().to_pylist()
    ['[0, 20)', '[20, 40)', 'other', None]
    >>> Recoding(age, 1).codes(pa.array(["7", "39", "40", "", "x"])).tolist()
    [0, 1, 2, 3, 2]
    """

    column: Column
    level: int

    def __post_init__(self) -> None:
        if not 0 <= self.level <= self.column.hierarchy.height:
            raise InvalidParameter(
                f"{self.column.name!r} has the levels 0 (the value itself) to {self.column.hierarchy.height} (all are "
                f"'*'), not {self.level}."
            )
        if self.column.separator is not None and (not self.top or self.column.may_drop):
            raise InvalidParameter(
                f"each row of {self.column.name!r} holds a set of items, which cannot be counted here: use the method "
                "itemsets, make the column an identifier, or remove it from the policy."
            )

    @property
    def top(self) -> bool:
        """Whether everything is `*` here."""
        return self.level == self.column.hierarchy.height

    @property
    def needs_rows(self) -> bool:
        """Whether the column must be read at all: not if all is `*` and no row can be suppressed."""
        return not self.top or self.column.may_drop

    @cached_property
    def classes(self) -> Classes | None:
        """The classes in order as the declaration lists them, or None at an open level."""
        members = self.column.hierarchy.members(self.level)
        if members is None:
            return None
        if self.top:
            return Classes(self, members, has_other=False, has_missing=False)
        extra = self.column.has_other and self.declared_other is None
        return Classes(self, members, extra, has_missing=self.column.missing == Missing.CLASS)

    @cached_property
    def declared_other(self) -> pa.Array | None:
        """The mark of a declared class named `other`, here or below, which takes in the values outside."""
        if not isinstance(self.column.domain, Numbers | Dates):
            for level in range(self.level + 1):
                labels = self.column.hierarchy.labels(level)
                if labels is not None and OTHER in labels:
                    return self.column.hierarchy.members(level).slice(labels.index(OTHER), 1)  # type: ignore[union-attr]
        return None

    def codes(self, array: pa.Array | pa.ChunkedArray, table: CodeTable | None = None) -> Codes:
        """Return the code of each row's class, or −1 where the row is suppressed; an open level needs a code table."""
        values, indices = as_dictionary(array)
        codes = self.codes_of(values, table)
        return codes[:-1] if indices is None else codes[indices]

    def codes_of(self, values: pa.Array, table: CodeTable | None = None) -> Codes:
        """Return the code of each value of a plain array, and one code more: that of null."""
        table = self.classes if table is None else table
        if table is None:
            raise InvalidParameter(
                f"the classes of {self.column.name!r} at level {self.level} cannot be listed from the declaration: "
                "declare categories or bounds, or use a higher level."
            )
        stored = read(pa.concat_arrays([values, pa.nulls(1, values.type)]), self.column.type)
        inside, outside = self._place(stored.values, stored.unreadable)
        absent = LEFT_OUT if self.column.missing == Missing.DROP else table.missing
        codes = np.full(len(inside), absent, np.int32)
        codes[outside] = LEFT_OUT if self.column.rule_outside is Outside.DROP else table.other
        present = inside.is_valid().to_numpy(zero_copy_only=False)
        codes[present] = table.codes(self.column.hierarchy.lift(inside.drop_null(), self.level))
        return codes

    def unreadable(self, array: pa.Array | pa.ChunkedArray) -> NDArray[np.bool_]:
        """Return for each row whether its value cannot be read as the declared type."""
        values, indices = as_dictionary(array)
        flags = np.append(read(values, self.column.type).unreadable, False)
        if not flags.any():
            return np.zeros(len(array), np.bool_)
        return flags[:-1] if indices is None else flags[indices]

    def _place(self, values: pa.Array, unreadable: NDArray[np.bool_]) -> tuple[pa.Array, NDArray[np.bool_]]:
        """Return the values as the domain stores them, null where they are not inside, and which count as outside."""
        domain, rule = self.column.domain, self.column.rule_outside
        if isinstance(domain, Numbers | Dates):
            if rule is Outside.ENDS:
                values = domain.clamp(values)
        else:
            values = canonical(values)
        inside = domain.contains(values)
        outside = ~inside & (values.is_valid().to_numpy(zero_copy_only=False) | unreadable)
        values = pc.if_else(pa.array(inside), values, pa.scalar(None, values.type))
        if rule is Outside.ENDS or (rule is Outside.OTHER and not self.column.has_other):
            outside = np.zeros_like(outside)
        if self.column.fill is not None:
            fill = read(pa.array([self.column.fill]), self.column.type).values
            fill = fill if isinstance(domain, Numbers | Dates) else canonical(fill)
            values = pc.if_else(pa.array(inside | outside), values, fill[0])
        return values, outside


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of one released column in order: marks, then perhaps `other`, then perhaps missing values.

    The place of a class in this order is its code.
    """

    recoding: Recoding
    marks: pa.Array
    has_other: bool
    has_missing: bool

    def __len__(self) -> int:
        return len(self.marks) + self.has_other + self.has_missing

    @property
    def other(self) -> int:
        """The code of values outside the domain."""
        if self.recoding.top:
            return 0
        declared = self.recoding.declared_other
        return len(self.marks) if declared is None else int(self.codes(self._lifted(declared, self.recoding))[0])

    @property
    def missing(self) -> int:
        """The code of missing values."""
        return 0 if self.recoding.top else len(self.marks) + self.has_other

    def codes(self, marks: pa.Array) -> Codes:
        """Return the code of each mark."""
        codes: Codes = pc.index_in(marks, value_set=self.marks).to_numpy(zero_copy_only=False).astype(np.int32)
        return codes

    def labels(self) -> pa.Array:
        """Return the labels in order; null for missing values."""
        names = self.recoding.column.hierarchy.names(self.marks, self.recoding.level)
        extra = [OTHER] * self.has_other + [None] * self.has_missing
        return pa.concat_arrays([names, pa.array(extra, pa.string())])

    @property
    def ends(self) -> tuple[bool, bool]:
        """Whether the first and the last value stand for those beyond a bound, too; above level 0 labels say so."""
        column = self.recoding.column
        moved = isinstance(column.domain, Numbers | Dates) and column.rule_outside is Outside.ENDS
        if self.recoding.level or not moved or not len(self.marks):
            return False, False
        bounds = [None if end is None else pa.scalar(end, self.marks.type) for end in column.stored_bounds]
        return bounds[0] == self.marks[0], bounds[1] == self.marks[-1]

    def open_labels(self) -> pa.Array:
        """Return the labels for a column of text, in which a number at a bound says that it stands for those beyond.

        >>> from incrowd.core.hierarchy.flat import Flat
        >>> age = Column("age", type=Type.INTEGER, hierarchy=Flat(Numbers(0, 2)))
        >>> Recoding(age, 0).classes.open_labels().to_pylist()
        ['<= 0', '1', '>= 2', None]
        """
        first, last = self.ends
        if not (first or last) or not isinstance(self.recoding.column.domain, Numbers):
            return self.labels()
        labels = self.labels().to_pylist()
        place = len(self.marks) - 1
        if place == 0 and first and last:
            labels[0] = ANY
        else:
            labels[0] = f"<= {labels[0]}" if first else labels[0]
            labels[place] = f">= {labels[place]}" if last else labels[place]
        return pa.array(labels, pa.string())

    def values(self) -> pa.Array:
        """Return what is released for each class: values of the declared type at level 0, labels above.

        Where there is a class `other`, or a day that stands for earlier or later ones, too, the column is released as
        text: its type is known before a row is read.  A number at a bound stands for the numbers beyond it, too.
        """
        column = self.recoding.column
        as_text = column.has_other or column.open_days or column.type is Type.TEXT
        if self.recoding.level or self.recoding.top or as_text:
            return self.labels()
        if isinstance(column.domain, Numbers | Dates):
            return pa.concat_arrays([self.marks, pa.nulls(int(self.has_missing), self.marks.type)])
        values = read(self.labels(), column.type).values
        return pc.equal(values, "true") if column.type is Type.BOOLEAN else values

    def rise(self, level: int) -> tuple[Classes, Codes]:
        """Return the classes at a higher level, and for each code here the code there."""
        if level < self.recoding.level:
            raise InvalidParameter(
                f"{self.recoding.column.name!r} was counted at level {self.recoding.level}: level {level} is finer "
                "and would need the rows."
            )
        if level == self.recoding.level:
            return self, np.arange(len(self), dtype=np.int32)
        target = Recoding(self.recoding.column, level)
        lifted = self._lifted(self.marks, target)
        classes = target.classes or Classes(target, _in_order(lifted), self.has_other, self.has_missing)
        extra = [classes.other] * self.has_other + [classes.missing] * self.has_missing
        return classes, np.append(classes.codes(lifted), np.array(extra, np.int32)).astype(np.int32)

    def only(self, used: NDArray[np.bool_]) -> tuple[Classes, Codes]:
        """Return the classes that are used, and for each code here the code there (−1 if unused)."""
        ordinary = len(self.marks)
        other = bool(self.has_other and used[ordinary])
        missing = bool(self.has_missing and used[-1])
        classes = Classes(self.recoding, self.marks.filter(pa.array(used[:ordinary])), other, missing)
        return classes, np.where(used, np.cumsum(used) - 1, -1).astype(np.int32)

    @staticmethod
    def _lifted(marks: pa.Array, target: Recoding) -> pa.Array:
        return target.column.hierarchy.lift(marks, target.level)


def _in_order(marks: pa.Array) -> pa.Array:
    unique = pc.unique(marks)
    return unique.take(pc.array_sort_indices(unique))
