"""Degree sequences without rare degrees: the least that must be added, by a dynamic program that carries parity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.core.graph import Degrees, Ends, Graph

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
    subsequence = _in_program(ordered, k)
    aside = int(ordered[~subsequence].sum()) & 1
    costs, groups = _program(ordered[subsequence], k)
    best: list[Raised | None] = []
    for parity in (0, 1):
        target = parity ^ aside
        if costs[target] >= _NEVER:
            best.append(None)
            continue
        whole = ordered.copy()
        whole[subsequence] = groups(target)
        back = np.empty_like(whole)
        back[order] = whole
        best.append(Raised(int(costs[target]), back))
    return best[0], best[1]


def _in_program(ordered: Degrees, k: int) -> NDArray[np.bool_]:
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
    for label in np.unique(classes):
        members = np.flatnonzero(classes == label)
        options = raised(degrees[members], k)
        states = [_cheapest(states, options, members, parity) for parity in (0, 1)]
    return None if states[0] is None else states[0][1]


def _cheapest(
    states: list[tuple[int, Degrees] | None],
    options: tuple[Raised | None, Raised | None],
    members: NDArray[np.int64],
    parity: int,
) -> tuple[int, Degrees] | None:
    best: tuple[int, Degrees] | None = None
    for before in (0, 1):
        state, option = states[before], options[parity ^ before]
        if state is None or option is None or (best is not None and state[0] + option.cost >= best[0]):
            continue
        whole = state[1].copy()
        whole[members] = option.degrees
        best = state[0] + option.cost, whole
    return best


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


MOST_NODES = 40
"""Larger graphs have too many pairs for a search that proves that nothing smaller will do."""
_BRANCHES = 200  # the proof ends here, undecided, and `None` is returned; it bounds the time only


def fewest(graph: Graph, classes: NDArray[np.int64], k: int, enough: int) -> Ends | None:
    """Return the edges of the nearest graph in which each degree is shared by k nodes of a class; None if not proved.

    A variable for each pair says whether it changes, one for each node and degree whether the node gets it, and one
    for each class and degree whether any node of the class has it: then at least k must.  So many changes are known
    to be enough, and no degree moves further.

    >>> fewest(Graph.of(4, [(0, 1), (1, 2)]), np.zeros(4, np.int64), 2, 6).tolist()
    [[0, 1]]
    """
    from scipy.optimize import Bounds, milp

    low, high = np.triu_indices(graph.size, 1)
    there = np.isin(low * graph.size + high, graph.ends[:, 0] * graph.size + graph.ends[:, 1])
    rules = _rules(graph, np.where(there, -1, 1), classes, k)
    variables = rules.A.shape[1]
    largest = np.ones(variables)
    near = np.abs(np.subtract.outer(graph.degrees, np.arange(graph.size))) <= enough
    largest[len(low) : len(low) + near.size] = near.ravel()
    best = milp(
        (np.arange(variables) < len(low)).astype(np.float64),
        constraints=rules,
        integrality=np.ones(variables),
        bounds=Bounds(0, largest),
        options={"node_limit": _BRANCHES},
    )
    if best.status != 0:
        return None
    retained = there ^ (best.x[: len(low)] > 0.5)
    return np.stack([low[retained], high[retained]], axis=1).astype(np.int64)


def _rules(graph: Graph, moved: NDArray[np.int64], classes: NDArray[np.int64], k: int) -> Any:
    """Return what changed pairs, degrees of nodes and degrees of classes owe each other."""
    from scipy.optimize import LinearConstraint
    from scipy.sparse import block_array, coo_array, eye_array, kron

    size, low, high = graph.size, *np.triu_indices(graph.size, 1)
    pairs = np.tile(np.arange(len(low)), 2)
    change = coo_array((np.tile(moved, 2), (np.concatenate([low, high]), pairs)), shape=(size, len(low)))
    one, degrees = np.ones((1, size)), np.arange(size)[None, :]
    member = np.equal.outer(np.unique(classes), classes).astype(np.float64)
    shared, used = kron(member, eye_array(size)), eye_array(len(member) * size)
    table = [
        [change, -kron(eye_array(size), degrees), None],
        [None, kron(eye_array(size), one), None],
        [None, shared, -k * used],
        [None, shared, -size * used],
    ]
    none, any_ = np.zeros(used.shape[0]), np.full(used.shape[0], np.inf)
    least = np.concatenate([-graph.degrees, one[0], none, -any_])
    most = np.concatenate([-graph.degrees, one[0], any_, none])
    return LinearConstraint(block_array(table).tocsr(), least, most)
