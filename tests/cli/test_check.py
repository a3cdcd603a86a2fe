from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.hospital import patients, policy
from tests.cli.running import Runner

SMALL = "age,sex,ill\n30,F,flu\n30,F,gout\n40,M,flu\n40,M,flu\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    path.write_text(SMALL, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("--k 2", 0),
        ("--k 3", 1),
        ("--k 2 --l 1 --sensitive ill", 0),
        ("--l 2 --sensitive ill", 1),
        ("--entropy-l 1 --sensitive ill", 0),
        ("--entropy-l 1.5 --sensitive ill", 1),
        ("--t 0.25 --sensitive ill", 0),
        ("--t 0.2 --sensitive ill", 1),
    ],
)
@pytest.mark.usefixtures("table")
def test_true_or_false_is_the_exit_code(run: Runner, options: str, code: int) -> None:
    outcome = run(f"check t.csv --quasi age,sex {options}")
    assert outcome.code == code, outcome.err
    assert ("FAILED" in outcome.out) == bool(code)
    assert run(f"check t.csv --quasi age,sex {options} --json").json["passed"] == (not code)


@pytest.mark.usefixtures("table")
def test_expected_and_found_are_told_with_what_they_mean(run: Runner) -> None:
    found = run("check t.csv --quasi age,sex --k 3 --json").json
    assert found["findings"][0] == {
        "criterion": "k-anonymity",
        "over": ["age", "sex"],
        "sensitive": None,
        "expected": 3,
        "found": 2,
        "short": 4,
        "passed": False,
        "means": "the fewest rows that share their quasi-identifiers",
    }


def test_a_policy_is_a_gate_for_uploads(run: Runner, tmp_path: Path) -> None:
    patients(tmp_path)
    policy(tmp_path)
    outcome = run("check --policy policy.yaml")
    assert outcome.code == 1
    assert "1 (id)" in outcome.out
    assert run("check --policy policy.yaml --recoded").code == 0
    run("release --policy policy.yaml --out out")
    assert run("check out --policy policy.yaml").code == 0
    assert run("check out/data.parquet --policy policy.yaml --k 30 --l 2 --json").code == 0


def test_looks_are_counted_once_there_is_a_ledger(run: Runner, tmp_path: Path) -> None:
    patients(tmp_path)
    policy(tmp_path)
    run("check --policy policy.yaml")
    assert not (tmp_path / ".incrowd").exists()
    run("release --policy policy.yaml --out out")
    run("check --policy policy.yaml")
    looks = [e for e in run("ledger show --entries --json").json["entries"] if e["kind"] == "look"]
    assert [entry["body"]["verb"] for entry in looks] == ["check"]


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--k 2", "--quasi"),
        ("--quasi age", "nothing to check against"),
        ("--quasi agee --k 2", "Did you mean age"),
        ("--quasi age --k 0", "at least 1"),
        ("--quasi age --k two", "--k"),
        ("--quasi age --l 2", "--sensitive"),
        ("--quasi age --k 2 --recoded", "only a policy"),
    ],
)
def test_bad_input_is_explained(run: Runner, options: str, message: str) -> None:
    outcome = run(f"check t.csv {options}")
    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.out == ""
