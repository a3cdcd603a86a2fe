"""Warehouse: declared tables in a private DuckDB, asked by SQL trees; only what the tree selects comes back."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from incrowd.core.coins import Sample
from incrowd.core.table import PersonFilter
from incrowd.engines.columns import quote
from incrowd.engines.interruption import within
from incrowd.engines.local.consenting import Consenting
from incrowd.engines.local.engine import LOCAL
from incrowd.engines.readers.reader import Failure, note_failures
from incrowd.engines.readers.sources import Source
from incrowd.engines.sql.codes import Coded, codes_of, group_by_codes, held_by_codes, read_by_codes
from incrowd.engines.sql.dialects import replace_tables
from incrowd.engines.sql.engine import (
    FAILED,
    PERSON_COLUMN,
    SLOW,
    SQL_TYPES,
    Limits,
    SampledTable,
    StoredTable,
    asked_tables,
    fields,
    ready_name,
    typed_batches,
)
from incrowd.engines.sql.parquet import native_query
from incrowd.errors import QuestionStopped, SourceUnreadable

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, eq=False)
class Warehouse:
    """Tables that can be asked from many threads.

    Rows are read when the first question needs them, or `load` is called: once, as a whole, into memory, and what does
    not fit there into files without a name.  Where questions read a table in a form that is ready, the result of that
    tree is what is held, some of its columns by codes.  Parquet files are read by DuckDB itself; those that it does not
    read to their end are read like other sources: text that is no Unicode is missing there, row by row.  The database
    sees these files and nothing else of the machine.
    """

    tables: Mapping[str, StoredTable]
    limits: Limits
    base: duckdb.DuckDBPyConnection
    views: set[str]
    lock: threading.Lock = field(default_factory=threading.Lock)
    loaded: set[str] = field(default_factory=set)
    failed: dict[str, SourceUnreadable] = field(default_factory=dict)
    """What could not be read, and why: a source that has not changed since is not read again."""
    admitted: Mapping[str, PersonFilter] = field(default_factory=dict)
    """Tables of which only the rows of some people are seen."""
    coded: Coded = field(default_factory=dict)
    """What of tables as they are ready is held by codes."""

    @cached_property
    def names(self) -> Mapping[str, str]:
        """All that can be asked about, and the table whose rows it holds: tables as they are, and as they are ready."""
        ready = {ready_name(name): name for name, stored in self.tables.items() if stored.ready is not None}
        return {name: name for name in self.tables} | ready

    def require(self, query: exp.Query, *, sampled: bool = False) -> None:
        """Answer every question: trees are written for this engine."""
        del sampled
        asked_tables(query, self.names)

    def admitting(self, admitted: Mapping[str, PersonFilter]) -> Warehouse:
        """Return the same tables, of which some show the rows of admitted people alone."""
        return replace(self, admitted=dict(admitted))

    def load(self, queries: Sequence[exp.Query]) -> None:
        """Read once, as a whole, what these queries will read, and raise SourceUnreadable if that fails.

        A source that is no longer what it was is refused, whether or not its rows were read before.
        """
        for name in sorted({name for query in queries for name in asked_tables(query, self.names)}):
            self._check_unchanged(self.names[name])
            self._load(name)

    def check(self) -> None:
        """Raise if a source is no longer what it was, or could not be read before."""
        for problem in tuple(self.failed.values()):
            raise problem
        for table in self.tables:
            self._check_unchanged(table)

    def collect(self, query: exp.Query, drawn: SampledTable | None = None) -> pa.Table:
        """Run a query over the tables and return its rows; whatever goes wrong below is told in words without data."""
        return self.collect_together([query], drawn)[0]

    def collect_together(self, queries: Sequence[exp.Query], drawn: SampledTable | None = None) -> tuple[pa.Table, ...]:
        """Run queries over one state of the tables."""
        names = sorted({name for query in queries for name in asked_tables(query, self.names)})
        with self._cursor() as cursor:
            for name in names:
                if drawn is not None and drawn.table == self.names[name]:
                    self._draw(cursor, name, drawn.sample)
                    continue
                self._load(name)
                if self.names[name] in self.admitted:
                    self._admit(cursor, name)
            end = time.monotonic() + self.limits.seconds
            found = tuple(self._run(cursor, self._text(query), end) for query in queries)
        for name in self.views.intersection(names):
            self._check_unchanged(name)
        return found

    def _text(self, query: exp.Query) -> str:
        return group_by_codes(query.copy(), self.coded).sql(dialect="duckdb", copy=False)

    def _check_unchanged(self, table: str) -> None:
        source = self.tables[table].source
        if isinstance(source, Source):
            source.check_unchanged()

    def _load(self, name: str) -> None:
        if name in self.loaded:
            return
        with self.lock:
            if name in self.failed:
                raise self.failed[name]
            if name not in self.loaded:
                try:
                    self._read(name)
                except SourceUnreadable as problem:
                    self.failed[name] = problem
                    raise
                self.loaded.add(name)

    def _read(self, name: str) -> None:
        table = self.names[name]
        self._load_as_it_is(name) if name == table else self._make_ready(table)
        self._check_unchanged(table)

    def _load_as_it_is(self, name: str) -> None:
        if name not in self.views or not self._read_whole(name):
            self._fill(self.base, f"CREATE OR REPLACE TABLE {quote(name)} AS", self.tables[name], None)

    def _make_ready(self, table: str) -> None:
        """Make the rows that questions read, from the file or from a copy of the rows that is gone afterwards."""
        arriving = f"{table}, arriving"
        if table in self.views and self._read_whole(table):
            return self._hold(self.base, table, "CREATE OR REPLACE", table)
        self._fill(self.base, f"CREATE OR REPLACE TABLE {quote(arriving)} AS", self.tables[table], None)
        try:
            self._hold(self.base, table, "CREATE OR REPLACE", arriving)
        finally:
            self.base.execute(f"DROP TABLE {quote(arriving)}")

    def _hold(self, connection: duckdb.DuckDBPyConnection, table: str, create: str, rows: str) -> None:
        """Run the tree that makes a table ready over rows of it, and hold the result."""
        tree = self.tables[table].ready
        if tree is None:
            raise AssertionError("a table that is asked as it is ready says how it is made so")
        text = replace_tables(tree, {table: exp.Table(this=exp.to_identifier(rows, quoted=True))}).sql("duckdb")
        name, codes = ready_name(table), self.coded.get(ready_name(table))
        if not codes:
            self._run(connection, f"{create} TABLE {quote(name)} AS {text}")
            return
        held = f"{'temp' if 'TEMP' in create else 'memory'}.main.{quote(f'{name}, held')}"
        self._run(connection, f"{create} TABLE {held} AS SELECT {held_by_codes(codes)} FROM ({text})")  # noqa: S608 - quoted
        self._run(connection, f"{create} VIEW {quote(name)} AS SELECT {read_by_codes(codes)} FROM {held}")  # noqa: S608 - quoted

    def _read_whole(self, name: str) -> bool:
        """Read every value of a file once, so that a file with damaged values fails for every question alike.

        A question skips what its condition excludes.  Without this, whether it fails would tell whether the damaged
        rows fit the condition.  Where it fails, the view is dropped and false returned.
        """
        columns = ", ".join(quote(column.name) for column in self.tables[name].schema.columns)
        try:
            with self._cursor() as cursor:
                self._run(cursor, f"SELECT BIT_XOR(HASH({columns})) FROM {quote(name)}")  # noqa: S608 - quoted
        except SourceUnreadable:
            self.base.execute(f"DROP VIEW {quote(name)}")
            self.views.discard(name)
            return False
        return True

    def _draw(self, cursor: duckdb.DuckDBPyConnection, name: str, sample: Sample) -> None:
        """Put a sample in the place of a table, for this cursor alone."""
        table = self.names[name]
        stored = self.tables[table]
        if table in self.admitted:
            stored = replace(stored, source=Consenting(stored.source, self.admitted[table]))
        self._fill(cursor, f"CREATE TEMP TABLE {quote(table)} AS", stored, sample)
        if name != table:
            self._hold(cursor, table, "CREATE TEMP", table)

    def _admit(self, cursor: duckdb.DuckDBPyConnection, name: str) -> None:
        """Put the rows of admitted people in the place of a table, for this cursor alone: a semi-join on their ids.

        How many rows of a person are ready hangs on that person's rows alone, so the order of both makes no difference.
        """
        admitted, stored = self.admitted[self.names[name]], f"memory.main.{quote(name)}"
        person = quote(admitted.person.name if name in self.tables else PERSON_COLUMN)
        found = self._run(cursor, f"SELECT DISTINCT {person} AS person FROM {stored} WHERE {person} IS NOT NULL")  # noqa: S608 - quoted
        ids = found["person"].combine_chunks()
        people = quote(f"people admitted to {name}")
        cursor.register("_arriving_people", pa.table({"person": ids.filter(pa.array(admitted.of(ids)))}))
        cursor.execute(f"CREATE TEMP TABLE {people} AS SELECT person FROM _arriving_people")  # noqa: S608 - quoted
        cursor.unregister("_arriving_people")
        cursor.execute(
            f"CREATE TEMP VIEW {quote(name)} AS SELECT * FROM {stored} WHERE {person} IN (SELECT person FROM {people})"  # noqa: S608 - quoted
        )

    def _fill(
        self, connection: duckdb.DuckDBPyConnection, create: str, stored: StoredTable, sample: Sample | None
    ) -> None:
        import duckdb

        failures = list[Failure]()
        rows = stored.source if stored.progress is None else LOCAL.watched(stored.source, stored.progress)
        reader = pa.RecordBatchReader.from_batches(
            fields(stored.schema.columns), note_failures(typed_batches(rows, stored.schema, sample), failures)
        )
        wanted = ", ".join(
            f"CAST({quote(column.name)} AS {SQL_TYPES[column.type]}) AS {quote(column.name)}"
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
            raise failures[0] if failures else SourceUnreadable(FAILED)

    def _run(self, cursor: duckdb.DuckDBPyConnection, text: str, end: float | None = None) -> pa.Table:
        """Run a text, and stop it at the end that is given or when it has taken as long as a question may."""
        import duckdb

        slow, left = False, self.limits.seconds if end is None else max(0.0, end - time.monotonic())
        try:
            with within(left, cursor.interrupt):
                return cursor.sql(text).to_arrow_table()
        except duckdb.InterruptException:
            slow = True
        except (duckdb.Error, pa.ArrowException, UnicodeError):
            slow = False
        raise QuestionStopped(SLOW) if slow else SourceUnreadable(FAILED)

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        cursor = self.base.cursor()
        try:
            yield cursor
        finally:
            cursor.close()


@contextmanager
def warehouse(tables: Mapping[str, StoredTable], limits: Limits | None = None) -> Iterator[Warehouse]:
    """Open a warehouse over tables, by the names they have in questions.

    >>> from incrowd.core.schema import Column, Schema
    >>> from incrowd.engines.readers.sources import open_source
    >>> people = StoredTable(open_source(pa.table({"zip": ["1", "1", "2"]})), Schema((Column("zip"),)))
    >>> from sqlglot import select
    >>> with warehouse({"people": people}) as asked:
    ...     asked.collect(select("COUNT(*) AS n").from_(exp.to_table("people"))).to_pylist()
    [{'n': 3}]
    """
    from incrowd.engines.spill import memory_database

    limits = limits or Limits()
    with closing(memory_database(limits.memory)) as base:
        views, paths = _views(base, tables)
        _confine(base, paths, limits)
        coded = {ready_name(name): codes_of(stored) for name, stored in tables.items()}
        yield Warehouse(dict(tables), limits, base, views, coded=coded)


def _views(base: duckdb.DuckDBPyConnection, tables: Mapping[str, StoredTable]) -> tuple[set[str], list[str]]:
    views, paths = set[str](), list[str]()
    for name, stored in tables.items():
        found = native_query(stored.source, stored.schema)
        if found is not None:
            base.execute(f"CREATE VIEW {quote(name)} AS {found[0]}")
            views.add(name)
            paths.extend(found[1])
    return views, paths


def _confine(base: duckdb.DuckDBPyConnection, paths: list[str], limits: Limits) -> None:
    """Let the database see these files, and let nothing change that."""
    base.execute("SET TimeZone = 'UTC'")
    base.execute("SET preserve_insertion_order = false")
    base.execute("SET enable_progress_bar = false")  # a worker process would show one
    if limits.threads is not None:
        base.execute("SET threads = ?", [limits.threads])
    base.execute("SET autoinstall_known_extensions = false")
    base.execute("SET autoload_known_extensions = false")
    base.execute("SET allowed_paths = ?", [paths])
    base.execute("SET enable_external_access = false")
    base.execute("SET lock_configuration = true")


def collect_over(tables: Mapping[str, pa.Table], query: exp.Query) -> pa.Table:
    """Run a tree over tables that are no secret, in a database of its own, with the settings under which rows are read.

    >>> from sqlglot import select
    >>> collect_over({"t": pa.table({"x": [1, 2]})}, select("MAX(x) AS most").from_(exp.to_table("t"))).to_pylist()
    [{'most': 2}]
    """
    from incrowd.engines.spill import memory_database

    asked_tables(query, tables)
    with closing(memory_database(Limits().memory)) as base:
        for name, table in tables.items():
            base.register(name, table)
        _confine(base, [], Limits())
        return base.sql(query.sql(dialect="duckdb")).to_arrow_table()
