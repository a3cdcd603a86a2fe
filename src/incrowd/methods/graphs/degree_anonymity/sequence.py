"""Degree sequences without rare degrees: the least that must be added, by a dynamic program that carries parity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.core.graph import Degrees

_NEVER = np.iinfo(np.int64).max // 4


@dataclass(frozen=True, eq=False)
class Raised:
    """Degrees that were raised, and by how much in all."""

    cost: int
    degrees: Degrees


def raised(degrees: Degrees, k: int) -> tuple[Raised | None, Raised | None]:
    """Return the least raise after which each degree is shared by k nodes, with an even sum and with an odd one.

    In descending order the nodes fall into groups of k to 2k − 1, each of which gets the degree of its first; a group
    may be lifted by one more, which can repair the parity of the sum (the sum of the degrees of a graph is even).  Of
    long runs of one degree all but 3k to 4k − 1 nodes are set aside, k at a time: they are groups without cost.

    Source: Liu & Terzi 2008, Section 5; parity: the sum without it is odd for the karate club and k = 2 to 5.

    >>> even, odd = raised(np.array([3, 2, 2, 1]), 2)
    >>> even.cost, even.degrees.tolist(), odd
    (2, [3, 3, 2, 2], None)
    """
    order = np.argsort(-degrees, kind="stable")
    ordered = degrees[order]
    kept = _kept(ordered, k)
    aside = int(ordered[~kept].sum()) & 1
    costs, groups = _program(ordered[kept], k)
    found: list[Raised | None] = []
    for parity in (0, 1):
        wanted = parity ^ aside
        if costs[wanted] >= _NEVER:
            found.append(None)
            continue
        whole = ordered.copy()
        whole[kept] = groups(wanted)
        back = np.empty_like(whole)
        back[order] = whole
        found.append(Raised(int(costs[wanted]), back))
    return found[0], found[1]


def _kept(ordered: Degrees, k: int) -> NDArray[np.bool_]:
    """Return which nodes take part in the program: of each run of one degree fewer than 4k."""
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(ordered) else np.zeros(0, np.int64)
    lengths = np.diff(np.append(starts, len(ordered)))
    aside = np.maximum(0, (lengths - 3 * k) // k * k)
    inside = np.arange(len(ordered)) - np.repeat(starts, lengths)
    return np.asarray(inside < np.repeat(lengths - aside, lengths), np.bool_)


def _program(ordered: Degrees, k: int) -> tuple[NDArray[np.int64], Callable[[int], Degrees]]:
    """Return the least cost of each parity of the sum, and what gives the raised degrees of one."""
    size = len(ordered)
    totals = np.append(0, np.cumsum(ordered))
    best = np.full((size + 1, 2), _NEVER, np.int64)
    best[0, 0] = 0
    choice = np.zeros((size + 1, 2, 2), np.int64)
    for stop in range(k, size + 1):
        groups = np.arange(k, min(2 * k - 1, stop) + 1)
        starts = stop - groups
        plain = groups * ordered[starts] - (totals[stop] - totals[starts])
        for lift in (0, 1):
            odd = groups * (ordered[starts] + lift) & 1
            for parity in (0, 1):
                costs = best[starts, parity ^ odd] + plain + lift * groups
                least = int(costs.argmin())
                if costs[least] < best[stop, parity]:
                    best[stop, parity] = costs[least]
                    choice[stop, parity] = groups[least], lift

    def groups_of(parity: int) -> Degrees:
        result, stop = ordered.copy(), size
        while stop:
            group, lift = choice[stop, parity].tolist()
            start = stop - group
            result[start:stop] = ordered[start] + lift
            parity ^= int(group * (ordered[start] + lift) & 1)
            stop = start
        return result

    return best[size], groups_of


def targets(degrees: Degrees, classes: NDArray[np.int64], k: int) -> Degrees | None:
    """Return the least raise that leaves no rare degree within any class of nodes, with an even sum; None without."""
    states: list[tuple[int, Degrees] | None] = [(0, degrees.copy()), None]
    for each in np.unique(classes):
        members = np.flatnonzero(classes == each)
        options = raised(degrees[members], k)
        states = [_cheapest(states, options, members, parity) for parity in (0, 1)]
    return None if states[0] is None else states[0][1]


def _cheapest(
    states: list[tuple[int, Degrees] | None],
    options: tuple[Raised | None, Raised | None],
    members: NDArray[np.int64],
    parity: int,
) -> tuple[int, Degrees] | None:
    found: tuple[int, Degrees] | None = None
    for before in (0, 1):
        state, option = states[before], options[parity ^ before]
        if state is None or option is None or (found is not None and state[0] + option.cost >= found[0]):
            continue
        whole = state[1].copy()
        whole[members] = option.degrees
        found = state[0] + option.cost, whole
    return found


def graphical(degrees: Degrees) -> bool:
    """Whether some simple graph has these degrees (Erdős & Gallai 1960).

    >>> graphical(np.array([3, 3, 3, 3])), graphical(np.array([3, 1, 1])), graphical(np.array([3, 3, 1, 1]))
    (True, False, False)
    """
    ordered = np.sort(degrees)[::-1]
    size = len(ordered)
    if not size:
        return True
    if int(ordered.sum()) & 1 or int(ordered[-1]) < 0 or int(ordered[0]) >= size:
        return False
    first = np.arange(1, size + 1)
    totals = np.append(0, np.cumsum(ordered))
    # of the nodes after the first r, those with more than r count r, all others their degree
    larger = np.maximum(np.searchsorted(-ordered, -first, side="left"), first)
    capped = first * (larger - first) + totals[-1] - totals[larger]
    return bool(np.all(totals[1:] <= first * (first - 1) + capped))
