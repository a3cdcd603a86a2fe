"""Warehouse: declared tables in a private DuckDB, asked by SQL trees; only what the tree selects comes back."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from incrowd.core.mechanism import Sample
from incrowd.core.schema import Schema
from incrowd.core.table import Opened
from incrowd.engines.asking.native import native_query
from incrowd.engines.asking.typed import SQL_TYPES, fields, typed_batches
from incrowd.engines.quoting import quoted
from incrowd.engines.sources import Source
from incrowd.errors import IncrowdError, QuestionFailed, SourceUnreadable

if TYPE_CHECKING:
    import duckdb

_FAILED = "the rows could not be read to their end: the source is damaged, or changed in the meantime."
_SLOW = "the question took longer than it may. Ask for less at once: fewer groups, fewer joins."


@dataclass(frozen=True)
class Limits:
    """What one question may take: seconds, memory for all at once, and threads (None: all there are)."""

    seconds: float = 600.0
    memory: str = "4GB"
    threads: int | None = None


@dataclass(frozen=True)
class Stored:
    """One table: rows that were opened, and what is declared about them."""

    source: Opened
    schema: Schema


@dataclass(frozen=True)
class Drawn:
    """A secret sample of the rows of one table, which takes the table's place in a question."""

    table: str
    sample: Sample


@dataclass(frozen=True, eq=False)
class Warehouse:
    """Tables that can be asked from many threads.

    Rows are read when the first question needs them, never before: Parquet files by DuckDB itself, as often as they are
    asked; other sources once, into a private folder that is removed at the end.  The database sees these files and
    nothing else of the machine.
    """

    tables: Mapping[str, Stored]
    limits: Limits
    base: duckdb.DuckDBPyConnection
    views: frozenset[str]
    lock: threading.Lock = field(default_factory=threading.Lock)
    loaded: set[str] = field(default_factory=set)

    def collect(self, query: exp.Query, drawn: Drawn | None = None) -> pa.Table:
        """Run a query over the tables and return its rows; whatever goes wrong below is told in words without data."""
        text = self._checked(query).sql(dialect="duckdb")
        for name in self._names(query):
            if drawn is None or name != drawn.table:
                self._load(name)
        with self._cursor() as cursor:
            if drawn is not None:
                self._draw(cursor, drawn)
            found = self._run(cursor, text)
        for name in self._names(query):
            source = self.tables[name].source
            if isinstance(source, Source):
                source.check_unchanged()
        return found

    def _checked(self, query: exp.Query) -> exp.Query:
        """Refuse a tree that reads anything but the tables: no files, no functions that return tables, no commands."""
        local = {cte.alias for cte in query.find_all(exp.CTE)}
        for table in query.find_all(exp.Table):
            if not isinstance(table.this, exp.Identifier) or table.db or table.name not in {*self.tables, *local}:
                raise AssertionError("a question reads declared tables only")
        return query

    def _names(self, query: exp.Query) -> list[str]:
        return sorted({table.name for table in query.find_all(exp.Table) if table.name in self.tables})

    def _load(self, name: str) -> None:
        if name in self.views or name in self.loaded:
            return
        with self.lock:
            if name not in self.loaded:
                stored = self.tables[name]
                self._fill(self.base, f"CREATE TABLE {quoted(name)} AS", stored, None)
                self.loaded.add(name)

    def _draw(self, cursor: duckdb.DuckDBPyConnection, drawn: Drawn) -> None:
        """Put a sample in the place of a table, for this cursor alone."""
        self._fill(cursor, f"CREATE TEMP TABLE {quoted(drawn.table)} AS", self.tables[drawn.table], drawn.sample)

    def _fill(self, connection: duckdb.DuckDBPyConnection, create: str, stored: Stored, sample: Sample | None) -> None:
        import duckdb

        failures = list[IncrowdError]()
        reader = pa.RecordBatchReader.from_batches(
            fields(stored.schema.columns), _noted(typed_batches(stored.source, stored.schema, sample), failures)
        )
        wanted = ", ".join(
            f"CAST({quoted(column.name)} AS {SQL_TYPES[column.type]}) AS {quoted(column.name)}"
            for column in stored.schema.columns
        )
        connection.register("_arriving", reader)
        failed = False
        try:
            connection.execute(f"{create} SELECT {wanted} FROM _arriving")  # noqa: S608 - names are quoted
        except (duckdb.Error, pa.ArrowException, UnicodeError):
            failed = True
        finally:
            connection.unregister("_arriving")
        if failed:
            raise failures[0] if failures else SourceUnreadable(_FAILED)

    def _run(self, cursor: duckdb.DuckDBPyConnection, text: str) -> pa.Table:
        import duckdb

        slow = False
        timer = threading.Timer(self.limits.seconds, cursor.interrupt)
        timer.start()
        try:
            return cursor.sql(text).to_arrow_table()
        except duckdb.InterruptException:
            slow = True
        except (duckdb.Error, pa.ArrowException, UnicodeError):
            slow = False
        finally:
            timer.cancel()
        raise QuestionFailed(_SLOW) if slow else SourceUnreadable(_FAILED)

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        cursor = self.base.cursor()
        try:
            yield cursor
        finally:
            cursor.close()


@contextmanager
def warehouse(tables: Mapping[str, Stored], limits: Limits | None = None) -> Iterator[Warehouse]:
    """Open a warehouse over tables, by the names they have in questions.

    >>> from incrowd.core.schema import Column
    >>> from incrowd.engines.sources import open_source
    >>> people = Stored(open_source(pa.table({"zip": ["1", "1", "2"]})), Schema((Column("zip"),)))
    >>> from sqlglot import select
    >>> with warehouse({"people": people}) as asked:
    ...     asked.collect(select("COUNT(*) AS n").from_(exp.to_table("people"))).to_pylist()
    [{'n': 3}]
    """
    import duckdb

    limits = limits or Limits()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="incrowd-"))
        base = duckdb.connect(f"{folder}/warehouse.duckdb")
        stack.callback(base.close)
        views, paths = _views(base, tables)
        _confine(base, folder, paths, limits)
        yield Warehouse(dict(tables), limits, base, views)


def _views(base: duckdb.DuckDBPyConnection, tables: Mapping[str, Stored]) -> tuple[frozenset[str], list[str]]:
    views, paths = set(), list[str]()
    for name, stored in tables.items():
        found = native_query(stored.source, stored.schema)
        if found is not None:
            base.execute(f"CREATE VIEW {quoted(name)} AS {found[0]}")
            views.add(name)
            paths.extend(found[1])
    return frozenset(views), paths


def _confine(base: duckdb.DuckDBPyConnection, folder: str, paths: list[str], limits: Limits) -> None:
    """Let the database see its own folder and these files, and let nothing change that."""
    base.execute("SET TimeZone = 'UTC'")
    base.execute("SET preserve_insertion_order = false")
    base.execute("SET memory_limit = ?", [limits.memory])
    base.execute("SET temp_directory = ?", [f"{folder}/spill"])
    if limits.threads is not None:
        base.execute("SET threads = ?", [limits.threads])
    base.execute("SET autoinstall_known_extensions = false")
    base.execute("SET autoload_known_extensions = false")
    base.execute("SET allowed_paths = ?", [paths])
    base.execute("SET allowed_directories = ?", [[folder]])
    base.execute("SET enable_external_access = false")
    base.execute("SET lock_configuration = true")


def _noted(batches: Iterator[pa.RecordBatch], failures: list[IncrowdError]) -> Iterator[pa.RecordBatch]:
    """Pass batches on, and remember what went wrong in our own words: the database that draws them has its own."""
    try:
        yield from batches
    except IncrowdError as error:
        failures.append(error)
        raise
