"""Levels of a draft, from its declarations alone: how fine rows may become, and which bins are counted."""

from __future__ import annotations

import math
from collections.abc import Sequence

from incrowd.core.domain import Dates, Numbers, Text
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Column
from incrowd.errors import InvalidParameter

_CANDIDATES = 400
_MOST_BINS, _BINS_EACH, _DIMENSIONS = 500, 30, 3


def lowest_levels(columns: Sequence[Column]) -> dict[str, int]:
    """Return for each column the finest level that may be chosen: raised until few combinations are left to weigh.

    Only the declarations decide.  No free text and no bare number is released; every column keeps two levels.
    """
    lowest = {column.name: _finest(column) for column in columns}
    rooms = {column.name: column.hierarchy.height for column in columns}
    while math.prod(rooms[name] - level + 1 for name, level in lowest.items()) > _CANDIDATES:
        widest = max(
            columns, key=lambda each: (rooms[each.name] - lowest[each.name], _classes(each, lowest[each.name]))
        )
        if rooms[widest.name] - lowest[widest.name] <= 1:
            break
        lowest[widest.name] += 1
    return {name: level for name, level in lowest.items() if level}


def bin_levels(columns: Sequence[Column]) -> dict[str, int]:
    """Return up to three columns with levels at which their classes are known and few, in the order of the columns."""
    chosen: dict[str, int] = {}
    bins = 1
    for column in columns:
        levels = range(column.hierarchy.height)
        few = next((level for level in levels if 1 < _classes(column, level) <= _BINS_EACH), None)
        if few is not None and bins * _classes(column, few) <= _MOST_BINS and len(chosen) < _DIMENSIONS:
            chosen[column.name] = few
            bins *= _classes(column, few)
    if not chosen:
        raise InvalidParameter(
            "counts need a column whose values are publicly known, and there is none: name the source of a list with "
            "--public COLUMN=SOURCE."
        )
    return chosen


def open_levels(columns: Sequence[Column]) -> dict[str, int]:
    """Return level 1 for each column whose values are any text: no free text is released.

    >>> from incrowd.core.hierarchy.text import Prefix
    >>> open_levels([Column("zip", hierarchy=Prefix(Text(), (3, 2))), Column("sex")])
    {'zip': 1, 'sex': 1}
    """
    return {column.name: 1 for column in columns if isinstance(column.domain, Text)}


def _finest(column: Column) -> int:
    """Return the finest level that is no free text and no bare number or day."""
    fine = isinstance(column.domain, Text | Numbers | Dates) and column.hierarchy.depth > 0
    return 1 if fine or isinstance(column.domain, Text) else 0


def _classes(column: Column, level: int) -> int:
    """Return how many classes a level has, 0 if that is not declared."""
    members = Recoding(column, level).classes
    return 0 if members is None else len(members.marks)
