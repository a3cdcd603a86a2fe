"""What is guessed of a file, and what is left to be declared."""

from __future__ import annotations

import codecs
import datetime as dt
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openpyxl import Workbook

from incrowd.core.domain import Type
from incrowd.core.table import SourceOptions
from incrowd.engines.readers.guess import advice, guessed_options, policy_keys
from incrowd.engines.readers.sources import open_source
from incrowd.engines.readers.spelling import Spelling
from incrowd.errors import IncrowdError, InvalidParameter

GERMAN = "Straße;Größe;Lohn;geboren;Alter\n" + "".join(
    f"Gärtnerweg;1,{50 + n};{n + 1}.{n:03},50;{n + 1:02}.12.1980;{'k.A.' if n == 3 else n + 20}\n" for n in range(20)
)


def guessed(folder: Path, content: str | bytes, **declared: object) -> SourceOptions:
    path = folder / "data.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return guessed_options(path, SourceOptions(**declared))  # type: ignore[arg-type]  # the tests name options freely


def test_a_german_file_is_recognized_and_said(tmp_path: Path) -> None:
    result = guessed(tmp_path, GERMAN.encode("cp1252"))
    assert policy_keys(result) == {
        "delimiter": ";",
        "encoding": "cp1252",
        "nulls": ["", "k.A."],
        "decimal": ",",
        "thousands": ".",
        "dates": ["%d.%m.%Y"],
    }
    (message,) = result.guesses
    assert message == (
        "read as cp1252, ';' between columns, decimal comma, a point between thousands, dates as %d.%m.%Y, "
        "'k.A.' for missing values"
    )
    source = open_source(tmp_path / "data.csv", result)
    assert next(source.batches(["Lohn", "geboren", "Alter"])).slice(3, 1).to_pylist() == [
        {"Lohn": "4003.50", "geboren": "1980-12-04", "Alter": None}
    ]
    assert result.guesses[0] in source.notes


def test_what_is_told_is_not_guessed(tmp_path: Path) -> None:
    result = guessed(
        tmp_path, GERMAN.encode("latin-1"), encoding="latin-1", decimal=",", thousands=".", nulls=("", "x")
    )
    assert result.encoding == "latin-1"
    assert result.nulls == ("", "x")
    assert result.guesses == ("read as ';' between columns, dates as %d.%m.%Y",)


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        ("name\nZoë\n".encode(), None),
        (codecs.BOM_UTF16_LE + "name,age\nZoë,41\n".encode("utf-16-le"), None),
        ("name,age\nZoë,41\n".encode("utf-16-be"), "utf-16-be"),
        ("name,age\nMüller,41\nGroß,42\n".encode("latin-1"), "cp1252"),
        ("имя,город\nИван,Москва\nМария,Санкт-Петербург\nАлексей,Новосибирск\n".encode("cp1251"), "cp1251"),
        (b"a\n" + b"1\n" * 3_000_000 + "ä\n".encode("cp1252"), "cp1252"),
    ],
    ids=["utf-8", "utf-16 with a mark", "utf-16 without", "latin-1", "cyrillic", "far from the start"],
)
def test_encodings(tmp_path: Path, content: bytes, encoding: str | None) -> None:
    assert guessed(tmp_path, content).encoding == encoding


@pytest.mark.parametrize(
    ("cells", "keys"),
    [
        (["1,5", "2,25"], {"decimal": ","}),
        (["1.234,5", "2"], {"decimal": ",", "thousands": "."}),
        (["1 234,5", "0,5"], {"decimal": ",", "thousands": " "}),
        (["1'234.5", "2"], {"decimal": ".", "thousands": "'"}),
        (["1,234.5", "2"], {"decimal": ".", "thousands": ","}),
        (["1.5", "2"], {}),
        (["1", "2"], {}),
        (["31.12.2024", "1.1.2025"], {"dates": ["%d.%m.%Y"]}),
        (["12/31/2024"], {"dates": ["%m/%d/%Y"]}),
        (["31/12/2024 10:00"], {"dates": ["%d/%m/%Y %H:%M"]}),
        (["1", "2", "n/a"], {"nulls": ["", "n/a"]}),
        (["2024-12-31", "2025-01-01", "-"], {"nulls": ["", "-"]}),
        (["x", "y", "-"], {}),
        (["yes", "NA"], {}),
    ],
)
def test_cells(tmp_path: Path, cells: list[str], keys: dict[str, object]) -> None:
    result = guessed(tmp_path, "a|b\n" + "".join(f"{cell}|x\n" for cell in cells), delimiter="|")
    assert policy_keys(result) == {"delimiter": "|", **keys}


@pytest.mark.parametrize(
    ("cells", "doubt"),
    [
        (["1,234", "5,678"], "a separator precedes three digits and is not read"),
        (["1.234", "5.678"], "a separator precedes three digits and is read as the decimal mark"),
        (["01/02/2024", "03/04/2024"], "day and month are ambiguous: declare dates"),
    ],
)
def test_what_is_ambiguous_is_said_and_left_open(tmp_path: Path, cells: list[str], doubt: str) -> None:
    result = guessed(tmp_path, "a|b\n" + "".join(f"{cell}|x\n" for cell in cells), delimiter="|")
    assert policy_keys(result) == {"delimiter": "|"}
    assert len(result.guesses) == 1
    assert doubt in result.guesses[0]


def test_another_column_can_decide_what_one_leaves_open(tmp_path: Path) -> None:
    result = guessed(tmp_path, "a;b;c;d\n1,234;0,5;01/02/2024;31/12/2024\n")
    assert policy_keys(result) == {"delimiter": ";", "decimal": ",", "dates": ["%d/%m/%Y"]}
    apart = guessed(tmp_path, "a;b\n1,5;1.5\n")
    assert (apart.decimal, {name: rules.decimal for name, rules in (apart.clean or {}).items()}) == (None, {"a": ","})


def test_a_mark_that_is_a_value_elsewhere_is_no_missing_value(tmp_path: Path) -> None:
    result = guessed(tmp_path, "age,country\n1,DE\n2,NA\nNA,DE\n")
    assert result.nulls == ("",)
    assert result.guesses == ("read as age with 'NA' for missing values",)
    assert {name: rules.missing for name, rules in (result.clean or {}).items()} == {"age": ("NA",)}


def test_titles_above_the_header_are_recognized(tmp_path: Path) -> None:
    result = guessed(tmp_path, "Discharges, 2024\n\nage;zip\n41;01234\n42;01235\n")
    assert policy_keys(result) == {"delimiter": ";", "header_row": 3}
    source = open_source(tmp_path / "data.csv", result)
    assert next(source.batches(["zip"])).to_pylist() == [{"zip": "01234"}, {"zip": "01235"}]
    assert source.reader.lines([1]) == (5,)  # type: ignore[attr-defined]  # a text file has lines


def book(path: Path) -> Path:
    workbook = Workbook()
    workbook.active.title = "Info"
    workbook.active.append(["Member list"])
    sheet = workbook.create_sheet("Data")
    for row in (["Members of 2024"], [], ["born", "fee", "height"]):
        sheet.append(row)
    for n in range(1, 6):
        sheet.append([dt.date(1980, 1, n) if n % 2 else f"{n}.12.1980", f"{n},50", 1.5 + n])
    sheet.append([None, "k.A.", None])
    workbook.save(path)
    return path


def test_a_sheet_with_a_title_after_a_cover_is_recognized(tmp_path: Path) -> None:
    path = book(tmp_path / "members.xlsx")
    result = guessed_options(path)
    assert policy_keys(result) == {
        "header_row": 3,
        "nulls": ["", "k.A."],
        "decimal": ",",
        "dates": ["%d.%m.%Y"],
        "sheet": "Data",
    }
    rows = next(open_source(path, result).batches(["born", "fee", "height"])).to_pylist()
    assert rows[0] == {"born": "1980-01-01", "fee": "1.50", "height": "2.5"}
    assert rows[1] == {"born": "1980-12-02", "fee": "2.50", "height": "3.5"}
    assert rows[5] == {"born": None, "fee": None, "height": None}


def test_a_number_that_a_spreadsheet_stored_is_not_spelled(tmp_path: Path) -> None:
    path = book(tmp_path / "members.xlsx")
    types = dict.fromkeys(("fee", "height"), Type.DECIMAL)
    options = SourceOptions(sheet="2", header_row=3, decimal=",", types=types)
    assert next(open_source(path, options).batches(["height"])).to_pylist()[0] == {"height": "2.5"}


def test_other_sources_are_left_as_they_are(tmp_path: Path) -> None:
    assert guessed_options(pa.table({"a": [1]})) == SourceOptions()
    assert guessed_options(tmp_path / "nothing.csv") == SourceOptions()
    assert guessed_options("postgresql://me@host/db::people") == SourceOptions()


@pytest.mark.parametrize(
    ("texts", "kind", "declared"),
    [
        (["1,5"], Type.DECIMAL, 'decimal: ","'),
        (["1,234"], Type.INTEGER, 'decimal: ".", thousands: ","'),
        (["1,234"], Type.DECIMAL, 'decimal: "," or decimal: ".", thousands: ","'),
        (["?1.000"], Type.INTEGER, 'decimal: "." or decimal: ",", thousands: "."'),
        (["01/02/2024"], Type.DATE, 'dates: "%d/%m/%Y" or dates: "%m/%d/%Y"'),
        (["k.A."], Type.INTEGER, "nulls:, with the texts of a missing value"),
        (["forty"], Type.INTEGER, None),
        (["forty", "1,5"], Type.DECIMAL, None),
    ],
)
def test_advice_names_the_key_and_never_the_value(texts: list[str], kind: Type, declared: str | None) -> None:
    assert advice(pa.array(texts), kind, Spelling()) == declared


@given(content=st.binary(max_size=60) | st.text(";,.|\t\n\"'0123456789abä€-/ ", max_size=60).map(str.encode))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_file_holds_is_read_or_refused_in_our_words(tmp_path: Path, content: bytes) -> None:
    options = guessed(tmp_path, content)
    with suppress(IncrowdError):
        list(open_source(tmp_path / "data.csv", options).batches([]))


@pytest.mark.parametrize("name", ["data.csv.gz", "data.xlsx"])
def test_a_file_that_cannot_be_looked_at_is_left_to_its_reader(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\x1f\x8b broken")
    with pytest.raises(IncrowdError):
        list(open_source(tmp_path / name, guessed_options(tmp_path / name)).batches([]))
    (tmp_path / "fine.csv").write_text("a,b\n1,2\n")
    declared = guessed_options(tmp_path / "fine.csv", SourceOptions(encoding="klingon"))
    with pytest.raises(InvalidParameter, match="encoding 'klingon' is not known"):
        open_source(tmp_path / "fine.csv", declared)
