"""Growing: boxes cut again and again, each cut chosen privately, until few rows are left or the depth is reached."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.core.coins import Coins
from incrowd.mechanisms.add_noise import AddLaplace
from incrowd.mechanisms.noisy_max import MonotoneNoisyMax
from incrowd.methods.anonymity.mondrian.partitioning import Grid
from incrowd.methods.anonymity.partition.boxes import Box, scores


@dataclass(frozen=True)
class Growth:
    """How boxes are cut: how deep at most, for which ε in all, and how many rows a box must seem to have.

    Promise: the boxes are ε-differentially private if rows are added or removed.
    Assumes: axes, depth and `least` are public.
    Source: McKenna & Sheldon 2020 for each choice, Ghosh et al. 2009 for each count; the proof follows.

    Proof.  Let c = ε/(2·depth).  At each depth the boxes are disjoint and were fixed by what was drawn at smaller
    depths, so one row lies in one box and moves nothing in the others.  There it moves the count by one, which is told
    with noise at a cost of c, and every score by 0 or 1 in the same direction, for which the choice costs c.  Whether
    a choice is made hangs on the noisy count alone.  Together 2c at each depth and ε in all, by adaptive composition:
    given the same earlier draws, the chances of the next ones differ by a factor of e^(2c) at most.  ∎

    >>> Growth(4, Fraction(1), 100).each
    Fraction(1, 8)
    """

    depth: int
    epsilon: Fraction
    least: int

    @property
    def each(self) -> Fraction:
        """What one noisy count costs, and one choice."""
        return self.epsilon / (2 * self.depth)

    def leaves(self, grid: Grid, coins: Coins) -> tuple[Box, ...]:
        """Return the boxes that are not cut any more, in the order of the space; together they hold everything."""
        return self._grown(grid, np.arange(len(grid.rows)), Box.whole(grid.axes), self.depth, coins)

    def _grown(self, grid: Grid, inside: NDArray[np.intp], box: Box, depth: int, coins: Coins) -> tuple[Box, ...]:
        candidates = box.candidates(grid.axes) if depth else []
        if not candidates:
            return (box,)
        rows, places = grid.rows[inside], grid.places[:, inside]
        noisy = AddLaplace.costing(self.each).release(np.array([int(rows.sum())]), coins)[0]
        if noisy < self.least:
            return (box,)
        chosen = candidates[MonotoneNoisyMax(self.each).release(scores(box, grid.axes, places, rows), coins)]
        right = places[chosen.axis] >= chosen.before
        below, above = box.cut(chosen)
        return (
            *self._grown(grid, inside[~right], below, depth - 1, coins),
            *self._grown(grid, inside[right], above, depth - 1, coins),
        )


def leaf_of(leaves: tuple[Box, ...], places: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return for each tuple, given by its place on every axis, the number of the leaf it lies in."""
    found = np.zeros(places.shape[1], np.intp)
    for number, leaf in enumerate(leaves):
        inside = np.ones(places.shape[1], np.bool_)
        for row, (low, high) in zip(places, leaf.sides, strict=True):
            inside &= (row >= low) & (row <= high)
        found[inside] = number
    return found
