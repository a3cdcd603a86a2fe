"""Distances: how far a sensitive column in a group is from the same column in the whole table."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from incrowd.core.keys import Codes
from incrowd.criteria.compiled import compiled_distances, compiled_inverses
from incrowd.criteria.groups import Groups, Histograms, PerGroup

_ROUNDS = 3
"""Steps of Newton's method: further steps hardly improve the bound."""

_DENSE = 8
"""Sums are stored for every possible key while there are at most this many times more keys than cells."""

_NONE = 2.0
"""Above 1: one over it is less than a row."""


def equal(groups: Groups | Histograms) -> PerGroup:
    """Return each group's distance where any two values are equally far apart: half the sum of |p − q|.

    The table is t-close for the greatest of them.

    Source: Li, Li & Venkatasubramanian 2007, the earth mover's distance where all distances are equal.

    >>> import pyarrow as pa
    >>> sick = Groups(np.array([0, 1]), np.array([0, 1]), np.array([4, 4]), pa.array(["flu", "gout"]))
    >>> equal(sick).tolist()
    [0.5, 0.5]
    """
    if isinstance(groups, Histograms):
        if (distances := compiled_distances(groups)) is not None:
            return distances
        short = groups.overall - groups.rows / groups.sizes[:, np.newaxis]
        return np.clip(groups.mean(np.maximum(short, 0.0)), 0.0, 1.0)
    overall = groups.overall[groups.values]
    here = groups.mean(np.abs(groups.shares() - overall))
    elsewhere = 1.0 - groups.mean(overall)  # what the whole table has of values that the group has not
    return np.asarray(np.clip((here + elsewhere) / 2.0, 0.0, 1.0))


def ordered(groups: Groups) -> PerGroup:
    """Return each group's distance where the i-th and the j-th of m values are |i − j| / (m − 1) apart.

    The values of the groups are in order already (`Groups.placed` puts them there); only those that occur have a place.
    The table is t-close for the greatest of the distances.

    Source: Li, Li & Venkatasubramanian 2007, the earth mover's distance of numerical attributes: the sum of the
    absolute cumulated differences, over m − 1.

    >>> import pyarrow as pa
    >>> paid = Groups(np.array([0, 1]), np.array([0, 2]), np.array([4, 4]), pa.array(["1", "2", "3"]))
    >>> ordered(paid).tolist()
    [0.5, 0.5]
    """
    totals, here, rows = groups.totals, groups.values.astype(np.intp), groups.counts
    lengths = groups.lengths
    below = np.cumsum(totals) / max(1, totals.sum())  # share of the whole table up to each place
    upto = _within(np.cumsum(rows), groups.starts, lengths) / np.repeat(groups.sizes, lengths)
    until = np.append(here[1:], 0)
    until[groups.starts[1:] - 1] = len(totals)
    until[-1:] = len(totals)
    # From each value to the next that the group has, its cumulated share stands still; before its first it is 0.
    walked = groups.mean(_apart(below, here, until, upto))
    before = _apart(below, np.zeros_like(groups.starts), here[groups.starts], np.zeros(len(lengths)))
    return np.asarray(np.clip((walked + before) / max(1, len(totals) - 1), 0.0, 1.0))


def _within(running: NDArray[np.int64], starts: NDArray[np.intp], lengths: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return a running sum that starts anew in each group."""
    before = np.where(starts > 0, running[starts - 1], 0) if len(starts) else starts
    return np.asarray(running - np.repeat(before, lengths))


def _apart(below: PerGroup, first: NDArray[np.intp], last: NDArray[np.intp], level: PerGroup) -> PerGroup:
    """Return the sum of |below − level| over the places from `first` up to, not including, `last`.

    `below` grows, so it is under the level up to some place and above it from there on: two differences of prefix sums.
    """
    sums = np.concatenate(([0.0], np.cumsum(below)))
    crossing = np.clip(np.searchsorted(below, level), first, last)
    under = level * (crossing - first) - (sums[crossing] - sums[first])
    over = (sums[last] - sums[crossing]) - level * (last - crossing)
    return np.asarray(under + over)


def hierarchical(groups: Groups | Histograms) -> PerGroup:
    """Return each group's distance where two values are as far apart as the lowest label they share is high.

    Two values under one label at level h of a hierarchy of height H are h/H apart.  That is a path in a tree whose
    edges are all 1/(2H) long, and moving earth along a tree costs, for each edge, its length times the surplus of the
    subtree below it.  Summed over the H levels below `*`, that is the mean over the levels of the distance in which any
    two labels of the level are equally far apart.

    Source: Li, Li & Venkatasubramanian 2007, the hierarchical distance; this form is proved above.

    >>> import pyarrow as pa
    >>> lungs, names = np.array([0, 0]), pa.array(["flu", "cough"])
    >>> sick = Groups(np.array([0, 1]), np.array([0, 1]), np.array([4, 4]), names, (lungs,))
    >>> hierarchical(sick).tolist()
    [0.25, 0.25]
    """
    if isinstance(groups, Histograms) and (distances := compiled_distances(groups, groups.lifts)) is not None:
        return distances
    levels = levels_of(groups)
    return np.asarray(functools.reduce(np.add, [equal(level) for level in levels]) / len(levels))


def levels_of(groups: Groups | Histograms) -> Sequence[Groups | Histograms]:
    """Return the groups with the values themselves and with what they are at each level below `*`."""
    if isinstance(groups, Histograms):
        return [groups.with_labels()]
    return lifted(groups)


def lifted(groups: Groups) -> list[Groups]:
    """Return the groups with the values themselves, then with what they are at each level below `*`."""
    number, levels = len(groups.lengths), [groups]
    numbers = np.repeat(np.arange(number), groups.lengths)
    for lift in groups.lifts:
        labels = int(lift.max(initial=0)) + 1
        keys, rows = _summed(numbers * labels + lift[groups.values], groups.counts, number * labels)
        owners = keys // labels
        lengths = np.bincount(owners, minlength=number)
        whole = np.bincount(lift, groups.totals, labels).astype(np.int64)
        names = groups.labels.slice(0, labels)
        values = (keys - owners * labels).astype(np.int32)
        levels.append(Groups(np.cumsum(lengths) - lengths, values, rows, names, (), whole))
    return levels


def _summed(keys: NDArray[np.int64], rows: NDArray[np.int64], room: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the keys that occur, in order, and the rows of each; all are below `room`."""
    if room <= _DENSE * len(keys) + 1024:
        totals = np.bincount(keys, rows, room)
        met = np.flatnonzero(totals)
        return met, totals[met].astype(np.int64)
    met, places = np.unique(keys, return_inverse=True)
    return met, np.bincount(places, rows, len(met)).astype(np.int64)


Lacking = Callable[[PerGroup], tuple[PerGroup, PerGroup]]
"""For x = 1/m of each group: a bound on the distance of any m rows of it, and how fast the bound falls there."""


def largest_close(sizes: NDArray[np.int64], bound: Lacking, t: float) -> NDArray[np.int64]:
    """Return an upper bound of how many rows of each group can be chosen with a distance of at most t.

    The bound on the distance of m chosen rows is convex in x = 1/m and falls as x grows.  Newton's method for the x
    where it reaches t, begun at x = 1/n for a group of n rows, therefore never passes it: 1/x is a bound on m after
    every round.

    >>> import pyarrow as pa
    >>> sick = Groups(np.array([0, 2]), np.array([0, 1, 0]), np.array([4, 4, 4]), pa.array(["flu", "gout"]))
    >>> largest_close(sick.sizes, lacking([sick]), 0.1).tolist()
    [7, 0]
    """
    x = 1.0 / np.maximum(1, sizes)
    for _ in range(_ROUNDS):
        reached, slope = bound(x)
        x = np.where(reached > t, np.minimum(x + (reached - t) / np.maximum(slope, 1e-300), _NONE), x)
    return np.floor((1.0 + 1e-9) / x).astype(np.int64)


def largest_close_of_all(groups: Histograms, lifts: tuple[Codes, ...], t: float) -> NDArray[np.int64] | None:
    """Return what `largest_close` does of equal distances, or their mean with those of labels; None if not compiled."""
    x = compiled_inverses(groups, lifts, t, _ROUNDS)
    return None if x is None else np.floor((1.0 + 1e-9) / x).astype(np.int64)


def lacking(levels: Sequence[Groups | Histograms]) -> Lacking:
    """Return the bound for a mean of `equal` distances, with values that are ever coarser: one level, or `lifted` ones.

    Of m chosen rows at most c have a value that the group has c times, so their equal distance, which is the sum over
    all values of what is lacking, is at least Σ max(0, q − c/m), with q the value's share of the whole table.
    """
    bounds = [_lacking(groups) for groups in levels]
    if len(bounds) == 1:
        return bounds[0]

    def bound(x: PerGroup) -> tuple[PerGroup, PerGroup]:
        parts = [part(x) for part in bounds]
        reached, slopes = (functools.reduce(np.add, column) for column in zip(*parts, strict=True))
        return reached / len(bounds), slopes / len(bounds)

    return bound


def _lacking(groups: Groups | Histograms) -> Lacking:
    """Return the bound for one level."""
    if isinstance(groups, Histograms):
        return _lacking_of_all(groups)
    overall, rows = groups.overall[groups.values], groups.counts.astype(np.float64)
    absent = 1.0 - groups.mean(overall)

    def bound(x: PerGroup) -> tuple[PerGroup, PerGroup]:
        short = overall - rows * np.repeat(x, groups.lengths)
        under = short > 0
        return absent + groups.mean(short * under), groups.mean(rows * under)

    return bound


def _lacking_of_all(groups: Histograms) -> Lacking:
    def bound(x: PerGroup) -> tuple[PerGroup, PerGroup]:
        short = groups.overall - groups.rows * x[:, np.newaxis]
        return groups.mean(np.maximum(short, 0.0)), groups.mean(groups.rows * (short > 0))

    return bound


def lacking_in_order(groups: Groups) -> Lacking:
    """Return the bound for `ordered` distances.

    Of m chosen rows out of n at most c, and at least m − (n − c), lie up to a place where the group has c.  So there
    the cumulated share is at most c/m and at least 1 − (n − c)/m, and what the whole table has up to that place is off
    by as much as it lies outside.
    """
    totals, sizes = groups.totals, groups.sizes
    below = np.cumsum(totals) / max(1, totals.sum())
    sums = np.concatenate(([0.0], np.cumsum(below)))
    here, lengths = groups.values.astype(np.intp), groups.lengths
    until = np.append(here[1:], 0)
    until[groups.starts[1:] - 1] = len(totals)
    until[-1:] = len(totals)
    upto = _within(np.cumsum(groups.counts), groups.starts, lengths)
    after = np.repeat(sizes, lengths) - upto
    before = sums[here[groups.starts]]  # up to the first value of the group it has nothing

    def bound(x: PerGroup) -> tuple[PerGroup, PerGroup]:
        x_of_cell = np.repeat(x, lengths)
        most, least = upto * x_of_cell, 1.0 - after * x_of_cell
        above = np.clip(np.searchsorted(below, most, side="right"), here, until)
        under = np.clip(np.searchsorted(below, least), here, until)
        over = sums[until] - sums[above] - most * (until - above)
        lack = least * (under - here) - (sums[under] - sums[here])
        slope = groups.mean((upto * (until - above) + after * (under - here)).astype(np.float64))
        span = max(1, len(totals) - 1)
        return (before + groups.mean(over + lack)) / span, slope / span

    return bound
