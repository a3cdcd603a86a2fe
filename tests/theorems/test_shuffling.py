"""Figures of shuffled reports: Theorem N, its inverse, and what colluders, links and better bounds do to it."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from incrowd.accounting.amplification import shuffled_delta, shuffled_epsilon
from incrowd.methods.local.survey.output import clones_delta, response_delta

FIGURES: dict[str, Any] = json.loads((Path(__file__).parent / "vectors_local.json").read_text(encoding="utf-8"))
MILLIONTH = Fraction(1, 10**6)


def ratio(epsilon: float) -> Fraction:
    return Fraction(math.exp(epsilon))


@pytest.mark.parametrize("told", FIGURES["N_delta"], ids=lambda told: f"{told['n']}-{told['eps0']}-{told['eps']}")
def test_delta_is_that_of_the_theorem_by_two_routes(told: dict[str, Any]) -> None:
    fast = shuffled_delta(ratio(told["eps0"]), told["n"], told["eps"])
    assert float(told["delta"]) <= fast <= float(told["delta"]) * (1 + 1e-8)
    slow = clones_delta(math.exp(told["eps0"]), told["n"], told["eps"])
    assert slow == pytest.approx(float(told["delta"]), rel=1e-8)


@pytest.mark.parametrize("told", FIGURES["N_eps"], ids=lambda told: f"{told['n']}-{told['eps0']}")
def test_epsilon_is_that_of_the_theorem_and_below_all_closed_forms(told: dict[str, Any]) -> None:
    found = shuffled_epsilon(ratio(told["eps0"]), told["n"], MILLIONTH)
    assert found == pytest.approx(told["eps"], abs=1e-6, rel=1e-4)
    others = [told[name] for name in ("clones2021", "closed2021", "closed2023") if told.get(name) is not None]
    assert all(found < other for other in others)
    assert shuffled_delta(ratio(told["eps0"]), told["n"], found) <= MILLIONTH


@pytest.mark.parametrize("told", [told for told in FIGURES["N_eps"] if told.get("krr16") and told["n"] == 1000])
def test_randomized_response_over_many_values_loses_less(told: dict[str, Any]) -> None:
    found = shuffled_epsilon(ratio(told["eps0"]), told["n"], MILLIONTH, 16)
    assert told["krr16"] * (1 - 5e-3) <= found <= told["krr16"] * 1.002  # the figure's sum is grouped upwards, too
    slow = response_delta(math.exp(told["eps0"]), told["n"], found, 16)
    assert slow <= 1e-6 * (1 + 1e-6)
    assert slow == pytest.approx(1e-6, rel=0.1)


def test_the_sum_for_many_values_is_above_the_whole_sum_written_out() -> None:
    p, alpha, n, d = 3.0, math.exp(0.3), 12, 4
    q = 1 / (p + d - 1)
    whole = 0.0
    for a, b, g in product(range(n + 1), repeat=3):
        if a + b + g <= n:
            ways = math.factorial(n) / math.prod(map(math.factorial, (a, b, g, n - a - b - g)))
            mass = ways * q ** (a + b) * ((d - 2) * q) ** g * (1 - d * q) ** (n - a - b - g)
            whole += mass * max(0.0, (p - alpha) * a - (alpha * p - 1) * b - (alpha - 1) * g)
    found = shuffled_delta(Fraction(3), n, 0.3, d)
    assert whole / n <= found <= whole / n * 1.0001
    assert response_delta(p, n, 0.3, d) == pytest.approx(whole / n, rel=1e-6)


def largest_local_epsilon(epsilon: float, delta: Fraction, people: int) -> float:
    """Return the largest ε of single reports that shuffling makes (ε, δ)-private among n people, rounded down."""
    low, high = 0.0, epsilon
    while high < 32.0 and shuffled_delta(Fraction(math.exp(high)), people, epsilon) <= delta:
        low, high = high, high * 2.0
    for _ in range(40):
        middle = (low + high) / 2.0
        fits = shuffled_delta(Fraction(math.exp(middle)), people, epsilon) <= delta
        low, high = (middle, high) if fits else (low, middle)
    return low


@pytest.mark.parametrize("told", FIGURES["N_inverse"], ids=lambda told: f"{told['n']}-{told['eps']}")
def test_the_largest_local_epsilon_for_a_central_target(told: dict[str, Any]) -> None:
    found = largest_local_epsilon(told["eps"], MILLIONTH, told["n"])
    assert found == pytest.approx(told["largest_eps0"], abs=told["tol"])
    assert shuffled_delta(ratio(found), told["n"], told["eps"]) <= MILLIONTH


def test_two_answers_by_randomized_response_lie_below_the_bound() -> None:
    told = FIGURES["N_rr_exact"]
    n, p, alpha = told["n"], 1 / (1 + math.exp(-told["eps0"])), math.exp(told["eps"])
    worst = max(_exact(n, ones, p, alpha) for ones in range(n))
    assert worst == pytest.approx(told["exact"], rel=1e-6)
    assert _exact(n, told["worst_ones_among_others"], p, alpha) == pytest.approx(told["exact"], rel=1e-6)
    bound = shuffled_delta(ratio(told["eps0"]), n, told["eps"])
    assert bound == pytest.approx(told["bound"], rel=1e-7)
    assert worst < bound


def _exact(n: int, ones: int, p: float, alpha: float) -> float:
    def law(number: int, chance: float) -> Any:
        return np.array([math.comb(number, k) * chance**k * (1 - chance) ** (number - k) for k in range(number + 1)])

    others = np.convolve(law(ones, p), law(n - 1 - ones, 1 - p))
    yes, no = np.convolve(others, [1 - p, p]), np.convolve(others, [p, 1 - p])
    return float(max(np.maximum(yes - alpha * no, 0).sum(), np.maximum(no - alpha * yes, 0).sum()))


def test_colluders_take_the_crowd_away() -> None:
    told = FIGURES["N_colluders"]
    honest = told["n"] - told["colluding"]
    assert shuffled_epsilon(ratio(told["eps0"]), told["n"], MILLIONTH) == pytest.approx(told["eps_claimed"], abs=1e-6)
    assert shuffled_epsilon(ratio(told["eps0"]), honest, MILLIONTH) == pytest.approx(told["eps_true"], abs=1e-6)


def test_a_link_with_a_small_chance_leaves_a_large_delta() -> None:
    told = FIGURES["N_linked"]
    p, alpha = math.exp(told["eps0"]), math.exp(told["eps"])
    least = told["link_probability"] * (p - alpha) / (p + 1)
    assert least == pytest.approx(told["delta_at_least"], rel=1e-9)


def test_the_bound_is_attained_by_two_people() -> None:
    """Randomized response of two people, one of whom the attacker knows, at the worst value of the other."""
    assert FIGURES["N_worst_ratio_to_bound_vertices"] <= 1 + 1e-12
    assert FIGURES["N_worst_ratio_to_bound_small_n"] < 1
    p, alpha = 3.0, math.exp(0.2)
    bound = shuffled_delta(Fraction(3), 2, 0.2)
    assert max(_exact(2, ones, p / (p + 1), alpha) for ones in range(2)) <= bound * (1 + 1e-9)
