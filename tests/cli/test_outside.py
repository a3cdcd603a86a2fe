"""Values beyond declared bounds: never clamped in silence, counted, and refused where many have no rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from incrowd.core.schema import Outside
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
    rules = {column.outside for column in draft.schema.released}
    assert rules == {Outside.ENDS, Outside.BOUND}  # of days and numbers


NUMBERS = """incrowd: 1
dataset: {{name: people}}
columns:
  age: {{role: quasi, type: integer, bounds: [0, 99]{}}}
  sex: {{role: quasi, categories: [F, M]}}
release: {{method: safe, k: 20, rate: "1/2", delta: "1/100"}}
budget: {{epsilon: 5, delta: "1/10"}}
"""


def test_with_an_epsilon_the_policy_must_say_what_a_published_bound_stands_for(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "ages.csv").write_text("age,sex\n" + "40,F\n" * 200)
    for rule, code in (("", 1), (", outside: ends", 1), (", outside: bound", 0), (", outside: drop", 0)):
        (tmp_path / "ages.yaml").write_text(NUMBERS.format(rule))
        planned = run("plan --policy ages.yaml")  # no row is read
        released = run(f"release ages.csv --policy ages.yaml --out out{rule[-4:].strip()}")
        assert (planned.code, released.code) == (code, code)
        assert ("Columns as they will be published" in released.out) == (not code)  # errors come first
        said = " ".join((released.out + released.err).split())
        assert ("outside: bound below 'age'" in said) == bool(code)
        assert ("0 and 99 stand for all beyond, too" in " ".join(planned.out.split())) == (rule[-5:] != " drop")
