"""Missing values in many words, numbers with units, other marks, sums, mixed encodings, text that names people."""

from __future__ import annotations

from pathlib import Path

import openpyxl
import pyarrow as pa
import pytest

from incrowd.core.domain import Type
from incrowd.core.schema import Role
from incrowd.core.table import SourceOptions
from incrowd.engines.readers.conventions import is_missing_word
from incrowd.engines.readers.delimited import Delimited
from incrowd.engines.readers.guess import guessed_options
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.profile.profile import TableProfile, profile
from tests.cli.running import Runner

WORDS = [
    *("onbekend", "NULL", "n.v.t.", "-", "s/d", "NS/NC", "k. A.", "sans objet", "brak danych", "desconhecido"),
    *("uppgift saknas", "ikke oplyst", "neuvedeno", "ei tietoa", "non pervenuto", "unknown"),
    *("uoplyst", "non rilevato", "nezadáno", "ei ilmoitettu"),
    *("δ/υ", "nincs adat", "nespecificat", "nije poznato", "няма данни", "не вказано"),
]


def written(folder: Path, text: str) -> TableProfile:
    """Profile a file as the command does."""
    (folder / "rows.csv").write_text(text, encoding="utf-8")
    options = guessed_options(folder / "rows.csv")
    return profile(open_source(folder / "rows.csv", options), reading=options.clean)


@pytest.mark.parametrize("word", WORDS)
def test_a_word_for_missing_among_days_and_numbers_is_read_as_missing_and_said(
    word: str, run: Runner, tmp_path: Path
) -> None:
    rows = [f"{n % 28 + 1:02d}.03.2024;{n},5;x{n}" for n in range(99)]
    (tmp_path / "rows.csv").write_text("\n".join(["day;fee;note", *rows, f"{word};{word};x"]), encoding="utf-8")
    outcome = run("profile rows.csv --json").json
    assert [column["type"] for column in outcome["columns"][:2]] == ["date", "decimal"]
    assert [column["missing"] for column in outcome["columns"][:2]] == [1, 1]
    assert f"{word!r} for missing" in " ".join(run("profile rows.csv").out.split())


@pytest.mark.parametrize("word", [word for word in WORDS if any(map(str.isalpha, word))])
def test_among_words_it_is_suggested_and_not_taken(word: str) -> None:
    places = ["Gent"] * 60 + ["Brugge"] * 39 + [word]
    column = profile(open_source(pa.table({"stad": places}))).columns[0]
    assert column.facts.missing == 0
    assert column.clean is not None
    assert column.clean.cleaning.missing == (word,)
    assert column.cleaned.facts.missing == 1


def test_a_word_of_any_language_among_many_days_is_suggested_for_its_column_alone(tmp_path: Path) -> None:
    rows = [f"2024.{n // 28 + 1:02d}.{n % 28 + 1:02d}.;{n} Ft;{n % 2}" for n in range(140)]
    found = written(tmp_path, "\n".join(["Felvétel;Díj;Kód", *rows, "homály;141 Ft;3", "homály;5 Ft;homály"]))
    day, fee, code = found.columns
    assert (day.type, day.facts.missing) == (Type.DATE, 2)
    assert day.clean is not None
    assert day.clean.cleaning.missing == ("homály",)
    assert day.clean.cleaning.provenance.derived  # until somebody confirms it
    assert code.facts.missing == 0
    assert fee.role is not Role.IDENTIFIER  # nearly unique, but measured with a unit


def test_a_word_among_a_few_different_amounts_with_a_unit_is_suggested_too(tmp_path: Path) -> None:
    rows = [f"€ {n % 12},50;{n % 2}" for n in range(60)]
    fee, code = written(tmp_path, "\n".join(["Importo;Codice", *rows, "esente;3", "esente;esente"])).columns
    assert (fee.type, fee.facts.missing, fee.facts.high) == (Type.DECIMAL, 2, 11.5)
    assert fee.clean is not None
    assert (fee.clean.cleaning.missing, fee.clean.cleaning.units) == (("esente",), ("€",))
    assert code.facts.missing == 0


@pytest.mark.parametrize(
    ("names", "roles"),
    [
        ("ΑΜΚΑ Ονοματεπώνυμο Φύλο Διάγνωση", "identifier identifier quasi sensitive"),
        ("TAJ-szám Név Nem Diagnózis", "identifier identifier quasi sensitive"),
        ("ЕГН Име Пол Диагноза", "identifier identifier quasi sensitive"),
        ("CNP Nume Vârstă Salariu", "identifier identifier quasi sensitive"),
        ("Personnummer Namn Kön Diagnoskod", "identifier identifier quasi sensitive"),
        ("Låner-ID Efternavn Fødselsår Gebyr", "identifier identifier quasi sensitive"),
        ("asiakasnro nimi syntymäaika palkka", "identifier identifier quasi sensitive"),
        ("患者番号 氏名 性別 診断", "identifier identifier quasi sensitive"),
        ("환자번호 이름 성별 진단", "identifier identifier quasi sensitive"),
    ],
)
def test_names_of_columns_are_read_in_every_alphabet(names: str, roles: str) -> None:
    columns = dict.fromkeys(names.split(), ["x1", "y2", "z3"] * 20)
    assert [str(column.role) for column in profile(open_source(pa.table(columns))).columns] == roles.split()


def test_no_missing_word_is_a_number_or_a_common_value() -> None:
    assert not any(is_missing_word(text) for text in ("0", "no", "nee", "nein", "M", "DE", "nie", "other", "Anna"))


def test_a_public_code_is_not_taken_for_a_missing_word() -> None:
    countries = profile(open_source(pa.table({"country": ["NA", "DE", "FR", "ES"] * 5}))).columns[0]
    assert countries.clean is None


def test_numbers_with_units_are_numbers(tmp_path: Path) -> None:
    rows = [f"{n},50 €;{n + 40} kg;$ {n}.25" for n in range(30)]
    fee, weight, dollars = written(tmp_path, "\n".join(["fee;weight;dollars", *rows])).columns
    assert [column.type for column in (fee, weight, dollars)] == [Type.DECIMAL, Type.INTEGER, Type.DECIMAL]
    assert (fee.facts.high, weight.facts.high, dollars.facts.high) == (29.5, 69, 29.25)
    assert [column.clean.cleaning.units for column in (fee, weight, dollars) if column.clean] == [
        ("€",),
        ("kg",),
        ("$",),
    ]


@pytest.mark.parametrize("cells", [["A1", "A2"], ["007 kg", "008 kg"], ["5 kg", "6 cm", "7 mm"], ["Haus 5", "Haus 6"]])
def test_codes_and_mixed_units_stay_text(cells: list[str], tmp_path: Path) -> None:
    assert written(tmp_path, "\n".join(["room;x", *(f"{cell};y" for cell in cells * 9)])).columns[0].type is Type.TEXT


def test_columns_with_other_marks_are_read_each_in_its_own(tmp_path: Path) -> None:
    rows = [f"12.{n + 100},67;{n}.5;{n}" for n in range(30)]
    amount, weight, count = written(tmp_path, "\n".join(["bedrag;gewicht;aantal", *rows])).columns
    assert (amount.type, amount.facts.high) == (Type.DECIMAL, 12129.67)
    assert (weight.type, weight.facts.high, count.type) == (Type.DECIMAL, 29.5, Type.INTEGER)


def test_marks_that_may_mean_two_things_are_not_decided(tmp_path: Path) -> None:
    rows = [f"12.{n + 100};{n},5;{n}.5" for n in range(30)]
    (tmp_path / "rows.csv").write_text("\n".join(["a;b;c", *rows]), encoding="utf-8")
    options = guessed_options(tmp_path / "rows.csv")
    assert "a" not in (options.clean or {})
    assert any("precedes three digits" in guess for guess in options.guesses)


def test_sum_rows_of_a_workbook_are_said_and_left_out_of_the_draft(run: Runner, tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(["Region", "Fälle", "Alter"])
    for number in range(40):
        book.active.append([f"R{number % 4}", number, 20 + number])
    book.active.append(["Summe", 780, None])
    book.save(tmp_path / "cases.xlsx")
    outcome = run("profile cases.xlsx --write policy.yaml --json").json
    assert outcome["totals"] == ["Summe"]
    assert load_policy(tmp_path / "policy.yaml").options.totals == ("Summe",)
    assert run("profile cases.xlsx --totals Summe --json").json["rows"] == 40


def test_the_label_of_a_sum_in_the_first_column_is_no_value_of_it(run: Runner, tmp_path: Path) -> None:
    rows = [f"{1950 + n % 40};{n}" for n in range(80)]
    (tmp_path / "rows.csv").write_text("\n".join(["Fødselsår;Antal", *rows, "I alt;3160"]), encoding="utf-8")
    outcome = run("profile rows.csv --write policy.yaml --json").json
    year = outcome["columns"][0]
    assert (year["type"], year["low"], year["high"], year["nearly"]) == ("integer", "1950", "1989", None)
    assert outcome["totals"] == ["I alt"]


def test_rows_after_a_sum_are_the_same_rows_and_lines(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("place,n\na,1\nTotal,1\nb,2\n Total ,2\nc,x\n", encoding="utf-8")
    source = open_source(tmp_path / "rows.csv", SourceOptions(totals=("Total",)))
    assert [row["place"] for batch in source.batches(["place"]) for row in batch.to_pylist()] == ["a", "b", "c"]
    assert [row["n"] for batch in source.batches(["n"]) for row in batch.to_pylist()] == ["1", "2", "x"]
    assert sum(batch.num_rows for batch in source.batches([])) == 3
    assert isinstance(source.reader, Delimited)
    assert source.reader.lines([0, 1, 2]) == (2, 4, 6)


def test_totals_of_a_source_without_lines_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="totals means nothing"):
        open_source(pa.table({"a": ["Total"]}), SourceOptions(totals=("Total",)))


def test_mixed_encodings_are_mended_on_request() -> None:
    column = profile(open_source(pa.table({"soort": ["privé"] * 20 + ["privÃ©"] * 3 + ["publiek"]}))).columns[0]
    assert column.clean is not None
    assert (column.clean.cleaning.mend, column.clean.rows) == ("cp1252", 3)
    assert dict(column.cleaned.facts.values or ()) == {"privé": 23, "publiek": 1}
    assert dict(column.facts.values or ())["privÃ©"] == 3


@pytest.mark.parametrize(
    "text", ["tel. 912 345 678", "voir Mme Marie Dupont demain", "+49 30 901820", "06 12 34 56 78", "ring 20 12 34 56"]
)
def test_free_text_with_phones_or_names_is_said_by_check(text: str, run: Runner, tmp_path: Path) -> None:
    rows = [f"{n % 5},{'ok' if n % 9 else text}" for n in range(60)]
    (tmp_path / "rows.csv").write_text("\n".join(["group,note", *rows]), encoding="utf-8")
    outcome = run("check rows.csv")
    assert outcome.code == 1
    assert "note" in outcome.out
    assert any(word in outcome.out for word in ("phone", "names people"))
