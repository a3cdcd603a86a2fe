"""Files of DuckDB and SQLite: a table, a view or a query, opened for reading only."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from incrowd.engines.columns import quote
from incrowd.engines.readers.reader import BATCH_ROWS, SourceReader, distinct, muffled, spell
from incrowd.engines.readers.selection import RowSelection, pick_table, spool
from incrowd.errors import SourceUnreadable

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class DuckTable:
    """One table of a DuckDB file, in the order its rows were inserted."""

    path: Path
    table: str
    names: tuple[str, ...]
    rows: int | None
    notes: tuple[str, ...]

    @property
    def settings(self) -> Mapping[str, str]:
        """The table."""
        return {"table": self.table}

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the table on a connection of its own."""
        wanted = ", ".join(quote(name) for name in columns) or "NULL AS nothing"
        query = f"SELECT {wanted} FROM {_address(self.table)}"  # noqa: S608 - names are quoted
        return muffled(self._batches(query, columns), _duckdb_errors(), f"{self.path} is a broken DuckDB file.")

    def _batches(self, query: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with closing(_connect_duckdb(self.path)) as base:
            for batch in _reader(base, query):
                yield batch.select(list(columns))


def open_duckdb(path: Path, question: RowSelection) -> SourceReader:
    """Open a table, or run a view or query once and keep its rows."""
    failed, reader = False, None
    try:
        with closing(_connect_duckdb(path)) as base:
            reader = _open_in_duckdb(base, path, question)
    except _duckdb_errors():
        failed = True
    if failed or reader is None:
        raise SourceUnreadable(
            f"{path} is not a DuckDB file this version reads, is open elsewhere, or the query does not run on it."
        )
    return reader


def _open_in_duckdb(base: duckdb.DuckDBPyConnection, path: Path, question: RowSelection) -> SourceReader:
    if question.query is not None:
        return _run_in_duckdb(base, question.query.strip().rstrip(";"), {"query": question.query})
    found = base.execute(
        "SELECT table_schema || '.' || table_name, table_type FROM information_schema.tables "
        "WHERE table_catalog = current_database() ORDER BY ALL"
    )
    kinds = {name.removeprefix("main."): kind for name, kind in found.fetchall()}
    table, notes = pick_table(path, list(kinds), question.table)
    everything = f"SELECT * FROM {_address(table)}"  # noqa: S608 - quoted
    if kinds[table] == "VIEW":
        return _run_in_duckdb(base, everything, {"table": table})
    names = distinct([column[0] for column in base.execute(f"{everything} LIMIT 0").description or ()])
    (rows,) = base.execute(f"SELECT count(*) FROM {_address(table)}").fetchone() or (None,)  # noqa: S608 - quoted
    return DuckTable(path, table, names, rows, notes)


def _run_in_duckdb(base: duckdb.DuckDBPyConnection, query: str, settings: Mapping[str, str]) -> SourceReader:
    answer = _reader(base, f"SELECT * FROM ({query})")  # noqa: S608 - the owner of the file asks what he likes
    distinct(answer.schema.names)
    return spool(iter(answer), answer.schema, settings, "the query was run once and its rows kept")


def _connect_duckdb(path: Path) -> duckdb.DuckDBPyConnection:
    """Connect for reading; a query sees this file and no other, or the commitment to the input would not cover it."""
    import duckdb

    from incrowd.engines.spill import SPILL_PLACE, add_spill_files

    settings: dict[str, str | bool | int | float | list[str]] = {
        "enable_external_access": "false",
        "preserve_insertion_order": "true",
        "temp_directory": SPILL_PLACE,  # by default, rows would go into a folder beside the file
    }
    base = duckdb.connect(str(path), read_only=True, config=settings)
    add_spill_files(base)
    return base


def _reader(base: duckdb.DuckDBPyConnection, query: str) -> pa.RecordBatchReader:
    asked = base.sql(query)
    return (asked.to_arrow_reader if hasattr(asked, "to_arrow_reader") else asked.fetch_arrow_reader)(BATCH_ROWS)


def _address(table: str) -> str:
    return ".".join(quote(part) for part in table.split(".", 1))


def _duckdb_errors() -> tuple[type[Exception], ...]:
    import duckdb
    import pyarrow as pa

    return (duckdb.Error, pa.ArrowException, UnicodeError)


_ROW_IDS = ("rowid", "_rowid_", "oid")


@dataclass(frozen=True)
class SQLiteTable:
    """One table of an SQLite file; every value as text, since SQLite lets each cell have a type of its own.

    Rows come in the order of their key.  Without that order SQLite would follow whatever index covers the columns that
    are asked for, and a row would change its position from one pass to the next.
    """

    path: Path
    table: str
    names: tuple[str, ...]
    order: str
    notes: tuple[str, ...]

    @property
    def rows(self) -> int | None:
        """Unknown before the table has been read: SQLite keeps no count."""
        return None

    @property
    def settings(self) -> Mapping[str, str]:
        """The table."""
        return {"table": self.table}

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the table in the order of its key."""
        wanted = ", ".join(quote(name) for name in columns) or "NULL"
        query = f"SELECT {wanted} FROM {quote(self.table)} ORDER BY {self.order}"  # noqa: S608 - names are quoted
        batches = _answers(self.path, query, tuple(columns))
        return muffled(batches, (sqlite3.Error, UnicodeError), f"{self.path} is a broken SQLite file.")


def open_sqlite(path: Path, question: RowSelection) -> SourceReader:
    """Open a table, or run a view or query once and keep its rows."""
    failed, reader = False, None
    try:
        with closing(_connect_sqlite(path)) as base:
            reader = _open_in_sqlite(base, path, question)
    except (sqlite3.Error, UnicodeError):
        failed = True
    if failed or reader is None:
        raise SourceUnreadable(
            f"{path} is not a readable SQLite file, or the query does not run on it. Try it in the sqlite3 shell."
        )
    return reader


def _open_in_sqlite(base: sqlite3.Connection, path: Path, question: RowSelection) -> SourceReader:
    if question.query is not None:
        return _run_in_sqlite(base, path, question.query.strip().rstrip(";"), {"query": question.query})
    found = base.execute(
        "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite~_%' ESCAPE '~' "
        "ORDER BY name"
    )
    kinds = dict(found.fetchall())
    table, notes = pick_table(path, list(kinds), question.table)
    if kinds[table] == "view":
        return _run_in_sqlite(base, path, f"SELECT * FROM {quote(table)}", {"table": table})  # noqa: S608 - quoted
    everything = f"SELECT * FROM {quote(table)} LIMIT 0"  # noqa: S608 - quoted
    names = distinct([column[0] for column in base.execute(everything).description])
    return SQLiteTable(path, table, names, _order(base, table, names), notes)


def _order(base: sqlite3.Connection, table: str, names: tuple[str, ...]) -> str:
    taken = {name.lower() for name in names}
    for row_id in _ROW_IDS:
        try:
            base.execute(f"SELECT {row_id} FROM {quote(table)} LIMIT 0")  # noqa: S608 - quoted
        except sqlite3.OperationalError:  # a table WITHOUT ROWID: it has a primary key
            break
        if row_id not in taken:
            return row_id
    keys = base.execute("SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk", (table,))
    return ", ".join(quote(key) for (key,) in keys)


def _run_in_sqlite(base: sqlite3.Connection, path: Path, query: str, settings: Mapping[str, str]) -> SourceReader:
    asked = f"SELECT * FROM ({query})"  # noqa: S608 - the owner of the file asks what he likes, for reading
    names = distinct([column[0] for column in base.execute(f"{asked} LIMIT 0").description])
    schema = pa.schema([(name, pa.string()) for name in names])
    return spool(_answers(path, asked, names), schema, settings, "the query was run once and its rows kept")


def _connect_sqlite(path: Path) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?mode=ro"
    return sqlite3.connect(address, uri=True, check_same_thread=False)  # DuckDB draws batches from its own threads


def _answers(path: Path, query: str, names: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    with closing(_connect_sqlite(path)) as base:
        base.text_factory = bytes
        found = base.execute(query)
        while records := found.fetchmany(BATCH_ROWS):
            if not names:
                yield pa.record_batch({"": pa.nulls(len(records))}).select([])
                continue
            columns = [
                pa.array([_text(value) for value in values], pa.string()) for values in zip(*records, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, names=list(names))


def _text(value: object) -> str | None:
    """Write a cell as text; bytes that are no Unicode, which SQLite takes for text too, are missing."""
    if not isinstance(value, bytes):
        return spell(value)
    try:
        return value.decode() or None
    except UnicodeDecodeError:
        return None
