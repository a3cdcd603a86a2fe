from __future__ import annotations

from pathlib import Path

from tests.cli.hospital import patients, policy
from tests.cli.running import Runner

CITIES = "Paris;France;*\nLyon;France;*\nRome;Italy;*\n"


def test_a_good_file_passes(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "city.csv").write_text(CITIES, encoding="utf-8")
    outcome = run("hierarchy check city.csv")
    assert outcome.code == 0
    assert "No problems" in outcome.out


def test_what_is_missing_can_be_pasted(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "city.csv").write_text(CITIES, encoding="utf-8")
    (tmp_path / "d.csv").write_text("city,n\nParis,1\nPariss,2\nOslo,3\n", encoding="utf-8")
    outcome = run("hierarchy check city.csv d.csv")
    assert outcome.code == 1
    assert "Pariss;France;*\nOslo;*;*\n" in outcome.out
    found = run("hierarchy check city.csv d.csv --json").json["problems"]
    assert [(problem["value"], problem["rows"]) for problem in found] == [("Pariss", 1), ("Oslo", 1)]


def test_pasted_rows_use_the_delimiter_of_the_file(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "city.csv").write_text(CITIES.replace(";", ","), encoding="utf-8")
    (tmp_path / "d.csv").write_text('city\n"Oslo, Norway"\n', encoding="utf-8")
    assert '"Oslo, Norway",*,*' in run("hierarchy check city.csv d.csv --delimiter ,").out


def test_twins_and_torn_labels_are_named(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "city.csv").write_text("Paris;France;A\nParis;Texas;B\nLyon;France;B\n", encoding="utf-8")
    outcome = run("hierarchy check city.csv")
    assert outcome.code == 1
    for word in ("listed twice", "Paris", "in two places", "France"):
        assert word in outcome.out


def test_a_policy_is_checked_beside_its_data(run: Runner, tmp_path: Path) -> None:
    patients(tmp_path)
    policy(tmp_path)
    assert run("hierarchy check --policy policy.yaml").code == 0
    with (tmp_path / "patients.csv").open("a", encoding="utf-8") as file:
        file.write("P99999,130,F,Gout\n")
    found = run("hierarchy check --policy policy.yaml patients.csv --json").json["problems"]
    assert [(problem["column"], problem["value"]) for problem in found] == [("age", "130"), ("ill", "Gout")]
    assert found[1]["paste"] == ["Gout", "joints", "*"]


def test_too_many_or_too_few_files_are_bad_input(run: Runner) -> None:
    assert run("hierarchy check").code == 2
    assert run("hierarchy check a b c").code == 2
    assert run("hierarchy check a b --policy p.yaml").code == 2


def test_a_hierarchy_from_rows_is_marked_in_the_policy(run: Runner, tmp_path: Path) -> None:
    patients(tmp_path)
    outcome = run("hierarchy build patients.csv --column age --kind intervals --steps 10,50 --out age.csv")
    assert outcome.code == 0, outcome.err
    assert "age: {type: integer, hierarchy: {file: age.csv, derived: rows}}" in outcome.out
    assert "keep it internal" in outcome.out
    assert (tmp_path / "age.csv").read_text(encoding="utf-8").splitlines()[47] == "47;[40, 50);[0, 50);*"


def test_a_hierarchy_from_a_public_list_or_range_is_not(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "zips.txt").write_text("02139\n94305\n", encoding="utf-8")
    found = run("hierarchy build --values zips.txt --column zip --kind prefix --steps 3 --out zip.csv --json").json
    assert found == {
        "file": "zip.csv",
        "values": 2,
        "levels": 2,
        "derived": None,
        "policy": "zip: {type: text, hierarchy: {file: zip.csv}}",
    }
    found = run("hierarchy build --range 0,9 --column n --kind intervals --steps 5 --out n.csv --json").json
    assert (found["values"], found["derived"]) == (10, None)


def test_what_was_built_can_be_used_as_the_snippet_says(run: Runner, tmp_path: Path) -> None:
    patients(tmp_path)
    policy(tmp_path)
    run("hierarchy build patients.csv --column age --kind intervals --steps 50 --out age.csv")
    text = (tmp_path / "policy.yaml").read_text(encoding="utf-8")
    rule = '"type": "integer", "bounds": [0, 99], "hierarchy": {"intervals": [50]}'
    assert rule in text
    changed = text.replace(rule, '"type": "integer", "hierarchy": {"file": "age.csv", "derived": "rows"}')
    (tmp_path / "policy.yaml").write_text(changed, encoding="utf-8")
    assert run("policy check policy.yaml --json").json["drafted"] == ["age"]


def test_nothing_is_overwritten_and_bad_input_is_explained(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("mine", encoding="utf-8")
    assert run("hierarchy build --range 0,9 --column n --kind intervals --out n.csv").code == 2
    assert (tmp_path / "n.csv").read_text(encoding="utf-8") == "mine"
    for options in ("", "--range 0,9 --values n.csv", "--range 9", "--values nowhere.txt"):
        outcome = run(f"hierarchy build {options} --column n --kind intervals --out new.csv")
        assert outcome.code == 2, options
        assert not (tmp_path / "new.csv").exists()
