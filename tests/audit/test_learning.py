"""Learning with real coins: no model proves more than its claim, and noise that is too small is caught.

Tables and gradients: every value of a column is alone in the numbers that it adds to, with noise of its own.  Half of
the values have one row more, the canary; given what all of them share, each is an output of its own, so that one fit
shows thousands of them.  Products and centers: each fit is one output about a table with the canary or without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from incrowd.engines.settings import open_table
from incrowd.methods.learning.shared.models import LearnedModel
from incrowd.noise.system import SystemCoins
from incrowd.workflows.policy.policy import Policy, load_policy
from tests.audit.auditing import Trials, proved_epsilon

VALUES, ROWS, FITS = 4000, 2, 60
EPSILON, DELTA = 1.0, 0.1
DROP = {"missing": "drop", "outside": "drop"}
MANY: dict[str, Any] = {
    "a": {"categories": [f"{n:04d}" for n in range(VALUES)], **DROP},
    "t": {"categories": ["no", "yes"], **DROP},
}
FEW: dict[str, Any] = {
    "a": {"categories": ["u", "v"], **DROP},
    "n": {"type": "integer", "bounds": [-8, 8], "missing": "drop"},
    "t": {"categories": ["no", "yes"], **DROP},
}
SPREAD = ("pure", "naive-bayes", "gradient", "additive")
REPEATED: dict[str, dict[str, Any]] = {
    "moments": {"method": "classifier", "target_column": "t", "columns": ["a"], "model": "moments"},
    "regressor": {"method": "regressor", "target_column": "n", "columns": ["a"]},
    "kmeans": {"method": "kmeans", "clusters": 2, "columns": ["a"], "rounds": 1},
    "pca": {"method": "pca", "components": 1, "columns": ["a"]},
}


@dataclass(frozen=True)
class QuietCoins(SystemCoins):
    """Coins with a sixth of the noise."""

    def gaussian(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        return super().gaussian(scale / 6, size)

    def laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        return super().laplace(scale / 6, size)


def read(columns: dict[str, Any], release: dict[str, Any]) -> Policy:
    return load_policy({"incrowd": 1, "dataset": {"name": "audit"}, "columns": columns, "release": release})


def fitted(policy: Policy, table: pa.Table, coins: SystemCoins) -> LearnedModel:
    opened = open_table(table, policy.schema, policy.options)
    model: LearnedModel = policy.plan.draw(opened, coins).model
    return model


def spread_scores(model: str, coins: SystemCoins) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """How much a fit speaks for a canary where there is one and where there is none, and the δ of the claim."""
    release = {"method": "classifier", "target_column": "t", "epsilon": 1, "levels": {"a": 0}}
    release |= {"model": "naive-bayes"} if model == "pure" else {"model": model, "delta": str(DELTA)}
    policy = read(MANY, release)
    values = [f"{n:04d}" for n in range(VALUES)]
    rows = {"a": [*values * ROWS, *values[::2]], "t": [*["no"] * VALUES * ROWS, *["yes"] * (VALUES // 2)]}
    table = fitted(policy, pa.table(rows), coins).tables[0]
    score = table[:, 1] - table[:, 0]
    return score[::2], score[1::2], float(policy.plan.guarantee.delta)


def repeated_scores(way: str, coins: SystemCoins) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """The same for fits on a table with the canary and on one without it."""
    policy = read(FEW, {**REPEATED[way], "epsilon": 1, "delta": str(DELTA)})
    others: dict[str, list[Any]] = {"a": ["u"] * 4, "n": [-8] * 4, "t": ["no"] * 4}
    canary: dict[str, Any] = {"a": "v", "n": 8, "t": "yes"}
    added = {name: [*column, canary[name]] for name, column in others.items()}
    tables = (pa.table(added), pa.table(others))
    found = [np.array([_said(fitted(policy, table, coins)) for _ in range(FITS)]) for table in tables]
    return found[0], found[1], DELTA


def _said(model: LearnedModel) -> float:
    """How much a model speaks for the canary: its value against that of the others."""
    if model.vectors is not None:
        return float(np.abs(model.vectors[:, 1]).max())
    return float(model.tables[0][1, -1] - model.tables[0][0, -1])


def proved(more: NDArray[np.float64], less: NDArray[np.float64], delta: float) -> float:
    """Return the epsilon that one event proves: it is chosen on half of the outputs, and counted on the other half."""
    half = len(more) // 2
    limits = np.quantile(np.concatenate([more[:half], less[:half]]), np.linspace(0.02, 0.98, 49))
    gaps = [np.mean(more[:half] >= each) - np.mean(less[:half] >= each) for each in limits]
    limit = limits[int(np.argmax(gaps))]
    with_you, without = (Trials.count((each[half:] >= limit).tolist()) for each in (more, less))
    return proved_epsilon(with_you, without, delta)


@pytest.mark.parametrize("model", SPREAD)
def test_no_table_or_gradient_proves_more_than_its_claim(model: str) -> None:
    """It does by chance with probability FALSE_ALARM / 2 at most, as `proved_epsilon` says."""
    assert proved(*spread_scores(model, SystemCoins())) <= EPSILON


@pytest.mark.parametrize("way", REPEATED)
def test_no_product_or_center_proves_more_than_its_claim(way: str) -> None:
    """It does by chance with probability FALSE_ALARM / 2 at most, as `proved_epsilon` says."""
    assert proved(*repeated_scores(way, SystemCoins())) <= EPSILON


@pytest.mark.parametrize("model", SPREAD)
def test_a_sixth_of_the_noise_is_caught(model: str) -> None:
    """The canary then lies several deviations away from the others: of 1,000 outputs nearly all tell."""
    assert proved(*spread_scores(model, QuietCoins())) > EPSILON
