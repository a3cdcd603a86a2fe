from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.hospital import patients, policy
from tests.cli.running import Runner
from tests.statistics.alarm import FALSE_ALARM, stray


@pytest.fixture
def released(run: Runner, tmp_path: Path) -> Path:
    patients(tmp_path)
    policy(tmp_path)
    outcome = run("release --policy policy.yaml --out out")
    assert outcome.code == 0, outcome.err
    return tmp_path / "out"


@pytest.mark.usefixtures("released")
def test_an_assessment_shows_loss_risk_and_one_worked_record(run: Runner) -> None:
    outcome = run("assess out --policy policy.yaml")
    assert outcome.code == 0, outcome.err
    for word in (
        "Internal",
        "Loss by column",
        "prosecutor",
        "journalist",
        "marketer",
        "Somebody with",
        "discernibility",
    ):
        assert word in outcome.out, word


@pytest.mark.usefixtures("released")
def test_the_data_can_be_named_and_the_file_be_given_itself(run: Runner) -> None:
    found = run("assess out/data.parquet --policy policy.yaml --against patients.csv --json").json
    assert found["rows"]["original"] == 3000
    assert 1200 < found["rows"]["released"] < 1800
    assert stray([(3000, 0.5)], 1201 + 8 * 20, 1799) < FALSE_ALARM  # of eight tuples at most 20 rows each are lost
    assert {column["name"]: column["level"] for column in found["loss"]["columns"]} == {"age": 1, "sex": 0, "ill": 1}
    assert found["attackers"]["prosecutor"]["after"]["highest"] <= 1 / 21


def test_it_never_goes_beside_the_release(run: Runner, released: Path) -> None:
    before = sorted(released.iterdir())
    for target in ("out/assessment.json", "out/deeper/a.json"):
        outcome = run(f"assess out --policy policy.yaml --write {target}")
        assert outcome.code == 2
        assert "whole folders" in outcome.err
    assert run("assess out/data.parquet --policy policy.yaml --write out/a.json").code == 2
    assert sorted(released.iterdir()) == before


@pytest.mark.usefixtures("released")
def test_it_can_be_kept_with_what_is_internal(run: Runner, tmp_path: Path) -> None:
    target = tmp_path / ".incrowd" / "internal" / "assessment.json"
    assert run(f"assess out --policy policy.yaml --write {target}").code == 0
    assert json.loads(target.read_text(encoding="utf-8"))["rows"]["original"] == 3000
    assert run(f"assess out --policy policy.yaml --write {target}").code == 2


@pytest.mark.usefixtures("released")
def test_an_assessment_is_a_look(run: Runner) -> None:
    run("assess out --policy policy.yaml")
    entries = run("ledger show --entries --json").json["entries"]
    assert entries[-1]["body"] == {"dataset": "patients", "verb": "assess"}


def test_a_release_of_other_data_is_refused(run: Runner, released: Path, tmp_path: Path) -> None:
    patients(tmp_path, rows=40)
    outcome = run("assess out --policy policy.yaml")
    assert outcome.code == 2
    assert "other data" in outcome.err
