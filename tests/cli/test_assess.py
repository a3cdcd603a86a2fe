from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.hospital import patients, policy
from tests.cli.running import Runner
from tests.statistics.alarm import FALSE_ALARM, stray


@pytest.fixture
def released(run: Runner, tmp_path: Path) -> Path:
    patients(tmp_path)
    policy(tmp_path)
    outcome = run("release --policy policy.yaml --out out")
    assert outcome.code == 0, outcome.err
    return tmp_path / "out"


@pytest.mark.usefixtures("released")
def test_an_assessment_shows_loss_risk_and_one_worked_record(run: Runner) -> None:
    outcome = run("assess out --policy policy.yaml")
    assert outcome.code == 0, outcome.err
    for word in (
        "Internal",
        "Information loss by column",
        "prosecutor",
        "journalist",
        "marketer",
        "A person with",
        "discernibility",
    ):
        assert word in outcome.out, word


@pytest.mark.usefixtures("released")
def test_the_data_can_be_named_and_the_file_be_given_itself(run: Runner) -> None:
    found = run("assess out/data.parquet --policy policy.yaml --against patients.csv --json").json
    assert found["rows"]["original"] == 3000
    assert 1200 < found["rows"]["released"] < 1800
    assert stray([(3000, 0.5)], 1201 + 8 * 20, 1799) < FALSE_ALARM  # of eight tuples at most 20 rows each are lost
    assert {column["name"]: column["level"] for column in found["loss"]["columns"]} == {"age": 1, "sex": 0, "ill": 1}
    assert found["attackers"]["prosecutor"]["after"]["highest"] <= 1 / 21


def test_it_never_goes_beside_the_release(run: Runner, released: Path) -> None:
    before = sorted(released.iterdir())
    for target in ("out/assessment.json", "out/deeper/a.json"):
        outcome = run(f"assess out --policy policy.yaml --write {target}")
        assert outcome.code == 2
        assert "passed on as a whole" in outcome.err
    assert run("assess out/data.parquet --policy policy.yaml --write out/a.json").code == 2
    assert sorted(released.iterdir()) == before


@pytest.mark.usefixtures("released")
def test_it_can_be_kept_with_what_is_internal(run: Runner, tmp_path: Path) -> None:
    target = tmp_path / ".incrowd" / "internal" / "assessment.json"
    assert run(f"assess out --policy policy.yaml --write {target}").code == 0
    assert json.loads(target.read_text(encoding="utf-8"))["rows"]["original"] == 3000
    assert run(f"assess out --policy policy.yaml --write {target}").code == 2


@pytest.mark.usefixtures("released")
def test_an_assessment_is_a_look(run: Runner) -> None:
    run("assess out --policy policy.yaml")
    entries = run("ledger show --entries --json").json["entries"]
    assert entries[-1]["body"] == {"dataset": "patients", "verb": "assess"}


def test_a_release_of_other_data_is_refused(run: Runner, released: Path, tmp_path: Path) -> None:
    patients(tmp_path, rows=40)
    outcome = run("assess out --policy policy.yaml")
    assert outcome.code == 2
    assert "other data" in outcome.err


@pytest.fixture
def candidates(run: Runner, tmp_path: Path) -> None:
    """Three releases of one table: two of rows, one of counts."""
    patients(tmp_path)
    anyhow = {"budget": {"epsilon": 1, "delta": 0, "unbounded": "compared"}}
    ways = {
        "fine": {"method": "full-domain", "k": 2},
        "coarse": {"method": "full-domain", "k": 200, "lowest": {"age": 1}},
        "counted": {"method": "private-histogram", "columns": ["sex"], "epsilon": 1},
    }
    for name, way in ways.items():
        policy(tmp_path, release=way, **anyhow)
        outcome = run(f"release --policy policy.yaml --out {name} --force")
        assert outcome.code == 0, outcome.err


@pytest.mark.usefixtures("candidates")
def test_several_releases_are_put_on_a_map(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    outcome = run("assess fine coarse counted --policy policy.yaml --write map.html")
    assert outcome.code == 0, outcome.err
    lines = {line.split()[0]: line for line in outcome.out.splitlines() if line.strip()}
    assert lines["fine"].split()[-1] == "yes"
    assert lines["coarse"].split()[-1] == "yes"
    assert "not on the map" in lines["counted"]
    assert max(map(len, outcome.out.splitlines())) <= 80
    page = (tmp_path / "map.html").read_text(encoding="utf-8")
    assert page.count("<circle") == 2
    assert "Do not publish this page" in page
    found = run("assess fine coarse counted --policy policy.yaml --json").json
    assert sorted(found["frontier"]) == ["coarse", "fine"]
    assert [each["release"] for each in found["releases"]] == ["fine", "coarse", "counted"]


@pytest.mark.usefixtures("candidates")
def test_counts_are_assessed_without_attackers_and_it_is_said_why(run: Runner) -> None:
    outcome = run("assess counted --policy policy.yaml")
    assert outcome.code == 0, outcome.err
    assert "synthetic rows, counts or changed values" in outcome.out
    assert "prosecutor" not in outcome.out


@pytest.mark.usefixtures("released")
def test_survey_weights_give_expected_links_and_zero_is_refused(run: Runner, tmp_path: Path) -> None:
    lines = (tmp_path / "patients.csv").read_text(encoding="utf-8").splitlines()
    weighted = [f"{lines[0]},weight", *(f"{line},20" for line in lines[1:])]
    (tmp_path / "weighted.csv").write_text("\n".join(weighted), encoding="utf-8")
    asked = "assess out --policy policy.yaml --against weighted.csv --weights"
    links = run(f"{asked} weight --json").json["identity"]["links"]
    assert "low" not in links  # no interval of this model covers the truth
    assert 0 < links["value"] < 10  # 100 classes of 30 rows, 600 people each
    (tmp_path / "weighted.csv").write_text("\n".join([*weighted[:-1], f"{lines[-1]},0"]), encoding="utf-8")
    for column, words in (("weight", "not a number above 0"), ("age", "quasi-identifier"), ("none", "none")):
        outcome = run(f"{asked} {column}")
        assert outcome.code == 2
        assert words in outcome.err


@pytest.mark.usefixtures("released")
def test_columns_that_cannot_be_matched_are_told(run: Runner, tmp_path: Path) -> None:
    columns = {"weight": {"type": "integer", "bounds": [0, 9]}}
    plain = {"incrowd": 1, "dataset": {"name": "x"}, "columns": columns, "release": {"method": "full-domain", "k": 5}}
    (tmp_path / "other.yaml").write_text(json.dumps(plain), encoding="utf-8")
    outcome = run("assess out --policy other.yaml --against patients.csv")
    assert outcome.code == 2
    assert "no column in common" in outcome.err
