"""Grouping: nodes near each other become super-nodes of k to 2k − 1, with the numbers of edges inside and between."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.graph import Graph
from incrowd.methods.graphs.matrices import adjacency
from incrowd.methods.graphs.outputs import COUNT, FROM, INSIDE, NODE, SIZE, TO, SuperGraph


def groups_of(graph: Graph, classes: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Return the number of each node's group: at least k nodes of one class, near each other in the graph.

    Nodes are put in an order in which neighbors stand close (reverse Cuthill–McKee), class by class, and cut after
    every k; what is left over joins the last group of its class.
    """
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    near = np.empty(graph.size, np.int64)
    near[np.asarray(reverse_cuthill_mckee(adjacency(graph), symmetric_mode=True), np.int64)] = np.arange(graph.size)
    order = np.lexsort((near, classes))
    ordered = classes[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    sizes = np.diff(np.append(starts, len(ordered)))
    inside = np.arange(len(ordered)) - np.repeat(starts, sizes)
    number = np.minimum(inside // k, np.repeat(sizes // k - 1, sizes))
    before = np.append(0, np.cumsum(sizes // k))[:-1]
    result = np.empty(graph.size, np.int64)
    result[order] = number + np.repeat(before, sizes)
    return result


def super_graph(graph: Graph, groups: NDArray[np.int64], labels: dict[str, pa.Array]) -> SuperGraph:
    """Return sizes, labels, and numbers of edges inside and between groups, exactly."""
    number = int(groups.max(initial=-1)) + 1
    ends = np.sort(groups[graph.ends], axis=1) if len(graph.ends) else graph.ends
    own = ends[:, 0] == ends[:, 1]
    inside = np.bincount(ends[own, 0], minlength=number)
    keys, counts = np.unique(ends[~own, 0] * max(1, number) + ends[~own, 1], return_counts=True)
    first = np.unique(groups, return_index=True)[1]
    told = {name: column.take(pa.array(first)) for name, column in labels.items()}
    sizes = np.bincount(groups, minlength=number)
    nodes = pa.table({NODE: np.arange(1, number + 1), SIZE: sizes, INSIDE: inside, **told})
    edges = pa.table({FROM: keys // max(1, number) + 1, TO: keys % max(1, number) + 1, COUNT: counts})
    return SuperGraph(nodes, edges, groups)
