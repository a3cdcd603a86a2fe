"""Ladder: one column at every level that may be chosen, from the finest, and the information loss of each level.

A row whose label stands for n of the N values of its column loses (n/N − 1/N) / (1 − 1/N): nothing if the label is a
value, everything if it is `*`.  A row that is not released loses everything.  A table's loss is the mean over its rows,
then over its columns.  This is the normalized form of Iyengar's (2002) general loss metric that ARX calls Loss.

Three cases that the formula leaves open: decimal numbers are measured by length, so a value is a share of 0; a missing
value that stays missing loses nothing; `other` stands for everything that was not declared, and loses everything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.domain import Categories, Dates, Numbers, Text, Type
from incrowd.core.keys import Codes
from incrowd.core.reading import canonical, read
from incrowd.core.recoding import Classes
from incrowd.errors import InvalidParameter


def class_losses(classes: Classes, values: pa.Array | None = None) -> NDArray[np.float64]:
    """Return what a row loses in each class of a column, in the order of the classes.

    Where the declaration does not say how many values a class holds (the prefixes of any text), `values` does: the
    values that are known to occur, each once.

    >>> from incrowd.core.recoding import Recoding
    >>> from incrowd.core.hierarchy.tree import tree
    >>> from incrowd.core.schema import Column
    >>> city = Column("city", hierarchy=tree({"Europe": ["Paris", "Lyon", "Rome"], "Asia": ["Kyoto", "Osaka"]}))
    >>> class_losses(Recoding(city, 1).classes).tolist()[:2]
    [0.5, 0.25]
    """
    recoding = classes.recoding
    extra = [1.0] * classes.has_other + [0.0] * classes.has_missing
    if recoding.top:
        return np.ones(len(classes))
    if recoding.level == 0:
        return np.append(np.zeros(len(classes.marks)), extra)
    leaves = recoding.column.hierarchy.leaves(recoding.level) if recoding.classes is not None else None
    if leaves is None:
        leaves = _met(classes, values)
    total = leaves.sum()
    least = 0.0 if recoding.column.type is Type.DECIMAL and isinstance(recoding.column.domain, Numbers) else 1.0
    span = total - least
    shares = (leaves - least) / span if span > 0 else np.zeros(len(leaves))
    return np.append(np.clip(shares, 0.0, 1.0), extra)


def _met(classes: Classes, values: pa.Array | None) -> NDArray[np.float64]:
    """Return how many of the values that occur lie in each class."""
    recoding = classes.recoding
    if values is None:
        raise InvalidParameter(
            f"the number of values in the classes of {recoding.column.name!r} is not declared: declare categories or "
            "bounds, or give the values that occur."
        )
    stored = read(values, recoding.column.type).values
    match recoding.column.domain:
        case Numbers() | Dates():
            inside = stored
        case Categories() | Text():
            inside = canonical(stored)
    inside = pc.unique(inside.filter(pa.array(recoding.column.domain.contains(inside))))
    places = pc.index_in(recoding.column.hierarchy.lift(inside, recoding.level), value_set=classes.marks)
    return np.bincount(places.drop_null().to_numpy(), minlength=len(classes.marks)).astype(np.float64)


def mean_loss(losses: NDArray[np.float64], rows: NDArray[np.int64], left_out: int = 0) -> float:
    """Return the mean over rows: those in classes with these losses, and those that were suppressed.

    >>> mean_loss(np.array([0.0, 0.5]), np.array([6, 2]), left_out=2)
    0.3
    """
    total = int(rows.sum()) + left_out
    return (float((losses * rows).sum()) + left_out) / total if total else 0.0


@dataclass(frozen=True, eq=False)
class Ladder:
    """The classes of a column at each of its rungs, and for each code at the lowest rung the code at each of them.

    A rung is a level of the hierarchy that may be chosen; rungs are numbered 0, 1, … from the finest.

    >>> from incrowd.core.hierarchy.tree import tree
    >>> from incrowd.core.recoding import Recoding
    >>> from incrowd.core.schema import Column
    >>> city = Column("city", hierarchy=tree({"Europe": ["Paris", "Rome"], "Asia": ["Kyoto", "Osaka"]}))
    >>> ladder = Ladder.of(Recoding(city, 0).classes)
    >>> ladder.levels, [rise.tolist()[:4] for rise in ladder.rises]
    ((0, 1, 2), [[0, 1, 2, 3], [0, 0, 1, 1], [0, 0, 0, 0]])
    """

    classes: tuple[Classes, ...]
    rises: tuple[Codes, ...]

    @classmethod
    def of(cls, classes: Classes, lowest: int = 0, highest: int | None = None) -> Ladder:
        """Return the rungs from the level that was counted, or a higher `lowest`, up to `highest`, or `*`."""
        recoding = classes.recoding
        top = recoding.column.hierarchy.height if highest is None else highest
        bottom = max(lowest, recoding.level)
        if not bottom <= top <= recoding.column.hierarchy.height:
            raise InvalidParameter(
                f"{recoding.column.name!r} was counted at level {recoding.level} and has the levels up to "
                f"{recoding.column.hierarchy.height}: none lies between {lowest} and {top}."
            )
        steps = [classes.rise(level) for level in range(bottom, top + 1)]
        return cls(tuple(step for step, _ in steps), tuple(rise for _, rise in steps))

    def __len__(self) -> int:
        return len(self.classes)

    @property
    def name(self) -> str:
        """The column's name."""
        return self.classes[0].recoding.column.name

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """The level of the hierarchy at each rung."""
        return tuple(classes.recoding.level for classes in self.classes)

    @property
    def height(self) -> int:
        """The level at which everything is `*`, whether it may be chosen or not."""
        return self.classes[0].recoding.column.hierarchy.height

    @cached_property
    def losses(self) -> tuple[NDArray[np.float64], ...]:
        """What a row loses at each rung, by its code at the lowest: the normalized share of the column's values.

        Where nothing declares how many values a label stands for and the lowest rung is not the values themselves, the
        labels that were met on the lowest rung count as the values.
        """
        lowest = self.classes[0]
        if lowest.recoding.level and lowest.recoding.classes is None:
            return tuple(
                self._shares_met(classes, rise) for classes, rise in zip(self.classes, self.rises, strict=True)
            )
        values = lowest.marks if lowest.recoding.level == 0 else None
        return tuple(
            class_losses(classes, values)[rise] for classes, rise in zip(self.classes, self.rises, strict=True)
        )

    def _shares_met(self, classes: Classes, rise: Codes) -> NDArray[np.float64]:
        """Return the losses of an open column by the labels met on its lowest rung."""
        lowest = self.classes[0]
        met = len(lowest.marks)
        if classes.recoding.top:
            return np.ones(len(rise))
        leaves = np.bincount(rise[:met], minlength=len(classes))
        losses = (leaves[rise] - 1) / max(1, met - 1)
        losses[met:] = [1.0] * lowest.has_other + [0.0] * lowest.has_missing
        return np.clip(losses, 0.0, 1.0)

    @cached_property
    def domain(self) -> float:
        """How many values the column has: declared, or else met; infinitely many where lengths are measured."""
        column = self.classes[0].recoding.column
        if column.type is Type.DECIMAL and isinstance(column.domain, Numbers):
            return math.inf
        leaves = column.hierarchy.leaves(0)
        return float(len(self.classes[0].marks) if leaves is None else leaves.sum())


def occurring(ladders: Sequence[Ladder], codes: Sequence[Codes]) -> tuple[tuple[Codes, ...], ...]:
    """Return for each column and rung a number for each lowest code: the place of its class among those met.

    Classes that hold no row get no number, so that products of their numbers stay as small as they can be.
    """
    numbers = []
    for ladder, column in zip(ladders, codes, strict=True):
        met = np.flatnonzero(np.bincount(column, minlength=len(ladder.rises[0])))
        rungs = []
        for rise in ladder.rises:
            places = np.zeros(len(rise), np.int32)
            places[met] = np.unique(rise[met], return_inverse=True)[1]
            rungs.append(places)
        numbers.append(tuple(rungs))
    return tuple(numbers)
