"""Measures of graphs: how rare the nodes are, and what a release preserves of the shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.core.graph import Graph
from incrowd.core.words import counted
from incrowd.measures.score import Score
from incrowd.methods.graphs.shared.matrices import adjacency, stars, triangles

Colors = NDArray[np.int64]
_HOPS = 3  # distances up to so many steps are compared


def colors(graph: Graph, hops: int) -> Colors:
    """Return a number for each node, equal for nodes with equal surroundings within `hops` hops.

    Within one hop that is the degree, within two also the degrees of neighbors, and so on: each hop adds the multiset
    of the neighbors' colors (Weisfeiler & Leman 1968), identified by sums of random words.  Different colors collide
    with probability below 10⁻⁶ for a million nodes.

    >>> sizes_of(colors(Graph.of(5, [(0, 1), (1, 2), (2, 3), (3, 4)]), 1)).tolist()
    [2, 3, 3, 3, 2]
    """
    matrix, codes = adjacency(graph), np.zeros(graph.size, np.int64)
    chance = np.random.default_rng(0)
    for _ in range(hops):
        words = chance.integers(0, 2**63, size=(int(codes.max(initial=0)) + 1, 2), dtype=np.int64)
        sums = np.stack([_wrapped(matrix, words[codes, part]) for part in (0, 1)], axis=1)
        codes = np.unique(np.column_stack([codes, sums]), axis=0, return_inverse=True)[1].ravel().astype(np.int64)
    return codes


def _wrapped(matrix: object, words: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sums of neighbors' words modulo 2^64."""
    with np.errstate(over="ignore"):
        return np.asarray(matrix @ words, np.int64)  # type: ignore[operator]


def sizes_of(codes: Colors) -> NDArray[np.int64]:
    """Return for each node the size of its class."""
    return np.bincount(codes)[codes].astype(np.int64) if len(codes) else codes


def uniqueness(graph: Graph) -> tuple[Score, ...]:
    """Return the smallest class and the share of unique nodes, by their surroundings within 1, 2, 3 hops."""
    scores = []
    names = {1: "degree", 2: "set of neighbors by degree", 3: "surroundings within three hops"}
    for hops in range(1, _HOPS + 1):
        sizes = sizes_of(colors(graph, hops))
        smallest = int(sizes.min(initial=graph.size))
        alone = float((sizes == 1).mean()) if graph.size else 0.0
        scores.append(Score(f"smallest class, {counted(hops, 'hop')}", smallest, f"nodes of the rarest {names[hops]}"))
        scores.append(Score(f"unique, {counted(hops, 'hop')}", alone, f"share of nodes with a unique {names[hops]}"))
    return tuple(scores)


_SOURCES, _EIGENVALUES = 32, 5  # nodes that paths start from in large graphs, and eigenvalues: more is slower
_SMALL = 1000
"""Up to this size, paths are measured from all nodes."""


@dataclass(frozen=True, eq=False)
class GraphShape:
    """Statistics of a graph."""

    edges: int
    degrees: NDArray[np.int64]
    clustering: float
    path: float
    spectrum: NDArray[np.float64]

    @classmethod
    def of(cls, graph: Graph) -> GraphShape:
        """Measure a graph; path lengths of a large one from some of its nodes, the same every time."""
        wedges = stars(graph.degrees, 2)
        clustering = 3 * triangles(graph) / wedges if wedges else 0.0
        return cls(len(graph.ends), graph.degrees, clustering, mean_path(graph), spectrum(graph))

    def beside(self, after: GraphShape) -> tuple[Score, ...]:
        """Return what changed."""
        most = int(max(self.degrees.max(initial=0), after.degrees.max(initial=0))) + 1
        shares = [np.bincount(d, minlength=most) / max(1, len(d)) for d in (self.degrees, after.degrees)]
        near = min(len(self.spectrum), len(after.spectrum))
        apart = float(np.abs(self.spectrum[:near] - after.spectrum[:near]).max(initial=0.0))
        return (
            Score("edges before", self.edges, "edges of the data"),
            Score("edges after", after.edges, "edges of the published graph, or of one sampled from it"),
            Score(
                "degrees apart", float(np.abs(shares[0] - shares[1]).sum() / 2), "share of nodes with another degree"
            ),
            Score("clustering before", self.clustering, "share of pairs of neighbors that are connected"),
            Score("clustering after", after.clustering, "the same, as published"),
            Score("path before", self.path, "mean number of edges between two connected nodes"),
            Score("path after", after.path, "the same, as published"),
            Score("spectrum apart", apart, f"largest difference of the {_EIGENVALUES} largest eigenvalues"),
        )


def mean_path(graph: Graph) -> float:
    """Return the mean number of edges from all nodes, or from some of many, to all that can be reached."""
    from scipy.sparse.csgraph import shortest_path

    if not len(graph.ends):
        return 0.0
    sources = np.random.default_rng(0).permutation(graph.size)[: _SOURCES if graph.size > _SMALL else None]
    distances = shortest_path(adjacency(graph), unweighted=True, indices=sources)
    reached = distances[np.isfinite(distances) & (distances > 0)]
    return float(reached.mean()) if len(reached) else 0.0


def spectrum(graph: Graph) -> NDArray[np.float64]:
    """Return the largest eigenvalues of the adjacency matrix, the largest first."""
    from scipy.sparse.linalg import eigsh

    matrix: Any = adjacency(graph).astype(np.float64)
    if graph.size <= 4 * _EIGENVALUES:
        return np.sort(np.linalg.eigvalsh(matrix.toarray()))[::-1][:_EIGENVALUES].astype(np.float64)
    start = np.ones(graph.size) / np.sqrt(graph.size)
    values = eigsh(matrix, k=_EIGENVALUES, which="LA", v0=start, return_eigenvectors=False, tol=1e-6)
    return np.sort(np.asarray(values, np.float64))[::-1]


def communities(graph: Graph) -> NDArray[np.int64]:
    """Return two communities: the signs of the leading eigenvector of A − d dᵀ/2m (Newman 2006)."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    if graph.size < 3 or not len(graph.ends):
        return np.zeros(graph.size, np.int64)
    matrix, degrees = adjacency(graph).astype(np.float64), graph.degrees.astype(np.float64)

    def apply(vector: NDArray[np.float64]) -> NDArray[np.float64]:
        whole = vector.ravel()
        return np.asarray(matrix @ whole - degrees * (degrees @ whole) / degrees.sum(), np.float64)

    operator = LinearOperator((graph.size, graph.size), matvec=apply, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(graph.size)
    vector = eigsh(operator, k=1, which="LA", v0=start, tol=1e-6)[1].ravel()
    return np.asarray(vector > 0, np.int64)


def modularity(graph: Graph, groups: NDArray[np.int64]) -> float:
    """Return how many more edges lie inside groups than by chance, as a share (Newman & Girvan 2004)."""
    if not len(graph.ends):
        return 0.0
    inside = float((groups[graph.ends[:, 0]] == groups[graph.ends[:, 1]]).mean())
    weight = np.bincount(groups, weights=graph.degrees) / (2 * len(graph.ends))
    return inside - float((weight**2).sum())
