"""Rules: what is true of every row of a linked table, as cells that its model gives no chance and as values that fit.

Constraints are declared and public, as for one table.  In a sequence the order column never falls from one row of a
parent to the next: that follows from how rows are read, so nobody declares it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from incrowd.core.domain import Dates, Numbers
from incrowd.errors import InvalidParameter
from incrowd.methods.synthesis.linked.levels import Level, ModelPart
from incrowd.methods.synthesis.marginals.constraints import ConstraintKind
from incrowd.methods.synthesis.marginals.declared import DeclaredConstraints
from incrowd.methods.synthesis.marginals.detail import FinerPieces, drawn_number, on_a_line
from incrowd.methods.synthesis.marginals.junction import cells_of
from incrowd.methods.synthesis.marginals.model import ZeroTable, merged_zeros, require_possible
from incrowd.methods.synthesis.marginals.patterns import PatternKind, ValuePattern

if TYPE_CHECKING:
    from incrowd.core.recoding import Classes
    from incrowd.methods.synthesis.marginals.method import Marginals

_ROOM = 4  # the table of a column and the one before it has at most this part of all cells


@dataclass(frozen=True, eq=False)
class TableRules:
    """What is public about the rows of one table: cells that never occur, faint classes, and the column of its order.

    `faint` are classes for missing values and values outside, drawn only if they were measured above noise.
    """

    declared: DeclaredConstraints
    zeros: tuple[ZeroTable, ...]
    faint: tuple[tuple[int, int], ...]
    ascending: str | None = None

    @classmethod
    def of(cls, single: Marginals, level: Level, classes: Sequence[Classes], cells: int) -> TableRules:
        """Return the rules of a table, whose columns come first in its model, or refuse what cannot be."""
        declared = DeclaredConstraints.of(single, classes)
        if any(item.kind is ConstraintKind.UNIQUE for item in declared.numbers):
            raise InvalidParameter("a constraint on linked tables cannot be unique: keys are, and no other column.")
        ascending = _ascending(level, classes)
        fits = ascending is not None and cells_of(level.sizes, [ascending.columns]) <= cells // _ROOM
        own = (ascending,) if ascending is not None and fits else ()
        zeros = merged_zeros((*declared.codes(classes), *own), level.sizes)
        require_possible(level.sizes, zeros)
        order = level.child.order if own and level.child is not None else None
        return cls(declared, zeros, declared.faint(classes), order)


def _ascending(level: Level, classes: Sequence[Classes]) -> ZeroTable | None:
    """Return the cells in which the order column falls: a lower class after a higher one, any after a missing one."""
    order = None if level.child is None else level.child.order
    names = [item.recoding.column.name for item in classes]
    if order not in names or not level.places(ModelPart.PREVIOUS):
        return None
    item = classes[names.index(order)]
    number = len(item.marks)
    readable = drawn_number(item) or item.recoding.level == 0  # what is released can be compared again
    if not isinstance(item.recoding.column.domain, Numbers | Dates) or item.has_other or number < 2 or not readable:
        return None
    if np.any(np.diff(on_a_line(item.marks)) <= 0):
        return None
    now, before = np.arange(len(item))[:, None], np.arange(-1, len(item))[None, :]
    own = next(place for place in level.places(ModelPart.OWN) if level.columns[place].column == order)
    previous = next(place for place in level.places(ModelPart.PREVIOUS) if level.columns[place].column == order)
    return ZeroTable((own, previous), now < before)


def patterns_in(single: Marginals, classes: tuple[Classes, ...], rules: TableRules) -> tuple[ValuePattern, ...]:
    """Return the patterns of a table; none whose later column is the order of a sequence, which it would break."""
    return tuple(
        pattern
        for pattern in single.patterns(classes)
        if pattern.kind is not PatternKind.DISTANCE or pattern.columns[1] != rules.ascending
    )


def pieces_of(single: Marginals, classes: tuple[Classes, ...]) -> dict[str, FinerPieces]:
    """Return the columns of numbers and days that are measured once more, in finer pieces than their classes."""
    fine = single.pieces(classes)
    return {classes[place].recoding.column.name: own for place, own in fine.items() if drawn_number(classes[place])}
