"""Kernels for large graphs return what products of matrices do."""

from __future__ import annotations

import sys
from itertools import combinations

import numpy as np
import pytest

from incrowd.core.graph import Graph
from incrowd.methods.graphs.shared import compiled
from incrowd.methods.graphs.shared.matrices import triangles, widest


def graphs() -> list[Graph]:
    """Return every graph of four nodes, and larger ones with hubs, isolated nodes and dense parts."""
    four = list(combinations(range(4), 2))
    small = [Graph.of(4, [pair for at, pair in enumerate(four) if chosen >> at & 1]) for chosen in range(64)]
    chance, large = np.random.default_rng(7), []
    for size in (9, 30):
        for share in (0.05, 0.3, 0.9):
            joined = [pair for pair in combinations(range(size), 2) if chance.random() < share or pair[0] == 0]
            large.append(Graph.of(size + 3, joined))
    return [*small, *large]


def test_kernels_in_python_count_what_products_of_matrices_count(monkeypatch: pytest.MonkeyPatch) -> None:
    places = graphs()
    plain = [(triangles(graph), widest(graph)) for graph in places]
    monkeypatch.setattr(compiled, "_MANY", 0)
    monkeypatch.setattr(compiled, "_compiled", lambda: (compiled.triangles, compiled.widest))
    assert [(triangles(graph), widest(graph)) for graph in places] == plain
    assert len({number for number, _ in plain}) > 8


def test_kernels_in_numba_count_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba", reason="the kernels are compiled with the extra fast")
    chance = np.random.default_rng(7)
    graph = Graph.of(300, [pair for pair in combinations(range(300), 2) if chance.random() < 0.1])
    plain = triangles(graph), widest(graph)
    monkeypatch.setattr(compiled, "_MANY", 0)
    assert compiled.kernels(0) is not None
    assert (triangles(graph), widest(graph)) == plain


def test_a_process_without_numba_multiplies_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_MANY", 0)
    monkeypatch.setitem(sys.modules, "numba", None)
    compiled._compiled.cache_clear()
    try:
        assert compiled.kernels(0) is None
        assert triangles(Graph.of(3, list(combinations(range(3), 2)))) == 1
    finally:
        compiled._compiled.cache_clear()
