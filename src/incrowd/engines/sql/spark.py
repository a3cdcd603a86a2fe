"""Spark: declared tables as views on a cluster that answers SQL trees; only what a tree selects is returned."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.core.schema import Column, Schema
from incrowd.engines.readers.sources import Stamp
from incrowd.engines.spark.origins import ParquetFiles, SparkTable
from incrowd.engines.spark.places import unchanged
from incrowd.engines.spark.rows import PartitionReading, SparkRows, on_cluster
from incrowd.engines.spark.task import collect, explained, map_partitions
from incrowd.engines.sql import engine
from incrowd.engines.sql.dialects import in_spark, replace_tables
from incrowd.engines.sql.engine import Limits, QueryTables, SampledTable, StoredTable, tables_read
from incrowd.errors import IncrowdError, InvalidParameter, QueryRefused, QueryStopped, SourceUnreadable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from incrowd.core.table import PersonFilter

_FIELDS = {
    Type.INTEGER: "bigint",
    Type.DECIMAL: "double",
    Type.TEXT: "string",
    Type.DATE: "date",
    Type.BOOLEAN: "boolean",
}
_STORED = {
    Type.INTEGER: ("tinyint", "smallint", "int", "bigint"),
    Type.DECIMAL: ("double", "tinyint", "smallint", "int", "bigint"),
    Type.TEXT: ("string",),
    Type.DATE: ("date",),
    Type.BOOLEAN: ("boolean",),
}
"""The stored types that need no interpretation, by declared type."""


@dataclass(frozen=True, eq=False)
class SparkWarehouse(QueryTables):
    """Tables on a cluster that answer queries from many threads.

    Each is a view in the session.  Spark itself reads, for each query, what is stored in its declared types.  Tasks
    interpret other sources once, and the cluster stores the result until the end; so it does with the ready rows of a
    table.
    """

    session: SparkSession
    tables: Mapping[str, StoredTable]
    views: Mapping[str, str]
    seen: Mapping[str, tuple[Stamp, ...]]
    limits: Limits
    admitted: Mapping[str, PersonFilter] = field(default_factory=dict)
    """The people whose rows are visible, by table."""

    def require(self, query: exp.Query, *, sampled: bool = False) -> None:
        """Refuse samples, and what Spark would spell differently."""
        if sampled:
            raise QueryRefused("Spark answers no queries on secret samples: leave the rate out, or use --engine local.")
        self._text(query)

    def admitting(self, admitted: Mapping[str, PersonFilter]) -> SparkWarehouse:
        return replace(self, admitted=dict(admitted))

    def load(self, queries: Sequence[exp.Query]) -> None:
        """Refuse files that changed; unreadable values are missing, row by row, in the views themselves."""
        for name in {name for query in queries for name in tables_read(query, self.views)}:
            self._check_unchanged(name)

    def check(self) -> None:
        for name in self.tables:
            self._check_unchanged(name)

    def collect_together(
        self, queries: Sequence[exp.Query], sample: SampledTable | None = None
    ) -> tuple[pa.Table, ...]:
        """Run queries one after the other; refuse files that changed meanwhile."""
        for query in queries:
            self.require(query, sampled=sample is not None)
        names = {name for query in queries for name in tables_read(query, self.views)}
        with ExitStack() as stack:
            gated = {name: self._semi_join(stack, name) for name in names if self._table(name) in self.admitted}
            answers = tuple(self._run(self._text(query, gated)) for query in queries)
        for name in names:
            self._check_unchanged(name)
        return answers

    def _check_unchanged(self, view: str) -> None:
        """Raise if files changed since the view was created; files of this machine are checked here.

        A view reads the files that were listed for it, so a new file beside them changes nothing.
        """
        name = self._table(view)
        origin, seen = on_cluster(self.tables[name].source).origin, self.seen[name]
        if not seen:
            unchanged(origin.pieces, origin.stamps())
        for stamp in seen:
            stamp.check()

    def _table(self, view: str) -> str:
        """Return the table of a view, also of one of its stored forms."""
        return next(table for table, stored in self.tables.items() if view in (table, *stored.forms(table)))

    def _text(self, query: exp.Query, gated: Mapping[str, exp.Expr] | None = None) -> str:
        tables_read(query, self.views)
        places = {name: exp.to_table(view) for name, view in self.views.items()}
        return replace_tables(in_spark(query), {**places, **(gated or {})}).sql(dialect="spark")

    def _semi_join(self, stack: ExitStack, name: str) -> exp.Subquery:
        """Return the rows of admitted people; their ids are a view while the query runs."""
        people, view = self.admitted[self._table(name)], exp.to_table(self.views[name])
        person = exp.column(people.person.name if name in self.tables else engine.PERSON_COLUMN, quoted=True)
        persons = (
            exp.select(person).distinct().from_(view).where(exp.not_(exp.Is(this=person.copy(), expression=exp.null())))
        )
        ids = self._run(persons.sql(dialect="spark")).column(0).combine_chunks()
        admitted = f"incrowd_{secrets.token_hex(8)}"
        with explained():
            chosen = pa.table({"person": ids.filter(pa.array(people.of(ids)))})
            self.session.createDataFrame(chosen).createOrReplaceTempView(admitted)
        stack.callback(_drop, self.session, admitted)
        listed = exp.Subquery(this=exp.select("person").from_(exp.to_table(admitted)))
        return exp.Subquery(this=exp.select("*").from_(view.copy()).where(exp.In(this=person.copy(), query=listed)))

    def _run(self, text: str) -> pa.Table:
        """Run a text in a thread of its own, so that the time limit holds even if the cluster does not stop in time."""
        tag, results = f"incrowd-{secrets.token_hex(8)}", list[pa.Table | IncrowdError]()

        def work() -> None:
            try:
                with explained():
                    self.session.addTag(tag)
                    results.append(collect(self.session.sql(text)))
            except IncrowdError as error:
                results.append(error)

        thread = threading.Thread(target=work, name=tag, daemon=True)
        thread.start()
        thread.join(self.limits.seconds)
        if thread.is_alive():
            with explained():
                self.session.interruptTag(tag)
            raise QueryStopped(engine.SLOW)
        if not results or isinstance(results[0], IncrowdError):
            raise results[0] if results else SourceUnreadable(engine.FAILED)
        return results[0]


@dataclass(frozen=True, eq=False)
class Typing:
    """Interprets the values of a partition as their declared types."""

    reading: PartitionReading
    kinds: tuple[Type, ...]

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = [f"c{place}" for place in range(len(self.kinds))]
        fields = pa.schema([(name, engine.storage(kind)) for name, kind in zip(names, self.kinds, strict=True)])
        for rows in self.reading.slices(batches):
            yield pa.RecordBatch.from_arrays(engine.typed_arrays(rows.batch, self.kinds), schema=fields)


@contextmanager
def spark_warehouse(
    session: SparkSession, tables: Mapping[str, StoredTable], limits: Limits | None = None
) -> Iterator[SparkWarehouse]:
    """Create views of tables that the Spark engine opened; they are dropped at the end.

    The view of a frame is in the frame's own session, which may be another one than the engine's.
    """
    prefix, shared = f"incrowd_{secrets.token_hex(8)}", session
    with ExitStack() as stack:
        views, seen = dict[str, str](), dict[str, tuple[Stamp, ...]]()
        for place, (name, stored) in enumerate(tables.items()):
            view = f"{prefix}_{place}"
            with explained():
                frame = _declared(stack, stored)
                shared = _same(frame.sparkSession, shared if views else None)
                frame.createOrReplaceTempView(view)
            stack.callback(_drop, shared, view)
            views[name], seen[name] = view, _seen(on_cluster(stored.source))
            for number, (form, tree) in enumerate(stored.forms(name).items()):
                views[form] = _stored(stack, shared, tree, ({name: view}, f"{view}_{number}"))
        yield SparkWarehouse(shared, dict(tables), views, seen, limits or Limits())


def _stored(stack: ExitStack, session: SparkSession, tree: exp.Query, names: tuple[Mapping[str, str], str]) -> str:
    """Create a view of the rows that a tree computes from another view; the cluster stores them at their first use.

    `names` are the views that it reads, and that of the new one.
    """
    views, made = names
    places = {name: exp.to_table(view) for name, view in views.items()}
    with explained():
        frame = session.sql(replace_tables(in_spark(tree), places).sql(dialect="spark")).persist()
        frame.createOrReplaceTempView(made)
    stack.callback(_forget, frame)
    stack.callback(_drop, session, made)
    return made


def _same(session: SparkSession, other: SparkSession | None) -> SparkSession:
    """Return the session of a frame, which holds its view; a query sees the views of one session."""
    if other is not None and session is not other:
        raise InvalidParameter(
            "a Spark frame is queried in its own session, and another table is not there: write the frame to Parquet "
            "first, and name the files."
        )
    return session


def _declared(stack: ExitStack, stored: StoredTable) -> DataFrame:
    rows = on_cluster(stored.source)
    native = _native(rows, stored.schema)
    if native is not None:
        return native
    typed = _interpreted(rows, stored.schema).selectExpr(*_shortened(stored.schema)).persist()
    stack.callback(_forget, typed)
    return typed


def _native(rows: SparkRows, schema: Schema) -> DataFrame | None:
    """Return the declared columns as Spark reads them, or None if one of them is stored in another type."""
    if rows.filters or not isinstance(rows.origin, ParquetFiles | SparkTable):
        return None
    frame = rows.origin.frame
    kinds = dict(frame.dtypes)
    if any(kinds.get(column.name) not in _STORED[column.type] for column in schema.columns):
        return None
    return frame.selectExpr(*map(_selected, schema.columns)).selectExpr(*_shortened(schema))


def _shortened(schema: Schema) -> list[str]:
    """Return the columns, with texts cut to their limits."""
    limits = [(_quoted(column.name), engine.longest_text(column, schema)) for column in schema.columns]
    return [name if limit is None else f"{limit.sql(name)} AS {name}" for name, limit in limits]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _selected(column: Column) -> str:
    name = _quoted(column.name)
    if column.type is Type.DECIMAL:
        number = f"CAST({name} AS DOUBLE)"
        return f"CASE WHEN ABS({number}) <= 1.7976931348623157E308 THEN {number} END AS {name}"
    if column.type is Type.TEXT:  # invalid text would break off the answer
        return f"TRY_VALIDATE_UTF8({name}) AS {name}"
    return f"CAST({name} AS {_FIELDS[column.type]}) AS {name}"


def _interpreted(rows: SparkRows, schema: Schema) -> DataFrame:
    frame, reading = rows.selected(schema.names)
    kinds = tuple(column.type for column in schema.columns)
    fields = ", ".join(f"c{place} {_FIELDS[kind]}" for place, kind in enumerate(kinds))
    return map_partitions(frame, Typing(reading, kinds), fields).toDF(*schema.names)


def _seen(rows: SparkRows) -> tuple[Stamp, ...]:
    """Return the stamps of Parquet files if all are on this machine; Spark lists others again."""
    if not isinstance(rows.origin, ParquetFiles):
        return ()
    with explained():
        listed = rows.origin.frame.inputFiles()
    paths = [Path(unquote(urlsplit(file).path)) for file in listed if file.startswith("file:")]
    here = len(paths) == len(listed) and all(path.exists() for path in paths)
    return tuple(map(Stamp.of, paths)) if here else ()


def _forget(frame: DataFrame) -> None:
    with explained():
        frame.unpersist()


def _drop(session: SparkSession, view: str) -> None:
    with explained():
        session.catalog.dropTempView(view)
