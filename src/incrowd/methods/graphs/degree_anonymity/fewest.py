"""Fewest changes: the smallest set of added and removed edges after which no degree is rare, by an integer program."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.core.graph import Ends, Graph

MOST_NODES = 40
"""Larger graphs have too many pairs for a search that proves that nothing smaller will do."""
_BRANCHES = 200


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
    found = milp(
        (np.arange(variables) < len(low)).astype(np.float64),
        constraints=rules,
        integrality=np.ones(variables),
        bounds=Bounds(0, largest),
        options={"node_limit": _BRANCHES},
    )
    if found.status != 0:
        return None
    kept = there ^ (found.x[: len(low)] > 0.5)
    return np.stack([low[kept], high[kept]], axis=1).astype(np.int64)


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
