"""PostgreSQL: a table, a view or a query, copied once in one snapshot; every pass reads the copy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyarrow import compute as pc

from incrowd.engines.columns import quote
from incrowd.engines.postgres import Address, Trouble, answers, stream, transact
from incrowd.engines.readers.databases import RowSelection, SpooledRows, pick_table, spool
from incrowd.engines.readers.reader import attempt, distinct
from incrowd.errors import PackageMissing, SourceInvalid, SourceUnreadable

_SESSION = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
    "SET default_transaction_read_only = on",
    "SET intervalstyle = 'iso_8601'",
    "SET synchronize_seqscans = off",
    "SET max_parallel_workers_per_gather = 0",
)
_TABLES = """
SELECT n.nspname, c.relname, pg_table_is_visible(c.oid), c.relispartition
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%' ORDER BY 1, 2
"""
_AS_IS = {"bool", "int2", "int4", "int8", "float4", "float8", "text", "varchar", "name"}
_AS_TEXT = {"numeric", "bpchar", "char", "uuid", "inet", "cidr", "macaddr", "macaddr8", "bit", "varbit", "time"}
_AS_TEXT |= {"timetz", "interval", "oid"}
_FIRST = {"date": -2440588, "timestamp": -2440588 * 86_400_000_000, "timestamptz": -2440588 * 86_400_000_000}
"""The first day of PostgreSQL in Arrow's count: it replaces infinite times, which Arrow does not have."""


@dataclass(frozen=True)
class PostgresRows:
    """The rows of a table, view or query, as they were in one snapshot.

    They are copied once, in one REPEATABLE READ transaction that writes nothing, to a file without a name on this
    machine, and every pass reads that file.  One transaction over all passes would see the same rows, but a server
    guarantees no order without ORDER BY, and orders that are unique and cheap (ctid) exist for plain tables only.  It
    would also block the server's vacuum for hours.  With the copy, a position means the same row in every pass by
    construction, memory is bounded by a batch, and a lost connection is noticed before anything is charged.
    """

    copy: SpooledRows
    names: tuple[str, ...]
    refused: Mapping[str, str]
    """Columns that are not copied, since their cells do not hold single values, and their types."""
    types: Mapping[str, pa.DataType]
    place: str

    @property
    def rows(self) -> int | None:
        return self.copy.rows

    @property
    def settings(self) -> Mapping[str, str]:
        return self.copy.settings

    @property
    def notes(self) -> tuple[str, ...]:
        return self.copy.notes

    @property
    def content(self) -> pa.Buffer:
        """The bytes of the copy."""
        return self.copy.content

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for name in columns:
            if name in self.refused:
                raise SourceUnreadable(
                    f"column {name} is of type {self.refused[name]}, which is not a single value. Leave it out, or "
                    "write a query that converts it."
                )
        return self.copy.read(columns)


def open_postgres(address: Address, selection: RowSelection) -> PostgresRows:
    """Copy a table, view or query; the database is not changed.

    Whole and floating numbers, truth values, texts, dates and times keep their types; exact decimals and other types
    with one plain spelling are text; times with a zone are in UTC.
    """
    failure = None
    try:
        return transact(address, _SESSION, lambda server: _copied(server, address, selection), _trouble(address))
    except OSError as error:
        failure = error.strerror or "the operating system gives no reason"
    raise SourceUnreadable(
        f"the rows of {address.public} could not be copied: {failure}. They need space on a local disk, in the folder "
        "that TMPDIR names."
    )


@dataclass(frozen=True)
class DatabaseTable:
    """A table, view or query as its server describes it, without reading rows."""

    rows: str
    """The SQL after FROM."""
    kinds: Mapping[str, str]
    """The server's names of the columns' types."""
    place: str
    settings: Mapping[str, str]
    notes: tuple[str, ...]
    computed: bool = False
    """Whether a view or a query computes its rows when they are read, and may fail then."""


def describe_table(address: Address, selection: RowSelection) -> DatabaseTable:
    """Describe a table, view or query; nothing is read or copied."""

    def work(server: Any) -> DatabaseTable:
        rows, settings, notes = _from_clause(server, address, selection)
        schema = _schema(server, rows)
        kinds = {name: _expression(schema.field(place))[0] for place, name in enumerate(distinct(schema.names))}
        place, computed = _place(server, address, settings), _is_computed(server, rows, settings)
        return DatabaseTable(rows, kinds, place, settings, notes, computed)

    return transact(address, _SESSION, work, _trouble(address))


def _copied(connection: Any, address: Address, selection: RowSelection) -> PostgresRows:
    rows, settings, notes = _from_clause(connection, address, selection)
    schema = _schema(connection, rows)
    expressions = {field.name: _expression(field) for field in schema}
    names = distinct(schema.names)
    listed = ", ".join(expression for _, expression in expressions.values() if expression)
    if not listed:
        raise SourceUnreadable(f"{address.public}: none of its columns holds single values. Write a query that does.")
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {listed} FROM {rows}")  # noqa: S608 - quoted, or the data holder's own query
        reader = cursor.fetch_record_batch()
        kinds = {name: kind for name, (kind, expression) in expressions.items() if expression}
        note = "; ".join(("the rows were copied in one snapshot", *notes))
        batches = stream(iter(reader), _trouble(address))
        copy = spool(_checked(batches, kinds), reader.schema, settings, note)
    types = dict(zip(kinds, reader.schema.types, strict=True))
    refused = {name: kind for name, (kind, expression) in expressions.items() if not expression}
    return PostgresRows(copy, names, refused, types, _place(connection, address, settings))


def _schema(connection: Any, rows: str) -> pa.Schema:
    with connection.cursor() as cursor:
        return cursor.adbc_execute_schema(f"SELECT * FROM {rows}")  # noqa: S608 - quoted, or the data holder's own


def _trouble(address: Address) -> Trouble:
    return lambda words: SourceUnreadable(f"{address.public} {words} Nothing was charged.")


def _from_clause(
    connection: Any, address: Address, selection: RowSelection
) -> tuple[str, dict[str, str], tuple[str, ...]]:
    """Return the SQL after FROM, its settings for the record, and what was guessed."""
    if selection.query is not None:
        query = selection.query.strip().rstrip(";")
        return f"({query}\n) AS asked", {"query": selection.query}, ()
    tables = answers(connection, _TABLES)
    by_name = {f"{schema}.{table}": (schema, table) for schema, table, _, _ in tables}
    by_name |= {table: (schema, table) for schema, table, visible, _ in tables if visible}
    listed = [table if visible else f"{schema}.{table}" for schema, table, visible, part in tables if not part]
    name, notes = selection.table, tuple[str, ...]()
    if name is None or name not in by_name:
        name, notes = pick_table(address.public, listed, name)
    schema, table = by_name[name]
    return f"{quote(schema)}.{quote(table)}", {"table": f"{schema}.{table}"}, notes


def _place(connection: Any, address: Address, settings: Mapping[str, str]) -> str:
    """Return where the rows are in one canonical form, the same for every user and without secrets."""
    ((database, port),) = answers(connection, "SELECT current_database(), current_setting('port')")
    host = address.host.removesuffix(f":{port}")
    return f"postgresql://{host}:{port}/{database}::{settings.get('table') or settings['query']}"


def _is_computed(connection: Any, rows: str, settings: Mapping[str, str]) -> bool:
    """Whether this is anything but a table that the server stores itself."""
    if "query" in settings:
        return True
    name = rows.replace("'", "''")
    kinds = answers(connection, f"SELECT relkind::text FROM pg_class WHERE oid = '{name}'::regclass")  # noqa: S608 - quoted
    return [kind for (kind,) in kinds] not in (["r"], ["p"], ["m"])


def _expression(field: pa.Field) -> tuple[str, str | None]:
    """Return the server's name of a column's type, and the SQL that selects the column; None if it is refused."""
    kind = (field.metadata or {}).get(b"POSTGRESQL:type", b"").decode()
    name = quote(field.name)
    if not kind:
        raise PackageMissing("this needs a newer adbc_driver_postgresql. Run: pip install -U adbc-driver-postgresql")
    if kind in _AS_IS:
        return kind, name
    if kind in _FIRST:
        return kind, _bounded(name, kind)
    if kind == "money":
        return kind, f"{name}::numeric::text AS {name}"
    if kind in _AS_TEXT or pa.types.is_string(field.type):
        return kind, f"{name}::text AS {name}"
    return kind, None


def _bounded(name: str, kind: str) -> str:
    """Return the SQL of a time; infinite or too late ones, which the driver would wrap, become the first day."""
    first = f"'4714-11-24 00:00:00+00 BC'::{kind}"
    fits = f"{name} > {first} AND {name} < '294000-01-01'::{kind}"
    return f"CASE WHEN {fits} THEN {name} WHEN {name} IS NOT NULL THEN {first} END AS {name}"


def _checked(batches: Iterator[pa.RecordBatch], kinds: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """Pass batches on; raise for infinite times and text that is not Unicode, before anything is charged."""
    done = 0
    for batch in batches:
        for name, array in zip(kinds, batch.columns, strict=True):
            if kinds[name] in _FIRST:
                _require_finite(name, array, kinds[name], done)
            elif pa.types.is_string(array.type):
                _require_text(name, array)
        yield batch
        done += batch.num_rows


def _require_finite(name: str, array: pa.Array, kind: str, before: int) -> None:
    numbers = array.view(pa.int32() if kind == "date" else pa.int64())
    at = pc.index(numbers, pa.scalar(_FIRST[kind], numbers.type)).as_py()
    if at >= 0:
        raise SourceInvalid(
            f"row {before + at + 1}, column {name}: an infinite time, or one that is too large. Nothing was charged. "
            "Write a query that replaces it."
        )


def _require_text(name: str, array: pa.Array) -> None:
    problem = (
        "holds text that is not valid Unicode: the server does not know its encoding. Write a query to convert it."
    )
    attempt(partial(array.validate, full=True), (pa.ArrowInvalid,), f"column {name} {problem}")
