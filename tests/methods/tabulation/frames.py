"""Small tables with totals, and everything that agrees with what is published of them, tried one by one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from incrowd.methods.tabulation.protected.boxes import ProtectionDemand
from incrowd.methods.tabulation.protected.frame import Flags, TableAxis, TableFrame, Whole


def flat(size: int, name: str) -> TableAxis:
    """Return so many lines below a total."""
    return TableAxis(name, ("*", *(f"{name}{place}" for place in range(size))), (-1, *[0] * size))


def nested(sizes: tuple[int, ...], name: str) -> TableAxis:
    """Return groups of so many lines each, below a total."""
    labels, parents = ["*"], [-1]
    for group, size in enumerate(sizes):
        labels.append(f"{name}{group}")
        parents.append(0)
        above = len(labels) - 1
        labels += [f"{name}{group}.{place}" for place in range(size)]
        parents += [above] * size
    return TableAxis(name, tuple(labels), tuple(parents))


def agreeing(frame: TableFrame, cells: Whole, known: Flags, least: int = 0) -> Iterator[Whole]:
    """Yield every table of whole numbers that has the published cells: slowly, one cell after the other.

    An empty finest cell has at least the number `least`.
    """
    sums = frame.matrix.toarray()[known.ravel()].astype(np.int64)
    left = cells.ravel()[known.ravel()].astype(np.int64)
    table = np.zeros(sums.shape[1], np.int64)
    floor = np.where(frame.finest(known).ravel(), 0, least)
    last = [np.flatnonzero((sums[:, place] > 0) & ~(sums[:, place + 1 :] > 0).any(1)) for place in range(len(table))]

    def fill(place: int, left: Whole) -> Iterator[Whole]:
        if place == len(table):
            yield table.copy()
            return
        part = sums[:, place] > 0
        most, closing = int(left[part].min()), last[place]
        only = {int(left[row]) for row in closing}
        for value in sorted(only) if only else range(int(floor[place]), most + 1):
            if len(only) <= 1 and floor[place] <= value <= most:
                table[place] = value
                yield from fill(place + 1, left - value * part)
        table[place] = 0

    yield from fill(0, left)


def ends(frame: TableFrame, cells: Whole, known: Flags, least: int = 0) -> tuple[Whole, Whole]:
    """Return the least and the largest value of every cell over all tables that agree."""
    seen = np.array([frame.matrix @ table for table in agreeing(frame, cells, known, least)])
    return seen.min(0), seen.max(0)


def few(frame: TableFrame, cells: Whole, minimum: int, reach: int) -> list[ProtectionDemand]:
    """Return what the rule of a minimum demands of counts, down to what the published zeros say."""
    flat, least = cells.ravel(), frame.totals((frame.finest(cells.reshape(frame.shape)) > 0).astype(np.int64)).ravel()
    return [
        ProtectionDemand(place, int(min(flat[place] - least[place], reach)), reach)
        for place in np.flatnonzero((flat > 0) & (flat < minimum)).tolist()
    ]
