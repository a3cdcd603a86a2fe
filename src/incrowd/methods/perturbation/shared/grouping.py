"""Grouping: rows into groups of at least k that differ little; many rows by a compiled kernel with equal results."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from incrowd.methods.perturbation.shared.frame import Numbers, Places

Distance = Callable[[Numbers, Numbers], Numbers]
"""The distance of each row from one row."""
Grouping = Callable[[Numbers, int], list[Places]]
"""Groups of at least k rows."""
_MANY = 2**15
"""Loading Numba takes about as long as the groups of so many rows."""


def gower(categories: np.ndarray) -> Distance:
    """Return Gower's distance: for numbers how far apart they are, for categories whether they differ."""

    def distance(rows: Numbers, center: Numbers) -> Numbers:
        away = np.abs(rows - center)
        distances: Numbers = np.where(categories, away > 0, away).sum(axis=1)
        return distances

    return distance


def squared(rows: Numbers, center: Numbers) -> Numbers:
    """Return the squared distances of rows from one row.

    >>> squared(np.array([[0.0, 0.0], [3.0, 4.0]]), np.zeros(2)).tolist()
    [0.0, 25.0]
    """
    away = rows - center
    away *= away
    distances = away[:, 0].copy()
    for column in range(1, away.shape[1]):
        distances += away[:, column]
    return distances


def mdav(rows: Numbers, k: int, distance: Distance = squared) -> list[Places]:
    """Return groups of k to 2k − 1 rows around the rows that lie farthest out; fewer than 2k rows are one group.

    Source: Domingo-Ferrer & Torra 2005.

    >>> [group.tolist() for group in mdav(np.array([[1.0], [9.0], [2.0], [8.0]]), 2)]
    [[0, 2], [1, 3]]
    """
    remaining = np.arange(len(rows), dtype=np.int64)
    groups = []
    while len(remaining) >= 2 * k:
        candidates = rows[remaining]
        first = int(np.argmax(distance(candidates, candidates.mean(axis=0))))
        farthest = int(np.argmax(distance(candidates, candidates[first])))
        for end in [first, farthest] if len(remaining) >= 3 * k else [first]:
            near = _nearest(distance(rows[remaining], candidates[end]), k)
            groups.append(remaining[near])
            remaining = np.delete(remaining, near)
    return [*groups, remaining] if len(remaining) else groups


def mdav_of(rows: int) -> Grouping:
    """Return what groups blocks of so many rows in all: the kernel for many, where Numba is installed.

    >>> mdav_of(100) is mdav
    True
    """
    kernel = _compiled() if rows >= _MANY else None
    return mdav if kernel is None else lambda block, k: _split(kernel(block, k))


@cache
def _compiled() -> Callable[..., Any] | None:
    try:
        compiler = importlib.import_module("numba").njit(cache=True, nogil=True)
    except ImportError:
        return None
    compiled: Callable[..., Any] = compiler(mdav_kernel)
    return compiled


def _split(numbers: Places) -> list[Places]:
    """Return the places of each group, by their numbers."""
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1) if len(order) else []


def mdav_kernel(rows: Numbers, k: int) -> Places:
    """Return for each row the number of its group: the same groups as those of `mdav`, in the same order."""
    size, width = rows.shape
    numbers, remaining, group = np.empty(size, np.int64), np.arange(size), 0
    distances, centers = np.empty(size), np.zeros((3, width))
    while len(remaining) >= 2 * k:
        centers[0] = 0.0
        for row in remaining:
            centers[0] += rows[row]
        centers[0] /= len(remaining)
        for step in range(4 if len(remaining) >= 3 * k else 3):
            left = len(remaining)
            if step != 2:  # no row was taken since the step before, nor is the center another one
                center = centers[min(step, 2)]
                for place in range(left):
                    distances[place] = 0.0
                    for column in range(width):
                        apart = rows[remaining[place], column] - center[column]
                        distances[place] += apart * apart
            if step < 2:  # the row that is farthest from the mean, and the one that is farthest from it
                centers[step + 1] = rows[remaining[np.argmax(distances[:left])]]
                continue
            for _ in range(k):
                nearest = np.argmin(distances[:left])
                numbers[remaining[nearest]] = group
                distances[nearest], remaining[nearest] = np.inf, -1
            remaining, group = remaining[remaining >= 0], group + 1
    numbers[remaining] = group
    return numbers


def blocks(rows: Numbers, most: int) -> Iterator[Places]:
    """Yield blocks of at most `most` rows, halved repeatedly at the median of the widest column."""
    waiting = [np.arange(len(rows), dtype=np.int64)]
    while waiting:
        block = waiting.pop()
        if len(block) <= most:
            yield block
            continue
        values = rows[block]
        widest = int(np.argmax(values.max(axis=0) - values.min(axis=0)))
        order = np.argsort(values[:, widest], kind="stable")
        waiting += [block[order[len(order) // 2 :]], block[order[: len(order) // 2]]]


def optimal(values: Numbers, k: int) -> list[Places]:
    """Return the groups of at least k values with the least squared differences from their means.

    The shortest path over the sorted values, whose groups have k to 2k − 1 of them (Hansen & Mukherjee 2003).

    >>> [group.tolist() for group in optimal(np.array([1.0, 9.0, 2.0, 8.0, 10.0]), 2)]
    [[0, 2], [3, 1, 4]]
    """
    order = np.argsort(values, kind="stable").astype(np.int64)
    number = len(order)
    if number < 2 * k:
        return [order] if number else []
    ascending = values[order] - values.mean()
    sums, squares = (np.concatenate(([0.0], np.cumsum(ascending**power))) for power in (1, 2))
    cost, start = np.full(number + 1, np.inf), np.zeros(number + 1, np.int64)
    cost[0] = 0.0
    sizes = np.arange(k, 2 * k)
    for end in range(k, number + 1):
        starts = end - sizes[: max(0, end - k + 1)] if end < 2 * k else end - sizes
        within = squares[end] - squares[starts] - (sums[end] - sums[starts]) ** 2 / (end - starts)
        total = cost[starts] + within
        best = int(np.argmin(total))
        cost[end], start[end] = total[best], starts[best]
    groups, end = [], number
    while end:
        groups.append(order[start[end] : end])
        end = int(start[end])
    return groups[::-1]


def _nearest(distances: Numbers, k: int) -> Places:
    """Return the places of the k smallest distances, of equal ones the first."""
    edge = np.partition(distances, k - 1)[k - 1]
    below = np.flatnonzero(distances < edge)
    equal = np.flatnonzero(distances == edge)[: k - len(below)]
    return np.sort(np.concatenate([below, equal]))
