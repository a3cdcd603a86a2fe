"""Every way to learn against the strongest canary: what a membership attack proves, by the exact law of its test.

The real code learns from a table and from the same with one row more, a canary, while every sum that gets noise and the
scale of that noise are written down; both see the same published sums, as an attacker who compares them does.  The best
test there is, by the ratio of likelihoods, then has the law of a Gaussian that moves by μ, μ² = Σ (move / scale)² over
all sums, or the loss Σ |move| / scale under Laplace noise.  All canaries of a small universe are tried.  The strongest
proves nearly the ε that is claimed and no more; a copy with half of the noise, and one that takes its bounds from rows,
prove more than they claim.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

from incrowd.accounting.bound import least_epsilon
from incrowd.engines.settings import open_table
from incrowd.learn import PCA, Classifier, KMeans, Regressor
from incrowd.methods.learning.shared import statistics
from incrowd.noise.system import SystemCoins
from incrowd.workflows.policy.policy import load_policy
from tests.coins import ScriptedCoins

EPSILON, DELTA = 1.0, 1e-6
DROP = {"missing": "drop", "outside": "drop"}
Row = dict[str, Any]
WAYS: dict[str, dict[str, Any]] = {
    "pure": {"method": "classifier", "target_column": "t", "delta": None},
    "naive-bayes": {"method": "classifier", "target_column": "t", "model": "naive-bayes"},
    "gradient": {"method": "classifier", "target_column": "t", "model": "gradient"},
    "additive": {"method": "classifier", "target_column": "t", "model": "additive"},
    "moments": {"method": "classifier", "target_column": "t", "model": "moments"},
    "regressor": {"method": "regressor", "target_column": "y"},
    "kmeans": {"method": "kmeans", "clusters": 2},
    "pca": {"method": "pca", "components": 1},
}
LEAST = {"pure": 0.99}
"""What the strongest canary proves at least, where that is not 0.85."""
OTHERS: list[Row] = [{"n": 0, "m": 1, "y": 0, "t": "no"}, {"n": -2, "m": 0, "y": 3, "t": "yes"}]
CANARIES: list[Row] = [{"n": n, "m": m, "y": n, "t": t} for n, m, t in product((-8, 8), (-8, 8), ("no", "yes"))]


def policy(way: str, bounds: tuple[int, int] = (-8, 8), **more: Any) -> dict[str, Any]:
    release = {"columns": ["n", "m"], "epsilon": EPSILON, "delta": DELTA} | WAYS[way]
    numbers = {name: {"type": "integer", "bounds": list(bounds), "missing": "drop"} for name in "nmy"}
    return {
        "incrowd": 1,
        "dataset": {"name": "audit"},
        "columns": {**numbers, "t": {"categories": ["no", "yes"], **DROP}},
        "release": {key: value for key, value in release.items() if value is not None},
        **more,
    }


@dataclass
class Transcript:
    """The sums of one run with the scales of their noise; what was published is taken from another run, if given."""

    published: list[NDArray[np.int64]] | None = None
    sums: list[NDArray[np.int64]] = field(default_factory=list)
    scales: list[float] = field(default_factory=list)

    def plus(self, values: NDArray[np.int64], _noise: NDArray[np.int64]) -> NDArray[np.int64]:
        self.sums.append(values.copy())
        return values if self.published is None else self.published[len(self.sums) - 1]

    def draw(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        self.scales.append(float(scale))
        return np.zeros(size, np.int64)


class Recorded(ScriptedCoins):
    """Coins that write down which noise was asked for, and have none."""

    def __init__(self, transcript: Transcript, quieter: int) -> None:
        super().__init__()
        self.transcript, self.quieter = transcript, quieter

    def gaussian(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        return self.transcript.draw(scale / self.quieter, size)

    laplace = gaussian


@contextmanager
def written(transcript: Transcript) -> Iterator[None]:
    patch = pytest.MonkeyPatch()
    patch.setattr(statistics, "plus", transcript.plus)
    try:
        yield
    finally:
        patch.undo()


def run(plain: dict[str, Any], rows: list[Row], published: list[Any] | None = None, quieter: int = 1) -> Transcript:
    """Learn from rows by the plan of a policy."""
    read, transcript = load_policy(plain), Transcript(published)
    opened = open_table(pa.Table.from_pylist(rows), read.schema, read.options)
    with written(transcript):
        read.plan.release(opened, Recorded(transcript, quieter))
    return transcript


def moved(one: Transcript, other: Transcript) -> float:
    """μ: how far apart the sums of two runs are, in units of their noise."""
    assert one.scales == other.scales
    parts = zip(one.sums, other.sums, one.scales, strict=True)
    return math.sqrt(sum(float((((b - a) / scale) ** 2).sum()) for a, b, scale in parts))


def proved(one: Transcript, other: Transcript, way: str) -> float:
    """Return the ε that the best test proves at the δ of the claim."""
    if way == "pure":
        parts = zip(one.sums, other.sums, one.scales, strict=True)
        return sum(float(np.abs(b - a).sum()) / scale for a, b, scale in parts)
    mu = moved(one, other)
    return least_epsilon(lambda x: float(ndtr(mu / 2 - x / mu) - math.exp(x) * ndtr(-mu / 2 - x / mu)), DELTA)


def published_against(plain: dict[str, Any], row: Row) -> list[NDArray[np.int64]]:
    """What noise may make of sums, at worst: what many rows would that are like the canary but of the other class."""
    return run(plain, [*OTHERS, *[{**row, "t": "no" if row["t"] == "yes" else "yes"}] * 400]).sums


def shown(way: str, row: Row, quieter: int = 1) -> float:
    """Return what one canary proves."""
    plain = policy(way)
    published = published_against(plain, row)
    without = run(plain, OTHERS, published, quieter)
    return proved(without, run(plain, [*OTHERS, row], published, quieter), way)


@cache
def strongest(way: str) -> tuple[float, int]:
    """Return the most that any canary proves, and which one does."""
    found = [shown(way, row) for row in CANARIES]
    return max(found), int(np.argmax(found))


@pytest.mark.parametrize("way", WAYS)
def test_the_strongest_canary_proves_what_is_claimed_and_no_more(way: str) -> None:
    assert LEAST.get(way, 0.85) < strongest(way)[0] <= EPSILON * (1 + 1e-9)


@pytest.mark.parametrize("way", WAYS)
def test_half_of_the_noise_is_caught(way: str) -> None:
    assert shown(way, CANARIES[strongest(way)[1]], quieter=2) > EPSILON


@pytest.mark.parametrize("way", ["moments", "regressor", "kmeans", "pca"])
def test_bounds_that_are_taken_from_rows_are_caught(way: str) -> None:
    """A canary that widens the range moves what every other row adds; with declared bounds the same one does not."""
    others: list[Row] = [{"n": place % 3, "m": place % 2, "y": place % 3, "t": "no"} for place in range(60)]
    canary: Row = {"n": 8, "m": -8, "y": 8, "t": "yes"}
    narrow, wide = (0, 2), (-8, 8)  # what the rows span without the canary, and with it
    without = run(policy(way, narrow), others)
    assert proved(without, run(policy(way, wide), [*others, canary], without.sums), way) > 2 * EPSILON
    declared = run(policy(way), others)
    assert proved(declared, run(policy(way), [*others, canary], declared.sums), way) <= EPSILON


@pytest.mark.parametrize(
    ("way", "estimator"), [("moments", Classifier), ("regressor", Regressor), ("kmeans", KMeans), ("pca", PCA)]
)
def test_fit_of_an_estimator_sums_the_same_with_noise_of_the_system(
    way: str, estimator: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was proved above of a plan holds of `fit`: the same sums and scales, and coins of the system."""
    plain, rows = policy(way, ledger=f"sqlite:///{tmp_path}/ledger.sqlite"), [*OTHERS, CANARIES[-1]]
    expected, seen = run(policy(way), rows), Transcript()
    monkeypatch.setattr(SystemCoins, "gaussian", lambda _self, scale, size: seen.draw(scale, size))
    target = {"moments": "t", "regressor": "y"}.get(way)
    with written(seen):
        estimator(plain).fit(pa.Table.from_pylist(rows), None if target is None else [row[target] for row in rows])
    assert seen.scales == expected.scales
    assert all(np.array_equal(a, b) for a, b in zip(seen.sums, expected.sums, strict=True))
