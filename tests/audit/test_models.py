"""Models with real coins: no output proves more than the claim, and noise that is too small is caught.

Every value of a column is a cell of its own in each table that is measured, with noise of its own: so one release shows
thousands of outputs about one person, and thousands of another release those about a table without that person.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from incrowd.engines import choose
from incrowd.methods.synthesis.marginals.output import SyntheticRows
from incrowd.noise.system import SystemCoins
from incrowd.workflows.policy.policy import load_policy
from tests.audit.auditing import Trials, proved_epsilon, sure_epsilon

CELLS, ROWS = 3000, 3
EPSILON, DELTA = 1.0, 0.1
POLICY = {
    "incrowd": 1,
    "dataset": {"name": "audit"},
    "columns": {
        "place": {"categories": [f"{n:04d}" for n in range(CELLS)], "missing": "drop", "outside": "drop"},
        "sex": {"categories": ["F", "M"], "missing": "drop", "outside": "drop"},
    },
    "release": {
        "method": "marginals",
        "target": {"epsilon": 1, "delta": "0.1"},
        "levels": {"place": 0},
        "rounds": 1,
        "rows": 10,
    },
}


@dataclass(frozen=True)
class QuietCoins(SystemCoins):
    """Coins with a quarter of the noise."""

    def gaussian(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        return super().gaussian(scale / 4, size)


def likelihoods(rows: int, coins: SystemCoins) -> tuple[NDArray[np.float64], float]:
    """Return how much what was measured speaks for one more woman in each place, and by how much she moves it."""
    policy = load_policy(POLICY)
    places = [f"{n:04d}" for n in range(CELLS)] * rows
    table = choose.open_table(pa.table({"place": places, "sex": ["F"] * len(places)}), policy.schema, policy.options)
    found = policy.plan.release(table, coins)
    assert isinstance(found, SyntheticRows)
    assert found.found is not None
    score, precision = np.zeros(CELLS), 0.0
    for each in found.found.fit.measured:
        if 0 in each.columns:
            counts = each.counts if each.columns == (0,) else each.counts[:, 0]
            score += (counts - ROWS) / each.scale**2
            precision += 1 / each.scale**2
    return score / math.sqrt(precision), math.sqrt(precision)


def proved(coins: SystemCoins, threshold: float) -> float:
    """Return the epsilon that one event proves, whichever of the two tables has more of it."""
    more, less = (Trials(int((likelihoods(rows, coins)[0] >= threshold).sum()), CELLS) for rows in (ROWS + 1, ROWS))
    return proved_epsilon(more, less, DELTA)


@pytest.fixture(scope="module")
def shift() -> float:
    """By how many standard deviations a woman more moves her score: almost all of the budget is spent on it."""
    return likelihoods(ROWS, SystemCoins())[1]


def test_no_model_proves_more_than_its_claim(shift: float) -> None:
    assert shift > 0.3
    assert proved(SystemCoins(), shift) <= EPSILON


def test_a_quarter_of_the_noise_is_caught(shift: float) -> None:
    threshold = 0.75 * shift
    chances = float(norm.sf(4 * (threshold - shift))), float(norm.sf(4 * threshold))
    assert sure_epsilon(chances, CELLS, DELTA) > EPSILON, "the audit could miss it"
    assert proved(QuietCoins(), threshold) > EPSILON
