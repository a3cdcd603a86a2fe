"""Warehouse: declared tables in a private DuckDB that answers SQL trees; only what a tree selects is returned."""

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
from incrowd.core.domain import Type
from incrowd.core.schema import Column, Schema
from incrowd.core.table import Opened, PersonFilter
from incrowd.engines.columns import quote
from incrowd.engines.interruption import within
from incrowd.engines.local.engine import LOCAL
from incrowd.engines.local.views import Consenting
from incrowd.engines.readers.columnar import Parquet
from incrowd.engines.readers.reader import Failure, note_failures
from incrowd.engines.readers.sources import Source
from incrowd.engines.sql import engine
from incrowd.engines.sql.codes import Coded, codes_of, group_by_codes, held_by_codes, read_by_codes
from incrowd.engines.sql.dialects import replace_tables
from incrowd.engines.sql.engine import Limits, QueryTables, SampledTable, StoredTable, ready_name, tables_read
from incrowd.errors import QueryStopped, SourceUnreadable

if TYPE_CHECKING:
    import duckdb

_INTEGERS = tuple(map(pa.type_for_alias, ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")))
_FINITE = "CASE WHEN isfinite({0}) THEN {0} END"
_TEXTS = dict.fromkeys((pa.string(), pa.large_string()), "{0}")
_NATIVE: Mapping[Type, Mapping[pa.DataType, str]] = {
    Type.INTEGER: dict.fromkeys(_INTEGERS, "CAST({0} AS BIGINT)"),
    Type.DECIMAL: {pa.float64(): _FINITE, **dict.fromkeys(_INTEGERS, "CAST({0} AS DOUBLE)")},
    Type.TEXT: _TEXTS,
    Type.DATE: {pa.date32(): _FINITE},
    Type.BOOLEAN: {pa.bool_(): "{0}"},
}
"""The SQL that reads a column of a declared type, by the type in which a Parquet file stores it."""


@dataclass(frozen=True, eq=False)
class Warehouse(QueryTables):
    """Tables that answer queries from many threads.

    Rows are read when the first query needs them, or `load` is called: once and completely, into memory and beyond it
    into files without a name.  Where queries read a table in its `ready` form, only that form is stored, some of its
    columns by codes.  DuckDB reads Parquet files itself; a file that it cannot read to its end is read like other
    sources, in which text that is not Unicode is missing row by row.  The database sees these files and no others.
    """

    tables: Mapping[str, StoredTable]
    limits: Limits
    base: duckdb.DuckDBPyConnection
    views: set[str]
    lock: threading.Lock = field(default_factory=threading.Lock)
    loaded: set[str] = field(default_factory=set)
    failed: dict[str, SourceUnreadable] = field(default_factory=dict)
    """Sources that could not be read, and why: a source is not read again unless it changed."""
    admitted: Mapping[str, PersonFilter] = field(default_factory=dict)
    """The people whose rows are visible, by table."""
    coded: Coded = field(default_factory=dict)
    """The columns of ready tables that are stored by codes."""

    @cached_property
    def names(self) -> Mapping[str, str]:
        """The names that queries may read, with their tables: the tables themselves, and their stored forms."""
        forms = {form: name for name, stored in self.tables.items() for form in stored.forms(name)}
        return {name: name for name in self.tables} | forms

    def require(self, query: exp.Query, *, sampled: bool = False) -> None:
        """Accept every query: trees are written for this engine."""
        tables_read(query, self.names)

    def admitting(self, admitted: Mapping[str, PersonFilter]) -> Warehouse:
        return replace(self, admitted=dict(admitted))

    def load(self, queries: Sequence[exp.Query]) -> None:
        """Read once what these queries will read; refuse a source that changed, also if its rows were read before."""
        for name in sorted({name for query in queries for name in tables_read(query, self.names)}):
            self._check_unchanged(self.names[name])
            self._load(name)

    def check(self) -> None:
        for problem in tuple(self.failed.values()):
            raise problem
        for table in self.tables:
            self._check_unchanged(table)

    def collect_together(
        self, queries: Sequence[exp.Query], sample: SampledTable | None = None
    ) -> tuple[pa.Table, ...]:
        names = sorted({name for query in queries for name in tables_read(query, self.names)})
        with self._cursor() as cursor:
            for name in names:
                if sample is not None and sample.table == self.names[name]:
                    self._draw(cursor, name, sample.sample)
                    continue
                self._load(name)
                if self.names[name] in self.admitted:
                    self._admit(cursor, name)
            end = time.monotonic() + self.limits.seconds
            answers = tuple(self._run(cursor, self._text(query), end) for query in queries)
        for name in self.views.intersection(names):
            self._check_unchanged(name)
        return answers

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
        self._load_as_it_is(name) if name == table else self._make(name, table)
        self._check_unchanged(table)

    def _load_as_it_is(self, name: str) -> None:
        if name not in self.views or not self._read_whole(name):
            self._fill(self.base, f"CREATE OR REPLACE TABLE {quote(name)} AS", self.tables[name], None)

    def _make(self, name: str, table: str) -> None:
        """Compute the rows that queries read, from the file or from a copy of the rows that is dropped afterwards."""
        arriving = f"{table}, arriving"
        if table in self.views and self._read_whole(table):
            return self._hold(self.base, name, "CREATE OR REPLACE", table)
        self._fill(self.base, f"CREATE OR REPLACE TABLE {quote(arriving)} AS", self.tables[table], None)
        try:
            self._hold(self.base, name, "CREATE OR REPLACE", arriving)
        finally:
            self.base.execute(f"DROP TABLE {quote(arriving)}")

    def _hold(self, connection: duckdb.DuckDBPyConnection, name: str, create: str, rows: str) -> None:
        """Run the tree of a stored form of a table over some of its rows, and store the result."""
        table, codes = self.names[name], self.coded.get(name)
        tree = self.tables[table].forms(table)[name]
        text = replace_tables(tree, {table: exp.Table(this=exp.to_identifier(rows, quoted=True))}).sql("duckdb")
        if not codes:
            self._run(connection, f"{create} TABLE {quote(name)} AS {text}")
            return
        held = f"{'temp' if 'TEMP' in create else 'memory'}.main.{quote(f'{name}, held')}"
        self._run(connection, f"{create} TABLE {held} AS SELECT {held_by_codes(codes)} FROM ({text})")  # noqa: S608 - quoted
        self._run(connection, f"{create} VIEW {quote(name)} AS SELECT {read_by_codes(codes)} FROM {held}")  # noqa: S608 - quoted

    def _read_whole(self, name: str) -> bool:
        """Read every value of a file once, so that a file with damaged values fails for every query alike.

        A query skips what its condition excludes.  Without this pass, its failure would reveal whether the damaged rows
        fit the condition.  If the pass fails, the view is dropped and the result is false.
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
        """Replace a table by a sample, for this cursor only."""
        table = self.names[name]
        stored = self.tables[table]
        if table in self.admitted:
            stored = replace(stored, source=Consenting(stored.source, self.admitted[table]))
        self._fill(cursor, f"CREATE TEMP TABLE {quote(table)} AS", stored, sample)
        if name != table:
            self._hold(cursor, name, "CREATE TEMP", table)

    def _admit(self, cursor: duckdb.DuckDBPyConnection, name: str) -> None:
        """Replace a table by the rows of admitted people, for this cursor only: a semi-join on their ids.

        Which rows of a person are ready depends on that person's rows alone, so the order of both steps is irrelevant.
        """
        admitted, stored = self.admitted[self.names[name]], f"memory.main.{quote(name)}"
        person = quote(admitted.person.name if name in self.tables else engine.PERSON_COLUMN)
        rows = self._run(cursor, f"SELECT DISTINCT {person} AS person FROM {stored} WHERE {person} IS NOT NULL")  # noqa: S608 - quoted
        ids = rows["person"].combine_chunks()
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
            engine.fields(stored.schema.columns),
            note_failures(engine.typed_batches(rows, stored.schema, sample), failures),
        )
        typed = ", ".join(
            f"CAST({quote(column.name)} AS {engine.SQL_TYPES[column.type]}) AS {quote(column.name)}"
            for column in stored.schema.columns
        )
        connection.register("_arriving", reader)
        failed = False
        try:
            connection.execute(f"{create} SELECT {typed} FROM _arriving")  # noqa: S608 - names are quoted
        except (duckdb.Error, pa.ArrowException, UnicodeError):
            failed = True
        finally:
            connection.unregister("_arriving")
        if failed:
            raise failures[0] if failures else SourceUnreadable(engine.FAILED)

    def _run(self, cursor: duckdb.DuckDBPyConnection, text: str, end: float | None = None) -> pa.Table:
        """Run a text, and stop it at `end`, by default after the time limit of a query."""
        import duckdb

        slow, left = False, self.limits.seconds if end is None else max(0.0, end - time.monotonic())
        try:
            with within(left, cursor.interrupt):
                return cursor.sql(text).to_arrow_table()
        except duckdb.InterruptException:
            slow = True
        except (duckdb.Error, pa.ArrowException, UnicodeError):
            slow = False
        raise QueryStopped(engine.SLOW) if slow else SourceUnreadable(engine.FAILED)

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        cursor = self.base.cursor()
        try:
            yield cursor
        finally:
            cursor.close()


@contextmanager
def warehouse(tables: Mapping[str, StoredTable], limits: Limits | None = None) -> Iterator[Warehouse]:
    """Open a warehouse over tables, by the names that they have in queries.

    >>> from incrowd.core.schema import Column, Schema
    >>> from incrowd.engines.readers.sources import open_source
    >>> people = StoredTable(open_source(pa.table({"zip": ["1", "1", "2"]})), Schema((Column("zip"),)))
    >>> from sqlglot import select
    >>> with warehouse({"people": people}) as tables:
    ...     tables.collect(select("COUNT(*) AS n").from_(exp.to_table("people"))).to_pylist()
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
        native = native_query(stored.source, stored.schema)
        if native is not None:
            base.execute(f"CREATE VIEW {quote(name)} AS {native[0]}")
            views.add(name)
            paths.extend(native[1])
    return views, paths


def _confine(base: duckdb.DuckDBPyConnection, paths: list[str], limits: Limits) -> None:
    """Restrict the database to these files, and lock its configuration."""
    ((bar,),) = base.execute("SELECT current_setting('enable_progress_bar')").fetchall()
    settings: dict[str, object] = {
        "TimeZone": "UTC",
        "preserve_insertion_order": False,
        # a worker process would print one; in notebooks without ipywidgets it is off, and setting it at all is an error
        **({"enable_progress_bar": False} if bar else {}),
        **({} if limits.threads is None else {"threads": limits.threads}),
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allowed_paths": paths,
        "enable_external_access": False,
        "lock_configuration": True,  # last: afterwards no setting can change
    }
    for name, value in settings.items():
        base.execute(f"SET {name} = ?", [value])


def collect_over(tables: Mapping[str, pa.Table], query: exp.Query) -> pa.Table:
    """Run a tree over public tables, in a database of its own, with the settings under which rows are queried.

    >>> from sqlglot import select
    >>> collect_over({"t": pa.table({"x": [1, 2]})}, select("MAX(x) AS most").from_(exp.to_table("t"))).to_pylist()
    [{'most': 2}]
    """
    from incrowd.engines.spill import memory_database

    tables_read(query, tables)
    with closing(memory_database(Limits().memory)) as base:
        for name, table in tables.items():
            base.register(name, table)
        _confine(base, [], Limits())
        return base.sql(query.sql(dialect="duckdb")).to_arrow_table()


def native_query(source: Opened, schema: Schema) -> tuple[str, tuple[str, ...]] | None:
    """Return a query of Parquet files that selects the declared columns in their declared types, and the files.

    None if some column is stored in another type: then its values are interpreted one by one, as in other sources.
    """
    if not isinstance(source, Source) or not isinstance(source.reader, Parquet) or source.cleaned.rules:
        return None
    types = source.reader.types
    columns = [
        _native_column(column, types.get(column.name), engine.longest_text(column, schema)) for column in schema.columns
    ]
    if None in columns:
        return None
    paths = tuple(path.resolve().as_posix() for path in source.reader.paths)
    listed = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    selected = ", ".join(filter(None, columns))
    return f"SELECT {selected} FROM read_parquet([{listed}], hive_partitioning = false)", paths  # noqa: S608 - quoted


def _native_column(column: Column, stored: pa.DataType | None, limit: engine.TextLimit | None) -> str | None:
    kind = stored.value_type if stored is not None and pa.types.is_dictionary(stored) else stored
    template = None if kind is None else _NATIVE[column.type].get(kind)
    if template is None:
        return None
    name = quote(column.name)
    value = template.format(name)
    return f"{value if limit is None else limit.sql(value)} AS {name}"
