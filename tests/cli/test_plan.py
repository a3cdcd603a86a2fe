from __future__ import annotations

from pathlib import Path

import pyarrow.csv
import pytest

from tests.cli.running import Runner
from tests.policies import PEOPLE, changed, people, written


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pyarrow.csv.write_csv(people(), tmp_path / "people.csv")
    written(PEOPLE, tmp_path)
    return tmp_path


def test_a_plan_prints_guarantee_price_and_every_default(run: Runner, folder: Path) -> None:
    done = run("plan --policy policy.yaml")
    assert done.code == 0
    told = " ".join(done.out.split())
    for words in (
        "nothing spent",
        "dataset people",
        "protects one row, added or removed",
        "k 21 (solved)",
        "rate 1/2",
        "epsilon 0.941398",
        "delta 0.0001",
        "default unit: one row, added or removed",
        "ledger sqlite:///.incrowd/ledger.sqlite (default)",
        "; budget: the cost of this release",
        "columns: a class of its own",
        "; sex.level: 0",
        "note · no population is declared",
        "verdict would be released",
    ):
        assert words in told
    assert [path.name for path in folder.iterdir()].count(".incrowd") == 0


def test_json_says_the_same(run: Runner, folder: Path) -> None:
    told = run("plan people.csv --policy policy.yaml --json").json
    assert told["parameters"]["k"] == "21"
    assert told["epsilon"].startswith("0.94139")
    assert told["allowed"] is True
    assert told["refusal"] is None
    assert told["defaults"]["sex.level"] == "0"


def test_a_plan_that_would_be_refused_says_why_and_exits_with_1(run: Runner, folder: Path) -> None:
    assert run("release people.csv --policy policy.yaml --out out").code == 0
    done = run("plan --policy policy.yaml")
    assert done.code == 1
    assert "would be refused" in done.out
    assert "incrowd ledger grant" in " ".join(done.out.split())
    told = run("plan --policy policy.yaml --json")
    assert told.code == 1
    assert told.json["allowed"] is False
    assert told.json["left"] == {"epsilon": "0", "delta": "0"}


def test_a_plan_without_epsilon_says_so(run: Runner, folder: Path) -> None:
    written(changed(PEOPLE, release__k=5, release__rate=1, budget={"unbounded": "public"}), folder)
    done = run("plan --policy policy.yaml")
    assert done.code == 0
    assert "epsilon no bound" in " ".join(done.out.split())
    assert run("plan --policy policy.yaml --json").json["epsilon"] is None


def test_the_columns_of_the_data_are_looked_at(run: Runner, folder: Path) -> None:
    (folder / "other.csv").write_text("sex,age\nF,41\n")
    done = run("plan other.csv --policy policy.yaml")
    assert done.code == 2
    assert "there is no column zip" in done.err


@pytest.mark.parametrize("command", ["plan", "plan --policy nowhere.yaml"])
def test_without_a_policy_there_is_no_plan(run: Runner, folder: Path, command: str) -> None:
    assert run(command).code == 2
