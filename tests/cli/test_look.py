from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest

from tests.cli.running import Runner
from tests.policies import changed, written
from tests.workflows.plan.preview.weighing import SURVEY, skewed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pyarrow.csv.write_csv(skewed(np.random.default_rng(5), 6000), tmp_path / "people.csv")
    written(changed(SURVEY, dataset__rows=6000, source="people.csv"), tmp_path)
    return tmp_path


def test_a_look_is_paid_shown_and_written_and_its_policy_releases(run: Runner, folder: Path) -> None:
    done = run("plan --policy policy.yaml --look 0.05 --write chosen.yaml")
    assert done.code == 0
    told = " ".join(done.out.split())
    for words in (
        "private preview: epsilon 1/20 charged (entry 3)",
        "kept interval draw detail k rate levels",
        "yours",
        "best",
        "Levels: of age, town, work.",
        "Simultaneous 95 % confidence intervals",
        "Best: about",
        "Written to chosen.yaml, chosen by entry 3",
        "Crowd-blending and zero-knowledge are not claimed",
    ):
        assert words in told
    planned = run("plan --policy chosen.yaml")
    assert planned.code == 0
    assert "private preview of the named ledger entry" in " ".join(planned.out.split())
    assert run("release --policy chosen.yaml --out out").code == 0
    assert run("verify out --policy chosen.yaml --ledger sqlite:///.incrowd/ledger.sqlite").code == 0
    assert run("verify chosen.yaml.look.json --policy policy.yaml --ledger sqlite:///.incrowd/ledger.sqlite").code == 0


def test_json_has_every_choice_and_the_certificate(run: Runner, folder: Path) -> None:
    told = run("plan people.csv --policy policy.yaml --look 1/20 --json").json
    assert told["choices"][0]["levels"] == {"age": 1, "town": 1, "work": 0}
    assert all(each["low"] <= each["kept"] <= each["high"] for each in told["choices"])
    assert told["chosen"] == {"epsilon": "1/20", "entry": 3}
    assert told["certificate"]["method"]["name"] == "private look"
    assert told["written"] is None
    assert not (folder / "chosen.yaml").exists()


def test_what_could_not_be_written_is_refused_before_the_charge(run: Runner, folder: Path) -> None:
    assert run("plan --policy policy.yaml --look 0.05 --write policy.yaml").code == 2
    assert run("plan --policy policy.yaml --look 0.05 --write below/chosen.yaml").code == 2
    assert run("plan --policy policy.yaml --write chosen.yaml").code == 2
    assert not (folder / ".incrowd").exists()


def test_a_look_without_room_in_the_budget_says_what_to_do(run: Runner, folder: Path) -> None:
    written(changed(SURVEY, dataset__rows=6000, budget=None), folder)
    refused = run("plan people.csv --policy policy.yaml --look 0.05")
    assert refused.code == 1
    assert "budget: {epsilon: 1.05, delta: 0.000001}" in refused.err
    assert not (folder / ".incrowd").exists()
