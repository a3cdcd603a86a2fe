"""The same rows in any spelling are the same rows, on every engine and to every verb."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from openpyxl import Workbook

from incrowd.core.cells import Cells
from incrowd.core.table import Engine
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.sql.duckdb import warehouse
from incrowd.engines.sql.engine import StoredTable
from incrowd.errors import SourceInvalid, SourceMisspelled, SourceUnreadable
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.query.service import open_desk

ROWS = [(f"0{n % 7}1", 20 + n % 60, (n % 9) * 1234.5, dt.date(2024, 1 + n % 12, 1 + n % 28)) for n in range(300)]
COLUMNS = {
    "zip": {},
    "age": {"type": "integer", "bounds": [0, 99], "hierarchy": {"intervals": [10]}},
    "pay": {"type": "decimal", "bounds": [0, 20000], "hierarchy": {"intervals": [1000]}},
    "day": {"type": "date", "bounds": ["2024-01-01", "2024-12-31"], "hierarchy": {"dates": ["month"]}},
}
GERMAN = {
    "encoding": "cp1252",
    "decimal": ",",
    "thousands": ".",
    "dates": "%d.%m.%Y",
    "nulls": ["", "k.A."],
    "header_row": 2,
}


def policy(folder: Path, path: Path, **keys: Any) -> Policy:
    return load_policy(
        {
            "incrowd": 1,
            "dataset": {"name": path.stem},
            "source": {"path": str(path), **keys},
            "columns": COLUMNS,
            "queries": {"table": "people"},
            "budget": {"epsilon": 1},
            "ledger": f"sqlite:///{folder}/ledger.sqlite",
        }
    )


def plain(folder: Path) -> Path:
    lines = [f"{code},{'' if age == 21 else age},{pay},{day}" for code, age, pay, day in ROWS]
    path = folder / "plain.csv"
    path.write_text("\n".join(["zip,age,pay,day", *lines]), encoding="utf-8")
    return path


def german_cells(pay: float, day: dt.date) -> tuple[str, str]:
    return f"{pay:,.2f}".translate(str.maketrans(",.", ".,")), day.strftime("%d.%m.%Y")


def german(folder: Path, encoding: str = "cp1252") -> Path:
    lines = [
        ";".join((code, "k.A." if age == 21 else f"{age}", *german_cells(pay, day))) for code, age, pay, day in ROWS
    ]
    path = folder / "german.csv"
    path.write_text("\r\n".join(["Überblick; für alle", "zip;age;pay;day", *lines]), encoding=encoding)
    return path


def sheet(folder: Path) -> Path:
    workbook = Workbook()
    workbook.active.append(["Überblick"])
    data = workbook.create_sheet("Daten")
    data.append(["Stand: 2024"])
    data.append(["zip", "age", "pay", "day"])
    for place, (code, age, pay, day) in enumerate(ROWS):
        spelled: Sequence[object] = german_cells(pay, day) if place % 2 else (pay, day)
        data.append([code, "k.A." if age == 21 else age, *spelled])
    workbook.save(folder / "sheet.xlsx")
    return folder / "sheet.xlsx"


TOTALS = (
    'SELECT COUNT(*) AS "n", COUNT("people"."age") AS "ages", SUM("people"."age") AS "age", '
    'COUNT(DISTINCT "people"."pay") AS "pays", MAX("people"."pay") AS "pay", '
    'CAST(MIN("people"."day") AS TEXT) AS "first", MAX("people"."zip") AS "zip" '
    'FROM "people"'
)


def warehouse_of(engine: Engine) -> Any:
    if isinstance(engine, LocalEngine):
        return warehouse
    from incrowd.engines.sql.spark import spark_warehouse

    return partial(spark_warehouse, engine.session)  # type: ignore[attr-defined]  # Spark has one


def answers(engine: Engine, read: Policy) -> tuple[object, object, object]:
    rows = engine.open(read.source, read.options)
    counts = engine.count(rows, Cells.of(read.schema, {"age": 1, "pay": 1, "day": 1})).to_table()
    query = sqlglot.parse_one(TOTALS)
    assert isinstance(query, sqlglot.exp.Query)
    with warehouse_of(engine)({"people": StoredTable(rows, read.schema)}, None) as asked:
        asked.load([query])
        typed = asked.collect(query).to_pylist()
    marks = engine.marks(rows, read.schema, bytes(32))
    return sorted(map(str, counts.to_pylist())), typed, marks.content


def test_a_file_in_german_is_the_same_rows(tmp_path: Path) -> None:
    expected = answers(LocalEngine(), policy(tmp_path, plain(tmp_path)))
    assert answers(LocalEngine(), policy(tmp_path, german(tmp_path), **GERMAN)) == expected
    wide = GERMAN | {"encoding": None}
    assert answers(LocalEngine(), policy(tmp_path, german(tmp_path, "utf-16"), **wide)) == expected


def test_a_sheet_in_german_is_the_same_rows(tmp_path: Path) -> None:
    keys = {name: value for name, value in GERMAN.items() if name != "encoding"}
    expected = answers(LocalEngine(), policy(tmp_path, plain(tmp_path)))
    for name in ("Daten", 2):
        assert answers(LocalEngine(), policy(tmp_path, sheet(tmp_path), sheet=name, **keys)) == expected


def test_a_file_in_german_is_the_same_rows_on_spark(spark_engine: Engine, tmp_path: Path) -> None:
    expected = answers(LocalEngine(), policy(tmp_path, plain(tmp_path)))
    assert answers(spark_engine, policy(tmp_path, german(tmp_path), **GERMAN)) == expected
    with pytest.raises(SourceMisspelled) as caught:
        answers(spark_engine, policy(tmp_path, german(tmp_path), encoding="cp1252", header_row=2, nulls=["", "k.A."]))
    with pytest.raises(SourceMisspelled) as here:
        answers(LocalEngine(), policy(tmp_path, german(tmp_path), encoding="cp1252", header_row=2, nulls=["", "k.A."]))
    assert str(caught.value) == str(here.value)


def test_what_is_not_declared_is_refused_and_the_keys_are_named(tmp_path: Path) -> None:
    path = german(tmp_path)
    with pytest.raises(SourceUnreadable, match=r"not valid utf-8.*encoding: cp1252"):
        answers(LocalEngine(), policy(tmp_path, path))
    with pytest.raises(SourceUnreadable, match="the columns are named in line 2, not in line 1: write header_row: 2"):
        answers(LocalEngine(), policy(tmp_path, path, encoding="cp1252"))
    with pytest.raises(SourceInvalid) as caught:
        answers(LocalEngine(), policy(tmp_path, path, encoding="cp1252", header_row=2))
    assert str(caught.value).splitlines() == [
        "605 problems in the source; nothing was released and nothing was charged.",
        (
            "  column age: 5 cells are not whole numbers, first in lines 4, 64, 124; expected such as 42; perhaps the "
            "source needs nulls:, with the texts of a missing value"
        ),
        (
            "  column pay: 300 cells are not numbers, first in lines 3, 4, 5; expected such as 42.5; perhaps the "
            'source needs decimal: ",", thousands: "."'
        ),
        (
            "  column day: 300 cells are not dates, first in lines 3, 4, 5; expected such as 2024-12-31; perhaps the "
            'source needs dates: "%d.%m.%Y"'
        ),
    ]


def test_questions_are_refused_rather_than_answered_from_nothing(tmp_path: Path) -> None:
    path = german(tmp_path)
    unread = policy(tmp_path, path, encoding="cp1252", header_row=2, nulls=["", "k.A."])
    with pytest.raises(SourceMisspelled, match="decimal"), open_desk([unread]):
        pass
    odd = policy(tmp_path, path, **(GERMAN | {"nulls": [""]}))  # k.A. is no number in any spelling: it is missing
    with open_desk([odd]) as desk:
        assert desk.catalog is not None


def test_no_row_decides_how_a_declared_file_is_read(tmp_path: Path) -> None:
    """Rows full of commas outvote the header where nothing is declared, and have no vote where something is."""
    path = tmp_path / "odd.csv"
    path.write_text("age;note,more\n" + "41;x,y\n" * 3 + "1,2\n" * 0, encoding="utf-8")
    text = {"incrowd": 1, "dataset": {"name": "odd"}, "columns": {"age": {"type": "integer"}}, "queries": {}}
    declared = load_policy(text | {"source": str(path)}).options
    assert LocalEngine().open(path, declared).names == ("age", "note,more")
    path.write_text("age;note\n" + "1,2,3\n" * 50, encoding="utf-8")
    assert LocalEngine().open(path, declared).names == ("age", "note")
    bare = load_policy(text | {"source": {"path": str(path), "header": False, "names": ["age", "note"]}})
    with pytest.raises(Exception, match="rows would decide what the delimiter is"):
        LocalEngine().open(path, bare.options)
