"""Trees, additive numbers, grids, samples: no model proves more than its claim, and less noise is caught.

The canary is the only row of its value and of its class, or at the far end of every bound, so that it is alone in what
it adds to.  Additive numbers and samples: each value of a column is an output of its own; half have the canary.
Elsewhere each fit is one output about a table with the canary or without it.
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
from incrowd.methods.learning.shared.growth import GrowthGoal, grow_all
from incrowd.methods.learning.shared.models import LearnedModel
from incrowd.methods.learning.shared.statistics import Records
from incrowd.noise.system import SystemCoins
from incrowd.workflows.policy.policy import Policy, load_policy
from tests.audit.auditing import Trials, proved_epsilon

FITS, VALUES = 160, 2000
EPSILON, DELTA = 1.0, 0.1
DROP = {"missing": "drop", "outside": "drop"}
COLUMNS: dict[str, Any] = {
    "a": {"categories": ["u", "v"], **DROP},
    "b": {"categories": ["u", "v"], **DROP},
    "n": {"type": "integer", "bounds": [-8, 8], "missing": "drop"},
    "t": {"categories": ["no", "yes"], **DROP},
}
Rows = dict[str, list[Any]]
OTHERS: Rows = {"a": ["u"] * 5, "b": ["u"] * 5, "n": [-8] * 4 + [8], "t": ["no"] * 5}
CANARY: dict[str, Any] = {"a": "v", "b": "u", "n": 8, "t": "yes"}
CLASSES: dict[str, Any] = {"method": "classifier", "target_column": "t", "columns": ["a"], "depth": 1}
WAYS: dict[str, dict[str, Any]] = {
    "tree": {**CLASSES, "model": "tree"},
    "random trees": {**CLASSES, "model": "random-trees", "expected_rows": 4},
    "regression tree": {"method": "regressor", "target_column": "n", "columns": ["a"], "model": "tree", "depth": 1},
    "grid": {"method": "kmeans", "clusters": 2, "columns": ["n"], "expected_rows": 1000},
    "additive": {"method": "regressor", "target_column": "n", "columns": ["a"], "model": "additive"},
    "stream": {
        "method": "classifier",
        "target_column": "t",
        "columns": ["a"],
        "model": "stream",
        "expected_rows": 3000,
    },
}


@dataclass(frozen=True)
class QuietCoins(SystemCoins):
    """Coins with a fortieth of the noise."""

    def gaussian(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        return super().gaussian(scale / 40, size)

    def laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        return super().laplace(scale / 40, size)


@dataclass(frozen=True)
class EagerCoins(SystemCoins):
    """Coins that accept a cut twelve times as strictly."""

    def decay(self, scale: Fraction, steps: NDArray[np.int64]) -> NDArray[np.bool_]:
        return super().decay(scale / 12, steps)


def read(release: dict[str, Any], columns: dict[str, Any] = COLUMNS) -> Policy:
    told = {"epsilon": str(EPSILON), "delta": str(DELTA), **release}
    return load_policy({"incrowd": 1, "dataset": {"name": "audit"}, "columns": columns, "release": told})


def with_canary(rows: Rows) -> Rows:
    return {name: [*column, CANARY[name]] for name, column in rows.items()}


def outputs(way: str, coins: SystemCoins) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """How much fits speak for the canary where it is and where it is not, and the δ of the claim."""
    if way in {"additive", "stream"}:
        return spread(way, coins)
    policy, found = read(WAYS[way]), []
    for rows in (with_canary(OTHERS), OTHERS):
        table = open_table(pa.table(rows), policy.schema, policy.options)
        found.append(np.array([_said(policy.plan.draw(table, coins).model) for _ in range(FITS)]))
    return found[0], found[1], float(policy.plan.guarantee.delta)


def spread(way: str, coins: SystemCoins) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """The same for all values of a column at once, each of which has a row beside the canary."""
    values = [f"{n:04d}" for n in range(VALUES)]
    columns = {**COLUMNS, "a": {"categories": values, **DROP}}
    policy, canaries = read({**WAYS[way], "levels": {"a": 0}}, columns), VALUES // 2
    rows: Rows = {"a": [*values, *values[::2]], "b": ["u"] * (VALUES + canaries)}
    rows |= {"n": [-8] * VALUES + [8] * canaries, "t": ["no"] * VALUES + ["yes"] * canaries}
    opened = open_table(pa.table(rows), policy.schema, policy.options)
    shape = policy.plan.draw(opened, coins).model.tables[0][:, -1]
    return shape[::2], shape[1::2], float(policy.plan.guarantee.delta)


def _said(model: LearnedModel) -> float:
    """How much a model speaks for the canary: its value against that of the others, or the farthest center."""
    if model.vectors is not None:
        return float(model.vectors.max())
    ends = [tree.leaves[tree.cuts.ends(np.array([[1], [0]]), [False])] for tree in model.trees]
    return float(sum(each[0, -1] - each[1, -1] for each in ends))


def proved(more: NDArray[np.float64], less: NDArray[np.float64], delta: float) -> float:
    """Return the epsilon that one event proves: it is chosen on half of the outputs, and counted on the other half."""
    half = len(more) // 2
    values = np.unique(np.concatenate([more[:half], less[:half]]))
    limits = np.append((values[1:] + values[:-1]) / 2, values[0])
    ratios = [(np.mean(more[:half] >= each) - delta) / (np.mean(less[:half] >= each) + 15 / half) for each in limits]
    limit = limits[int(np.argmax(ratios))]
    with_you, without = (Trials.count((each[half:] >= limit).tolist()) for each in (more, less))
    return proved_epsilon(with_you, without, delta)


@pytest.mark.parametrize("way", WAYS)
def test_no_model_proves_more_than_its_claim(way: str) -> None:
    """It does by chance with probability FALSE_ALARM / 2 at most, as `proved_epsilon` says."""
    assert proved(*outputs(way, SystemCoins())) <= EPSILON


@pytest.mark.parametrize("way", WAYS)
def test_a_fortieth_of_the_noise_is_caught(way: str) -> None:
    """The canary then lies many deviations away from the others: nearly all outputs tell."""
    assert proved(*outputs(way, QuietCoins())) > EPSILON


def cuts(coins: SystemCoins, fits: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Whether the second of two columns was cut, where the canary speaks for it, and without the canary.

    One row spoils the second column already; the canary spoils the first one, so that they are equal again.
    """
    policy = read({**WAYS["tree"], "columns": ["a", "b"]})
    method: Any = policy.method
    task, found = method.task(policy.schema), []
    (recipe, rho), goal = method.recipe(task), GrowthGoal.classes(2)
    grow = recipe.sums(task, rho, policy.schema.unit)[0]
    assert grow in policy.plan.steps, "what is chosen is what is paid for"
    side, target = ["u"] * 200 + ["v"] * 200, ["no"] * 200 + ["yes"] * 200
    less: Rows = {"a": [*side, "u"], "b": [*side, "v"], "n": [0] * 401, "t": [*target, "no"]}
    more = {name: [*column, {**CANARY, "t": "no"}[name]] for name, column in less.items()}
    for rows in (more, less):
        table = open_table(pa.table(rows), policy.schema, policy.options)
        records = Records.of(table, task.classes, coins)
        found.append([grow_all(task, records, goal, grow, coins)[0].columns[0] == 1 for _ in range(fits)])
    return np.array(found[0], float), np.array(found[1], float)


def test_which_cut_was_chosen_proves_no_more_than_its_claim() -> None:
    assert proved(*cuts(SystemCoins(), 2 * FITS), 0.0) <= EPSILON


def test_a_choice_that_is_too_strict_is_caught() -> None:
    """Of two cuts that part equally well each is chosen half of the time; one that is worse by a row nearly never.

    Its chance without the canary is then e^−8: that so many outputs do not tell has a chance below 1e-9.
    """
    assert proved(*cuts(EagerCoins(), 4 * FITS), 0.0) > EPSILON
