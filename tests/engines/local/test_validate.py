"""The pass before the charge: what is wrong is named by line and column, never by value."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook

from incrowd.core.domain import Type
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.unit import Kind, Unit
from incrowd.engines.local.validate import ColumnCheck, Findings, checks_of, validate
from incrowd.engines.readers.sources import open_source
from incrowd.errors import SourceChanged, SourceInvalid, SourceUnreadable, UnknownColumn


def no_digits(array: pa.Array) -> pa.Array:
    return pc.invert(pc.fill_null(pc.match_substring_regex(array.cast(pa.string()), "^[0-9]+$"), fill_value=True))


INTEGER = ColumnCheck(no_digits, "integer")


def checked(tmp_path: Path, content: str, *columns: str) -> Findings:
    path = tmp_path / "data.csv"
    path.write_text(content)
    return validate(open_source(path), dict.fromkeys(columns, INTEGER))


def test_a_good_file_passes_and_its_rows_are_counted(tmp_path: Path) -> None:
    findings = checked(tmp_path, "age,zip\n41,01234\n,x\n7,y\n", "age")
    assert findings == Findings(3)
    assert findings.ok
    findings.raise_if_any()


def test_bad_cells_are_named_by_column_and_line(tmp_path: Path) -> None:
    findings = checked(tmp_path, 'a,b,note\n1,x,"two\nlines"\n\ny,z,\n3,4,\n', "b", "a")
    assert [str(problem) for problem in findings.problems] == [
        "column b: 2 cells are not whole numbers, in lines 2, 5; expected such as 42",
        "column a: 1 cell is not a whole number, in line 5; expected such as 42",
    ]
    assert (findings.rows, findings.total) == (3, 3)


def test_a_thousand_equal_problems_are_one_with_its_first_places(tmp_path: Path) -> None:
    findings = checked(tmp_path, "a\n1\n" + "x\n" * 1204, "a")
    assert [str(problem) for problem in findings.problems] == [
        "column a: 1,204 cells are not whole numbers, first in lines 3, 4, 5; expected such as 42"
    ]
    assert findings.total == 1204


def test_the_message_shows_lines_and_never_values(tmp_path: Path) -> None:
    findings = checked(tmp_path, "age\n1\nsecret\n" + "x\n" * 5, "age")
    with pytest.raises(SourceInvalid) as caught:
        findings.raise_if_any()
    assert str(caught.value).splitlines() == [
        "6 problems in the source; nothing was released and nothing was charged.",
        "  column age: 6 cells are not whole numbers, first in lines 3, 4, 5; expected such as 42",
    ]


def test_every_ragged_line_is_named_and_cells_are_left_for_later(tmp_path: Path) -> None:
    findings = checked(tmp_path, "a,b\nx,1\nsecret\n1,2,3\n4,5\n", "a")
    assert [str(problem) for problem in findings.problems] == [
        "line 3: 1 cell where the header has 2",
        "line 4: 3 cells where the header has 2",
    ]
    assert findings.rows is None


def test_a_quote_left_open_is_named_by_the_line_it_opens_on(tmp_path: Path) -> None:
    findings = checked(tmp_path, 'a,b\n1,2\n3,"x\n5,6\n', "a")
    assert [str(problem) for problem in findings.problems] == ["line 3: a quote is opened here and never closed"]


def test_the_structure_is_checked_even_if_no_column_is(tmp_path: Path) -> None:
    assert checked(tmp_path, "a,b\n1\n").total == 1
    assert checked(tmp_path, "a,b\n1,2\n") == Findings(1)


def test_rows_of_a_frame_are_named_by_number() -> None:
    findings = validate(open_source(pa.table({"age": ["1", "x"]})), {"age": INTEGER})
    assert [(problem.column, problem.unit, problem.places) for problem in findings.problems] == [("age", "row", (2,))]


def test_rows_of_a_sheet_are_named_as_the_sheet_numbers_them(tmp_path: Path) -> None:
    workbook = Workbook()
    for row in (["age"], ["1"], [], ["x"]):
        workbook.active.append(row)
    workbook.save(tmp_path / "t.xlsx")
    findings = validate(open_source(tmp_path / "t.xlsx"), {"age": INTEGER})
    assert [(problem.unit, problem.places) for problem in findings.problems] == [("line", (4,))]


def test_values_beside_the_columns_of_a_sheet_are_named(tmp_path: Path) -> None:
    workbook = Workbook()
    for row in (["age"], ["1", "x"], ["2"], ["3", None, "y"]):
        workbook.active.append(row)
    workbook.save(tmp_path / "t.xlsx")
    assert [problem.places for problem in validate(open_source(tmp_path / "t.xlsx"), {}).problems] == [(2, 4)]


def test_masks_of_numpy_are_understood() -> None:
    check = ColumnCheck(lambda array: np.array([False, True]))
    findings = validate(open_source(pa.table({"a": [1, 2]})), {"a": check})
    assert [str(problem) for problem in findings.problems] == [
        "column a: 1 cell cannot be read as its declared type, in row 2"
    ]


def test_progress_tells_rows_done_and_expected(tmp_path: Path) -> None:
    reports: list[tuple[int, int | None]] = []
    validate(open_source(pa.table({"a": ["1"] * 300_000})), {"a": INTEGER}, progress=lambda *now: reports.append(now))
    assert reports[-1] == (300_000, 300_000)
    assert [done for done, _ in reports] == sorted({done for done, _ in reports})
    path = tmp_path / "data.csv"
    path.write_text("a\n" + "1\n" * 1000)
    validate(open_source(path), {"a": INTEGER}, progress=lambda *now: reports.append(now))
    done, expected = reports[-1]
    assert done == 1000
    assert expected is not None
    assert 1000 <= expected < 1200


def test_a_broken_file_without_lines_is_refused_as_such(tmp_path: Path) -> None:
    source = open_source(pa.table({"a": [[1]]}))
    with pytest.raises(SourceUnreadable, match="column a is of type"):
        validate(source, {"a": INTEGER})


def test_a_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(UnknownColumn):
        validate(open_source(pa.table({"a": ["1"]})), {"b": INTEGER})


def test_a_file_that_changed_is_not_searched_for_faults(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,b\n1,2\n")
    source = open_source(path)
    path.write_text("a,b\n1,2,3\n")
    with pytest.raises(SourceChanged):
        validate(source, {})


@given(cells=st.lists(st.sampled_from(["1", "x", None]), max_size=30))
def test_the_pass_finds_exactly_the_bad_cells(cells: list[str | None]) -> None:
    bad = [place for place, cell in enumerate(cells, start=1) if cell == "x"]
    findings = validate(open_source(pa.table({"a": pa.array(cells, pa.string())})), {"a": INTEGER})
    assert findings.total == len(bad)
    assert [problem.places for problem in findings.problems] == ([tuple(bad[:3])] if bad else [])


def test_a_schema_is_checked_type_by_type_and_text_for_its_encoding_only(tmp_path: Path) -> None:
    columns = (
        Column("id", Role.IDENTIFIER),
        Column("name", Role.IDENTIFIER),
        Column("age", Role.QUASI, Type.INTEGER),
        Column("born", Role.QUASI, Type.DATE),
        Column("zip", Role.QUASI),
    )
    schema = Schema(columns, Unit(Kind.PERSON, column="id"))
    assert list(checks_of(schema)) == ["age", "born", "zip", "id"]
    path = tmp_path / "data.csv"
    path.write_text("id,name,age,born,zip\n1,A,41,2024-02-30,01234\n2,B,4l,1999-12-31,NO\n,C,,,\n")
    assert [str(problem) for problem in validate(open_source(path), checks_of(schema)).problems] == [
        "column age: 1 cell is not a whole number, in line 3; expected such as 42",
        "column born: 1 cell is not a date, in line 2; expected such as 2024-12-31",
    ]
    path.write_bytes(b"id,name,age,born,zip\n" + b"1,A,41,2024-02-29,x\n" * 50_000 + b"1,A,41,2024-02-29,\xe9\n")
    findings = validate(open_source(path), checks_of(schema))
    assert [problem.places for problem in findings.problems] == [(50_002,)]
