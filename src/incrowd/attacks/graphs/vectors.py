"""Characteristic vectors: a person is looked for by how much their neighborhood is like everybody else's."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from incrowd.attacks.finding import Finding
from incrowd.attacks.graphs.trial import GraphTrial, nearest
from incrowd.core.graph import Graph
from incrowd.methods.graphs.shared.matrices import adjacency, pieces

_WHOLE = 4096
_ENDS = 64


def characteristic_vectors(trial: GraphTrial) -> Finding:
    """Look for a person by the sorted row of s(i, j).

    Knows: the graph with names, as it was or nearly so.  Success: of the published nodes with the nearest sorted row of
    s(i, j) = Σ A_ik A_jk / N − d_i d_j / N², the covariance of two rows of the adjacency matrix, one at random is the
    person.  Beyond 4,096 nodes only the 64 largest numbers of common neighbors are compared, and the degree.  Blind
    guess: any node.

    Meaningless if nobody can know a graph like the published one with names.

    Source: the lecture's attack on relational data; without an order of nodes rows are compared sorted.
    """
    targets = trial.targets
    whole = max(trial.known.size, trial.published.size) <= _WHOLE and trial.known.size == trial.published.size
    rows = sorted_rows if whole else largest_shared
    guesses = nearest(rows(trial.known)[targets], rows(trial.published), trial.seed)
    return trial.finding("characteristic-vectors", "the graph with names, nearly as it is", targets, guesses)


def characteristic(graph: Graph) -> NDArray[np.float64]:
    """Return s(i, j) for all pairs of nodes."""
    matrix = adjacency(graph).astype(np.float64)
    shared = (matrix @ matrix).toarray()
    degrees = graph.degrees.astype(np.float64)
    return np.asarray(shared / graph.size - np.outer(degrees, degrees) / graph.size**2, np.float64)


def sorted_rows(graph: Graph) -> NDArray[np.float64]:
    """Return the rows of s, each in ascending order, on a scale on which the rows of different graphs compare."""
    return np.sort(characteristic(graph), axis=1) * graph.size


def largest_shared(graph: Graph) -> NDArray[np.float64]:
    """Return for each node its degree and its largest numbers of common neighbors, the sparse part of s."""
    matrix = adjacency(graph)
    found = np.zeros((graph.size, _ENDS + 1))
    found[:, 0] = graph.degrees
    for rows in pieces(matrix @ graph.degrees):
        product = (matrix[rows] @ matrix).tocsr()
        owner = np.repeat(np.arange(product.shape[0]), np.diff(product.indptr))
        order = np.lexsort((-product.data, owner))
        place = np.arange(len(owner)) - np.repeat(product.indptr[:-1], np.diff(product.indptr))
        kept = place < _ENDS
        found[owner[kept] + rows.start, place[kept] + 1] = product.data[order][kept]
    return found
