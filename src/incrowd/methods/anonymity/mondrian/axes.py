"""Axes: a column as a line along which it can be cut between any two values, or as a tree that is cut into branches."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from incrowd.core.domain import Dates, Numbers
from incrowd.core.keys import Codes
from incrowd.core.recoding import Classes

Places = NDArray[np.integer]
Widths = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Axis:
    """The classes of one column laid out so that every node of its hierarchy is a stretch of neighboring places.

    `place` tells for each code its place, `code` the reverse.  `nodes` tell for each level, from the counted one up to
    `*`, which node each place is in, numbered from 0 along the axis.  On a line the places are in the order of the
    values; what is outside or missing comes last.

    >>> from incrowd.core.hierarchy.tree import tree
    >>> from incrowd.core.recoding import Recoding
    >>> from incrowd.core.schema import Column
    >>> towns = Column("town", hierarchy=tree({"north": ["Oslo", "Bergen"], "south": ["Rome"]}))
    >>> axis = Axis.of(Recoding(towns, 0).classes)
    >>> [node.tolist() for node in axis.nodes]     # the last two places: `other`, and missing
    [[0, 1, 2, 3, 4], [0, 0, 1, 2, 3], [0, 0, 0, 0, 0]]
    """

    classes: Classes
    line: bool
    ordered: bool
    place: Codes
    code: Codes
    nodes: tuple[Codes, ...]

    @classmethod
    def of(cls, classes: Classes, ordered: Collection[str] = ()) -> Axis:
        """Return the axis of a column: a tree where there is a hierarchy of categories, else a line.

        Categories without a hierarchy lie in the order in which they are declared, whether that means something or not.
        """
        column = classes.recoding.column
        in_order = isinstance(column.domain, Numbers | Dates) or column.name in ordered
        line = in_order or column.hierarchy.depth == 0
        above = [classes.rise(level)[1] for level in range(classes.recoding.level, column.hierarchy.height + 1)]
        size = max(1, len(classes))
        above = above if len(classes) else [np.zeros(1, np.int32)] * len(above)
        code = np.arange(size, dtype=np.int32) if line else np.lexsort(above).astype(np.int32)
        place = np.empty(size, np.int32)
        place[code] = np.arange(size, dtype=np.int32)
        return cls(classes, line, in_order, place, code, tuple(_numbered(level[code]) for level in above))

    def __len__(self) -> int:
        return len(self.code)

    def lowest(self, low: Places, high: Places) -> NDArray[np.intp]:
        """Return the first level, counted from the bottom, at which the places from `low` to `high` are one node."""
        levels = np.full(np.shape(low), len(self.nodes) - 1, np.intp)
        for level in range(len(self.nodes) - 2, -1, -1):
            levels[self.nodes[level][low] == self.nodes[level][high]] = level
        return levels

    def width(self, low: Places, high: Places) -> Widths:
        """Return how wide each stretch is: the distance of its ends, or the values of its node beside the first."""
        if self.line:
            return np.asarray(self.positions[high] - self.positions[low])
        sizes = np.stack([np.bincount(node)[node] for node in self.nodes])
        return np.asarray(sizes[self.lowest(low, high), low] - 1.0)

    @cached_property
    def positions(self) -> Widths:
        """Where each place lies: numbers and dates at their value, other classes one step from the next.

        What is outside or missing lies beyond the last value, by the mean distance of two values.
        """
        marks = self.classes.marks
        if not isinstance(self.classes.recoding.column.domain, Numbers | Dates) or self.classes.recoding.top:
            return np.arange(len(self), dtype=np.float64)
        stored = marks.cast("int32") if isinstance(self.classes.recoding.column.domain, Dates) else marks
        values = stored.to_numpy(zero_copy_only=False).astype(np.float64)
        step = (values[-1] - values[0]) / (len(values) - 1) if len(values) > 1 else 1.0
        last = values[-1] if len(values) else 0.0
        return np.append(values, last + step * np.arange(1, len(self) - len(values) + 1))


def _numbered(nodes: Codes) -> Codes:
    """Return the number of each node along the axis, where equal ones are neighbors."""
    return np.cumsum(np.append(False, nodes[1:] != nodes[:-1])).astype(np.int32)
