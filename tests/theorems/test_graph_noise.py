"""Noise of graphs: wedges and clustering on all small graphs, synthetic degrees, and the noises of the reference."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from incrowd.core.graph import Graph
from incrowd.core.unit import Kind
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.polynomial import PolynomialNoise
from incrowd.methods.graphs.clustering import Clustering, coefficient
from incrowd.methods.graphs.degree_distribution import DegreeDistribution
from incrowd.methods.graphs.degree_sequence import DegreeSequence, edges_with
from incrowd.methods.graphs.shared.degrees import fitted
from incrowd.methods.graphs.shared.matrices import largest_sum, smooth_sensitivity, smooth_wedges, stars, triangles
from tests.coins import SeededCoins
from tests.graphs import VECTORS, all_graphs, dense, karate, random_graph, schema, without_edge


def slow_local(graph: Graph) -> int:
    """How far one more or one less edge moves the pairs of edges with a common end."""
    matrix = dense(graph)
    degrees = matrix.sum(axis=0)
    pairs = itertools.combinations(range(graph.size), 2)
    return max(int(degrees[a] + degrees[b] - 2 * matrix[a, b]) for a, b in pairs)


@pytest.mark.parametrize("size", [3, 4, 5])
def test_how_far_one_edge_moves_wedges_some_edges_away_on_all_graphs(size: int) -> None:
    graphs = list(all_graphs(size))
    bits = size * (size - 1) // 2
    reach = np.array([slow_local(graph) for graph in graphs])
    here = np.array([largest_sum(graph) for graph in graphs])
    flips = np.array([0, *(1 << bit for bit in range(bits))])
    for steps in range(bits + 1):
        assert np.minimum(here + steps, 2 * (size - 2)).tolist() == reach.tolist(), steps
        reach = reach[np.arange(len(graphs))[:, None] ^ flips].max(axis=1)


@pytest.mark.parametrize("size", [3, 4])
def test_wedges_with_noise_hide_every_edge_exactly_on_all_graphs(size: int) -> None:
    """The law of the noisy number at half of ε, on every graph and its neighbors; triangles are tested alike."""
    noise = PolynomialNoise.of(Fraction(1, 2), 4)
    laws = {graph.ends.tobytes(): _law(graph, noise) for graph in all_graphs(size)}
    bound = math.exp(0.5) * (1 + 1e-12)
    for graph in all_graphs(size):
        for less in without_edge(graph):
            ratios = laws[graph.ends.tobytes()] / laws[less.ends.tobytes()]
            assert max(ratios.max(), 1 / ratios.min()) <= bound


def _law(graph: Graph, noise: PolynomialNoise) -> np.ndarray:
    number, sensitivity = stars(graph.degrees, 2), smooth_wedges(graph, noise.ratio)
    inside = [float(noise.mass(sensitivity, outcome - number)) for outcome in range(-20, 41)]
    ends = [float(noise.tail(sensitivity, abs(end - number)) / 2) for end in (-21, 41)]
    return np.array([ends[0], *inside, ends[1]])


def test_clustering_is_two_numbers_at_half_of_epsilon_and_what_they_come_to() -> None:
    plan = Clustering(epsilon=Fraction(1), power=4).plan(schema())
    noise = PolynomialNoise.of(Fraction(1, 2), 4)
    assert plan.steps[0].noise == noise  # type: ignore[attr-defined]
    assert plan.guarantee.loss.epsilon == 1  # type: ignore[union-attr]
    both = [noise.draw(smooth(karate(), noise.ratio), SeededCoins(3)) for smooth in (smooth_sensitivity, smooth_wedges)]
    row = plan.draw(karate(), SeededCoins(3)).table.to_pylist()[0]
    assert row["triangles"] == triangles(karate()) + both[0]
    assert row["clustering"] == coefficient(row["triangles"], row["pairs of edges"])
    assert coefficient(45, 528) == pytest.approx(0.2556818, abs=1e-6)
    with pytest.raises(InvalidParameter, match="without bound"):
        Clustering(epsilon=Fraction(1)).plan(schema(Kind.NODE))


def test_a_synthetic_graph_pays_for_sorted_degrees_and_is_drawn_from_nothing_else() -> None:
    method = DegreeSequence(epsilon=Fraction(1))
    paid = DegreeDistribution(epsilon=Fraction(1)).plan(schema())
    assert method.plan(schema()).guarantee.loss == paid.guarantee.loss
    path, star = Graph.of(4, [(0, 1), (1, 2), (2, 3)]), Graph.of(4, [(3, 0), (0, 2), (2, 1)])
    made = [method.plan(schema()).draw(graph, SeededCoins(5)) for graph in (path, star)]
    assert made[0].edges.equals(made[1].edges), "two graphs with the same degrees give the same"
    assert made[0].origin is None


def test_ends_are_joined_to_a_simple_graph_with_the_degrees_or_fewer() -> None:
    wanted = random_graph(500, 3000, 1).degrees
    graph = Graph.of(500, edges_with(wanted, SeededCoins(1)))
    assert (graph.degrees <= wanted).all()
    assert graph.degrees.sum() >= 0.99 * wanted.sum()
    assert len(edges_with(np.array([0, 0]), SeededCoins(1))) == 0
    assert edges_with(np.array([1, 1, 1]), SeededCoins(1)).shape == (1, 2)


def test_isotonic_inference_of_the_karate_club_through_a_release() -> None:
    """400 seeded releases, the same every time; the reference is good to 10 %, and rounding to what can be helps."""
    degrees, plan, coins = (
        np.sort(karate().degrees),
        DegreeDistribution(epsilon=Fraction(1)).plan(schema()),
        SeededCoins(9),
    )
    errors, raw = [], []
    for _ in range(400):
        table = plan.draw(karate(), coins).table
        found = np.repeat(table["degree"].to_numpy(), table["count"].to_numpy())
        errors.append(((found - degrees) ** 2).sum())
        raw.append((coins.laplace(Fraction(2), 34) ** 2).sum())
    given = VECTORS["R_isotonic"]
    assert np.mean(raw) == pytest.approx(given["simulated_raw"], rel=0.1)
    assert np.mean(errors) == pytest.approx(given["isotonic"], rel=0.25)
    assert np.mean(errors) < given["isotonic"] * 1.1
    assert fitted(degrees).tolist() == degrees.tolist()


@pytest.mark.parametrize("given", VECTORS["R_laplace_smooth"], ids=lambda each: str(each["eps"]))
def test_polynomial_noise_is_narrower_than_laplace_noise_for_the_same_graph_and_needs_no_delta(
    given: dict[str, float],
) -> None:
    """α = ε/2 and β = ε/(2 ln(2/δ)) hold δ; noise of scale S/α on the karate club is wider than ours without a δ."""
    epsilon, delta = given["eps"], given["delta"]
    alpha, beta = epsilon / 2, epsilon / (2 * math.log(2 / delta))
    assert [alpha, beta] == pytest.approx([given["alpha"], given["beta"]], rel=1e-12)
    assert _exact_delta(epsilon, alpha, beta) == pytest.approx(given["exact_delta"], rel=1e-2)
    assert _exact_delta(epsilon, alpha, beta) <= delta
    laplace = float(smooth_sensitivity(karate(), Fraction(math.exp(-beta)))) / alpha
    noise = PolynomialNoise.of(Fraction(str(epsilon)), 10)
    ours = float(smooth_sensitivity(karate(), noise.ratio) / noise.kappa) / (noise.power - 1)
    assert ours < laplace


def _exact_delta(epsilon: float, alpha: float, beta: float) -> float:
    """∫ max(p − e^ε q, 0) of Laplace laws: p of scale 1, q of scale e^(−β) and moved by α e^(−β); both tails."""
    narrow, moved = math.exp(beta), alpha * math.exp(-beta)
    tails = []
    for shift in (moved, -moved):  # beyond the crossing point, to the left of q and to the right of it
        cross = (epsilon + beta - shift * narrow) / (narrow - 1)
        tails.append((math.exp(-cross) - math.exp(epsilon - (cross + shift) * narrow)) / 2)
    return sum(tails)


@pytest.mark.parametrize("given", VECTORS["R_cauchy"], ids=lambda each: str(each["eps"]))
def test_polynomial_noise_has_a_mean_where_cauchy_noise_of_the_same_loss_has_none(given: dict[str, float]) -> None:
    """The median of Cauchy noise with exact constants beside the mean of ours, on the karate club."""
    epsilon = given["eps"]
    assert 2 * math.asinh(given["alpha_at_same_beta"] / 2) + given["nrs_beta"] == pytest.approx(epsilon, rel=1e-12)
    usual = float(smooth_sensitivity(karate(), Fraction(math.exp(-given["nrs_beta"])))) / given["nrs_alpha"]
    noise = PolynomialNoise.of(Fraction(str(epsilon)), 10)
    assert float(smooth_sensitivity(karate(), noise.ratio) / noise.kappa) / (noise.power - 1) < usual


@pytest.mark.parametrize("epsilon", ["0.5", "1.0", "2.0"])
def test_polynomial_noise_on_the_karate_club_is_narrower_than_the_ladder(epsilon: str) -> None:
    noise = PolynomialNoise.of(Fraction(epsilon), 10)
    ours = float(smooth_sensitivity(karate(), noise.ratio) / noise.kappa) / (noise.power - 1)
    assert ours < VECTORS["R_ladder"][epsilon]["expected_abs_error"]
    assert VECTORS["R_ladder"][epsilon]["global_laplace_abs_error"] == 32 / float(epsilon)
