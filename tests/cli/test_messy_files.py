"""Files as they come: every verb that reads data can be told how, and says what it guessed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import Runner

STREETS = ("Am Anger", "Gärtnerweg")
HEAD = "Straße;Alter;Größe;Eintritt"
TOLD = "--encoding cp1252 --decimal , --dates %d.%m.%Y --nulls k.A."
KEYS = 'encoding: cp1252, decimal: ",", dates: "%d.%m.%Y", nulls: ["", k.A.]'


@pytest.fixture
def club(tmp_path: Path) -> Path:
    lines = [
        f"{STREETS[n % 2]};{'k.A.' if n == 3 else 20 + n % 40};1,{50 + n % 40};{1 + n % 28}.12.2024" for n in range(600)
    ]
    path = tmp_path / "club.csv"
    path.write_text("\n".join([HEAD, *lines]), encoding="cp1252")
    (tmp_path / "policy.yaml").write_text(_policy("club.csv"), encoding="utf-8")
    (tmp_path / "spelled.yaml").write_text(_policy(f"{{path: club.csv, {KEYS}}}"), encoding="utf-8")
    return path


def _policy(source: str) -> str:
    return f"""
incrowd: 1
dataset: {{name: club}}
source: {source}
columns:
  Straße: {{categories: [Am Anger, Gärtnerweg]}}
  Alter: {{type: integer, bounds: [0, 99], hierarchy: {{intervals: [50]}}}}
  Größe: {{type: decimal, bounds: [0, 3], hierarchy: {{intervals: [1]}}}}
  Eintritt: {{type: date, bounds: [2024-01-01, 2024-12-31], hierarchy: {{dates: [month, year]}}}}
release: {{method: safe, rate: 0.5, epsilon: 2, delta: 1e-4, levels: {{Alter: 1, Größe: 1, Eintritt: 1}}}}
queries: {{table: club}}
budget: {{epsilon: 20, delta: 1e-3}}
"""


@pytest.mark.usefixtures("club")
def test_a_profile_says_how_it_reads_and_its_draft_reads_the_same(run: Runner) -> None:
    said = run("profile club.csv --write draft.yaml")
    assert said.code == 0, said.err
    note = "read as cp1252, ';' between columns, decimal comma, dates as %d.%m.%Y, 'k.A.' for missing values."
    assert note in " ".join(said.out.split())
    draft = Path("draft.yaml").read_text(encoding="utf-8")
    assert 'encoding: "cp1252", nulls: ["", "k.A."], decimal: ",", dates: ["%d.%m.%Y"]' in " ".join(draft.split())
    columns = {each["name"]: each["type"] for each in run("profile club.csv --json").json["columns"]}
    assert columns == {"Straße": "text", "Alter": "integer", "Größe": "decimal", "Eintritt": "date"}
    again = run("profile --policy draft.yaml --json").json
    assert {each["name"]: each["type"] for each in again["columns"]} == columns


@pytest.mark.usefixtures("club")
def test_a_check_without_a_policy_says_how_it_reads(run: Runner) -> None:
    said = run("check club.csv --quasi Größe --k 2")
    assert "note: read as cp1252" in said.out
    assert run("check club.csv --quasi Größe --k 2 --json").json["notes"][0].startswith("read as cp1252")


VERBS = [
    "profile club.csv --json",
    "profile --policy policy.yaml --json",
    "check club.csv --quasi Größe --k 2 --json",
    "check --policy policy.yaml --recoded --k 1 --json",
    "plan --policy policy.yaml --json",
    "release --policy policy.yaml --out out --json",
    "query --policy policy.yaml --price --epsilon 1 --json",
    "hierarchy check --policy policy.yaml --json",
    "hierarchy build club.csv --column Alter --kind intervals --steps 10 --out alter.csv --json",
]


@pytest.mark.usefixtures("club")
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_that_reads_data_can_be_told_how(run: Runner, verb: str) -> None:
    asked = "'SELECT COUNT(*) AS n FROM club'" if verb.startswith("query") else ""
    done = run(f"{verb} {asked} {TOLD}")
    assert done.code in ({0, 1} if verb.startswith("check") else {0}), done.err
    wrong = run(f"{verb.replace('--out out', '--out other')} {asked} --decimal ';'")
    assert wrong.code == 2
    assert "decimal is the sign before the decimals" in wrong.err or "encoding: cp1252" in wrong.err


@pytest.mark.usefixtures("club")
def test_a_release_and_what_follows_read_as_the_policy_says(run: Runner) -> None:
    for verb in (
        "release --policy spelled.yaml --out out --json",
        "assess out --policy spelled.yaml --json",
        "report out --internal --policy spelled.yaml --json",
        "check out --policy spelled.yaml --json",
    ):
        done = run(verb)
        assert done.code == 0, (verb, done.err)
    assert run("assess out --policy spelled.yaml --json").json["rows"]["released"] > 100


@pytest.mark.usefixtures("club")
def test_what_is_not_declared_is_refused_for_nothing(run: Runner) -> None:
    refused = run("release --policy policy.yaml --out out")
    assert refused.code == 2
    assert "encoding: cp1252" in refused.err
    refused = run("release --policy policy.yaml --out out --encoding cp1252")
    assert refused.code == 2
    assert "column Größe: 600 cells are not numbers, first in lines 2, 3, 4" in refused.err
    assert 'decimal: ","' in refused.err
    assert "k.A." not in refused.err
    asked = run("query 'SELECT COUNT(*) AS n FROM club' --policy policy.yaml --encoding cp1252")
    assert asked.code == 2
    assert not Path("out").exists()
    assert not list(Path(".incrowd").glob("ledger*")) or "charge" not in run("ledger show --json").out


@pytest.mark.usefixtures("club")
@pytest.mark.parametrize(
    ("source", "gist"),
    [
        ('{path: club.csv, dates: "%d.%m.%y"}', "century"),
        ('{path: club.csv, dates: ["%d/%m/%Y", "%m/%d/%Y"]}', "are ambiguous"),
        ('{path: club.csv, thousands: "."}', 'write decimal: "," too'),
        ("{path: club.csv, header_row: 0}", "source.header_row"),
        ("{path: club.csv, sheet: 2}", "the option sheet means nothing for a text file"),
    ],
)
def test_a_policy_that_could_be_meant_in_two_ways_is_refused_with_the_place(
    run: Runner, source: str, gist: str
) -> None:
    Path("policy.yaml").write_text(_policy(source), encoding="utf-8")
    refused = run("plan --policy policy.yaml")
    assert refused.code == 2
    assert gist in " ".join(refused.err.split())
    assert "sheet" in gist or "policy.yaml, line 4" in refused.err


def test_a_workbook_with_a_cover_and_a_title_is_found(run: Runner) -> None:
    from openpyxl import Workbook

    book = Workbook()
    book.active.append(["Members"])
    data = book.create_sheet("2024")
    for row in (["As of today"], ["age", "fee"], *([20 + n, f"{n},5"] for n in range(40))):
        data.append(row)
    book.save("members.xlsx")
    said = run("profile members.xlsx")
    assert "read as the sheet 2024, the columns named in row 2, decimal comma" in " ".join(said.out.split())
    told = run("profile members.xlsx --sheet 2 --header-row 2 --decimal , --json")
    assert [each["type"] for each in told.json["columns"]] == ["integer", "decimal"]
    assert run("profile members.xlsx --sheet 3").code == 2
    assert json.loads(run("profile members.xlsx --json").out)["rows"] == 40
