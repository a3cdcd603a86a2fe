"""Frequencies behind categories that were changed at random, from what was published alone."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

from incrowd.cli.main import main
from incrowd.errors import InvalidParameter
from incrowd.workflows.estimate import estimate_frequencies
from incrowd.workflows.policy.policy import load_policy
from tests.policies import written
from tests.statistics.alarm import FALSE_ALARM

POLICY: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "survey", "unit": {"adjacency": "replace-one"}},
    "columns": {"answer": {"role": "sensitive", "categories": ["no", "yes"], "missing": "no", "outside": "other"}},
    "release": {"method": "pram", "columns": {"answer": {"stay": "3/4"}}},
    "budget": {"epsilon": 9},
}
ROWS, YES = 4000, 1000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    table = pa.table({"answer": ["yes"] * YES + ["no"] * (ROWS - YES)})
    pyarrow.csv.write_csv(table, tmp_path / "rows.csv")
    file = written(POLICY, tmp_path)
    assert main(["release", str(tmp_path / "rows.csv"), "--policy", str(file), "--out", str(tmp_path / "out")]) == 0
    return tmp_path


def test_estimates_are_near_what_occurred(folder: Path) -> None:
    """Standard deviations are those of the reference formula; six of them are missed with a chance of 2e-9 each."""
    assert 3 * math.erfc(6 / math.sqrt(2)) < FALSE_ALARM
    (found,) = estimate_frequencies(folder / "out")
    for value, occurred in (("no", ROWS - YES), ("yes", YES), ("other", 0)):
        place = [label[0] for label in found.labels].index(value)
        assert abs(found.estimate.counts[place] - occurred) < 6 * found.estimate.deviations[place]
    assert found.estimate.counts.sum() == pytest.approx(ROWS)


def test_the_command_shows_estimates_and_intervals(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["estimate", str(folder / "out"), "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["estimates"]
    assert {"category", "released", "estimate", "low", "high"} == set(told["frequencies"][0])
    assert sum(line["released"] for line in told["frequencies"]) == ROWS
    assert main(["estimate", str(folder / "out")]) == 0
    assert "95 % confidence intervals" in capsys.readouterr().out


def test_what_was_not_changed_at_random_cannot_be_estimated(tmp_path: Path) -> None:
    policy = POLICY | {
        "columns": {"age": {"type": "integer", "bounds": [0, 9]}},
        "release": {"method": "coding", "columns": {"age": {"top": 5}}},
        "budget": {"unbounded": "a test"},
    }
    pyarrow.csv.write_csv(pa.table({"age": [1, 2, 9]}), tmp_path / "rows.csv")
    file = written(policy, tmp_path)
    assert main(["release", str(tmp_path / "rows.csv"), "--policy", str(file), "--out", str(tmp_path / "out")]) == 0
    with pytest.raises(InvalidParameter, match="nothing to estimate"):
        estimate_frequencies(tmp_path / "out")


def test_a_list_can_be_stopped_after_some_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = POLICY | {
        "columns": {"age": {"type": "integer", "bounds": [0, 9]}},
        "release": [
            {"method": "coding", "columns": {"age": {"top": 5}}},
            {"method": "rounding", "columns": {"age": 2}},
        ],
        "budget": {"unbounded": "a test"},
    }
    file = written(policy, tmp_path)
    assert [step.kind for step in load_policy(file, 1).plan.steps] == ["recode", "code ends", "arrange"]
    shorter = written(policy | {"release": policy["release"][:1]}, tmp_path)
    assert load_policy(file, 1).hash == load_policy(shorter).hash, "it is the policy without the other steps"
    capsys.readouterr()
    file = written(policy, tmp_path)
    assert main(["plan", "--policy", str(file), "--last-step", "3"]) == 2
    assert "has 2 steps" in capsys.readouterr().err
    assert main(["plan", "--policy", str(file), "--last-step", "1"]) == 0
