"""Values beyond declared bounds: never clamped in silence, counted, and refused where many have no rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from incrowd.workflows.policy.policy import load_policy
from tests.cli.running import Runner

POLICY = """
incrowd: 1
dataset: {name: births}
source: rows.csv
columns:
  born: {role: quasi, type: date, bounds: [2000-01-01, 2009-12-31], hierarchy: {dates: [year, decade]}RULE}
  age: {role: quasi, type: integer, bounds: [0, 120], hierarchy: {intervals: [10]}}
release: {method: METHOD}
budget: {unbounded: "a test", epsilon: 9, delta: 0}
"""


def write(folder: Path, early: int, rule: str = "", method: str = "full-domain, k: 2, suppression: 1/2") -> None:
    rows = [f"{1950 if n < early else 2000 + n % 10}-03-04,{n % 90}" for n in range(1000)]
    (folder / "rows.csv").write_text("\n".join(["born,age", *rows]), encoding="utf-8")
    text = POLICY.replace("RULE", rule).replace("METHOD", method)
    (folder / "policy.yaml").write_text(text, encoding="utf-8")


def test_without_an_epsilon_many_values_outside_are_refused_before_the_charge(run: Runner, tmp_path: Path) -> None:
    write(tmp_path, 11)
    for command in ("release --policy policy.yaml --out out", "plan rows.csv --policy policy.yaml"):
        outcome = run(command)
        assert outcome.code == 1, command
        assert "11 of 1,000 values of born lie outside" in " ".join((outcome.out + outcome.err).split())
        assert "1950" not in outcome.out + outcome.err
    assert not (tmp_path / "out").exists()
    assert "charge" not in run("ledger show --json").out


@pytest.mark.parametrize(("early", "rule"), [(10, ""), (300, ", outside: ends"), (300, ", outside: drop")])
def test_few_values_or_a_stated_rule_are_released(early: int, rule: str, run: Runner, tmp_path: Path) -> None:
    write(tmp_path, early, rule)
    assert run("release --policy policy.yaml --out out").code == 0
    assert run("verify out --policy policy.yaml").code == 0


def test_days_beyond_bounds_have_an_open_ended_label(run: Runner, tmp_path: Path) -> None:
    write(tmp_path, 300, ", outside: ends")
    column = load_policy(tmp_path / "policy.yaml").schema["born"]
    assert (column.hierarchy.labels(1) or ())[0] == "2000 or earlier"
    assert "300 of 1,000 values of born" in " ".join(run("plan rows.csv --policy policy.yaml").out.split())


def test_a_release_with_an_epsilon_is_never_held_back_by_a_count_across_people(run: Runner, tmp_path: Path) -> None:
    write(tmp_path, 900, method="private-histogram, columns: [born], levels: {born: 1}, epsilon: 1")
    assert run("release --policy policy.yaml --out out").code == 0


def test_a_draft_says_what_becomes_of_values_beyond_its_bounds(run: Runner, tmp_path: Path) -> None:
    write(tmp_path, 5)
    assert run("profile rows.csv --write draft.yaml --period 2000-2009").code == 0
    draft = load_policy(tmp_path / "draft.yaml")
    assert {column.outside for column in draft.schema.released} == {"ends"}
