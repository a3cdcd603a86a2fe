"""Nothing is imported for the first time between a charge and its publication: a missing library costs nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, parquet

from tests.chargers import root
from tests.contract.examples import EXAMPLES, POLICIES, rows
from tests.policies import PEOPLE, changed, people, written


def answers(jobs: list[tuple[str, list[str]]]) -> list[dict[str, Any]]:
    """Run commands in forks of a process that has imported nothing yet."""
    command = [sys.executable, "-m", "tests.late_imports"]
    done = subprocess.run(command, cwd=root(), input=json.dumps(jobs), capture_output=True, text=True, check=False)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(jobs), done.stderr
    assert {each["code"] for each in found} == {0}, done.stderr
    return found


def job(folder: Path, policy: dict[str, Any], table: pa.Table, form: str, *words: str) -> tuple[str, list[str]]:
    folder.mkdir()
    written(policy, folder)
    csv.write_csv(table, folder / "rows.csv")
    parquet.write_table(table, folder / "rows.parquet")
    return str(folder), [
        *words,
        "--policy",
        "policy.yaml",
        *(["--out", "out"] if words[0] == "release" else []),
        *form.split(),
    ]


METHODS = [
    (method, name)
    for method, name in EXAMPLES
    if name == next(iter(POLICIES[method])) or name == "people with two rows"
]


def test_no_release_imports_anything_after_its_charge(tmp_path: Path) -> None:
    table, jobs = rows(), []
    for place, (method, name) in enumerate(METHODS):
        form = "csv" if place % 2 else "parquet"
        asked = ("release", f"rows.{form}")
        jobs.append(job(tmp_path / str(place), POLICIES[method][name], table, f"--format {form}", *asked))
    found = answers(jobs)
    assert all(each["charged"] for each in found)
    late = {METHODS[place]: each["late"] for place, each in enumerate(found) if each["late"]}
    assert late == {}


QUESTIONS = [
    "SELECT COUNT(*), SUM(age), AVG(age) FROM people",
    "SELECT sex, STDDEV(age), MEDIAN(age) FROM people GROUP BY sex",
    "SELECT zip, COUNT(*) FROM people GROUP BY zip",
]


SET = ";".join(f"SELECT COUNT(*) FROM people WHERE age < {age}" for age in range(20, 60, 2))
"""Questions that are answered together, from blocks of ages."""


def test_no_question_imports_anything_after_its_charge(tmp_path: Path) -> None:
    policy = changed(PEOPLE, release=None, queries={}, budget={"epsilon": 9, "delta": "1e-3"})
    jobs = []
    for place, sql in enumerate(QUESTIONS):
        for form in ("parquet", "csv"):
            words = ["query", sql, "--data", f"rows.{form}", "--delta", "1e-6", "--epsilon", "1"]
            jobs.append(job(tmp_path / f"{place}{form}", policy, people(), "", *words))
    delta = ["--delta", "1e-6"]
    more = [["--rate", "1/2", "--epsilon", "1"], ["--out", "out", "--epsilon", "1", *delta], ["--rho", "0.1", *delta]]
    for place, options in enumerate(more):
        asked = ["query", QUESTIONS[0], "--data", "rows.csv", *options]
        jobs.append(job(tmp_path / f"more{place}", policy, people(), "", *asked))
    asked = ["query", "--batch", "set.sql", "--data", "rows.csv", "--epsilon", "1", *delta]
    jobs.append(job(tmp_path / "set", policy, people(), "", *asked))
    (tmp_path / "set" / "set.sql").write_text(SET, encoding="utf-8")
    found = answers(jobs)
    assert all(each["charged"] for each in found)
    late = {jobs[place][1][1]: each["late"] for place, each in enumerate(found) if each["late"]}
    assert late == {}


def test_no_look_imports_anything_after_its_charge(tmp_path: Path) -> None:
    policy = changed(PEOPLE, budget={"epsilon": 2, "delta": "1e-3"})
    (found,) = answers([job(tmp_path / "look", policy, people(), "--look 0.5", "plan", "rows.csv")])
    assert found["charged"]
    assert found["late"] == []
