"""Sensitive cells, secondary suppression, controlled rounding and cell keys: published figures and counterexamples."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from incrowd.errors import Infeasible
from incrowd.methods.tabulation.protected.attacker import Together, never, spread
from incrowd.methods.tabulation.protected.boxes import ProtectionDemand
from incrowd.methods.tabulation.protected.frame import TableFrame
from incrowd.methods.tabulation.protected.perturbation import KeyNoise, round_cells
from incrowd.methods.tabulation.protected.rules import CellFacts, Dominance, Rules
from incrowd.methods.tabulation.protected.suppression import suppress, task_of
from tests.methods.tabulation.frames import flat

VECTORS = json.loads((Path(__file__).parent / "vectors_tables.json").read_text(encoding="utf-8"))
P_TABLES = VECTORS["O_ptable"]


def cell_of(contributions: list[int]) -> CellFacts:
    return CellFacts(np.array([sum(contributions)]), np.array([len(contributions)]), np.array(contributions)[:, None])


def test_dominance_passes_a_cell_whose_second_contributor_knows_the_first_and_p_does_not() -> None:
    given = VECTORS["O_rules"]
    cell = cell_of(given["cell"])
    assert Rules(dominance=Dominance(1, Fraction(3, 5))).sensitive(cell)[0] == given["dominance_1_60"]
    assert Rules(p=Fraction(1, 10)).sensitive(cell)[0] == given["p10"]
    within = Fraction(given["second_estimates_first_within"])
    assert not Rules(p=within).sensitive(cell)[0]
    assert Rules(p=within + Fraction(1, 10**6)).sensitive(cell)[0]


def test_the_rule_of_p_lies_between_two_rules_of_dominance() -> None:
    chance = np.random.default_rng(5)
    for _ in range(300):
        cell = cell_of(sorted(chance.integers(1, 60, 3).tolist(), reverse=True))
        p = Fraction(int(chance.integers(1, 9)), 10)
        one, two = (Rules(dominance=Dominance(n, 1 / (1 + p))).sensitive(cell)[0] for n in (1, 2))
        between = Rules(p=p).sensitive(cell)[0]
        assert one <= between <= two


def test_the_least_pattern_of_the_published_table_and_its_intervals() -> None:
    given = VECTORS["O_suppression"]
    frame = TableFrame((flat(3, "r"), flat(3, "c")))
    leaves = np.array(given["table"])
    primary = int(np.ravel_multi_index([place + 1 for place in given["primary"]], frame.shape))
    task = task_of(frame, leaves)
    pattern = suppress(
        task, [ProtectionDemand(primary, given["protection"], given["protection"])], given["protection"] + 1
    )
    empty = np.flatnonzero(pattern.suppressed)
    assert task.weights[empty].sum() == given["weight"]
    places = [[int(n) - 1 for n in np.unravel_index(cell, frame.shape)] for cell in empty]
    assert places == given["suppressed"]
    known = ~pattern.suppressed.reshape(frame.shape)
    low, high = spread(Together.of((frame,), [(frame.totals(leaves), known)]).reader(0), frame.matrix[empty], never)
    found = {str(tuple(place)): [a, b] for place, a, b in zip(places, low, high, strict=True)}
    assert found == given["intervals"]


def test_halves_at_three_corners_of_a_cube_cannot_be_rounded() -> None:
    leaves = np.zeros((2, 2, 2), np.int64)
    for place in VECTORS["O_rounding3d"]["entries_half_at"]:
        leaves[tuple(place)] = 1
    with pytest.raises(Infeasible, match="multiples of 2"):
        round_cells(TableFrame((flat(2, "a"), flat(2, "b"), flat(2, "c"))), leaves, 2)


def test_every_table_of_two_columns_can_be_rounded() -> None:
    chance = np.random.default_rng(8)
    for _ in range(40):
        frame = TableFrame((flat(int(chance.integers(1, 6)), "a"), flat(int(chance.integers(1, 6)), "b")))
        leaves, base = chance.integers(0, 30, frame.leaf_shape), int(chance.integers(2, 9))
        found, true = round_cells(frame, leaves, base).cells, frame.totals(leaves)
        assert not np.any(found % base)
        assert np.all(np.abs(found - true) < base)
        assert np.array_equal(found, frame.totals(frame.finest(found)))


@pytest.mark.parametrize("given", P_TABLES, ids=[f"{g['count']}-{g['D']}-{g['V']}-{g['js']}" for g in P_TABLES])
def test_the_noise_of_largest_entropy_is_the_published_one_with_exact_mean_and_variance(given: dict[str, Any]) -> None:
    row = KeyNoise(given["D"], Fraction(given["V"]), given["js"]).row(given["count"])
    assert list(row) == given["v"]
    assert max(abs(float(row[v]) - float(p)) for v, p in zip(given["v"], given["p"], strict=True)) < 1e-12
    assert sum(row.values()) == 1
    assert sum(v * p for v, p in row.items()) == 0
    assert sum(v * v * p for v, p in row.items()) == given["V"]
    assert min(row.values()) >= 0
    assert all(given["count"] + v == 0 or given["count"] + v > given["js"] for v in row)


def test_cell_keys_are_not_differentially_private() -> None:
    noise, given = KeyNoise(5, Fraction(3)), VECTORS["O_cellkey_delta"]
    assert float(noise.zero_to_one()) == pytest.approx(float(given["zero_to_one"]), abs=1e-10)
    for epsilon in ("0.5", "1", "2", "20"):
        assert noise.delta(8, float(epsilon)) == pytest.approx(float(given[epsilon]), abs=1e-10)
        assert noise.delta(0, float(epsilon)) == pytest.approx(float(given["zero_to_one"]), abs=1e-10)


def test_near_the_largest_variance_a_row_turns_up_at_its_end() -> None:
    row = KeyNoise(5, Fraction(3)).row(1)
    assert row[5] > row[3]


def test_a_variance_that_no_noise_has_is_refused() -> None:
    for noise in ((5, 1, 2), (5, 6, 0), (2, 0, 0)):
        with pytest.raises(Infeasible):
            KeyNoise(noise[0], Fraction(noise[1]), noise[2])
