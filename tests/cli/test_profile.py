from __future__ import annotations

from pathlib import Path

from tests.cli.hospital import patients, policy
from tests.cli.running import Runner


def test_a_profile_shows_types_roles_reasons_and_subsets(run: Runner, tmp_path: Path) -> None:
    patients(tmp_path)
    outcome = run("profile patients.csv")
    assert outcome.code == 0
    for word in ("3,000 rows", "integer", "identifier", "quasi", "single out a person"):
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
    assert run("policy check draft.yaml --json").json["drafted"] == []
    planned = run("plan --policy draft.yaml --json")
    assert planned.code == 0
    assert float(planned.json["epsilon"]) <= 1
    released = run("release --policy draft.yaml --out out --json")
    assert released.code == 0, released.err
    assert run("check out --policy draft.yaml").code == 0


def test_what_only_rows_tell_is_held_back_and_said(run: Runner, tmp_path: Path) -> None:
    patients(tmp_path)
    told = " ".join(run("profile patients.csv --write draft.yaml").out.split())
    assert "It releases: age, sex." in told
    assert "not released: ill: its values come from the data" in told
    assert "incrowd plan --policy draft.yaml" in told
    found = run('profile patients.csv --write other.yaml --public ill="the yearbook" --json').json
    assert found["released"] == ["age", "sex", "ill"]
    assert 'public: "the yearbook"' in (tmp_path / "other.yaml").read_text(encoding="utf-8")
    assert run("profile patients.csv --write third.yaml --public ill").code == 2


def test_a_draft_for_questions_answers_them(run: Runner, tmp_path: Path) -> None:
    patients(tmp_path)
    assert "incrowd query" in run("profile patients.csv --write draft.yaml --for queries").out
    asked = run('query "SELECT sex, COUNT(*) AS n FROM rows GROUP BY sex" --epsilon 0.5 --policy draft.yaml --json')
    assert asked.code == 0, asked.err


def test_nearly_all_numbers_are_told_with_the_exceptions(run: Runner, tmp_path: Path) -> None:
    lines = "".join(f"{n % 70},{'FM'[n % 2]}\n" for n in range(990)) + "unsaid,F\n" * 6 + "lost,M\n" * 4
    (tmp_path / "d.csv").write_text("age,sex\n" + lines, encoding="utf-8")
    told = " ".join(run("profile d.csv").out.split())
    assert "note: read as age with 'lost' or 'unsaid' for missing values." in told
    assert "note: age: clean 10 rows (words for a missing value: 'lost', 'unsaid')?" in told


def test_a_draft_is_not_written_over_a_file(run: Runner, tmp_path: Path) -> None:
    patients(tmp_path)
    (tmp_path / "draft.yaml").write_text("mine", encoding="utf-8")
    outcome = run("profile patients.csv --write draft.yaml")
    assert outcome.code == 2
    assert "is not overwritten" in outcome.err
    assert (tmp_path / "draft.yaml").read_text(encoding="utf-8") == "mine"


def test_spellings_of_missing_values_are_read_and_kept(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("age,sex\n1,F\nno idea,M\n3,F\n", encoding="utf-8")
    assert run("profile d.csv --json").json["columns"][0]["type"] == "text"
    found = run("profile d.csv --nulls 'no idea' --write draft.yaml --json").json["columns"][0]
    assert (found["type"], found["missing"]) == ("integer", 1)
    assert "no idea" in (tmp_path / "draft.yaml").read_text(encoding="utf-8")


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
