"""SQLite files: a table, a view or a query, opened for reading only."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from incrowd.engines.readers.question import Question, pick_table
from incrowd.engines.readers.reader import BATCH_ROWS, Reader, distinct, muffled
from incrowd.engines.readers.spelling import spell
from incrowd.engines.readers.spool import spool
from incrowd.engines.sql.quoting import quoted
from incrowd.errors import SourceUnreadable

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
        wanted = ", ".join(quoted(name) for name in columns) or "NULL"
        query = f"SELECT {wanted} FROM {quoted(self.table)} ORDER BY {self.order}"  # noqa: S608 - names are quoted
        batches = _answers(self.path, query, tuple(columns))
        return muffled(batches, (sqlite3.Error, UnicodeError), f"{self.path} is a broken SQLite file.")


def open_sqlite(path: Path, question: Question) -> Reader:
    """Open a table, or run a view or query once and keep its rows."""
    failed, reader = False, None
    try:
        with closing(_connect(path)) as base:
            reader = _open(base, path, question)
    except (sqlite3.Error, UnicodeError):
        failed = True
    if failed or reader is None:
        raise SourceUnreadable(
            f"{path} is not a readable SQLite file, or the query does not run on it. Try it in the sqlite3 shell."
        )
    return reader


def _open(base: sqlite3.Connection, path: Path, question: Question) -> Reader:
    if question.query is not None:
        return _once(base, path, question.query.strip().rstrip(";"), {"query": question.query})
    found = base.execute(
        "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite~_%' ESCAPE '~' "
        "ORDER BY name"
    )
    kinds = dict(found.fetchall())
    table, notes = pick_table(path, list(kinds), question.table)
    if kinds[table] == "view":
        return _once(base, path, f"SELECT * FROM {quoted(table)}", {"table": table})  # noqa: S608 - quoted
    everything = f"SELECT * FROM {quoted(table)} LIMIT 0"  # noqa: S608 - quoted
    names = distinct([column[0] for column in base.execute(everything).description])
    return SQLiteTable(path, table, names, _order(base, table, names), notes)


def _order(base: sqlite3.Connection, table: str, names: tuple[str, ...]) -> str:
    taken = {name.lower() for name in names}
    for row_id in _ROW_IDS:
        try:
            base.execute(f"SELECT {row_id} FROM {quoted(table)} LIMIT 0")  # noqa: S608 - quoted
        except sqlite3.OperationalError:  # a table WITHOUT ROWID: it has a primary key
            break
        if row_id not in taken:
            return row_id
    keys = base.execute("SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk", (table,))
    return ", ".join(quoted(key) for (key,) in keys)


def _once(base: sqlite3.Connection, path: Path, query: str, settings: Mapping[str, str]) -> Reader:
    asked = f"SELECT * FROM ({query})"  # noqa: S608 - the owner of the file asks what he likes, for reading
    names = distinct([column[0] for column in base.execute(f"{asked} LIMIT 0").description])
    schema = pa.schema([(name, pa.string()) for name in names])
    return spool(_answers(path, asked, names), schema, settings, "the query was run once and its rows kept")


def _connect(path: Path) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?mode=ro"
    return sqlite3.connect(address, uri=True, check_same_thread=False)  # DuckDB draws batches from its own threads


def _answers(path: Path, query: str, names: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    with closing(_connect(path)) as base:
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
    if isinstance(value, bytes):
        return value.decode() or None
    return spell(value)
