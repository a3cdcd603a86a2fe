"""Narrowing: bounds of empty cells that follow from one sum after the other, as somebody with a pencil finds them."""

from __future__ import annotations

import numpy as np

from incrowd.methods.tabulation.frame import Flags, TableFrame, Whole

_ROUNDS = 50


def narrowed(frame: TableFrame, cells: Whole, known: Flags, least: int = 0) -> tuple[Whole, Whole]:
    """Return for each cell bounds that every table with these published cells keeps; there may be narrower ones.

    `least` is the least number that an empty cell can have.

    >>> from incrowd.methods.tabulation.axis import TableAxis
    >>> sex = TableFrame((TableAxis("sex", ("*", "F", "M"), (-1, 0, 0)),))
    >>> low, high = narrowed(sex, np.array([9, 4, 0]), np.array([True, True, False]))
    >>> low.tolist(), high.tolist()
    ([9, 4, 5], [9, 4, 5])
    """
    most = int(cells[known].max(initial=0))
    low, high = np.where(known, cells, least), np.where(known, cells, most)
    for _ in range(_ROUNDS):
        before = (low, high)
        for number in range(len(frame.axes)):
            low, high = _along(frame, number, low, high)
        if np.array_equal(before[0], low) and np.array_equal(before[1], high):
            break
    return low, high


def _along(frame: TableFrame, number: int, low: Whole, high: Whole) -> tuple[Whole, Whole]:
    """Hold every line of an axis against the lines under it."""
    low, high = np.moveaxis(low, number, 0).copy(), np.moveaxis(high, number, 0).copy()
    for node, children in enumerate(frame.axes[number].children):
        if children:
            under = list(children)
            least, largest = low[under].sum(0), high[under].sum(0)
            low[node], high[node] = np.maximum(low[node], least), np.minimum(high[node], largest)
            low[under] = np.maximum(low[under], low[node] - (largest - high[under]))
            high[under] = np.minimum(high[under], high[node] - (least - low[under]))
    return np.moveaxis(low, 0, number), np.moveaxis(high, 0, number)
