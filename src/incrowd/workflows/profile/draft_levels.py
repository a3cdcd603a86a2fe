"""Levels of a draft: coarse enough that a table of this many rows could fill its cells."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from incrowd.core.recoding import Recoding
from incrowd.core.schema import Column, Role
from incrowd.workflows.policy.columns import column_of
from incrowd.workflows.policy.sections import ColumnSection
from incrowd.workflows.profile.profile import TableProfile

_FEWEST_CELLS = 12


def drafted_levels(profile: TableProfile, sections: Mapping[str, Any], rate: float, k: int) -> dict[str, int]:
    """Return a level for each released column: the largest is raised until k sampled rows a cell are in sight.

    Only the sizes of the drafted domains and the number of rows decide, not how the rows fall into cells.
    """
    distinct = {column.name: column.facts.spread.distinct for column in profile.columns}
    columns = [column_of(name, ColumnSection(**section), Path()) for name, section in sections.items()]
    free = [column for column in columns if column.role is not Role.IDENTIFIER]
    levels = {column.name: 0 for column in free}
    room = max(_FEWEST_CELLS, profile.rows * rate / k)
    while free:
        sizes = {column.name: _classes(column, levels[column.name], distinct[column.name]) for column in free}
        if math.prod(sizes.values()) <= room and not any(_open(column, levels[column.name]) for column in free):
            break
        widest = max(free, key=lambda column: (_open(column, levels[column.name]), sizes[column.name]))
        levels[widest.name] += 1
    return {name: level for name, level in levels.items() if level}


def _classes(column: Column, level: int, distinct: int) -> float:
    """Return how many classes a level has, as declared, or about how many of the values that occur."""
    members = Recoding(column, level).classes
    if members is not None:
        return max(1, len(members.marks))
    return max(1.0, math.pow(distinct, 1.0 - level / column.hierarchy.height))


def _open(column: Column, level: int) -> bool:
    """Return whether free text or bare decimals would be released."""
    return level == 0 and column.hierarchy.members(0) is None
