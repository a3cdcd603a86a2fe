"""Which column is the person: names in many languages, ids that repeat, and --unit."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from incrowd.core.schema import Role
from incrowd.core.unit import Unit
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.profile.draft_policy import draft
from incrowd.workflows.profile.draft_text import DraftGoal, DraftRequest, Origin
from incrowd.workflows.profile.profile import TableProfile, person_column, person_questions, profile
from tests.cli.running import Runner


def visits(name: str, ids: int = 300, rows: int = 900) -> TableProfile:
    table = {name: [f"{n % ids + 10000}" for n in range(rows)], "Sexo": ["F", "M", "F"] * (rows // 3)}
    return profile(open_source(pa.table(table)))


@pytest.mark.parametrize(
    "name",
    [
        *(
            "Patiëntnr",
            "N°_patient",
            "N.º aluno",
            "Nr pacjenta",
            "Versichertennr.",
            "Pat.-Nr.",
            "KundenID",
            "Nº de socio",
        ),
        *("Mitgliedsnummer", "medlemsnummer", "N° adhérent", "Codice paziente", "Číslo pacienta", "Elev-ID", "lidnr"),
    ],
)
def test_a_name_with_accents_abbreviations_or_a_compound_is_the_person_id_column(name: str) -> None:
    person = person_column(visits(name))
    assert person is not None
    assert (person.name, person.people, person.most_rows) == (name, 300, 3)


@pytest.mark.parametrize(
    "name", ["Postcode", "covid", "Bestellnummer", "episode", "Sensor-ID", "Ano letivo", "Filiale Nr"]
)
def test_a_name_of_something_else_is_not(name: str) -> None:
    assert person_column(visits(name, ids=30)) is None


def test_ids_that_repeat_without_a_telling_name_are_asked_about() -> None:
    rows = profile(open_source(pa.table({"dossier": [f"{n % 400:06d}" for n in range(900)]})))
    (question,) = person_questions(rows)
    assert question.sentence == "dossier has 900 rows and 400 values: is this one person? If so, --unit dossier"
    assert question.to_json() == {"column": "dossier", "rows": 900, "values": 400}
    assert person_questions(rows, "dossier") == ()
    assert person_column(rows, "dossier").people == 400  # type: ignore[union-attr]


def test_a_table_with_totals_counts_every_row_and_merges_those_of_one_person(tmp_path: Path, run: Runner) -> None:
    """Two of 30 people have every fifth row: their cell has 30 rows and 2 contributors."""
    rows = [f"{n % 2 if n % 5 == 0 else n % 28 + 2},{'FM'[n % 5 == 0]}" for n in range(150)]
    (tmp_path / "besuche.csv").write_text("Versichertennummer,Geschlecht\n" + "\n".join(rows), encoding="utf-8")
    written = run("profile besuche.csv --for table --unit Versichertennummer --confirm all --write policy.yaml")
    assert "every row is counted" in " ".join(written.out.split())
    policy = load_policy(tmp_path / "policy.yaml")
    assert policy.schema.unit == Unit()
    assert (tmp_path / "policy.yaml").read_text(encoding="utf-8").count("  holding: Versichertennummer ") == 1
    run("release --policy policy.yaml --out out --format csv")
    lines = (tmp_path / "out" / "table.csv").read_text(encoding="utf-8").splitlines()
    assert lines[1:4] == ["Total,150", "F,x", "M,x"]  # two contributors are few, and the rest would show their rows


@pytest.mark.parametrize("goal", [goal for goal in DraftGoal if goal is not DraftGoal.COUNTS])
def test_a_draft_never_releases_a_column_that_repeats_like_ids(goal: DraftGoal, tmp_path: Path) -> None:
    table = {"dossier": [f"{n % 400:06d}" for n in range(900)], "age": [str(n % 90) for n in range(900)]}
    made = draft(profile(open_source(pa.table(table))), Origin("visits.csv"), DraftRequest(goal))
    assert "dossier" not in made.released
    (tmp_path / "policy.yaml").write_text(made.text, encoding="utf-8")
    assert load_policy(tmp_path / "policy.yaml").schema["dossier"].role == "withheld"


def test_unit_names_the_person_in_profile_and_draft(run: Runner, tmp_path: Path) -> None:
    lines = [f"{n % 400:06d},{n % 90}" for n in range(900)]
    (tmp_path / "visits.csv").write_text("\n".join(["dossier,age", *lines]), encoding="utf-8")
    assert "dossier has 900 rows and 400 values: is this one person?" in run("profile visits.csv").out
    assert run("profile visits.csv --json").json["questions"] == [{"column": "dossier", "rows": 900, "values": 400}]
    answered = run("profile visits.csv --unit dossier --write policy.yaml --json").json
    assert (answered["person"]["column"], answered["questions"]) == ("dossier", [])
    assert load_policy(tmp_path / "policy.yaml").schema.unit.column == "dossier"


def test_a_unit_that_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="no column 'who'"):
        person_column(visits("Patiëntnr"), "who")


def test_a_name_that_is_the_same_in_all_rows_is_not_released() -> None:
    columns = {"Nom i cognoms": ["Montserrat Puig"] * 60, "any": ["2024"] * 60, "sexe": ["Home", "Dona"] * 30}
    roles = {column.name: column.role for column in profile(open_source(pa.table(columns))).columns}
    assert roles == {"Nom i cognoms": Role.IDENTIFIER, "any": Role.PLAIN, "sexe": Role.QUASI}
