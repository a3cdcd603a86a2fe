"""Files of DuckDB and SQLite: a table, a view or a query, opened for reading only; and stored results of queries."""

from __future__ import annotations

import difflib
import mmap
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import ipc

from incrowd.engines.columns import quote
from incrowd.engines.readers.columnar import stored_batches
from incrowd.engines.readers.reader import BATCH_ROWS, SourceReader, attempt, distinct, muffled, spell
from incrowd.errors import InvalidParameter, SourceUnreadable

if TYPE_CHECKING:
    import duckdb

_RUN_ONCE = "the query was run once and its rows were stored"


@dataclass(frozen=True)
class RowSelection:
    """A table or view by name, or a query; neither, if the database has a single table."""

    table: str | None = None
    query: str | None = None

    def __post_init__(self) -> None:
        if self.table is not None and self.query is not None:
            raise InvalidParameter("table and query are both declared. Name a table or write a query, not both.")


def pick_table(path: Path | str, tables: Sequence[str], name: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the table of this name, or the only one, and a note of the latter.

    >>> pick_table(Path("clinic.sqlite"), ["visits"], None)
    ('visits', ('the only table is read: visits',))
    """
    if not tables:
        raise SourceUnreadable(f"{path} has no tables. Is this the right file?")
    if name is not None and name in tables:
        return name, ()
    if name is None and len(tables) == 1:
        return tables[0], (f"the only table is read: {tables[0]}",)
    listed = ", ".join(tables)
    if name is None:
        raise InvalidParameter(f"{path} has several tables: {listed}. Name one, for example {path}::{tables[0]}")
    near = difflib.get_close_matches(name, tables, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"It has: {listed}."
    raise SourceUnreadable(f"{path} has no table {name}. {hint}")


@dataclass(frozen=True)
class SpooledRows:
    """The rows of a query or view from its only run.

    A second run may return another order or (with `random()` in it) other rows, so a position would not mean the same
    row.  The rows are in a file without a name, which ends with this object, or with the process however that ends.
    """

    content: pa.Buffer
    """The file, as an Arrow stream."""
    names: tuple[str, ...]
    rows: int
    settings: Mapping[str, str]
    notes: tuple[str, ...]

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return stored_batches(pa.BufferReader(self.content), self.names, columns, stream=True)


def spool(batches: Iterator[pa.RecordBatch], schema: pa.Schema, settings: Mapping[str, str], note: str) -> SpooledRows:
    """Write the batches to an unnamed file, from which they can be read many times."""
    rows = 0
    with tempfile.TemporaryFile(prefix="incrowd-") as file:
        with ipc.new_stream(pa.PythonFile(file, mode="w"), schema) as stream:
            for batch in batches:
                stream.write_batch(batch)
                rows += batch.num_rows
        file.flush()
        content = pa.py_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))  # it outlives the descriptor
    return SpooledRows(content, tuple(schema.names), rows, settings, (note,))


@dataclass(frozen=True)
class DuckTable:
    """One table of a DuckDB file, in the order in which its rows were inserted."""

    path: Path
    table: str
    names: tuple[str, ...]
    rows: int | None
    notes: tuple[str, ...]

    @property
    def settings(self) -> Mapping[str, str]:
        return {"table": self.table}

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the table on a connection of its own."""
        listed = ", ".join(map(quote, columns)) or "NULL AS nothing"
        query = f"SELECT {listed} FROM {_address(self.table)}"  # noqa: S608 - names are quoted
        return muffled(self._batches(query, columns), _duckdb_errors(), f"{self.path} is a broken DuckDB file.")

    def _batches(self, query: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with closing(_connect_duckdb(self.path)) as base:
            for batch in _reader(base, query):
                yield batch.select(list(columns))


def open_duckdb(path: Path, selection: RowSelection) -> SourceReader:
    """Open a table, or run a view or query once and store its rows."""

    def work() -> SourceReader:
        with closing(_connect_duckdb(path)) as base:
            return _open_in_duckdb(base, path, selection)

    problem = f"{path} is not a DuckDB file that this version reads, is open elsewhere, or the query does not run."
    return attempt(work, _duckdb_errors(), problem)


def _open_in_duckdb(base: duckdb.DuckDBPyConnection, path: Path, selection: RowSelection) -> SourceReader:
    if selection.query is not None:
        return _run_in_duckdb(base, selection.query.strip().rstrip(";"), {"query": selection.query})
    listed = base.execute(
        "SELECT table_schema || '.' || table_name, table_type FROM information_schema.tables "
        "WHERE table_catalog = current_database() ORDER BY ALL"
    )
    kinds = {name.removeprefix("main."): kind for name, kind in listed.fetchall()}
    table, notes = pick_table(path, list(kinds), selection.table)
    everything = f"SELECT * FROM {_address(table)}"  # noqa: S608 - quoted
    if kinds[table] == "VIEW":
        return _run_in_duckdb(base, everything, {"table": table})
    names = distinct([column[0] for column in base.execute(f"{everything} LIMIT 0").description or ()])
    (rows,) = base.execute(f"SELECT count(*) FROM {_address(table)}").fetchone() or (None,)  # noqa: S608 - quoted
    return DuckTable(path, table, names, rows, notes)


def _run_in_duckdb(base: duckdb.DuckDBPyConnection, query: str, settings: Mapping[str, str]) -> SourceReader:
    answer = _reader(base, f"SELECT * FROM ({query})")  # noqa: S608 - the data holder's own query
    distinct(answer.schema.names)
    return spool(iter(answer), answer.schema, settings, _RUN_ONCE)


def _connect_duckdb(path: Path) -> duckdb.DuckDBPyConnection:
    """Connect for reading; a query sees no other file, since the commitment to the input covers only this one."""
    import duckdb

    from incrowd.engines.spill import SPILL_PLACE, add_spill_files

    settings: dict[str, str | bool | int | float | list[str]] = {
        "enable_external_access": "false",
        "preserve_insertion_order": "true",
        "temp_directory": SPILL_PLACE,  # the default is a folder beside the file
    }
    base = duckdb.connect(str(path), read_only=True, config=settings)
    add_spill_files(base)
    return base


def _reader(base: duckdb.DuckDBPyConnection, query: str) -> pa.RecordBatchReader:
    return base.sql(query).to_arrow_reader(BATCH_ROWS)


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

    Rows come in the order of their key.  Without that order SQLite would follow any index that covers the columns, and
    a row would change its position from one pass to the next.
    """

    path: Path
    table: str
    names: tuple[str, ...]
    order: str
    notes: tuple[str, ...]
    rows = None  # SQLite stores no count

    @property
    def settings(self) -> Mapping[str, str]:
        return {"table": self.table}

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        listed = ", ".join(map(quote, columns)) or "NULL"
        query = f"SELECT {listed} FROM {quote(self.table)} ORDER BY {self.order}"  # noqa: S608 - names are quoted
        batches = _answers(self.path, query, tuple(columns))
        return muffled(batches, (sqlite3.Error, UnicodeError), f"{self.path} is a broken SQLite file.")


def open_sqlite(path: Path, selection: RowSelection) -> SourceReader:
    """Open a table, or run a view or query once and store its rows."""

    def work() -> SourceReader:
        with closing(_connect_sqlite(path)) as base:
            return _open_in_sqlite(base, path, selection)

    problem = f"{path} is not a readable SQLite file, or the query does not run on it. Try it in the sqlite3 shell."
    return attempt(work, (sqlite3.Error, UnicodeError), problem)


def _open_in_sqlite(base: sqlite3.Connection, path: Path, selection: RowSelection) -> SourceReader:
    if selection.query is not None:
        return _run_in_sqlite(base, path, selection.query.strip().rstrip(";"), {"query": selection.query})
    listed = base.execute(
        "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite~_%' ESCAPE '~' "
        "ORDER BY name"
    )
    kinds = dict(listed.fetchall())
    table, notes = pick_table(path, list(kinds), selection.table)
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
    select = f"SELECT * FROM ({query})"  # noqa: S608 - the data holder's own query, on a read-only connection
    names = distinct([column[0] for column in base.execute(f"{select} LIMIT 0").description])
    schema = pa.schema([(name, pa.string()) for name in names])
    return spool(_answers(path, select, names), schema, settings, _RUN_ONCE)


def _connect_sqlite(path: Path) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?mode=ro"
    return sqlite3.connect(address, uri=True, check_same_thread=False)  # DuckDB reads batches in its own threads


def _answers(path: Path, query: str, names: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    with closing(_connect_sqlite(path)) as base:
        base.text_factory = bytes
        answer = base.execute(query)
        while records := answer.fetchmany(BATCH_ROWS):
            if not names:
                yield pa.record_batch({"": pa.nulls(len(records))}).select([])
                continue
            columns = [
                pa.array([_text(value) for value in values], pa.string()) for values in zip(*records, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, names=list(names))


def _text(value: object) -> str | None:
    """Return a cell as text; text that is not valid Unicode, which SQLite allows, is missing."""
    if not isinstance(value, bytes):
        return spell(value)
    try:
        return value.decode() or None
    except UnicodeDecodeError:
        return None
