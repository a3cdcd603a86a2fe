"""Tree: every value with its place named on every level; from a nested mapping, a table or an order."""

from __future__ import annotations

import csv
import io
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.domain import DECLARED, Categories, Provenance, listed
from incrowd.core.hierarchy.hierarchy import TOP, Hierarchy, HierarchyRule, RuleKind
from incrowd.errors import InvalidParameter

Branch: TypeAlias = "Mapping[str, Branch] | Sequence[str]"


@dataclass(frozen=True)
class TreeHierarchy(Hierarchy):
    """One row per value: the value, then its label on each level; a last level of nothing but `*` is not repeated.

    >>> places = TreeHierarchy((("Nice", "France", "Europe"), ("Lyon", "France", "Europe"), ("Kyoto", "Japan", "Asia")))
    >>> places.labels(1), places.labels(2), places.labels(3)
    (('France', 'Japan'), ('Europe', 'Asia'), ('*',))
    """

    rows: tuple[tuple[str, ...], ...]
    provenance: Provenance = DECLARED
    domain: Categories = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.rows or not self.rows[0]:
            raise InvalidParameter("a hierarchy needs at least one value.")
        width = len(self.rows[0])
        ragged = [number for number, row in enumerate(self.rows, 1) if len(row) != width]
        if ragged:
            raise InvalidParameter(
                f"row {ragged[0]} of the hierarchy has {len(self.rows[ragged[0] - 1])} levels and row 1 has {width}: "
                f"every value needs a label on every level ({len(ragged)} rows differ)."
            )
        twice = [value for value, times in Counter(row[0] for row in self.rows).items() if times > 1]
        if twice:
            raise InvalidParameter(
                f"these values stand in the hierarchy more than once: {listed(twice)}. Keep one row."
            )
        for level in range(1, width - 1):
            self._check_nested(level)
        object.__setattr__(self, "domain", Categories(tuple(row[0] for row in self.rows), self.provenance))

    def _check_nested(self, level: int) -> None:
        above: dict[str, str] = {}
        for row in self.rows:
            if above.setdefault(row[level], row[level + 1]) != row[level + 1]:
                raise InvalidParameter(
                    f"{row[level]!r} on level {level} lies both in {above[row[level]]!r} and in {row[level + 1]!r} on "
                    f"level {level + 1}: give it one place, or two names."
                )

    @cached_property
    def depth(self) -> int:
        width = len(self.rows[0])
        return width - 2 if width > 1 and all(row[-1] == TOP for row in self.rows) else width - 1

    @property
    def rule(self) -> HierarchyRule:
        return HierarchyRule(RuleKind.TREE, size=len(self.rows))

    @cached_property
    def _columns(self) -> tuple[pa.Array, ...]:
        """For each level the labels, one per row."""
        return tuple(pa.array(column, pa.string()) for column in zip(*self.rows, strict=True))

    @cached_property
    def _marks(self) -> tuple[pa.Array, ...]:
        """For each level the marks, one per row: the first value with the same label."""
        levels = []
        for column in self._columns:
            labels = column.dictionary_encode().indices
            first = np.unique(labels.to_numpy(), return_index=True)[1]
            levels.append(self._columns[0].take(pa.array(first)).take(labels))
        return tuple(levels)

    def _lift(self, values: pa.Array, level: int) -> pa.Array:
        return self._marks[level].take(self._places(values))

    @cached_property
    def _listings(self) -> tuple[pa.Array, ...]:
        """For each level the marks, each once."""
        return tuple(pc.unique(marks) for marks in self._marks)

    def _members(self, level: int) -> pa.Array:
        return self._listings[level]

    def _names(self, marks: pa.Array, level: int) -> pa.Array:
        return self._columns[level].take(self._places(marks))

    def _places(self, values: pa.Array) -> pa.Array:
        return pc.index_in(values, value_set=self._columns[0])

    def _generalize(self, value: str, level: int) -> str | None:
        return next((row[level] for row in self.rows if row[0] == value), None)


def tree(branch: Branch, provenance: Provenance = DECLARED) -> TreeHierarchy:
    """Build the hierarchy of a nested mapping whose innermost lists are the values.

    A value with fewer levels above it than another keeps its topmost label on the rest.  A label that is also a value
    would mean two things, unless nothing else is below it.

    >>> tree({"Europe": {"France": ["Paris", "Lyon"]}, "Asia": ["Kyoto"]}).rows
    (('Paris', 'France', 'Europe'), ('Lyon', 'France', 'Europe'), ('Kyoto', 'Asia', 'Asia'))
    """
    paths = list(_paths(branch, ()))
    members: dict[str, set[str]] = {}
    for value, *above in paths:
        for label in above:
            members.setdefault(label, set()).add(value)
    double = sorted({path[0] for path in paths if members.get(path[0], {path[0]}) != {path[0]}})
    if double:
        raise InvalidParameter(
            f"these labels of the tree are also values with another meaning: {listed(double)}. Rename the labels, for "
            f"example {double[0] + ' and others'!r}."
        )
    width = max((len(path) for path in paths), default=0)
    return TreeHierarchy(tuple(path + (path[-1],) * (width - len(path)) for path in paths), provenance)


def ordered(values: Sequence[str], sizes: Sequence[int], provenance: Provenance = DECLARED) -> TreeHierarchy:
    """Group values that have an order, so many consecutive ones per group; finest level first.

    >>> ordered(["none", "primary", "secondary", "college", "doctorate"], (2, 4)).rows[2:]
    (('secondary', 'secondary to college', 'none to college'),
     ('college', 'secondary to college', 'none to college'),
     ('doctorate', 'doctorate', 'doctorate'))
    """
    if not sizes or min(sizes) < 2:
        raise InvalidParameter("groups join at least two values: give sizes of 2 or more.")
    for fine, coarse in itertools.pairwise(sizes):
        if coarse <= fine or coarse % fine:
            raise InvalidParameter(f"groups of {coarse} do not consist of groups of {fine}: take multiples, growing.")
    names = [[_group(values, place, size) for size in sizes] for place in range(len(values))]
    return TreeHierarchy(tuple((value, *above) for value, above in zip(values, names, strict=True)), provenance)


def _paths(branch: Branch, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(branch, Mapping):
        for name, inner in branch.items():
            yield from _paths(inner, (name, *above))
    elif isinstance(branch, str):
        raise InvalidParameter(f"the values under {above[0] if above else 'a tree'!r} must be a list.")
    else:
        yield from ((value, *above) for value in branch)


def _group(values: Sequence[str], place: int, size: int) -> str:
    members = values[place - place % size :][:size]
    return members[0] if len(members) == 1 else f"{members[0]} to {members[-1]}"


_OTHERS = {",": "a comma", "\t": "a tab", "|": "a bar", ";": "a semicolon"}


@dataclass(frozen=True)
class ArxStyle:
    """How the lines are written, kept so that a file that is read and written again stays the same bytes."""

    delimiter: str = ";"
    newline: str = "\n"
    ends_with_newline: bool = True
    all_quoted: bool = False
    byte_order_mark: bool = False


@dataclass(frozen=True)
class ArxTable:
    r"""The lines of a hierarchy file.

    >>> text = "Paris;France;*\nKyoto;Japan;*\n"
    >>> parse_arx(text).hierarchy().labels(1)
    ('France', 'Japan')
    >>> parse_arx(text).text() == text
    True
    """

    rows: tuple[tuple[str, ...], ...]
    style: ArxStyle = ArxStyle()

    def hierarchy(self, provenance: Provenance = DECLARED) -> TreeHierarchy:
        """Return the hierarchy these lines declare."""
        return TreeHierarchy(self.rows, provenance)

    def text(self) -> str:
        """Return the content of the file."""
        style, out = self.style, io.StringIO()
        quoting: Literal[0, 1] = csv.QUOTE_ALL if style.all_quoted else csv.QUOTE_MINIMAL
        writer = csv.writer(out, delimiter=style.delimiter, lineterminator=style.newline, quoting=quoting)
        writer.writerows(self.rows)
        content = out.getvalue()
        if not style.ends_with_newline:
            content = content.removesuffix(style.newline)
        return ("\ufeff" if style.byte_order_mark else "") + content


def parse_arx(text: str, delimiter: str = ";") -> ArxTable:
    r"""Read the content of a hierarchy file.

    >>> parse_arx("a,x\nb,x\n", delimiter=",").rows
    (('a', 'x'), ('b', 'x'))
    """
    content = text.removeprefix("\ufeff")
    try:
        lines = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, strict=True)
        rows = tuple(tuple(row) for row in lines if row)
    except csv.Error as error:
        raise InvalidParameter(f"this hierarchy is not a table separated by {delimiter!r}: {error}.") from error
    if not rows:
        raise InvalidParameter("this hierarchy is empty: give one line per value, the value first.")
    if all(len(row) == 1 for row in rows):
        meant = [name for other, name in _OTHERS.items() if other != delimiter and all(other in r[0] for r in rows)]
        if meant:
            raise InvalidParameter(f"no line contains {delimiter!r}, but all contain {meant[0]}: name that delimiter.")
    newline = "\r\n" if "\r\n" in content else "\n"
    style = ArxStyle(delimiter, newline, content.endswith(newline), byte_order_mark=content != text)
    table = ArxTable(rows, style)
    quoted = replace(table, style=replace(style, all_quoted=True))
    return quoted if quoted.text() == text != table.text() else table


def table_of(hierarchy: Hierarchy) -> ArxTable:
    """List a hierarchy for ARX, every level included; its values must be declared, so that they can be listed.

    >>> from incrowd.core.domain import Numbers
    >>> from incrowd.core.hierarchy.intervals import Intervals
    >>> print(table_of(Intervals(Numbers(1, 4), (2,))).text(), end="")
    1;[1, 3);*
    2;[1, 3);*
    3;[3, 5);*
    4;[3, 5);*
    """
    values = hierarchy.members(0)
    if values is None:
        raise InvalidParameter(
            f"a hierarchy of any value at all ({hierarchy.rule}) cannot be listed: declare categories or bounds."
        )
    levels = range(hierarchy.height + 1)
    columns = [hierarchy.names(hierarchy.lift(values, level), level).to_pylist() for level in levels]
    return ArxTable(tuple(zip(*columns, strict=True)))
