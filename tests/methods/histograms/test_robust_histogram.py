"""Suppressed histograms on a biased sample: drawn by others, or here by a column of chances."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.loss import THE_ROWS, RobustlySampled
from incrowd.errors import InvalidParameter, SampleReused
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.verify.verify import verify
from tests.policies import PEOPLE, changed, people, written
from tests.released import Folder, problems
from tests.statistics.alarm import FALSE_ALARM, stray

BEFORE: dict[str, Any] = {
    "method": "suppressed-histogram",
    "columns": ["sex", "age"],
    "levels": {"age": 2},
    "k": 20,
    "delta": "1e-6",
    "robust": {"low": "0.05", "high": "0.1", "irregular": 2},
}
HERE = {**BEFORE, "robust": {"low": "0.05", "high": "0.3", "probability": "chance"}}
COLUMNS = {**PEOPLE["columns"], "chance": {"role": "identifier", "type": "decimal"}}


def policy(folder: Path, release: dict[str, Any]) -> Path:
    budget = {"epsilon": 9, "delta": "1e-3"}
    return written(changed(PEOPLE, columns=COLUMNS, release=release, budget=budget), folder)


def population() -> pa.Table:
    return people(4000).append_column("chance", pa.array(["0.1", "0.2", "0.3", "0.25"] * 1000))


@pytest.mark.parametrize("release", [BEFORE, HERE], ids=["drawn before", "drawn here"])
def test_counts_of_a_biased_sample_are_released_and_verified(tmp_path: Path, release: dict[str, Any]) -> None:
    made = release_to(population(), policy(tmp_path, release), Destination(tmp_path / "out", "csv"))
    found = verify(tmp_path / "out", ledger=Ledger.open(f"sqlite:///{tmp_path}/.incrowd/ledger.sqlite"))
    assert found.passed
    assert found.complete
    total = sum(row["count"] for row in made.release.result.to_arrow().to_pylist())
    assert total == 4000 if release is BEFORE else 600 < total < 1100
    lost = 4 * 19  # four bins, and k is 20
    assert stray([(1000, chance) for chance in (0.1, 0.2, 0.3, 0.25)], 601 + lost, 1099) < FALSE_ALARM


def test_rows_that_are_the_sample_have_one_table_ever(tmp_path: Path) -> None:
    file = policy(tmp_path, BEFORE)
    loaded = load_policy(file)
    loss = loaded.method.plan(loaded.schema).guarantee.loss
    assert isinstance(loss, RobustlySampled)
    assert loss.sample == THE_ROWS
    release_to(population(), file, Destination(tmp_path / "out"))
    with pytest.raises(SampleReused, match="incrowd coarsen"):
        release_to(population(), file, Destination(tmp_path / "again"))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("claims", 0, "parameters", "irregular"), 0),
        (("steps", 0, "drawn"), "here"),
        (("steps", 0, "high"), "1/20"),
        (("claims", 1, "parameters", "epsilon"), "0.1"),
    ],
)
def test_a_changed_number_is_found(tmp_path: Path, place: tuple[str | int, ...], value: object) -> None:
    release_to(population(), policy(tmp_path, BEFORE), Destination(tmp_path / "out", "csv"))
    folder = Folder(tmp_path)
    folder.forge(place, lambda _: value)
    assert problems(folder.out)


def test_a_biased_sample_has_no_rate_and_a_target(tmp_path: Path) -> None:
    for change in ({"rate": "0.1"}, {"delta": None}):
        release = {name: value for name, value in {**BEFORE, **change}.items() if value is not None}
        with pytest.raises(InvalidParameter, match="robust"):
            load_policy(policy(tmp_path, release))
