"""PostgreSQL: a table, a view or a query, copied once in one snapshot and read from the copy ever after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyarrow import compute as pc

from incrowd.engines.columns import quote
from incrowd.engines.postgres import Address, answers, connect, explained, run, stream
from incrowd.engines.readers.reader import distinct
from incrowd.engines.readers.selection import RowSelection, SpooledRows, pick_table, spool
from incrowd.errors import IncrowdError, PackageMissing, SourceInvalid, SourceUnreadable

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
"""The first day that PostgreSQL knows, as Arrow counts: it stands for infinite times, which Arrow does not have."""


@dataclass(frozen=True)
class PostgresRows:
    """The rows of a table, view or query, as they were in one snapshot.

    They are copied once, in one REPEATABLE READ transaction that may write nothing, to a file without a name on this
    machine, and every pass reads that file.  A transaction held open over all passes would see the same rows, but a
    server guarantees no order without ORDER BY, and orders that are unique and cheap (ctid) exist for plain tables
    only; it would also hold back the server's cleaning for hours.  With the copy a position means the same row in every
    pass by construction, memory is bounded by a batch, and a connection that breaks does so before anything is charged.
    """

    kept: SpooledRows
    names: tuple[str, ...]
    refused: Mapping[str, str]
    """Columns that are not copied, since no single value stands in their cells, and their types."""
    types: Mapping[str, pa.DataType]
    place: str

    @property
    def rows(self) -> int | None:
        """The number of rows that were copied."""
        return self.kept.rows

    @property
    def settings(self) -> Mapping[str, str]:
        """The table or query."""
        return self.kept.settings

    @property
    def notes(self) -> tuple[str, ...]:
        """That there is a copy."""
        return self.kept.notes

    @property
    def content(self) -> pa.Buffer:
        """The bytes of the copy."""
        return self.kept.content

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the copy."""
        for name in columns:
            if name in self.refused:
                raise SourceUnreadable(
                    f"column {name} is of type {self.refused[name]}, which is not one plain value. Leave it out, or "
                    "ask a query that makes plain values of it."
                )
        return self.kept.read(columns)


def open_postgres(address: Address, question: RowSelection) -> PostgresRows:
    """Copy a table, view or query; nothing is changed in the database.

    Whole and floating numbers, truth values, texts, dates and times are read as what they are; exact decimals and
    whatever else has one plain spelling as text; times with a zone in UTC.
    """

    def work() -> PostgresRows:
        with connect(address) as connection:
            run(connection, *_SESSION)
            return _copied(connection, address, question)

    failure = None
    try:
        return explained(work, partial(_unreadable, address))
    except OSError as error:
        failure = error.strerror or "the operating system does not say why"
    raise SourceUnreadable(
        f"the rows of {address.shown} could not be kept here: {failure}. They need room on a local disk; TMPDIR says "
        "where."
    )


@dataclass(frozen=True)
class TableDescription:
    """A table, view or query as its server describes it, without a row: what stands behind FROM, and its columns."""

    rows: str
    kinds: Mapping[str, str]
    """The server's names of the columns' types."""
    place: str
    settings: Mapping[str, str]
    notes: tuple[str, ...]
    computed: bool = False
    """Whether its rows are computed when they are read, by a view or a query, and may fail then."""


def look_at(address: Address, question: RowSelection) -> TableDescription:
    """Describe a table, view or query; nothing is read or copied."""

    def work() -> TableDescription:
        with connect(address) as connection:
            run(connection, *_SESSION)
            rows, told, notes = _asked(connection, address, question)
            with connection.cursor() as cursor:
                schema = cursor.adbc_execute_schema(f"SELECT * FROM {rows}")  # noqa: S608 - quoted, or the owner's own
            kinds = {name: _wanted(schema.field(place))[0] for place, name in enumerate(distinct(schema.names))}
            place, computed = _place(connection, address, told), _is_computed(connection, rows, told)
            return TableDescription(rows, kinds, place, told, notes, computed)

    return explained(work, partial(_unreadable, address))


def _copied(connection: Any, address: Address, question: RowSelection) -> PostgresRows:
    rows, told, notes = _asked(connection, address, question)
    with connection.cursor() as cursor:
        schema = cursor.adbc_execute_schema(f"SELECT * FROM {rows}")  # noqa: S608 - quoted, or the owner's own query
        wanted = {field.name: _wanted(field) for field in schema}
        names = distinct(schema.names)
        listed = ", ".join(expression for _, expression in wanted.values() if expression)
        if not listed:
            raise SourceUnreadable(f"{address.shown}: no column of it holds plain values. Ask a query that makes some.")
        cursor.execute(f"SELECT {listed} FROM {rows}")  # noqa: S608 - see above
        reader = cursor.fetch_record_batch()
        kinds = {name: kind for name, (kind, expression) in wanted.items() if expression}
        note = "; ".join(("the rows were copied in one snapshot", *notes))
        batches = stream(iter(reader), partial(_unreadable, address))
        kept = spool(_checked(batches, kinds), reader.schema, told, note)
    types = dict(zip(kinds, reader.schema.types, strict=True))
    refused = {name: kind for name, (kind, expression) in wanted.items() if not expression}
    return PostgresRows(kept, names, refused, types, _place(connection, address, told))


def _unreadable(address: Address, words: str) -> IncrowdError:
    return SourceUnreadable(f"{address.shown} {words} Nothing was charged.")


def _asked(connection: Any, address: Address, question: RowSelection) -> tuple[str, dict[str, str], tuple[str, ...]]:
    """Return what stands behind FROM, how that is recorded, and what was guessed."""
    if question.query is not None:
        query = question.query.strip().rstrip(";")
        return f"({query}\n) AS asked", {"query": question.query}, ()
    found = answers(connection, _TABLES)
    by_name = {f"{schema}.{table}": (schema, table) for schema, table, _, _ in found}
    by_name |= {table: (schema, table) for schema, table, visible, _ in found if visible}
    listed = [table if visible else f"{schema}.{table}" for schema, table, visible, part in found if not part]
    known, notes = question.table, tuple[str, ...]()
    if known is None or known not in by_name:
        known, notes = pick_table(address.shown, listed, known)
    schema, table = by_name[known]
    return f"{quote(schema)}.{quote(table)}", {"table": f"{schema}.{table}"}, notes


def _place(connection: Any, address: Address, told: Mapping[str, str]) -> str:
    """Return where the rows are, the same for every user and every way to write it, without secrets."""
    ((database, port),) = answers(connection, "SELECT current_database(), current_setting('port')")
    host = address.host.removesuffix(f":{port}")
    return f"postgresql://{host}:{port}/{database}::{told.get('table') or told['query']}"


def _is_computed(connection: Any, rows: str, told: Mapping[str, str]) -> bool:
    """Return whether this is anything but a table that the server keeps itself."""
    if "query" in told:
        return True
    name = rows.replace("'", "''")
    kinds = answers(connection, f"SELECT relkind::text FROM pg_class WHERE oid = '{name}'::regclass")  # noqa: S608 - quoted
    return [kind for (kind,) in kinds] not in (["r"], ["p"], ["m"])


def _wanted(field: pa.Field) -> tuple[str, str | None]:
    """Return the server's name for a column's type, and how the column is asked for; None if it is not."""
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
    """Ask for a time; one that the driver would wrap into another, infinite or too late, comes as the first day."""
    first = f"'4714-11-24 00:00:00+00 BC'::{kind}"
    fits = f"{name} > {first} AND {name} < '294000-01-01'::{kind}"
    return f"CASE WHEN {fits} THEN {name} WHEN {name} IS NOT NULL THEN {first} END AS {name}"


def _checked(batches: Iterator[pa.RecordBatch], kinds: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """Pass batches on; times without end, and text that is not Unicode, are found before anything is charged."""
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
            f"row {before + at + 1}, column {name}: an infinite time, or one beyond what can be read. Nothing was "
            "charged. Ask a query that says what stands in its place."
        )


def _require_text(name: str, array: pa.Array) -> None:
    valid = True
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        valid = False
    if not valid:
        raise SourceUnreadable(
            f"column {name} holds text that is not valid Unicode: the database says nothing about its encoding. "
            "Ask a query that converts it."
        )
