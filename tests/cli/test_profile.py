from __future__ import annotations

from pathlib import Path

from tests.cli.hospital import patients, policy
from tests.cli.running import Runner


def test_a_profile_shows_types_roles_reasons_and_subsets(run: Runner, tmp_path: Path) -> None:
    patients(tmp_path)
    outcome = run("profile patients.csv")
    assert outcome.code == 0
    for word in ("3,000 rows", "integer", "identifier", "quasi", "single anybody out"):
        assert word in outcome.out, word
    assert "'id' in its name" in outcome.out
    (tmp_path / "patients.csv").write_text("age,sex,ill\n1,F,x\n1,M,y\n2,F,y\n2,M,x\n", encoding="utf-8")
    outcome = run("profile patients.csv")
    for word in ("Two columns", "100.0%   age, sex", "Three columns", "100.0%   age, sex, ill"):
        assert word in outcome.out, word


def test_values_of_identifiers_are_not_printed(run: Runner, tmp_path: Path) -> None:
    patients(tmp_path)
    assert "P00007" not in run("profile patients.csv").out
    assert "P00007" not in run("profile patients.csv --json").out


def test_the_json_holds_the_same(run: Runner, tmp_path: Path) -> None:
    patients(tmp_path)
    found = run("profile patients.csv --json").json
    assert found["rows"] == 3000
    assert [column["role"] for column in found["columns"]] == ["identifier", "quasi", "quasi", "quasi"]
    assert found["columns"][3]["values"] == {"flu": 1000, "cold": 1000, "gout": 1000}
    assert found["written"] is None


def test_a_drafted_policy_can_be_planned_at_once(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    patients(tmp_path / "data")
    assert run("profile data/patients.csv --write draft.yaml").code == 0
    checked = run("policy check draft.yaml --json").json
    assert set(checked["drafted"]) == {"age", "sex", "ill"}
    planned = run("plan --policy draft.yaml --json")
    assert planned.code == 1  # a draft has no epsilon, and nobody gave a reason
    assert "unbounded" in planned.json["refusal"]


def test_a_draft_with_a_reason_is_released(run: Runner, tmp_path: Path) -> None:
    patients(tmp_path)
    run("profile patients.csv --write draft.yaml")
    text = (tmp_path / "draft.yaml").read_text(encoding="utf-8")
    (tmp_path / "draft.yaml").write_text(text.replace("# budget:", "budget:"), encoding="utf-8")
    outcome = run("release --policy draft.yaml --out out --json")
    assert outcome.code == 0, outcome.err
    assert run("check out --policy draft.yaml").code == 0


def test_a_draft_is_not_written_over_a_file(run: Runner, tmp_path: Path) -> None:
    patients(tmp_path)
    (tmp_path / "draft.yaml").write_text("mine", encoding="utf-8")
    outcome = run("profile patients.csv --write draft.yaml")
    assert outcome.code == 2
    assert "nothing is overwritten" in outcome.err
    assert (tmp_path / "draft.yaml").read_text(encoding="utf-8") == "mine"


def test_spellings_of_missing_values_are_read_and_kept(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("age,sex\n1,F\nNA,M\n3,F\n", encoding="utf-8")
    assert run("profile d.csv --json").json["columns"][0]["type"] == "text"
    found = run("profile d.csv --nulls NA --write draft.yaml --json").json["columns"][0]
    assert (found["type"], found["missing"]) == ("integer", 1)
    assert "NA" in (tmp_path / "draft.yaml").read_text(encoding="utf-8")


def test_a_look_under_a_policy_is_recorded(run: Runner, tmp_path: Path) -> None:
    patients(tmp_path)
    policy(tmp_path, ledger="sqlite:///ledger.sqlite")
    assert run("profile --policy policy.yaml --json").json["rows"] == 3000
    entries = run("ledger show --ledger sqlite:///ledger.sqlite --entries --json").json["entries"]
    assert entries[-1]["body"] == {"dataset": "patients", "verb": "profile"}


def test_a_file_that_is_not_there_is_bad_input(run: Runner) -> None:
    assert run("profile nowhere.csv").code == 2
    assert run("profile").code == 2


def test_a_table_without_rows_is_bad_input(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("age,sex\n", encoding="utf-8")
    outcome = run("profile d.csv")
    assert outcome.code == 2
    assert "no rows" in outcome.err
