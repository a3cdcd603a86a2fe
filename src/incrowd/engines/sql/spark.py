"""Spark: declared tables as views on a cluster, asked by SQL trees; only what the tree selects comes back."""

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
from incrowd.engines.spark.failures import explained
from incrowd.engines.spark.origins import ParquetFiles, SparkTable
from incrowd.engines.spark.pieces import unchanged
from incrowd.engines.spark.reading import PartitionReading
from incrowd.engines.spark.rows import SparkRows, on_cluster
from incrowd.engines.spark.task import collect, map_partitions
from incrowd.engines.sql.dialects import in_spark, replace_tables
from incrowd.engines.sql.engine import (
    FAILED,
    PERSON_COLUMN,
    SLOW,
    Limits,
    SampledTable,
    StoredTable,
    asked_tables,
    longest_text,
    ready_name,
    storage,
    typed_arrays,
)
from incrowd.errors import (
    IncrowdError,
    InvalidParameter,
    QuestionRefused,
    QuestionStopped,
    SourceChanged,
    SourceUnreadable,
)

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
"""What may be stored in a column of each type, so that nothing needs interpreting."""


@dataclass(frozen=True, eq=False)
class SparkWarehouse:
    """Tables on a cluster that can be asked from many threads.

    Each is a view of its own name in the session.  What is stored in its declared types is read by Spark itself, as
    often as it is asked; other sources are interpreted by tasks once, and kept by the cluster until the end, and so are
    the rows of a table in the form in which questions read them.
    """

    session: SparkSession
    tables: Mapping[str, StoredTable]
    views: Mapping[str, str]
    seen: Mapping[str, tuple[Stamp, ...]]
    limits: Limits
    admitted: Mapping[str, PersonFilter] = field(default_factory=dict)
    """Tables of which only the rows of some people are seen."""

    def require(self, query: exp.Query, *, sampled: bool = False) -> None:
        """Refuse samples, and what Spark would spell in its own way."""
        if sampled:
            raise QuestionRefused(
                "a secret sample is asked on the local engine, not on Spark: leave the rate out, or use --engine local."
            )
        self._text(query)

    def admitting(self, admitted: Mapping[str, PersonFilter]) -> SparkWarehouse:
        """Return the same tables, of which some show the rows of admitted people alone."""
        return replace(self, admitted=dict(admitted))

    def load(self, queries: Sequence[exp.Query]) -> None:
        """Refuse files that changed; what cannot be read is missing, row by row, in the views themselves."""
        for name in {name for query in queries for name in asked_tables(query, self.views)}:
            self._check_unchanged(name)

    def check(self) -> None:
        """Refuse files that changed."""
        for name in self.tables:
            self._check_unchanged(name)

    def collect(self, query: exp.Query, drawn: SampledTable | None = None) -> pa.Table:
        """Run a query over the tables and return its rows; whatever goes wrong below is told in words without data."""
        return self.collect_together([query], drawn)[0]

    def collect_together(self, queries: Sequence[exp.Query], drawn: SampledTable | None = None) -> tuple[pa.Table, ...]:
        """Run queries one after the other; files that changed meanwhile are refused."""
        for query in queries:
            self.require(query, sampled=drawn is not None)
        names = {name for query in queries for name in asked_tables(query, self.views)}
        with ExitStack() as stack:
            gated = {name: self._semi_join(stack, name) for name in names if self._table(name) in self.admitted}
            found = tuple(self._run(self._text(query, gated)) for query in queries)
        for name in names:
            self._check_unchanged(name)
        return found

    def _check_unchanged(self, view: str) -> None:
        """Raise if files are no longer what they were when the view was made; files of this machine are looked at here.

        A view reads the files that were listed for it, so that a new one beside them changes nothing.
        """
        name = self._table(view)
        origin, seen = on_cluster(self.tables[name].source).origin, self.seen[name]
        if not seen:
            unchanged(origin.pieces, origin.stamps())
        for stamp in seen:
            if not stamp.path.exists() or Stamp.of(stamp.path) != stamp:
                raise SourceChanged(f"{stamp.path} changed while it was in use. Start again when nobody writes to it.")

    def _table(self, view: str) -> str:
        """Return the table that a view shows, as it is or ready."""
        return next(each for each in self.tables if view in (each, ready_name(each)))

    def _text(self, query: exp.Query, gated: Mapping[str, exp.Expr] | None = None) -> str:
        asked_tables(query, self.views)
        places = {name: exp.to_table(view) for name, view in self.views.items()}
        return replace_tables(in_spark(query), {**places, **(gated or {})}).sql(dialect="spark")

    def _semi_join(self, stack: ExitStack, name: str) -> exp.Subquery:
        """Return the rows of admitted people; their ids are a view for as long as the question takes."""
        whose, view = self.admitted[self._table(name)], exp.to_table(self.views[name])
        person = exp.column(whose.person.name if name in self.tables else PERSON_COLUMN, quoted=True)
        people = (
            exp.select(person).distinct().from_(view).where(exp.not_(exp.Is(this=person.copy(), expression=exp.null())))
        )
        ids = self._run(people.sql(dialect="spark")).column(0).combine_chunks()
        admitted = f"incrowd_{secrets.token_hex(8)}"
        with explained():
            kept = pa.table({"person": ids.filter(pa.array(whose.of(ids)))})
            self.session.createDataFrame(kept).createOrReplaceTempView(admitted)
        stack.callback(_drop, self.session, admitted)
        listed = exp.Subquery(this=exp.select("person").from_(exp.to_table(admitted)))
        return exp.Subquery(this=exp.select("*").from_(view.copy()).where(exp.In(this=person.copy(), query=listed)))

    def _run(self, text: str) -> pa.Table:
        """Run a text in a thread of its own: whether or not the cluster stops in time, nobody waits for it longer."""
        mark, found = f"incrowd-{secrets.token_hex(8)}", list[pa.Table | IncrowdError]()

        def work() -> None:
            try:
                with explained():
                    self.session.addTag(mark)
                    found.append(collect(self.session.sql(text)))
            except IncrowdError as error:
                found.append(error)

        thread = threading.Thread(target=work, name=mark, daemon=True)
        thread.start()
        thread.join(self.limits.seconds)
        if thread.is_alive():
            with explained():
                self.session.interruptTag(mark)
            raise QuestionStopped(SLOW)
        if not found or isinstance(found[0], IncrowdError):
            raise found[0] if found else SourceUnreadable(FAILED)
        return found[0]


@dataclass(frozen=True, eq=False)
class Typing:
    """Interprets the values of a partition as those of their declared types."""

    reading: PartitionReading
    kinds: tuple[Type, ...]

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the same rows, typed."""
        names = [f"c{place}" for place in range(len(self.kinds))]
        fields = pa.schema([(name, storage(kind)) for name, kind in zip(names, self.kinds, strict=True)])
        for rows in self.reading.slices(batches):
            yield pa.RecordBatch.from_arrays(typed_arrays(rows.batch, self.kinds), schema=fields)


@contextmanager
def spark_warehouse(
    session: SparkSession, tables: Mapping[str, StoredTable], limits: Limits | None = None
) -> Iterator[SparkWarehouse]:
    """Make views of tables that the Spark engine opened; they are gone at the end.

    A frame has its view in its own session, which may be another one than the engine's.
    """
    mark, found = secrets.token_hex(8), session
    with ExitStack() as stack:
        views, seen = dict[str, str](), dict[str, tuple[Stamp, ...]]()
        for place, (name, stored) in enumerate(tables.items()):
            view = f"incrowd_{mark}_{place}"
            with explained():
                frame = _declared(stack, stored)
                found = _same(frame.sparkSession, found if views else None)
                frame.createOrReplaceTempView(view)
            stack.callback(_drop, found, view)
            views[name], seen[name] = view, _seen(on_cluster(stored.source))
            if stored.ready is not None:
                views[ready_name(name)] = _ready(stack, found, stored.ready, {name: view})
        yield SparkWarehouse(found, dict(tables), views, seen, limits or Limits())


def _ready(stack: ExitStack, session: SparkSession, tree: exp.Query, views: Mapping[str, str]) -> str:
    """Make a view of the rows that a tree makes of another view, which the cluster keeps once they were read."""
    places = {name: exp.to_table(view) for name, view in views.items()}
    ready = f"{next(iter(views.values()))}_ready"
    with explained():
        frame = session.sql(replace_tables(in_spark(tree), places).sql(dialect="spark")).persist()
        frame.createOrReplaceTempView(ready)
    stack.callback(_forget, frame)
    stack.callback(_drop, session, ready)
    return ready


def _same(session: SparkSession, other: SparkSession | None) -> SparkSession:
    """Return the session of a frame, in which its view is; a question sees the views of one session."""
    if other is not None and session is not other:
        raise InvalidParameter(
            "a frame of Spark is asked in its own session, and another table is not there: write the frame to Parquet "
            "first, and name the files."
        )
    return session


def _declared(stack: ExitStack, stored: StoredTable) -> DataFrame:
    rows = on_cluster(stored.source)
    found = _native(rows, stored.schema)
    if found is not None:
        return found
    typed = _interpreted(rows, stored.schema).selectExpr(*_shortened(stored.schema)).persist()
    stack.callback(_forget, typed)
    return typed


def _native(rows: SparkRows, schema: Schema) -> DataFrame | None:
    """Return the declared columns as Spark reads them, or None if one of them is stored otherwise."""
    if not isinstance(rows.origin, ParquetFiles | SparkTable):
        return None
    frame = rows.origin.frame
    kinds = dict(frame.dtypes)
    if any(kinds.get(column.name) not in _STORED[column.type] for column in schema.columns):
        return None
    return frame.selectExpr(*map(_selected, schema.columns)).selectExpr(*_shortened(schema))


def _shortened(schema: Schema) -> list[str]:
    """Return the columns, texts no longer than they may be."""
    limits = [(_quoted(column.name), longest_text(column, schema)) for column in schema.columns]
    return [name if limit is None else f"{limit.sql(name)} AS {name}" for name, limit in limits]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _selected(column: Column) -> str:
    name = _quoted(column.name)
    if column.type is Type.DECIMAL:
        number = f"CAST({name} AS DOUBLE)"
        return f"CASE WHEN ABS({number}) <= 1.7976931348623157E308 THEN {number} END AS {name}"
    if column.type is Type.TEXT:  # bytes that are no text would break off what comes back
        return f"TRY_VALIDATE_UTF8({name}) AS {name}"
    return f"CAST({name} AS {_FIELDS[column.type]}) AS {name}"


def _interpreted(rows: SparkRows, schema: Schema) -> DataFrame:
    frame, reading = rows.selected(schema.names)
    kinds = tuple(column.type for column in schema.columns)
    fields = ", ".join(f"c{place} {_FIELDS[kind]}" for place, kind in enumerate(kinds))
    return map_partitions(frame, Typing(reading, kinds), fields).toDF(*schema.names)


def _seen(rows: SparkRows) -> tuple[Stamp, ...]:
    """Return the stamps of Parquet files if all lie on this machine; of others Spark is asked."""
    if not isinstance(rows.origin, ParquetFiles):
        return ()
    with explained():
        listed = rows.origin.frame.inputFiles()
    paths = [Path(unquote(urlsplit(each).path)) for each in listed if each.startswith("file:")]
    here = len(paths) == len(listed) and all(path.exists() for path in paths)
    return tuple(map(Stamp.of, paths)) if here else ()


def _forget(frame: DataFrame) -> None:
    with explained():
        frame.unpersist()


def _drop(session: SparkSession, view: str) -> None:
    with explained():
        session.catalog.dropTempView(view)
