"""Public lists: each from its package, without contradictions, used by drafts without a value of the rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv

from incrowd.core.domain import Text
from incrowd.core.hierarchy.text import Classification
from incrowd.errors import InvalidParameter
from incrowd.workflows.hierarchies.build import LISTED_KINDS, HierarchyRequest
from incrowd.workflows.hierarchies.public_lists import LISTS, from_list
from incrowd.workflows.policy.policy import load_policy
from tests.cli.running import Runner


def test_every_kind_is_a_list_with_a_package_and_a_license() -> None:
    assert tuple(LISTS) == LISTED_KINDS
    assert all(public.license and public.package in public.source for public in LISTS.values())


def test_codes_of_diseases_have_blocks_and_chapters_with_and_without_a_dot() -> None:
    hierarchy = from_list(HierarchyRequest("diagnosis", "icd-10")).column.hierarchy
    chapter = "X Diseases of the respiratory system"
    for code in ("J18.9", "J189"):
        labels = [hierarchy.generalize(code, level) for level in range(1, 4)]
        assert labels == ["J18", "J09-J18 Influenza and pneumonia", chapter]
    assert hierarchy.labels(4) == ("*",)
    assert len(hierarchy.labels(3) or ()) == 22


def test_countries_speak_a_language_and_regions_belong_to_a_country() -> None:
    polish = from_list(HierarchyRequest("kraj", "countries", ("pl",)))
    assert polish.column.hierarchy.generalize("Niemcy", 1) == "Europe"
    assert "babel" in str(polish.public)
    assert from_list(HierarchyRequest("land", "countries")).column.hierarchy.generalize("DE", 1) == "Europe"
    assert from_list(HierarchyRequest("dep", "regions", ("fr",))).column.hierarchy.generalize("FR-03", 1) == "FR-ARA"
    departments = from_list(HierarchyRequest("dep", "regions", ("FR",))).column.hierarchy
    assert departments.generalize("Ain", 1) == "FR-ARA Auvergne-Rhône-Alpes"
    for kind, steps in (("countries", ("xx",)), ("regions", ()), ("regions", ("zz",))):
        with pytest.raises(InvalidParameter, match="--steps"):
            from_list(HierarchyRequest("x", kind, steps))


def test_a_list_becomes_a_hierarchy_of_a_policy(run: Runner, tmp_path: Path) -> None:
    assert run("hierarchy build --column diag --kind icd-10 --out icd.csv").code == 0
    content = {
        "incrowd": 1,
        "dataset": {"name": "stays"},
        "columns": {"diag": {"role": "quasi", "hierarchy": {"file": "icd.csv"}}},
        "release": {"method": "safe", "k": 5, "rate": 1, "levels": {"diag": 2}},
        "budget": {"unbounded": "a test"},
    }
    policy = load_policy(content, folder=tmp_path)
    assert policy.schema["diag"].hierarchy.generalize("E11.9", 2) == "E10-E14 Diabetes mellitus"


WORDS = {
    "Medeni durum": (["Evli", "Bekar", "Dul"], "marital states"),
    "Stan cywilny": (["panna", "żonaty", "wdowa"], "marital states"),
    "Estado civil": (["Casada", "Solteiro", "União estável"], "marital states"),
    "Dzień": (["poniedziałek", "wtorek", "sobota"], "days of the week in CLDR (pl)"),
    "Ημέρα": (["Δευτέρα", "Τρίτη", "Σάββατο"], "days of the week in CLDR (el)"),
    "Állampolgárság": (["Magyarország", "Románia", "Szlovákia"], "names of countries in CLDR (hu)"),
    "Ay": (["Ocak", "Şubat", "Eylül"], "months in CLDR (tr)"),
    "Cinsiyet": (["Kadın", "Erkek"], "codes of sexes"),
    "Οικογενειακή κατάσταση": (["έγγαμος", "άγαμη", "χήρα"], "marital states"),
    "Családi állapot": (["nőtlen", "hajadon", "házas"], "marital states"),
    "Stato civile": (["coniugato/a", "vedovo/a", "celibe/nubile"], "marital states"),
    "Situation familiale": (["Marié(e)", "Célibataire", "Veuf/veuve"], "marital states"),
    "Civilstånd": (["gift", "skild", "änka/änkling"], "marital states"),
    "Civilstand": (["ugift", "enke/enkemand", "fraskilt"], "marital states"),
    "Rodinný stav": (["svobodný/á", "ženatý/vdaná", "ovdovělý/á"], "marital states"),
    "Φύλο": (["Άνδρας", "Γυναίκα"], "codes of sexes"),
    "Стать": (["ч", "ж"], "codes of sexes"),
    "性別": (["男", "女"], "codes of sexes"),
    "Estat civil": (["casat/ada", "solter/a", "vidu/vídua"], "marital states"),
    "Τ.Κ.": (["104 31", "546 22", "262 21"], "postal codes begin with the region"),
    "Kod pocztowy": (["00-950", "31-002", "80-299"], "postal codes begin with the region"),
    "Código postal": (["1000-205", "4050-123", "9000-001"], "postal codes begin with the region"),
}


def test_words_of_a_language_are_public_and_need_no_value_of_the_rows(run: Runner, tmp_path: Path) -> None:
    columns = {name: (values * 40)[:60] for name, (values, _) in WORDS.items()}
    csv.write_csv(pa.table(columns), tmp_path / "rows.csv")
    assert run("profile rows.csv --write draft.yaml").code == 0
    text = (tmp_path / "draft.yaml").read_text(encoding="utf-8")
    assert all(public in text for _, public in WORDS.values())
    assert "derived: rows" not in text.split("columns:", 1)[1]


def test_chapters_that_policies_name_are_those_of_the_list_of_the_who() -> None:
    listed = from_list(HierarchyRequest("diagnosis", "icd-10")).column.hierarchy
    named = Classification(Text(), "icd-10")
    pairs = {(listed.generalize(code, 3), named.generalize(code, 2)) for code in listed.labels(1) or ()}
    assert len(pairs) == len({chapter for chapter, _ in pairs}) == len({chapter for _, chapter in pairs}) == 22
