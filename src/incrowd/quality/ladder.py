"""Ladder: one column at every level that may be chosen, seen from the finest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from incrowd.core.domain import Numbers, Type
from incrowd.core.keys import Codes
from incrowd.core.recoding import Classes
from incrowd.errors import InvalidParameter
from incrowd.quality.shares import class_losses


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

    @property
    def levels(self) -> tuple[int, ...]:
        """The level of the hierarchy at each rung."""
        return tuple(each.recoding.level for each in self.classes)

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
    found = []
    for ladder, column in zip(ladders, codes, strict=True):
        met = np.flatnonzero(np.bincount(column, minlength=len(ladder.rises[0])))
        rungs = []
        for rise in ladder.rises:
            places = np.zeros(len(rise), np.int32)
            places[met] = np.unique(rise[met], return_inverse=True)[1]
            rungs.append(places)
        found.append(tuple(rungs))
    return tuple(found)
