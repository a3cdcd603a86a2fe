"""Degree and neighborhood: a person is looked for by how many others they know, and by how many those know."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from incrowd.attacks.finding import Finding
from incrowd.attacks.graphs.trial import GraphTrial, nearest
from incrowd.core.graph import Graph
from incrowd.methods.graphs.shared.matrices import adjacency

_MOST = 64


def degree(trial: GraphTrial) -> Finding:
    """Look for a person by the number of their edges.

    Knows: a person's degree.  Success: of the published nodes with the nearest degree, one at random is the person.
    Blind guess: any node.

    Meaningless if the degrees of people are not known to anyone.

    Source: Liu & Terzi 2008.
    """
    targets = trial.targets
    own, shown = trial.known.degrees[targets, None], trial.published.degrees[:, None]
    guesses = nearest(own.astype(np.float64), shown.astype(np.float64), trial.seed)
    return trial.finding("degree", "a person's degree", targets, guesses)


def neighborhood(trial: GraphTrial) -> Finding:
    """Look for a person by the degrees of their neighbors.

    Knows: a person's degree and those of all neighbors, the largest first, 64 at most.  Success: of the published nodes
    whose neighbors have the nearest degrees, one at random is the person.  Blind guess: any node.

    Meaningless if nobody can know how many others a person's neighbors know.

    Source: Zhou & Pei 2008; Hay, Miklau, Jensen, Towsley & Weis 2008.
    """
    targets = trial.targets
    guesses = nearest(neighbor_degrees(trial.known)[targets], neighbor_degrees(trial.published), trial.seed)
    return trial.finding("neighborhood", "the degrees of a person's neighbors", targets, guesses)


def neighbor_degrees(graph: Graph) -> NDArray[np.float64]:
    """Return for each node its degree, then the degrees of its neighbors, the largest first; zeros fill up."""
    matrix = adjacency(graph)
    rows = np.repeat(np.arange(graph.size), np.diff(matrix.indptr))
    values = graph.degrees[matrix.indices]
    order = np.lexsort((-values, rows))
    place = np.arange(len(rows)) - np.repeat(matrix.indptr[:-1], np.diff(matrix.indptr))
    kept = place < _MOST
    found = np.zeros((graph.size, _MOST + 1))
    found[:, 0] = graph.degrees
    found[rows[kept], place[kept] + 1] = values[order][kept]
    return found
