"""Axes: a column as a line or a tree along which it is cut, and what a class shows of it: range, mean or node."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.domain import Dates, Numbers
from incrowd.core.hierarchy.hierarchy import ANY, TOP
from incrowd.core.keys import Codes
from incrowd.core.reading import canonical
from incrowd.core.recoding import Classes

if TYPE_CHECKING:
    from incrowd.methods.anonymity.mondrian.pieces import Pieces

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


MISSING = "missing"


class Show(StrEnum):
    """How a class is shown."""

    RANGES = "ranges"
    MEANS = "means"
    NODES = "nodes"


@dataclass(frozen=True, eq=False)
class Labels:
    """The label of each class as a place among values that all occur; the place after the last stands for missing."""

    places: NDArray[np.intp]
    values: pa.Array


def labels(axis: Axis, pieces: Pieces, places: NDArray[np.integer], show: Show) -> Labels:
    """Return what each piece shows of a column; every label is true of every row in its piece.

    A mean is not a label of that kind: it lies between the least and the greatest value.
    """
    if show is Show.MEANS and averaged(axis):
        return _means(axis, pieces, places)
    if show is Show.NODES or not axis.line:
        return _nodes(axis, pieces, places)
    return _ranges(axis, pieces, places)


def averaged(axis: Axis) -> bool:
    """Whether a column has means: numbers and dates at their values."""
    recoding = axis.classes.recoding
    return isinstance(recoding.column.domain, Numbers | Dates) and recoding.level == 0


def _ranges(axis: Axis, pieces: Pieces, places: NDArray[np.integer]) -> Labels:
    """Show the least and the greatest value, and beside them what is outside or missing."""
    last = max(len(axis.classes.marks), 1)
    inside = places < last
    low = np.minimum.reduceat(np.where(inside, places, last).astype(np.int64), pieces.starts)
    high = np.maximum.reduceat(np.where(inside, places, -1).astype(np.int64), pieces.starts)
    beyond = np.bitwise_or.reduceat(np.where(inside, 0, 1 << np.maximum(places - last, 0)), pieces.starts)
    keys, which = np.unique((low * (last + 1) + high + 1) * 4 + beyond, return_inverse=True)
    pairs = [divmod(int(key) // 4, last + 1) for key in keys]
    labels = axis.classes.open_labels().to_pylist()
    names = [_stretch(axis, labels, pair, int(key) % 4) for pair, key in zip(pairs, keys, strict=True)]
    return _placed(names, which)


def _stretch(axis: Axis, names: list[str | None], places: tuple[int, int], beyond: int) -> str | None:
    """Return the name of the places of a line from the first up to the end, and of what lies beyond, bit by bit."""
    first, end = places
    last = max(len(axis.classes.marks), 1)
    outside = [names[last + bit] or MISSING for bit in range(2) if beyond >> bit & 1]
    if end <= first:
        return None if outside == [MISSING] else " or ".join(outside)
    if axis.ordered and end - first > 1:
        between = [_values(axis, first, end - 1) if averaged(axis) else f"{names[first]} to {names[end - 1]}"]
    else:
        between = [str(name) for name in names[first:end]]
    return " or ".join([*between, *outside])


def _values(axis: Axis, first: int, last: int) -> str:
    """Return the name of the values from a place to another; a bound to which values were moved is no end of them."""
    marks = axis.classes.marks
    here, there = canonical(marks.take(pa.array([first, last]))).to_pylist()
    lowest, highest = axis.classes.ends
    below, above = lowest and first == 0, highest and last == len(marks) - 1
    if below and above:
        return ANY
    days = isinstance(axis.classes.recoding.column.domain, Dates)
    if below:
        return f"{there} or earlier" if days else f"<= {there}"
    if above:
        return f"{here} or later" if days else f">= {here}"
    return f"[{here}, {there}]"


def box_names(axis: Axis, sides: Sequence[tuple[int, int]], used: NDArray[np.intp]) -> Labels:
    """Return what boxes show of a column, from their sides alone; only the names of the boxes that are used remain."""
    names = [_side(axis, *side) for side in sides]
    boxes = set(used.tolist())
    order = sorted(boxes, key=lambda box: sides[box])
    values = list(dict.fromkeys(names[box] for box in order if names[box] is not None))
    places = [
        values.index(name) if box in boxes and name is not None else len(values) for box, name in enumerate(names)
    ]
    return Labels(np.array(places, np.intp), pa.array(values, pa.string()))


def _side(axis: Axis, low: int, high: int) -> str | None:
    """Return the name of a stretch: a range of a line, or a node, or the branches of a node that it holds."""
    if (low, high) == (0, len(axis) - 1):
        return TOP
    if axis.line:
        last = max(len(axis.classes.marks), 1)
        beyond = sum(1 << place - last for place in range(max(low, last), high + 1))
        return _stretch(axis, axis.classes.open_labels().to_pylist(), (low, min(high + 1, last)), beyond)
    level = int(axis.lowest(np.array([low]), np.array([high]))[0])
    nodes = axis.nodes[level]
    if np.flatnonzero(nodes == nodes[low])[[0, -1]].tolist() == [low, high]:
        return _names(axis, level)[low]
    below = axis.nodes[level - 1]
    firsts = [place for place in range(low, high + 1) if place == low or below[place] != below[place - 1]]
    names = _names(axis, level - 1)
    return " or ".join(names[place] or MISSING for place in firsts)


def _names(axis: Axis, level: int) -> list[str | None]:
    """Return for each place the label of the node that it is in at a level, counted from the lowest."""
    above, table = axis.classes.rise(axis.classes.recoding.level + level)
    names: list[str | None] = above.open_labels().take(pa.array(table[axis.code])).to_pylist()
    return names


def _nodes(axis: Axis, pieces: Pieces, places: NDArray[np.integer]) -> Labels:
    """Show the lowest node of the hierarchy that holds all values."""
    low, high = (end.reduceat(places, pieces.starts) for end in (np.minimum, np.maximum))
    levels = axis.lowest(low, high)
    firsts = np.stack([np.searchsorted(node, node) for node in axis.nodes])[levels, low]
    keys, which = np.unique(levels * len(axis) + firsts, return_inverse=True)
    names = {int(level): _names(axis, int(level)) for level in np.unique(levels)}
    return _placed([names[int(key) // len(axis)][int(key) % len(axis)] for key in keys], which)


def _means(axis: Axis, pieces: Pieces, places: NDArray[np.integer]) -> Labels:
    """Show the mean of the values that are there; of days, the day it falls on."""
    inside = places < len(axis.classes.marks)
    rows = np.add.reduceat(np.where(inside, pieces.rows, 0), pieces.starts)
    sums = np.add.reduceat(np.where(inside, pieces.rows * axis.positions[places], 0.0), pieces.starts)
    means = sums / np.maximum(rows, 1)
    days = isinstance(axis.classes.recoding.column.domain, Dates)
    values, which = np.unique(np.floor(means) if days else means, return_inverse=True)
    used = np.zeros(len(values), np.bool_)
    used[which[rows > 0]] = True
    labels = pa.array(values[used].astype(np.int32), pa.int32()).cast(pa.date32()) if days else pa.array(values[used])
    return Labels(np.where(rows > 0, (np.cumsum(used) - 1)[which], int(used.sum())), labels)


def _placed(names: list[str | None], which: NDArray[np.intp]) -> Labels:
    """Give equal names one place, in the order in which they first come."""
    order = {name: place for place, name in enumerate(dict.fromkeys(name for name in names if name is not None))}
    table = np.array([len(order) if name is None else order[name] for name in names], np.intp)
    return Labels(table[which], pa.array(list(order), pa.string()))
