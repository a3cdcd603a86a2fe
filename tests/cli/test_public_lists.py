"""Public lists: each from a named package or a published structure of codes, so that a draft can release the column."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest

from incrowd.core.domain import Type
from incrowd.engines.readers.sources import open_source
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.profile import vocabularies
from incrowd.workflows.profile.draft_columns import public_column
from incrowd.workflows.profile.profile import profile
from tests.cli.running import Runner


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("Kraj", ["Niemcy", "Polska", "Francja"]),
        ("Pays", ["Allemagne", "France", "Suisse"]),
        ("Herkunft", ["Deutschland", "Österreich", "Schweiz"]),
        ("País", ["Alemania", "España", "México"]),
        ("Nacionalidade", ["Alemanha", "Portugal", "Brasil"]),
        ("Land", ["Duitsland", "België", "Nederland"]),
    ],
)
def test_countries_are_recognized_by_their_names_in_other_languages(column: str, values: list[str]) -> None:
    pytest.importorskip("babel")
    drafted = public_column(profile(open_source(pa.table({column: values * 9}))).columns[0])
    assert "CLDR" in (drafted.public or "")
    assert not drafted.marked
    assert set(values) <= {name for names in drafted.section["hierarchy"]["tree"].values() for name in names}


def test_without_the_package_there_is_no_such_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "babel", None)
    vocabularies._named_in.cache_clear()
    column = profile(open_source(pa.table({"Kraj": ["Niemcy", "Polska", "Francja"] * 9}))).columns[0]
    assert public_column(column).public is None
    vocabularies._named_in.cache_clear()


def test_words_of_another_kind_are_not_countries() -> None:
    column = profile(open_source(pa.table({"Kraj": ["śląskie", "łódzkie", "opolskie"] * 9}))).columns[0]
    assert "countries" not in (public_column(column).public or "")


@pytest.mark.parametrize(
    ("column", "values", "public"),
    [
        ("NUTS3", ["DE111", "DE112", "FR101"], "codes of NUTS, by prefix"),
        ("isced_level", ["0", "3", "8"], "levels of ISCED 2011"),
        ("ICD", ["E11.9", "I10", "J45.0"], "chapters of ICD-10"),
    ],
)
def test_codes_are_generalized_by_their_published_structure(column: str, values: list[str], public: str) -> None:
    facts = profile(open_source(pa.table({column: values * 9}))).columns[0].facts
    assert vocabularies.vocabulary_of(facts, Type.TEXT).public == public  # type: ignore[union-attr]


def test_a_draft_releases_a_column_of_a_public_list(run: Runner, tmp_path: Path) -> None:
    pytest.importorskip("babel")
    rows = [f"{('Niemcy', 'Polska', 'Francja')[n % 3]},{n % 90}" for n in range(300)]
    (tmp_path / "rows.csv").write_text("\n".join(["kraj,wiek", *rows]), encoding="utf-8")
    outcome = run("profile rows.csv --write policy.yaml --json")
    assert set(outcome.json["released"]) == {"kraj", "wiek"}
    assert load_policy(tmp_path / "policy.yaml").schema.drafted == ()
