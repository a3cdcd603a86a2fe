"""Linked tables with real coins: no output proves more than the claim, and noise that is too small is caught.

Every value of a column of stays is a cell of its own, with noise of its own.  So one release shows thousands of outputs
about one person with one stay, which weighs as much as all rows of anybody, and another one those without that person.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

import incrowd
from incrowd.methods.synthesis.linked.levels import WHOLE
from tests.audit.auditing import Trials, proved_epsilon, sure_epsilon
from tests.audit.test_models import quieten

CELLS, ROWS = 4000, 2
EPSILON, DELTA = 1, "0.1"


def likelihoods(rows: int, folder: Path) -> tuple[NDArray[np.float64], tuple[float, ...]]:
    """Return how much what was measured speaks for one more person in each place, and the scales of the noise in it."""
    folder.mkdir(parents=True)
    key, few = {"role": "identifier"}, {"missing": "drop", "outside": "drop"}
    people = [str(n) for n in range(CELLS * rows)]
    places = [f"{n:05d}" for n in range(CELLS)]
    policy: dict[str, Any] = {
        "incrowd": 1,
        "dataset": {"name": "people", "unit": {"column": "id"}},
        "columns": {"id": key, "sex": {"categories": ["F", "M"], **few}},
        "tables": {
            "stays": {
                "source": "stays.csv",
                "parent": "people",
                "unit": "id",
                "depends_on": [],
                "columns": {"id": key, "place": {"categories": places, **few}},
            }
        },
        "release": {
            "method": "linked",
            "epsilon": EPSILON,
            "delta": DELTA,
            "rounds": 1,
            "rows": 10,
            "cells": 200_000,
            "levels": {"stays.place": 0},
            "shares": {"people": "0.01"},
        },
        "ledger": f"sqlite:///{folder}/ledger.sqlite",
    }
    tables = {"people": pa.table({"id": people, "sex": ["F"] * len(people)})}
    tables["stays"] = pa.table({"id": people, "place": places * rows})
    selection = incrowd.release(tables, policy).result.levels[1].selection
    measured = [table for table in selection.fit.measured if 0 in table.columns]
    counts = [table.counts.reshape(CELLS, -1)[:, 0] for table in measured]
    scores = [WHOLE * (count - ROWS * WHOLE) / table.scale**2 for count, table in zip(counts, measured, strict=True)]
    return np.sum(scores, axis=0), tuple(table.scale for table in measured)


def neighbors(times: int, folder: Path) -> tuple[float, float]:
    """Return the ε that one event proves, and the one that it surely proves where noise is so many times smaller."""
    (more, scales), (less, _) = (likelihoods(rows, folder / str(rows)) for rows in (ROWS + 1, ROWS))
    shift = sum((WHOLE / scale) ** 2 for scale in scales)
    spread = math.sqrt(shift) / times

    def surely(threshold: float) -> float:
        chances = [float(norm.sf(threshold, moved, spread)) for moved in (shift, 0.0)]
        return sure_epsilon((chances[0], chances[1]), CELLS, float(DELTA))

    best, threshold = max((surely(point), point) for point in shift * np.linspace(0.5, 2.5, 21))
    seen = [Trials(int((scores >= threshold).sum()), CELLS) for scores in (more, less)]
    return proved_epsilon(seen[0], seen[1], float(DELTA)), best


def test_neighbors_prove_no_more_than_the_claim(tmp_path: Path) -> None:
    assert neighbors(1, tmp_path)[0] <= EPSILON


def test_noise_that_is_too_small_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quieten(monkeypatch, 3)
    proved, surely = neighbors(3, tmp_path)
    assert surely > EPSILON, "the audit could miss it"
    assert proved > EPSILON
