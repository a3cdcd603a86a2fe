"""PostgreSQL pushdown: the server computes queries on declared tables; only what a tree selects is returned."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp, parse_one

from incrowd.core.domain import Type
from incrowd.core.schema import Column
from incrowd.core.unit import ExtraRowsRule
from incrowd.core.words import counted
from incrowd.engines.columns import quote
from incrowd.engines.postgres import Address, address_of, answers, is_outage, is_postgres, run, transact
from incrowd.engines.readers.databases import RowSelection
from incrowd.engines.readers.postgres import DatabaseTable, describe_table
from incrowd.engines.sql import engine
from incrowd.engines.sql.dialects import in_postgres, replace_tables
from incrowd.engines.sql.engine import Limits, QueryTables, SampledTable, StoredTable, tables_read
from incrowd.errors import (
    IncrowdError,
    InvalidParameter,
    QueryFailed,
    QueryRefused,
    QueryStopped,
    SourceUnreadable,
)

if TYPE_CHECKING:
    from incrowd.core.table import PersonFilter, SourceOptions

_SESSION = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
    "SET LOCAL TimeZone = 'UTC'",
    "SET LOCAL DateStyle = 'ISO'",
    "SET LOCAL extra_float_digits = 1",
    "SET LOCAL standard_conforming_strings = on",
    "SET LOCAL enable_nestloop = off",  # joins are by equal values: pairs that do not meet cost nothing
)
_TEXTS = 256
"""How many rewritten trees are cached."""
_WHOLE = ("int2", "int4", "int8")
_STORED = {
    Type.INTEGER: _WHOLE,
    Type.DECIMAL: ("float8", *_WHOLE),
    Type.TEXT: ("text", "varchar"),
    Type.DATE: ("date",),
    Type.BOOLEAN: ("bool",),
}
"""The stored types that need no interpretation, by declared type."""
_CAST = {
    Type.INTEGER: "BIGINT",
    Type.DECIMAL: "DOUBLE PRECISION",
    Type.TEXT: "TEXT",
    Type.DATE: "DATE",
    Type.BOOLEAN: "BOOLEAN",
}
_READ = {
    Type.INTEGER: "CAST({0} AS BIGINT)",
    Type.DECIMAL: (
        "CAST(CASE WHEN ABS(CAST({0} AS DOUBLE PRECISION)) <= 1.7976931348623157e308 THEN {0} END AS DOUBLE PRECISION)"
    ),
    Type.TEXT: 'CAST({0} AS TEXT) COLLATE "C"',
    Type.DATE: "CAST(CASE WHEN ISFINITE({0}) THEN {0} END AS DATE)",
    Type.BOOLEAN: "CAST({0} AS BOOLEAN)",
}


@dataclass(frozen=True)
class ServerRows:
    """Rows that stay on a server: described, not read."""

    server: Address
    description: DatabaseTable
    rows = None  # their number may change

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.description.kinds)

    @property
    def address(self) -> str:
        return self.description.place

    @property
    def settings(self) -> Mapping[str, str]:
        return {"format": "postgresql", **self.description.settings}

    @property
    def notes(self) -> tuple[str, ...]:
        return ("the server computes queries", *self.description.notes)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Refuse: rows on a server stay there."""
        raise InvalidParameter("with pushdown, rows stay in the database, which computes queries only. Leave it out.")

    def digest(self) -> bytes:
        """Return 32 bytes that identify this content, independently of the order of the rows; they stay secret."""
        words = ", ".join(
            f"SUM(CAST(CAST('x' || SUBSTR(MD5(CAST(asked AS TEXT)), {start}, 8) AS BIT(32)) AS BIGINT))"
            for start in (1, 9, 17, 25)
        )
        about = self.description
        source = about.rows if "query" in about.settings else f"{about.rows} AS asked"
        sums = _answer(self.server, f"SELECT COUNT(*), {words} FROM {source}", *_SESSION)  # noqa: S608 - quoted
        return hashlib.sha256(repr((sorted(about.kinds.items()), sums)).encode()).digest()


def _answer(server: Address, query: str, *session: str) -> list[tuple[object, ...]]:
    """Return the rows of a query about a source, before anything is charged."""

    def trouble(words: str) -> IncrowdError:
        return SourceUnreadable(f"{server.public} {words} Nothing was charged.")

    return transact(server, session, lambda connection: answers(connection, query), trouble)


@dataclass(frozen=True, eq=False)
class PostgresWarehouse(QueryTables):
    """Tables of one database that answer queries from many threads; each query is one read-only transaction."""

    server: Address
    tables: Mapping[str, StoredTable]
    places: Mapping[str, exp.Subquery]
    limits: Limits
    admitted: Mapping[str, PersonFilter] = field(default_factory=dict)
    """The people whose rows are visible, by table."""

    def require(self, query: exp.Query, *, sampled: bool = False) -> None:
        """Refuse samples, and what the server would compute differently, or not for every row."""
        if sampled:
            raise QueryRefused(
                "a secret sample is not drawn inside PostgreSQL: leave the rate out, or ask the data holder to leave "
                "pushdown out."
            )
        self.text(query)

    @cached_property
    def text(self) -> Callable[[exp.Query], str]:
        """Returns a tree as text for the server; the same tree is rewritten once."""
        return lru_cache(_TEXTS)(self._text)

    def admitting(self, admitted: Mapping[str, PersonFilter]) -> PostgresWarehouse:
        return replace(self, admitted=dict(admitted))

    def load(self, queries: Sequence[exp.Query]) -> None:
        """Let the server compute every value of the views that these queries read, and discard the result.

        A view may fail at a value, such as one that it cannot cast.  A query skips what its condition excludes.  So
        without this pass its failure would reveal something about rows, and would happen after the charge.
        """
        for name in {name for query in queries for name in tables_read(query, self.tables)}:
            if _server_rows(self.tables[name]).description.computed:
                self._compute(self.places[name].copy())

    def _compute(self, rows: exp.Subquery) -> None:
        text = f"SELECT SUM(LENGTH(CAST(r AS TEXT))) FROM {rows.sql(dialect='postgres')} AS r"  # noqa: S608 - our own tree
        limit = f"SET LOCAL statement_timeout = {max(1, int(self.limits.seconds * 1000))}"

        def trouble(words: str) -> IncrowdError:
            problem = f"the database {words} Nothing was charged."
            return QueryFailed(problem) if is_outage(words) else SourceUnreadable(problem)

        transact(self.server, (*_SESSION, limit), lambda connection: answers(connection, text), trouble)

    def check(self) -> None:
        """Do nothing: rows on a server may change between queries."""

    def collect_together(
        self, queries: Sequence[exp.Query], sample: SampledTable | None = None
    ) -> tuple[pa.Table, ...]:
        """Run queries in one transaction, so that all of them see the same rows while others write."""
        for query in queries:
            self.require(query, sampled=sample is not None)
        texts, begun = [self.text(query) for query in queries], time.monotonic()

        def work(connection: Any) -> tuple[pa.Table, ...]:
            pairs = zip(queries, texts, strict=True)
            return tuple(self._fetch(connection, query, text, begun) for query, text in pairs)

        def trouble(words: str) -> IncrowdError:
            if time.monotonic() - begun >= self.limits.seconds:
                return QueryStopped(engine.SLOW)
            return QueryFailed(f"the database {words}") if is_outage(words) else SourceUnreadable(engine.FAILED)

        return transact(self.server, _SESSION, work, trouble)

    def _fetch(self, connection: Any, query: exp.Query, text: str, begun: float) -> pa.Table:
        """Run one text in the remaining time, over the rows of admitted people where that is required."""
        left = self.limits.seconds - (time.monotonic() - begun)
        run(connection, f"SET LOCAL statement_timeout = {max(1, int(left * 1000))}")
        return _fetched(connection, text, [self._people(connection, name) for name in self._gated(query)])

    def _text(self, query: exp.Query) -> str:
        places = dict(self.places)
        for number, name in enumerate(self._gated(query), 1):
            places[name] = _semi_join(self.places[name], self.admitted[name].person, number)
        return in_postgres(replace_tables(query, places)).sql(dialect="postgres")

    def _gated(self, query: exp.Query) -> list[str]:
        return [name for name in tables_read(query, self.tables) if name in self.admitted]

    def _people(self, connection: Any, name: str) -> str:
        """Return the admitted ids of a table as a list in JSON, from the state of the table that the query will see."""
        admitted, rows = self.admitted[name], self.places[name].sql(dialect="postgres")
        person = quote(admitted.person.name)
        people = _fetched(connection, f"SELECT DISTINCT {person} FROM {rows} AS r WHERE {person} IS NOT NULL", ())  # noqa: S608 - our own tree
        ids = people.column(0).combine_chunks()
        return json.dumps(list(map(str, ids.filter(pa.array(admitted.of(ids))).to_pylist())), ensure_ascii=False)


def open_server_rows(source: object, options: SourceOptions) -> ServerRows:
    """Describe a table on whose server queries will run."""
    if not isinstance(source, str) or not is_postgres(source):
        raise InvalidParameter(
            "with pushdown all tables are in one PostgreSQL database, and one of them is not: move it there, or leave "
            "pushdown out."
        )
    if options.clean:
        raise InvalidParameter("with pushdown the server reads the rows, and cannot clean cells: leave pushdown out.")
    address = address_of(source)
    server, selection = Address(address.uri), RowSelection(options.table or address.part, options.query)
    description = describe_table(address, selection)
    _require_unicode(server)
    return ServerRows(server, description)


def _require_unicode(server: Address) -> None:
    """Raise unless all text in the database is Unicode: otherwise a row could hold text that cannot be sent."""
    ((encoding,),) = _answer(server, "SELECT current_setting('server_encoding')")
    if encoding != "UTF8":
        raise InvalidParameter(f"pushdown needs a database in UTF8, and this one is in {encoding}: leave pushdown out.")


@contextmanager
def postgres_warehouse(tables: Mapping[str, StoredTable], limits: Limits | None = None) -> Iterator[PostgresWarehouse]:
    """Prepare queries on tables of one database that `open_server_rows` described."""
    servers = {_server_rows(stored).server for stored in tables.values()}
    if len(servers) != 1:
        raise InvalidParameter("with pushdown all tables are in one database, at the same address.")
    limits = limits or Limits()
    places = {name: _declared(stored) for name, stored in tables.items()}
    if limits.timed:
        _require_refusing(tables)
    yield PostgresWarehouse(servers.pop(), dict(tables), places, limits)


def _require_refusing(tables: Mapping[str, StoredTable]) -> None:
    """Raise unless the policy refuses sources in which a person has more rows than take part.

    The database would number all rows of such a person for each query, so its duration would reveal them.  Searching
    for such people here, and refusing the source then, would reveal as much; only a declaration does not.
    """
    for name, stored in tables.items():
        unit = stored.schema.unit
        if unit.column is not None and unit.more is not ExtraRowsRule.REFUSE:
            raise InvalidParameter(
                f"with pushdown the database numbers the rows of each person in table {name} for each query, and an "
                "analyst can measure how long that takes. Create a table or materialized view with at most "
                f"{counted(unit.max_rows, 'row')} of each person and write more: refuse into the unit, or leave "
                "pushdown out: then rows are numbered once."
            )


def _server_rows(stored: StoredTable) -> ServerRows:
    if not isinstance(stored.source, ServerRows):
        raise InvalidParameter("these rows were opened by another engine. Open the source with pushdown.")
    return stored.source


def _declared(stored: StoredTable) -> exp.Subquery:
    """Return the declared columns in their declared types."""
    about = _server_rows(stored).description
    columns = ", ".join(
        _selected(column, about.kinds[column.name], engine.longest_text(column, stored.schema))
        for column in stored.schema.columns
    )
    query = parse_one(f"SELECT {columns} FROM {about.rows}", dialect="postgres")  # noqa: S608 - quoted, or the holder's own
    return exp.Subquery(this=query)


def _semi_join(rows: exp.Subquery, person: Column, number: int) -> exp.Subquery:
    """Return the rows of people whose ids are in a list, which is a parameter and not part of the text."""
    values = exp.cast(exp.Parameter(this=exp.Literal.number(number)), "JSON")
    listed = exp.Anonymous(this="JSON_ARRAY_ELEMENTS_TEXT", expressions=[values])
    admitted = exp.select(exp.cast(exp.column("value"), _CAST[person.type])).from_(
        exp.alias_(listed, "value", table=True)
    )
    ids = next(item for item in rows.this.selects if item.alias_or_name == person.name).unalias()
    return exp.Subquery(this=rows.this.copy().where(exp.In(this=ids.copy(), query=exp.Subquery(this=admitted))))


def _fetched(connection: Any, text: str, parameters: Sequence[str]) -> pa.Table:
    with connection.cursor() as cursor:
        cursor.execute(text, parameters or None)
        return cursor.fetch_arrow_table()


def _selected(column: Column, kind: str, limit: engine.TextLimit | None) -> str:
    if kind not in _STORED[column.type]:
        raise InvalidParameter(
            f"column {column.name} is declared as {column.type} and stored as {kind}, so its values would have to be "
            f"interpreted one by one. Store it as {_STORED[column.type][0]}, make a view that does, or leave pushdown "
            "out."
        )
    name = quote(column.name)
    read = _READ[column.type].format(name if limit is None else limit.sql(name))
    return f"{read} AS {name}"
