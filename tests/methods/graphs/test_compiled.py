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


@pytest.mark.parametrize("few", [2, 64, 2**14])
def test_kernels_in_python_count_what_products_of_matrices_count(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    places = graphs()
    plain = [(triangles(graph), widest(graph)) for graph in places]
    python = compiled.Kernels(compiled.neighbors, compiled.triangles, compiled.widest)
    monkeypatch.setattr(compiled, "_MANY", 0)
    monkeypatch.setattr(compiled, "_FEW", few)
    monkeypatch.setattr(compiled, "_compiled", lambda: python)
    assert [(triangles(graph), widest(graph)) for graph in places] == plain
    assert len({number for number, _ in plain}) > 8


def test_kernels_in_numba_count_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba", reason="the kernels are compiled with the extra fast")
    chance = np.random.default_rng(7)
    random = [pair for pair in combinations(range(300), 2) if chance.random() < 0.1]
    circle = [(node, (node + step) % 2000) for node in range(2000) for step in range(1, 8)]
    places = [Graph.of(300, random), Graph.of(2000, circle), Graph.of(2000, circle + random)]
    plain = [(triangles(graph), widest(graph)) for graph in places]
    monkeypatch.setattr(compiled, "_MANY", 0)
    assert compiled.kernels(places[0].degrees) is not None
    assert [(triangles(graph), widest(graph)) for graph in places] == plain


def test_a_process_without_numba_multiplies_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_MANY", 0)
    monkeypatch.setitem(sys.modules, "numba", None)
    compiled._compiled.cache_clear()
    try:
        assert compiled.kernels(np.zeros(0, np.int64)) is None
        assert triangles(Graph.of(3, list(combinations(range(3), 2)))) == 1
    finally:
        compiled._compiled.cache_clear()
