"""DuckDB files: a table, a view or a query, opened for reading only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from incrowd.engines.readers.question import Question, pick_table
from incrowd.engines.readers.reader import BATCH_ROWS, Reader, distinct, muffled
from incrowd.engines.readers.spool import spool
from incrowd.engines.sql.quoting import quoted
from incrowd.errors import SourceUnreadable

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


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
        wanted = ", ".join(quoted(name) for name in columns) or "NULL AS nothing"
        query = f"SELECT {wanted} FROM {_address(self.table)}"  # noqa: S608 - names are quoted
        return muffled(self._batches(query, columns), _errors(), f"{self.path} is a broken DuckDB file.")

    def _batches(self, query: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with closing(_connect(self.path)) as base:
            for batch in _reader(base, query):
                yield batch.select(list(columns))


def open_duckdb(path: Path, question: Question) -> Reader:
    """Open a table, or run a view or query once and keep its rows."""
    failed, reader = False, None
    try:
        with closing(_connect(path)) as base:
            reader = _open(base, path, question)
    except _errors():
        failed = True
    if failed or reader is None:
        raise SourceUnreadable(
            f"{path} is not a DuckDB file this version reads, is open elsewhere, or the query does not run on it."
        )
    return reader


def _open(base: duckdb.DuckDBPyConnection, path: Path, question: Question) -> Reader:
    if question.query is not None:
        return _once(base, question.query.strip().rstrip(";"), {"query": question.query})
    found = base.execute(
        "SELECT table_schema || '.' || table_name, table_type FROM information_schema.tables "
        "WHERE table_catalog = current_database() ORDER BY ALL"
    )
    kinds = {name.removeprefix("main."): kind for name, kind in found.fetchall()}
    table, notes = pick_table(path, list(kinds), question.table)
    everything = f"SELECT * FROM {_address(table)}"  # noqa: S608 - quoted
    if kinds[table] == "VIEW":
        return _once(base, everything, {"table": table})
    names = distinct([column[0] for column in base.execute(f"{everything} LIMIT 0").description or ()])
    (rows,) = base.execute(f"SELECT count(*) FROM {_address(table)}").fetchone() or (None,)  # noqa: S608 - quoted
    return DuckTable(path, table, names, rows, notes)


def _once(base: duckdb.DuckDBPyConnection, query: str, settings: Mapping[str, str]) -> Reader:
    answer = _reader(base, f"SELECT * FROM ({query})")  # noqa: S608 - the owner of the file asks what he likes
    distinct(answer.schema.names)
    return spool(iter(answer), answer.schema, settings, "the query was run once and its rows kept")


def _connect(path: Path) -> duckdb.DuckDBPyConnection:
    """Connect for reading; a query sees this file and no other, or the commitment to the input would not cover it."""
    import duckdb

    settings: dict[str, str | bool | int | float | list[str]] = {
        "enable_external_access": "false",
        "preserve_insertion_order": "true",
    }
    return duckdb.connect(str(path), read_only=True, config=settings)


def _reader(base: duckdb.DuckDBPyConnection, query: str) -> pa.RecordBatchReader:
    asked = base.sql(query)
    return (asked.to_arrow_reader if hasattr(asked, "to_arrow_reader") else asked.fetch_arrow_reader)(BATCH_ROWS)


def _address(table: str) -> str:
    return ".".join(quoted(part) for part in table.split(".", 1))


def _errors() -> tuple[type[Exception], ...]:
    import duckdb
    import pyarrow as pa

    return (duckdb.Error, pa.ArrowException, UnicodeError)
