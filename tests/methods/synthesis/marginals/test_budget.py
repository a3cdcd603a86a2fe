"""Budgets of models: shares that are never exceeded, and a filter that is not either, whatever comes out."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from incrowd.methods.synthesis.marginals.budget import (
    Sensitivity,
    Shares,
    choice_epsilon,
    choice_rho,
    gaussian_scale,
    table_rho,
)
from incrowd.methods.synthesis.marginals.evaluation import WeightedRows
from incrowd.methods.synthesis.marginals.search import Search, WorkLimits, connected_parts
from incrowd.noise.system import SystemCoins
from tests.coins import SeededCoins

ONE = Sensitivity(1, 1)


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=50), st.integers(1, 60), st.integers(1, 9))
def test_scales_and_choices_never_cost_more_than_their_share(rho: Fraction, number: int, rows: int) -> None:
    reach = Sensitivity(2 * rows**2, 2 * rows)
    assert table_rho(gaussian_scale(rho, number, reach), reach, number) <= rho
    assert number * choice_rho(choice_epsilon(rho, number)) <= rho


@dataclass(frozen=True)
class Hostile(SystemCoins):
    """Coins whose noise is as large or small as somebody likes, to drive the search anywhere."""

    factor: int = 1

    def gaussian(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        return super().gaussian(scale, size) * self.factor


@pytest.mark.parametrize("factor", [0, 1, 40])
@pytest.mark.parametrize("reach", [ONE, Sensitivity(8, 4)])
def test_the_filter_is_never_exceeded_whatever_comes_out(factor: int, reach: Sensitivity) -> None:
    chance = np.random.default_rng(factor)
    sizes = (2, 3, 4, 2)
    codes = np.array([chance.integers(0, size, 300) for size in sizes])
    rows = WeightedRows(sizes, codes, np.ones(300, np.int64))
    limits = WorkLimits(tuple(combinations(range(4), 2)), 5, 500, 5)
    rho = Fraction(1, 3)
    search = Search(rows, limits, reach, Hostile(factor=factor))
    for found in (search.adaptive(Shares.of(rho, 4, 5, reach)), search.tree(rho)):
        assert found.rho(reach) <= rho
        assert found.model.tree.cells <= 500


def test_every_column_is_joined_to_another_even_where_others_seem_more_wrong() -> None:
    """Four columns are nearly one, two depend on them a little: tables of the four alone would take all rounds."""
    chance = np.random.default_rng(2)
    first = chance.integers(0, 6, 4000)
    same = [(first + (chance.random(4000) < 0.2)) % 6 for _ in range(4)]
    weak = [np.where(chance.random(4000) < 0.3, first % 2, chance.integers(0, 2, 4000)) for _ in range(2)]
    rows = WeightedRows((6, 6, 6, 6, 2, 2), np.array([*same, *weak]), np.ones(4000, np.int64))
    limits = WorkLimits(tuple(combinations(range(6), 2)), 7, 10_000, 5)
    found = Search(rows, limits, ONE, SeededCoins(3)).adaptive(Shares.of(Fraction(1, 50), 6, 7, ONE))
    assert len(set(connected_parts(6, found.model.tree.cliques))) == 1
