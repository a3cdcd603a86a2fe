"""Hierarchy: a value made coarser, level by level, by a rule that is public before a row is read.

Level 0 is the value itself, then come the declared levels, and at `height` everything is `*`.  Each level is a
function of the one below, so the classes of a level are unions of classes of any level below it.

A class is represented by its *mark*, a value of the class: the low edge of an interval, the first day of a month, the
prefix itself.  Marks are values, so they can be made coarser in turn, and they sort as values do (9 before 10).
A level whose classes can be listed from the declaration is *enumerable* and gives its classes codes 0, 1, … in order;
other levels are *open* (the prefixes of any text) and their marks are met while reading.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.domain import Dates, Domain, Provenance
from incrowd.core.reading import canonical
from incrowd.core.terms import KeyedText
from incrowd.errors import InvalidParameter

ANY = "any"
"""The label of a class that holds both ends of a range, and so every value."""

_OPEN = re.compile(r" or (earlier|later)$")
_EPOCH = date(1970, 1, 1).toordinal()


def open_days(labels: pa.Array, days: pa.Array, ends: tuple[int | None, int | None]) -> pa.Array:
    """Return the labels of days, or of periods by their first days, open at the ends; an end is a day since 1970.

    >>> open_days(pa.array(["2023", "2024"]), pa.array([19358, 19723], pa.int32()), (19358, None)).to_pylist()
    ['2023 or earlier', '2024']
    """
    first, last = ends
    if first is not None and first == last:
        return pc.if_else(pc.equal(days, first), ANY, labels)
    for end, words in ((first, "or earlier"), (last, "or later")):
        if end is not None:
            labels = pc.if_else(pc.equal(days, end), pc.binary_join_element_wise(labels, words, " "), labels)
    return labels


def open_label(label: str, first: str | None, last: str | None) -> str:
    """Return one label, open if it is the first or the last: the rule, slow and obvious.

    >>> open_label("2024", "2020", "2024"), open_label("2024", "2024", "2024"), open_label("2024", "2024", None)
    ('2024 or later', 'any', '2024 or earlier')
    """
    if label == first and label == last:
        return ANY
    return f"{label} or earlier" if label == first else f"{label} or later" if label == last else label


def end_value(label: str) -> str:
    """Return the day in the label of an end; any other label as it is.

    >>> end_value("2024-01-01 or earlier"), end_value("2024-01-02")
    ('2024-01-01', '2024-01-02')
    """
    return _OPEN.sub("", label)


def day_number(day: date | None) -> int | None:
    """Return a day as its number, counted from 1970.

    >>> day_number(date(1970, 1, 2))
    1
    """
    return None if day is None else day.toordinal() - _EPOCH


TOP = "*"
"""The one label of the topmost level."""


class RuleKind(KeyedText):
    """How a hierarchy makes values coarser; the text has a place for the sizes, names or lengths of its levels."""

    FLAT = "flat", "the value itself"
    PREFIX = "prefix", "the first {} characters"
    REDACTION = "redaction", "redaction of {} characters from the right"
    INTERVALS = "intervals", "intervals of {}"
    CUTS = "cuts", "cut at {}"
    SLICES = "slices", "{} pieces of equal length"
    CALENDAR = "calendar", "dates by {}"
    TREE = "tree", "a tree of {} values"
    CLASSIFICATION = "classification", "codes and chapters of {}"
    PSEUDONYM = "pseudonym", "a keyed pseudonym, HMAC-SHA-256 cut to 128 bits"


@dataclass(frozen=True)
class HierarchyRule:
    """The kind of a hierarchy, with one number or name a level (cuts: several), or the number of its pieces or values.

    >>> str(HierarchyRule(RuleKind.CUTS, (("18", "65"), ("18",)))), str(HierarchyRule(RuleKind.TREE, size=6))
    ('cut at 18, 65; 18', 'a tree of 6 values')
    """

    kind: RuleKind
    levels: tuple[tuple[str, ...], ...] | None = None
    size: int | None = None

    @classmethod
    def by_level(cls, kind: RuleKind, values: Iterable[object]) -> HierarchyRule:
        """Return the rule with one value a level."""
        return cls(kind, tuple((str(value),) for value in values))

    def __str__(self) -> str:
        if self.kind is RuleKind.PREFIX and self.levels == (("1",),):
            return "the first character"
        levels = self.levels or ((str(self.size),),)
        between = "; " if any(len(level) > 1 for level in levels) else ", "
        return self.kind.text.format(between.join(", ".join(level) for level in levels))


class Hierarchy(ABC):
    """Value to coarser value; see the module for levels, marks and codes.

    A subclass says how many levels it declares (`depth`) and gives three rules for the levels 1 … depth: `_lift`
    (value to mark), `_names` (mark to label) and `_generalize`, the slow and obvious one that tests compare with.
    """

    domain: Domain
    provenance: Provenance
    open_ends: bool = False
    """Whether the labels of the first and the last class say that they hold the values beyond the bounds, too."""

    def with_open_ends(self) -> Hierarchy:
        """Return the hierarchy with labels that are true of values beyond the bounds, which are moved to the ends."""
        return self

    @property
    @abstractmethod
    def depth(self) -> int:
        """How many levels are declared between the value itself and `*`."""

    @property
    @abstractmethod
    def rule(self) -> HierarchyRule:
        """The rule by which values become coarser."""

    @property
    def height(self) -> int:
        """The level at which everything is `*`."""
        return self.depth + 1

    def characters(self, level: int) -> int | None:
        """How many first characters a class shows; None where classes are no prefixes."""
        return None

    def lift(self, values: pa.Array, level: int) -> pa.Array:
        """Return the mark of each value's class; the values, stored as the domain stores them, are inside it."""
        self._check(level)
        if level == self.height:
            return pa.repeat(TOP, len(values))
        return self._lift(values, level) if level else values

    def names(self, marks: pa.Array, level: int) -> pa.Array:
        """Return the label of each mark."""
        self._check(level)
        if level == self.height:
            return marks
        return self._names(marks, level) if level else self._values(marks)

    def members(self, level: int) -> pa.Array | None:
        """Return the marks of all classes in order, or None where they cannot be listed."""
        self._check(level)
        if level == self.height:
            return pa.array([TOP])
        return self._members(level)

    def labels(self, level: int) -> tuple[str, ...] | None:
        """Return the labels of all classes in order, or None where they cannot be listed."""
        members = self.members(level)
        return None if members is None else tuple(self.names(members, level).to_pylist())

    def codes(self, values: pa.Array, level: int) -> NDArray[np.int32]:
        """Return the code of each value's class, −1 where there is none; only of an enumerable level."""
        places = pc.index_in(self.lift(values, level), value_set=self._listed(level))
        codes: NDArray[np.int32] = pc.fill_null(places, -1).to_numpy(zero_copy_only=False)
        return codes

    def rise(self, low: int, high: int) -> NDArray[np.int32]:
        """Return for each code of an enumerable level the code at a higher one."""
        if low > high:
            raise InvalidParameter(f"values only become coarser: level {low} does not rise to level {high}.")
        members = self._listed(low)
        return self.codes(members, high) if low < self.height else np.zeros(1, np.int32)

    def leaves(self, level: int) -> NDArray[np.float64] | None:
        """Return how many values of the domain each class holds, or None where they cannot be counted."""
        if self.members(0) is None or self.members(level) is None:
            return None
        size = len(self._listed(level))
        return np.bincount(self.rise(0, level), minlength=size).astype(np.float64)

    def generalize(self, value: str, level: int) -> str | None:
        """Return the label of one value written as text, or None if it is outside: the rule, slow and obvious."""
        self._check(level)
        bottom = self._generalize(value, 0)
        if bottom is None:
            return None
        if level == 0:
            low, high = self._open_days
            return open_label(bottom, None if low is None else str(low), None if high is None else str(high))
        return TOP if level == self.height else self._generalize(value, level)

    @abstractmethod
    def _lift(self, values: pa.Array, level: int) -> pa.Array: ...

    @abstractmethod
    def _names(self, marks: pa.Array, level: int) -> pa.Array: ...

    @abstractmethod
    def _generalize(self, value: str, level: int) -> str | None: ...

    @property
    def _open_days(self) -> tuple[date | None, date | None]:
        """The first and the last day, where days beyond them have their label."""
        return self.domain.bounds if self.open_ends and isinstance(self.domain, Dates) else (None, None)

    def _values(self, marks: pa.Array) -> pa.Array:
        """Return the labels of values; a number at an end stays a number, a day there says that it is one."""
        low, high = self._open_days
        if low is None and high is None:
            return canonical(marks)
        return open_days(canonical(marks), pc.cast(marks, pa.int32()), (day_number(low), day_number(high)))

    def _members(self, level: int) -> pa.Array | None:
        values = self.domain.members()
        return values if values is None or level == 0 else pc.unique(self._lift(values, level))

    def _listed(self, level: int) -> pa.Array:
        members = self.members(level)
        if members is None:
            raise InvalidParameter(
                f"level {level} of this hierarchy ({self.rule}) cannot be listed from the declaration: "
                "declare categories or bounds, or use a higher level."
            )
        return members

    def _check(self, level: int) -> None:
        if not 0 <= level <= self.height:
            raise InvalidParameter(
                f"this hierarchy ({self.rule}) has the levels 0 (the value itself) to {self.height} (all are '*'), "
                f"not {level}."
            )
