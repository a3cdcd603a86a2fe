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
        ("--recursive 2,2 --sensitive ill", 1),
        ("--recursive 2,2 --sensitive ill --harmless flu", 0),
        ("--beta 1 --sensitive ill", 0),
        ("--beta 0.9 --sensitive ill", 1),
        ("--enhanced-beta 1 --sensitive ill", 1),
        ("--disclosure 2 --sensitive ill", 1),
        ("--disclosure 1.1 --sensitive ill --harmless gout", 0),
        ("--average-risk 0.5", 0),
        ("--average-risk 0.4", 1),
        ("--unique 0,100", 0),
        ("--population t.csv --k-map 2", 0),
        ("--population t.csv --k-map 3", 1),
        ("--population t.csv --presence 0,1", 0),
        ("--population t.csv --presence 0,0.9", 1),
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


@pytest.mark.usefixtures("table")
def test_a_file_alone_gets_a_verdict_reasons_and_three_commands(run: Runner) -> None:
    outcome = run("check t.csv")
    assert outcome.code == 1
    assert outcome.out.startswith("Do not publish this: 50 % of the rows are unique in age and ill.")
    for word in ("quasi: 'age' in its name", "incrowd profile t.csv --write policy.yaml", "incrowd plan", "--out out"):
        assert word in outcome.out, word
    assert run("check t.csv --k 2 --json").json["smallest"] == 1


def test_a_member_list_does_not_pass_whatever_is_asked(run: Runner, tmp_path: Path) -> None:
    members = "".join(f"Anna Schmidt,ann{n}@example.org,{'FM'[n % 2]}\n" for n in range(40))
    (tmp_path / "m.csv").write_text("name,contact,sex\n" + members, encoding="utf-8")
    assert run("check m.csv").out.startswith("Do not publish this: 1 column seems to name people")
    outcome = run("check m.csv --quasi sex --k 5")
    assert outcome.code == 1
    assert "not examined: name, contact." in outcome.out
    assert "ann7@" not in outcome.out
    assert run("check m.csv --quasi sex --k 5 --json").json["identifiers"]["contact"]["kind"] == "e-mail addresses"


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
        ("--l 2", "--quasi"),
        ("--quasi age", "nothing to check against"),
        ("--quasi agee --k 2", "Did you mean age"),
        ("--quasi age --k 0", "at least 1"),
        ("--quasi age --k two", "--k"),
        ("--quasi age --l 2", "--sensitive"),
        ("--quasi age --k 2 --recoded", "needs a policy"),
        ("--quasi age --k-map 2", "--population"),
        ("--quasi age --population t.csv", "give k or presence"),
        ("--quasi age --population none.csv --k-map 2", "none.csv"),
        ("--quasi age --sensitive ill --recursive 2", "two numbers"),
        ("--quasi age --sensitive ill --recursive 2,2.5", "whole number"),
        ("--quasi age --sensitive ill --beta high", "--beta"),
        ("--quasi age --beta 1", "--sensitive"),
        ("--quasi age --unique 0.1,2", "does not fit"),
    ],
)
def test_bad_input_is_explained(run: Runner, options: str, message: str) -> None:
    outcome = run(f"check t.csv {options}")
    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.out == ""


def test_a_release_is_compared_with_its_population_at_its_levels(run: Runner, tmp_path: Path) -> None:
    table = "".join(f"{20 + n % 40},{'FM'[n % 2]},{('flu', 'gout', 'none')[n % 3]}\n" for n in range(240))
    (tmp_path / "t.csv").write_text("age,sex,ill\n" + table, encoding="utf-8")
    (tmp_path / "people.csv").write_text("age,sex,ill\n" + table * 3, encoding="utf-8")
    (tmp_path / "policy.yaml").write_text(GENERALIZED, encoding="utf-8")
    outcome = run("release t.csv --policy policy.yaml --out out")
    assert outcome.code == 0, outcome.err
    found = run("check out --policy policy.yaml --json").json
    assert found["passed"]
    told = {each["criterion"]: each["found"] for each in found["findings"]}
    assert told["k-map"] == 3 * told["k-anonymity"]
    assert run("check t.csv --policy policy.yaml").code == 1


GENERALIZED = """\
incrowd: 1
dataset: {name: patients}
columns:
  age: {type: integer, bounds: [0, 99], hierarchy: {intervals: [10, 50]}}
  sex: {categories: [F, M]}
  ill: {role: sensitive, categories: [flu, gout, none]}
release:
  method: full-domain
  k: 12
  sensitive:
    ill: {l: 2, t: 0.2, beta: 1, harmless: [none]}
  population: {file: people.csv, k: 30}
budget: {unbounded: an invented table}
"""
