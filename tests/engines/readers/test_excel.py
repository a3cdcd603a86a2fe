"""Excel workbooks: one sheet, every cell as a person would have typed it."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from openpyxl import Workbook, load_workbook

from incrowd.core.table import SourceOptions
from incrowd.engines.readers.reader import LinedReader
from incrowd.engines.readers.sources import open_source
from incrowd.errors import SourceUnreadable

Cells = list[list[object]]


def book(path: Path, **sheets: Cells) -> Path:
    workbook = Workbook()
    workbook.remove(workbook.active)
    for title, rows in sheets.items():
        sheet = workbook.create_sheet(title)
        for row in rows:
            sheet.append(row)
    workbook.save(path)
    return path


def test_cells_are_read_as_the_text_a_person_would_have_typed(tmp_path: Path) -> None:
    morning, midnight = dt.datetime.fromisoformat("2024-02-29T07:30"), dt.datetime.fromisoformat("2024-03-01")
    rows: Cells = [
        ["zip", "age", "share", "born", "seen", "ok", "empty"],
        ["01234", 41, 0.5, dt.date(2024, 2, 29), morning, True, None],
        ["NO", 7.0, 1.0, None, midnight, False, ""],
    ]
    source = open_source(book(tmp_path / "t.xlsx", people=rows))
    (batch,) = source.batches(source.names)
    assert [tuple(row.values()) for row in batch.to_pylist()] == [
        ("01234", "41", "0.5", "2024-02-29", "2024-02-29T07:30:00", "true", None),
        ("NO", "7", "1", None, "2024-03-01", "false", None),
    ]


def test_a_number_shown_with_leading_zeros_keeps_them(tmp_path: Path) -> None:
    workbook = Workbook()
    sheet = workbook.active
    sheet.append(["zip"])
    sheet.append([2134])
    sheet["A2"].number_format = "00000"
    workbook.save(tmp_path / "t.xlsx")
    (batch,) = open_source(tmp_path / "t.xlsx").batches(["zip"])
    assert batch.column(0).to_pylist() == ["02134"]


def test_a_sheet_is_named_in_the_address_or_by_option_or_the_first_is_taken(tmp_path: Path) -> None:
    path = book(tmp_path / "t.xlsx", one=[["a"], ["1"]], two=[["b"], ["2"]])
    assert open_source(path).names == ("a",)
    assert open_source(path).notes == ("the first of 2 sheets is read",)
    assert open_source(path, SourceOptions(sheet="two")).names == ("b",)
    source = open_source(f"{path}::two")
    assert source.names == ("b",)
    assert source.address == f"{path.resolve().as_posix()}::two"


def test_a_sheet_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    path = book(tmp_path / "t.xlsx", one=[["a"]], two=[["b"]])
    with pytest.raises(SourceUnreadable, match=r"no sheet 'three'. It has: one, two\."):
        open_source(f"{path}::three")


def test_empty_rows_are_no_rows_and_lines_count_them(tmp_path: Path) -> None:
    path = book(tmp_path / "t.xlsx", s=[[None], ["a", "b"], ["1", "2"], [], [None, None], ["3", None]])
    source = open_source(path)
    assert [row for batch in source.batches(["b", "a"]) for row in batch.to_pylist()] == [
        {"b": "2", "a": "1"},
        {"b": None, "a": "3"},
    ]
    assert isinstance(source.reader, LinedReader)
    assert source.reader.lines([0, 1]) == (3, 6)
    assert [batch.num_rows for batch in source.batches([])] == [2]


def test_missing_values_are_spelled_as_the_option_says(tmp_path: Path) -> None:
    path = book(tmp_path / "t.xlsx", s=[["a"], ["#N/A"], ["x"]])
    (batch,) = open_source(path, SourceOptions(nulls=("#N/A",))).batches(["a"])
    assert batch.column(0).to_pylist() == [None, "x"]


def test_a_value_beside_the_columns_is_refused_by_line(tmp_path: Path) -> None:
    path = book(tmp_path / "t.xlsx", s=[["a"], ["1"], ["2", "secret"]])
    with pytest.raises(SourceUnreadable, match="line 3") as caught:
        list(open_source(path).batches(["a"]))
    assert "secret" not in str(caught.value)


def test_a_sheet_without_header_is_called_by_place(tmp_path: Path) -> None:
    source = open_source(book(tmp_path / "t.xlsx", s=[["1", "2"]]), SourceOptions(header=False))
    assert source.names == ("column1", "column2")
    assert sum(batch.num_rows for batch in source.batches(["column1"])) == 1


def test_an_empty_sheet_and_a_broken_workbook_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreadable, match="is empty"):
        open_source(book(tmp_path / "t.xlsx", s=[]))
    broken = tmp_path / "b.xlsx"
    broken.write_text("a,b\n")
    with pytest.raises(SourceUnreadable, match="not an Excel workbook"):
        open_source(broken)


def test_formulas_without_a_result_and_merged_cells_are_told_with_their_places(tmp_path: Path) -> None:
    path = book(tmp_path / "t.xlsx", people=[["id", "age"], [1, "=20+1"], [2, "=20+2"], [3, 7], [4, None]])
    workbook = load_workbook(path)
    workbook["people"].merge_cells("B4:B5")
    workbook.save(path)
    source = open_source(path)
    assert [row["age"] for batch in source.batches(["age"]) for row in batch.to_pylist()] == [None, None, "7", None]
    formulas, merged = source.notes
    assert "formulas without a stored result are read as missing: B2, B3." in formulas
    assert merged.endswith("the others are missing: B4:B5")


def test_many_places_are_counted_and_a_plain_sheet_gets_no_note(tmp_path: Path) -> None:
    many: Cells = [["age"]]
    many += [[f"={number}"] for number in range(25)]
    assert (
        "A2, A3, A4, A5, A6, A7, A8, A9, A10, A11 and 15 more"
        in open_source(book(tmp_path / "m.xlsx", s=many)).notes[0]
    )
    assert open_source(book(tmp_path / "p.xlsx", s=[["age"], [41]])).notes == ()
