"""How far one row moves the number of rows that sampled suppression is expected to keep.

With n rows in a cell the expectation is g(n) = E[X·1{X ≥ k}], X ~ Bin(n, β), and g(n + 1) − g(n) =
β·(P[Bin(n, β) ≥ k] + k·P[Bin(n, β) = k − 1]); the largest of these steps is the sensitivity of a look.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest

from incrowd.methods.anonymity.shared.classes import least_width
from incrowd.methods.anonymity.shared.scores import FINENESS, expected_rows

STEPS = {
    (5, "0.1"): 0.14749,
    (8, "0.1"): 0.17167,
    (20, "0.1"): 0.23978,
    (20, "0.5"): 1.50371,
    (35, "0.5"): 1.91295,
    (50, "0.2"): 0.73220,
    (58, "0.632"): 3.47223,
    (98, "0.5"): 3.03904,
}
"""The largest step for some k and β, from direct differences of g."""


@pytest.mark.parametrize(("k", "rate"), STEPS)
def test_the_largest_step_of_one_row_is_the_published_one(k: int, rate: str) -> None:
    beta = Fraction(rate)
    assert expected_rows(k, beta).most / FINENESS == pytest.approx(STEPS[k, rate], abs=2e-5)
    assert least_width(k, beta) <= expected_rows(k, beta).most <= least_width(k, beta) + 2


@pytest.mark.parametrize(("k", "rate"), [(1, "1/2"), (2, "1/2"), (3, "1/10"), (5, "9/10")])
def test_the_table_of_steps_is_the_expectation_itself(k: int, rate: str) -> None:
    beta, kept = Fraction(rate), expected_rows(k, Fraction(rate))

    def expectation(n: int) -> Fraction:
        return sum((m * comb(n, m) * beta**m * (1 - beta) ** (n - m) for m in range(k, n + 1)), Fraction(0))

    for n, step in enumerate(kept.steps[:30].tolist()):
        true = FINENESS * (expectation(n + 1) - expectation(n))
        assert true - 1 <= step <= true + Fraction(1, 10**4)
