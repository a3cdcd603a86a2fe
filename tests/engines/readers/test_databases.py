"""SQLite and DuckDB files: tables in a stable order, views and queries run once."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from incrowd.core.table import SourceOptions
from incrowd.engines.readers import databases
from incrowd.engines.readers.databases import SpooledRows
from incrowd.engines.readers.sources import Source, open_source
from incrowd.errors import InvalidParameter, SourceUnreadable

MAKE = """
CREATE TABLE people (id INTEGER PRIMARY KEY, zip TEXT, age INTEGER, share REAL);
INSERT INTO people VALUES (3, '01234', 41, 0.5), (1, 'NO', NULL, 2.0), (2, 'é', 7, NULL);
CREATE TABLE "odd ""name" (x TEXT);
CREATE VIEW adults AS SELECT zip, age FROM people WHERE age > 18;
"""


@pytest.fixture(params=["sqlite", "duckdb"])
def base(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"clinic.{request.param}"
    if request.param == "sqlite":
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(MAKE)
            connection.commit()
    else:
        with duckdb.connect(str(path)) as connection:
            connection.execute(MAKE)
    return path


def rows_of(source: Source, *columns: str) -> list[list[object]]:
    return [list(row.values()) for batch in source.batches(columns or source.names) for row in batch.to_pylist()]


def test_a_table_is_named_in_the_address_or_by_option(base: Path) -> None:
    source = open_source(f"{base}::people")
    assert source.names == ("id", "zip", "age", "share")
    assert source.address == f"{base.resolve().as_posix()}::people"
    assert source.settings["table"] == "people"
    assert rows_of(source, "zip") == rows_of(open_source(base, SourceOptions(table="people")), "zip")


def test_an_address_and_an_option_must_not_disagree(base: Path) -> None:
    with pytest.raises(InvalidParameter, match="the option table differ"):
        open_source(f"{base}::people", SourceOptions(table="adults"))


def test_text_keeps_its_zeros_and_missing_is_missing(base: Path) -> None:
    rows = {row[0]: row[1] for row in rows_of(open_source(f"{base}::people"), "zip", "age")}
    assert {str(zip_code) for zip_code in rows} == {"01234", "NO", "é"}
    assert rows["NO"] is None


def test_sqlite_gives_every_value_as_text(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (a)")
        values: list[object] = ["01", 7, 7.0, 0.5, None, b"raw", ""]
        connection.executemany("INSERT INTO t VALUES (?)", [(value,) for value in values])
        connection.commit()
    assert rows_of(open_source(path)) == [["01"], ["7"], ["7"], ["0.5"], [None], ["raw"], [None]]


def test_rows_of_sqlite_keep_their_order_whatever_index_covers_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (a TEXT, b TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(str(9 - i), str(i)) for i in range(10)])
        connection.execute("CREATE INDEX i ON t (a)")
        connection.commit()
        unordered = connection.execute("SELECT a FROM t").fetchall()
    assert [value for (value,) in unordered] == sorted(value for (value,) in unordered)  # the trap
    source = open_source(path)
    assert [row[0] for row in rows_of(source, "a")] == [row[0] for row in rows_of(source, "a", "b")]


@pytest.mark.parametrize(
    "made",
    [
        "CREATE TABLE t (k TEXT PRIMARY KEY, v TEXT) WITHOUT ROWID",
        "CREATE TABLE t (rowid TEXT PRIMARY KEY, v TEXT)",
        'CREATE TABLE t ("RowId" TEXT, v TEXT)',
    ],
)
def test_tables_without_or_with_a_hidden_row_id_are_read_in_a_stable_order(tmp_path: Path, made: str) -> None:
    path = tmp_path / "t.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(made)
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(f"k{9 - i}", f"v{i}") for i in range(10)])
        connection.execute("CREATE INDEX i ON t (v)")
        connection.commit()
    source = open_source(path)
    first, second = source.names
    assert list(zip(rows_of(source, first), rows_of(source, second), strict=True)) == [
        ([a], [b]) for a, b in rows_of(source)
    ]


def test_pieces_make_no_difference(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rows_of(open_source(f"{base}::people"))
    monkeypatch.setattr(databases, "BATCH_ROWS", 2)
    assert rows_of(open_source(f"{base}::people")) == whole


def test_a_view_and_a_query_are_run_once_and_kept(base: Path) -> None:
    view = open_source(f"{base}::adults")
    query = open_source(base, SourceOptions(query="SELECT zip, age FROM people WHERE age > 18;"))
    assert isinstance(view.reader, SpooledRows)
    assert isinstance(query.reader, SpooledRows)
    assert [str(value) for value in rows_of(view)[0]] == [str(value) for value in rows_of(query)[0]] == ["01234", "41"]
    assert view.rows == query.rows == 1
    assert query.settings["query"].startswith("SELECT zip")


def test_a_query_with_chance_in_it_gives_the_same_rows_in_every_pass(base: Path) -> None:
    source = open_source(base, SourceOptions(query="SELECT random() AS r FROM people, people AS b, people AS c"))
    assert rows_of(source) == rows_of(source)
    assert len(rows_of(source)) == 27


def test_kept_rows_have_no_name_at_any_time(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    source = open_source(f"{base}::adults")
    assert isinstance(source.reader, SpooledRows)
    assert rows_of(source) == rows_of(source)
    assert list(scratch.iterdir()) == []


def test_asking_for_no_columns_still_counts_the_rows(base: Path) -> None:
    for address in (f"{base}::people", f"{base}::adults"):
        source = open_source(address)
        batches = list(source.batches([]))
        assert sum(batch.num_rows for batch in batches) == len(rows_of(source))
        assert all(batch.num_columns == 0 for batch in batches)


def test_names_are_quoted(base: Path) -> None:
    assert rows_of(open_source(f'{base}::odd "name')) == []


def test_several_tables_are_listed_and_one_is_taken(base: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="several tables: adults, "):
        open_source(base)
    single = tmp_path / "single.duckdb"
    with duckdb.connect(str(single)) as connection:
        connection.execute("CREATE TABLE visits AS SELECT 1 AS a")
    assert open_source(single).notes == ("the only table is read: visits",)
    assert open_source(single).rows == 1


def test_tables_of_other_schemas_are_named_with_them(tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE SCHEMA raw; CREATE TABLE raw.visits AS SELECT 'x' AS a")
    assert rows_of(open_source(f"{path}::raw.visits")) == [["x"]]


def test_a_misspelled_table_is_recognized(base: Path) -> None:
    with pytest.raises(SourceUnreadable, match=r"no table poeple. Did you mean people\?"):
        open_source(f"{base}::poeple")


def test_table_and_query_exclude_each_other(base: Path) -> None:
    with pytest.raises(InvalidParameter, match="not both"):
        open_source(f"{base}::people", SourceOptions(query="SELECT 1"))


@pytest.mark.parametrize("query", ["SELEC 1", "SELECT nothing FROM people", "DELETE FROM people", "DROP TABLE people"])
def test_a_query_that_does_not_run_or_would_change_something_is_refused(base: Path, query: str) -> None:
    with pytest.raises(SourceUnreadable) as caught:
        open_source(base, SourceOptions(query=query))
    assert caught.value.__context__ is None
    assert len(rows_of(open_source(f"{base}::people"))) == 3


def test_a_query_of_duckdb_sees_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    duckdb.connect(str(path)).close()
    (tmp_path / "other.csv").write_text("a\n1\n")
    with pytest.raises(SourceUnreadable):
        open_source(path, SourceOptions(query=f"SELECT * FROM read_csv('{tmp_path}/other.csv')"))


@pytest.mark.parametrize("ending", ["sqlite", "duckdb"])
def test_a_file_that_is_something_else_is_refused(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"t.{ending}"
    path.write_text("secret, " * 100)
    with pytest.raises(SourceUnreadable) as caught:
        open_source(path)
    assert "secret" not in str(caught.value)


def test_a_database_without_tables_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    duckdb.connect(str(path)).close()
    with pytest.raises(SourceUnreadable, match="has no tables"):
        open_source(path)


@pytest.mark.parametrize("options", [SourceOptions(), SourceOptions(query="SELECT * FROM visits")])
def test_a_sqlite_column_of_mixed_types_is_read_and_bytes_that_are_no_text_are_missing(
    options: SourceOptions, tmp_path: Path
) -> None:
    path = tmp_path / "mixed.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE visits (id INTEGER PRIMARY KEY, mixed)")
        cells = [1, "x", 1.5, b"abc", b"\xff\xfe", None]
        connection.executemany("INSERT INTO visits (mixed) VALUES (?)", [(cell,) for cell in cells])
        connection.execute("INSERT INTO visits (mixed) VALUES (CAST(? AS TEXT))", (b"\xff",))
        connection.commit()
    assert rows_of(open_source(path, options), "mixed") == [["1"], ["x"], ["1.5"], ["abc"], [None], [None], [None]]
