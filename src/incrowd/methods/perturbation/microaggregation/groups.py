"""Groups: rows put together so that each group has at least k of them and they differ little.

Source: Domingo-Ferrer & Torra 2005 (MDAV); Hansen & Mukherjee 2003 (the optimum of one column).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from incrowd.methods.perturbation.frame import Numbers, Places

BLOCK = 1024
"""So many rows are grouped at once: the work grows with the square of the rows of a block."""

Distance = Callable[[Numbers, Numbers], Numbers]
"""How far each row is from one row."""


def squared(rows: Numbers, center: Numbers) -> Numbers:
    """Return the squared distances of rows from one row.

    >>> squared(np.array([[0.0, 0.0], [3.0, 4.0]]), np.zeros(2)).tolist()
    [0.0, 25.0]
    """
    away = rows - center
    distances: Numbers = np.einsum("ij,ij->i", away, away)
    return distances


def mdav(rows: Numbers, k: int, distance: Distance = squared) -> list[Places]:
    """Return groups of k to 2k − 1 rows around the rows that lie farthest out; fewer than 2k rows are one group.

    >>> [group.tolist() for group in mdav(np.array([[1.0], [9.0], [2.0], [8.0]]), 2)]
    [[0, 2], [1, 3]]
    """
    left = np.arange(len(rows), dtype=np.int64)
    groups = []
    while len(left) >= 2 * k:
        here = rows[left]
        first = int(np.argmax(distance(here, here.mean(axis=0))))
        from_first = distance(here, here[first])
        ends = [first, int(np.argmax(from_first))] if len(left) >= 3 * k else [first]
        for end in ends:
            near = _nearest(distance(rows[left], here[end]), k)
            groups.append(left[near])
            left = np.delete(left, near)
    return [*groups, left] if len(left) else groups


def blocks(rows: Numbers, most: int) -> Iterator[Places]:
    """Yield blocks of at most so many rows: halved again and again at the median of the widest column."""
    waiting = [np.arange(len(rows), dtype=np.int64)]
    while waiting:
        block = waiting.pop()
        if len(block) <= most:
            yield block
            continue
        here = rows[block]
        widest = int(np.argmax(here.max(axis=0) - here.min(axis=0)))
        order = np.argsort(here[:, widest], kind="stable")
        waiting += [block[order[len(order) // 2 :]], block[order[: len(order) // 2]]]


def optimal(values: Numbers, k: int) -> list[Places]:
    """Return the groups of at least k values with the least squared differences from their means.

    The shortest path over the sorted values, whose groups have k to 2k − 1 of them.

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
