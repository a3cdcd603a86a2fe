"""Synthetic rows as people expect them: in no order, and days as days."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import incrowd
from incrowd.methods.synthesis.marginals.steps import DrawRows
from incrowd.verifier.judge import statement_of
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.registry import check_of
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.verify.verify import verify
from tests.policies import with_ledger

FIRST, LAST = date(2024, 1, 1), date(2025, 12, 31)
STAYS: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "stays"},
    "columns": {
        "ward": {"categories": ["north", "south"]},
        "admitted": {
            "type": "date",
            "bounds": [FIRST.isoformat(), LAST.isoformat()],
            "hierarchy": {"dates": ["month", "year"]},
        },
    },
    "release": {"method": "tree", "epsilon": 5, "delta": "1e-6"},
}


def _stays(rows: int = 2000) -> pa.Table:
    days = [FIRST + timedelta(days=(7 * row) % 731) for row in range(rows)]
    return pa.table({"ward": ["north", "south"] * (rows // 2), "admitted": days})


@pytest.fixture(scope="module")
def drawn_rows(tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    folder = tmp_path_factory.mktemp("stays")
    return incrowd.synthesize(_stays(), with_ledger(STAYS, folder)).model.sample(1000, seed=3)


def test_dates_are_days_inside_the_bounds(drawn_rows: pa.Table) -> None:
    days = drawn_rows["admitted"]
    assert days.type == pa.date32()
    values = [day for day in days.to_pylist() if day is not None]
    assert values
    assert all(FIRST <= day <= LAST for day in values)
    assert len({day.day for day in values}) == 31


def test_rows_leave_in_no_order(drawn_rows: pa.Table) -> None:
    """In 1,000 rows of two wards in order the ward changes once; at random about 500 times (below 250: e^-100)."""
    wards = np.array(drawn_rows["ward"].to_pylist())
    assert (wards[1:] != wards[:-1]).sum() > 250


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_drawn_days_are_verified_and_a_day_outside_is_noticed(form: str, tmp_path: Path) -> None:
    policy = with_ledger(STAYS, tmp_path)
    out = tmp_path / "out"
    release_to(_stays(), policy, Destination(out, form))
    verification = verify(out, policy=load_policy(policy))
    assert verification.passed, verification.failure
    files = (out / f"data.{form}", out / "model.json")
    statement = statement_of(verification.certificate)
    assert not any(outcome.problem for outcome in check_of("tree").inspect(statement, files))
    step = statement.basis.need(DrawRows)
    earlier = replace(step.numbers[0], high="2024-06-30")
    steps = tuple(replace(step, numbers=(earlier,)) if item is step else item for item in statement.basis.steps)
    forged = replace(statement, basis=replace(statement.basis, steps=steps))
    problems = [outcome.problem for outcome in check_of("tree").inspect(forged, files)]
    assert any(problem is not None and "'admitted'" in problem.text for problem in problems)
