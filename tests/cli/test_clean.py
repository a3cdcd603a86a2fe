"""`clean:`: the same rules for every source, data-dependent until confirmed, and no source spelling in public."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.core.cleaning import Cleaning, LetterCase, UnicodeForm
from incrowd.core.domain import Provenance, Type
from incrowd.core.hierarchy.tree import tree
from incrowd.core.loss import Syntactic
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.steps.rows import CLEANED
from incrowd.core.table import SourceOptions
from incrowd.core.unit import Kind, Unit
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.profile.profile import profile
from tests.cli.running import Runner

CELLS = [" Bonfim", "BONFIM", "Bonfim", "Se\u0301", "Sé", "s/d", "Campanhã", "CampanhÃ£"] * 12
FEES = ["96,50 €", "€ 7", "1.204,00", "k.A.", "12 EUR", "5", "3,5 €", "0,25 €"] * 12
PLACE = Cleaning(mend="cp1252", form=UnicodeForm.NFC, trim=True, missing=("s/d",), spellings=(("Bonfim", ("BONFIM",)),))
FEE = Cleaning(missing=("k.A.",), units=("€", "EUR"), decimal=",", thousands=".")
POLICY = """
incrowd: 1
dataset: {name: alunos}
source: rows.csv
columns:
  place:
    role: quasi
    categories: [Bonfim, Sé, Campanhã]
    clean: {mend: cp1252, unicode: nfc, trim: true, missing: s/d, spellings: {Bonfim: BONFIM}MARK}
  fee:
    role: sensitive
    type: decimal
    bounds: [0, 2000]
    hierarchy: {intervals: [1000]}
    clean: {units: [€, EUR], missing: k.A., decimal: ",", thousands: "."}
release: {method: METHOD}
budget: {unbounded: "a test", epsilon: 5, delta: 0}
"""


def sources(folder: Path) -> list[object]:
    """The same cells in a text file, a workbook, a database, a Parquet file and a frame."""
    table = pa.table({"place": CELLS, "fee": FEES})
    lines = [f"{place}\t{fee}" for place, fee in zip(CELLS, FEES, strict=True)]
    (folder / "rows.tsv").write_text("\n".join(["place\tfee", *lines]), encoding="utf-8")
    pq.write_table(table, folder / "rows.parquet")
    book = openpyxl.Workbook()
    book.active.append(["place", "fee"])
    for row in zip(CELLS, FEES, strict=True):
        book.active.append(row)
    book.save(folder / "rows.xlsx")
    with sqlite3.connect(folder / "rows.sqlite") as database:
        database.execute("CREATE TABLE rows (place TEXT, fee TEXT)")
        database.executemany("INSERT INTO rows VALUES (?, ?)", zip(CELLS, FEES, strict=True))
    database.close()
    return [*(folder / f"rows.{ending}" for ending in ("tsv", "xlsx", "parquet")), f"{folder}/rows.sqlite::rows", table]


def test_every_kind_of_source_is_cleaned_alike(tmp_path: Path) -> None:
    types = {"place": Type.TEXT, "fee": Type.DECIMAL}
    read = []
    for source in sources(tmp_path):
        opened = open_source(source, SourceOptions(types=types, clean={"place": PLACE, "fee": FEE}))
        read.append([row for batch in opened.batches(["place", "fee"]) for row in batch.to_pylist()])
    assert [row["place"] for row in read[0][:8]] == ["Bonfim"] * 3 + ["Sé"] * 2 + [None, "Campanhã", "Campanhã"]
    assert [row["fee"] for row in read[0][:8]] == ["96.50", "7", "1204.00", None, "12", "5", "3.5", "0.25"]
    assert all(rows == read[0] for rows in read)


@given(st.lists(st.one_of(st.none(), st.text(max_size=12), st.sampled_from(CELLS)), max_size=12), st.integers(0, 12))
def test_each_cell_is_cleaned_on_its_own_and_once_is_enough(cells: list[str | None], at: int) -> None:
    rules = Cleaning(form=UnicodeForm.NFC, trim=True, missing=("s/d",), spellings=(("Bonfim", ("BONFIM",)),))
    whole = rules.column(pa.array(cells, pa.string())).to_pylist()
    parts = [rules.column(pa.array(part, pa.string())).to_pylist() for part in (cells[:at], cells[at:])]
    assert whole == [*parts[0], *parts[1]]
    assert rules.column(pa.array(whole, pa.string())).to_pylist() == whole


def test_stored_numbers_are_cleaned_too() -> None:
    numbers = Cleaning(missing=("999",))
    assert numbers.column(pa.array([1, 999, None])).to_pylist() == ["1", None, None]
    assert numbers.column(pa.array([1.5, 999.0, float("nan")])).to_pylist() == ["1.5", None, None]


def release(run: Runner, folder: Path, method: str, mark: str = "") -> dict[str, object]:
    lines = [f'"{place}","{fee}"' for place, fee in zip(CELLS, FEES, strict=True)]
    (folder / "rows.csv").write_text("\n".join(["place,fee", *lines]), encoding="utf-8")
    text = POLICY.replace("METHOD", method).replace("MARK", mark)
    (folder / "policy.yaml").write_text(text, encoding="utf-8")
    assert run("release --policy policy.yaml --out out").code == 0
    certificate: dict[str, object] = json.loads((folder / "out" / "certificate.json").read_text(encoding="utf-8"))
    return certificate


@pytest.mark.parametrize(
    "method", ["full-domain, k: 3, levels: {fee: 1}", "private-histogram, columns: [place], epsilon: 1"]
)
def test_a_release_is_cleaned_verified_and_holds_no_source_spelling(method: str, run: Runner, tmp_path: Path) -> None:
    certificate = json.dumps(release(run, tmp_path, method), ensure_ascii=False)
    assert '"spellings"' in certificate
    assert '"Bonfim"' in certificate
    public = "".join(path.read_text(encoding="utf-8", errors="ignore") for path in (tmp_path / "out").iterdir())
    for spelling in ("BONFIM", "s/d", "CampanhÃ£", "k.A."):
        assert spelling not in public, spelling
    assert run("verify out --policy policy.yaml").code == 0
    assert run("assess out --policy policy.yaml").code == 0
    assert run("report out --internal page.html --policy policy.yaml").code in (0, 2)


def test_drafted_rules_void_the_guarantee_until_they_are_confirmed(run: Runner, tmp_path: Path) -> None:
    release(run, tmp_path, "full-domain, k: 3, levels: {fee: 1}", ", derived: rows")
    drafted = load_policy(tmp_path / "policy.yaml")
    assert drafted.schema.drafted == ("place",)
    loss = drafted.plan.guarantee.loss
    assert isinstance(loss, Syntactic)
    assert dict(loss.parameters)["drafted"] == ("place",)
    text = (tmp_path / "policy.yaml").read_text(encoding="utf-8")
    (tmp_path / "policy.yaml").write_text(
        text.replace("derived: rows", 'derived: rows, confirmed: "the office"'), encoding="utf-8"
    )
    confirmed = load_policy(tmp_path / "policy.yaml")
    assert confirmed.schema.drafted == ()
    assert CLEANED in confirmed.plan.guarantee.assumes
    assert CLEANED not in drafted.plan.guarantee.assumes


@pytest.mark.parametrize("method", ["private-histogram, columns: [place], epsilon: 1", "marginals, epsilon: 1"])
def test_no_noise_is_added_to_values_of_drafted_rules(method: str, run: Runner, tmp_path: Path) -> None:
    text = POLICY.replace("METHOD", method).replace("MARK", ", derived: rows")
    (tmp_path / "policy.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "rows.csv").write_text("place,fee\nBonfim,1\n", encoding="utf-8")
    outcome = run("plan --policy policy.yaml")
    assert outcome.code != 0 or "no bound on the privacy loss" in outcome.out


def test_queries_read_cleaned_cells_from_parquet_too(run: Runner, tmp_path: Path) -> None:
    pq.write_table(pa.table({"place": CELLS * 20, "fee": FEES * 20}), tmp_path / "rows.parquet")
    text = (
        POLICY.replace("rows.csv", "rows.parquet")
        .replace("MARK", "")
        .replace("release: {method: METHOD}", "queries: {table: rows}")
    )
    (tmp_path / "policy.yaml").write_text(text.replace("epsilon: 5", "epsilon: 100"), encoding="utf-8")
    query = "SELECT COUNT(*) AS n FROM rows WHERE place = 'Bonfim'"
    outcome = run(f'query "{query}" --policy policy.yaml --epsilon 50 --json')
    assert outcome.code == 0, outcome.err
    (count,) = outcome.json["answer"]["columns"][0]["values"]
    assert abs(count - 3 * 12 * 20) < 2  # Laplace of scale 1/50: beyond with probability e^-100


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (Cleaning(units=("€",)), "those of numbers"),
        (Cleaning(spellings=(("Gand", ("Gent",)),)), "not among the values"),
    ],
)
def test_rules_that_mean_nothing_for_a_column_are_refused(rules: Cleaning, message: str) -> None:
    from incrowd.core.domain import Categories
    from incrowd.core.hierarchy.flat import Flat

    with pytest.raises(InvalidParameter, match=message):
        Column("place", hierarchy=Flat(Categories(("Gent", "Brugge"))), clean=rules)


@pytest.mark.parametrize(
    "spellings",
    [(("Gent", ("Rand",)), ("Brugge", ("Rand",))), (("Gent", ("Rand",)), ("Rand", ("rand",)))],
)
def test_a_text_with_two_meanings_is_refused(spellings: tuple[tuple[str, tuple[str, ...]], ...]) -> None:
    with pytest.raises(InvalidParameter, match="two things"):
        Cleaning(spellings=spellings)


def test_a_label_that_is_also_a_value_of_another_meaning_is_refused() -> None:
    with pytest.raises(InvalidParameter, match=r"'Gent'.*Rename"):
        tree({"Gent": ["Gent", "Rand"], "Brugge": ["Brugge"]})
    assert tree({"Gent and others": ["Gent", "Rand"], "Brugge": ["Brugge"]}).labels(1) == ("Gent and others", "Brugge")


def test_ids_of_people_are_not_cleaned_by_drafted_rules() -> None:
    person = Unit(Kind.PERSON, column="id")
    drafted = Cleaning(case=LetterCase.UPPER, provenance=Provenance(derived=True))
    with pytest.raises(InvalidParameter, match="confirm them"):
        Schema((Column("id", Role.IDENTIFIER, clean=drafted), Column("age")), person)
    Schema((Column("id", Role.IDENTIFIER, clean=Cleaning(case=LetterCase.UPPER)), Column("age")), person)


def test_suggestions_are_typed_and_group_languages_and_letters() -> None:
    rows = {"Sexo": ["F", "Feminino", "M", "masc."] * 9, "Vila": ["Lyon", "LYON", "lyon ", "Bron"] * 9}
    sex, town = profile(open_source(pa.table(rows))).columns
    assert sex.clean is not None
    assert town.clean is not None
    assert dict(sex.clean.cleaning.spellings) == {"F": ("Feminino",), "M": ("masc.",)}
    assert town.clean.cleaning.trim
    assert {label: set(others) for label, others in town.clean.cleaning.spellings} == {"Lyon": {"LYON", "lyon"}}
    assert {value for value, _ in sex.cleaned.facts.values or ()} == {"F", "M"}


def test_h_and_m_are_not_grouped_with_words_that_may_mean_the_other() -> None:
    column = profile(open_source(pa.table({"Sexo": ["H", "M", "Mujer", "Hombre"] * 9}))).columns[0]
    assert column.clean is None


def test_a_draft_holds_suggested_cleaning_back_until_it_is_confirmed(run: Runner, tmp_path: Path) -> None:
    rows = [
        f"{n % 90};{'F' if n % 2 else 'Feminino' if n % 4 else 'M'};{n % 50},5 €;{2000 + n % 9}" for n in range(200)
    ]
    (tmp_path / "rows.csv").write_text("\n".join(["idade;sexo;custo;ano", *rows]), encoding="utf-8")
    held = run("profile rows.csv --write one.yaml --json").json
    assert "draft again with --confirm" in held["held_back"]["custo"]
    made = run("profile rows.csv --write two.yaml --confirm all --json").json
    assert set(made["released"]) >= {"custo", "sexo"}
    policy = load_policy(tmp_path / "two.yaml")
    assert policy.schema["sexo"].clean is not None
    assert run("plan --policy two.yaml").code == 0
