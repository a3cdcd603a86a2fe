"""Thresholds of the policy, people held out, and what a failed threshold means for the next release."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tests.cli.hospital import patients, policy
from tests.cli.running import Runner


@pytest.fixture
def released(run: Runner, tmp_path: Path) -> Path:
    patients(tmp_path)
    policy(tmp_path)
    assert run("release --policy policy.yaml --out out --hold-out 20%").code == 0
    return tmp_path


LINE = "attack out --policy policy.yaml --attack linkage --held-out"


def test_those_held_out_are_the_control_and_results_stay_inside(run: Runner, released: Path) -> None:
    outcome = run(f"{LINE} --json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["findings"][0]["control"] is not None
    (file,) = released.glob(".incrowd/internal/*/attack.1.json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    kept = json.loads(file.read_text())
    assert [each["attack"] for each in kept["linkability"]] == ["linkage"]
    assert kept["singling out"] == kept["inference"] == []
    assert run("assess out --policy policy.yaml").code == 0
    (file,) = released.glob(".incrowd/internal/*/assess.1.json")
    assert {"singling out", "linkability", "inference"} <= set(json.loads(file.read_text()))
    assert sorted(each.name for each in (released / "out").iterdir()) == [
        "certificate.json",
        "data.parquet",
        "report.html",
    ]
    assert run("verify out --policy policy.yaml").code == 0


def test_a_failed_threshold_of_the_policy_makes_the_next_release_another_run(run: Runner, released: Path) -> None:
    policy(released, risk={"any": 0.9, "linkage": 0})
    outcome = run(f"{LINE} --threshold linkage=0.5")
    assert outcome.code == 0, "a release with an epsilon is not held back by attacks"
    assert "✗" in outcome.out, "the stricter threshold counts"
    assert "so the exit code stays 0" in " ".join(outcome.out.split())
    assert run("ledger grant patients --epsilon 9 --delta 1e-3 --who me --why again").code == 0
    outcome = run("release --policy policy.yaml --out again --json")
    assert outcome.code == 0, outcome.err
    told = outcome.json["certificate"]
    assert told["steps"][0]["step"] == "run again"
    statuses = {each["term"]: each["status"] for claim in told["claims"] for each in claim["preconditions"]}
    assert statuses["not-chosen-among-runs"] == "not met"
    assert run("verify again --policy policy.yaml").code == 0


def test_thresholds_name_attacks_and_are_shares(run: Runner, released: Path) -> None:
    for wrong in ({"linkige": 0.1}, {"linkage": 2}):
        policy(released, risk=wrong)
        assert "risk" in run(LINE).err
        assert run(LINE).code == 2
    policy(released)
    assert run("attack out --against patients.csv --held-out").code == 2
