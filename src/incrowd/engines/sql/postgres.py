"""PostgreSQL: declared tables asked where they are; the server computes, and only what the tree selects comes here."""

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
from incrowd.engines.postgres import Address, address_of, answers, connect, explained, is_outage, is_postgres, run
from incrowd.engines.readers.postgres import TableDescription, look_at
from incrowd.engines.readers.selection import RowSelection
from incrowd.engines.sql.dialects import in_postgres, replace_tables
from incrowd.engines.sql.engine import (
    FAILED,
    SLOW,
    Limits,
    SampledTable,
    StoredTable,
    TextLimit,
    asked_tables,
    longest_text,
)
from incrowd.errors import (
    IncrowdError,
    InvalidParameter,
    QuestionFailed,
    QuestionRefused,
    QuestionStopped,
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
"""How many trees are remembered as they are written for the server."""
_WHOLE = ("int2", "int4", "int8")
_STORED = {
    Type.INTEGER: _WHOLE,
    Type.DECIMAL: ("float8", *_WHOLE),
    Type.TEXT: ("text", "varchar"),
    Type.DATE: ("date",),
    Type.BOOLEAN: ("bool",),
}
"""What may be stored in a column of each type, so that nothing needs interpreting."""
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
    look: TableDescription

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in the order of the source."""
        return tuple(self.look.kinds)

    @property
    def rows(self) -> None:
        """Only reading them would tell how many there are, and they may change."""
        return

    @property
    def address(self) -> str:
        """Where the rows are, the same for every way to write it and without secrets."""
        return self.look.place

    @property
    def settings(self) -> Mapping[str, str]:
        """The table or query."""
        return {"format": "postgresql", **self.look.settings}

    @property
    def notes(self) -> tuple[str, ...]:
        """That nothing is copied."""
        return ("questions are computed by the server", *self.look.notes)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Refuse: rows on a server stay there."""
        del columns
        raise InvalidParameter("rows in the database stay there: only questions are computed. Leave pushdown out.")

    def digest(self) -> bytes:
        """Return 32 bytes that tell this content from any other, whatever the order of the rows; never shown."""
        words = ", ".join(
            f"SUM(CAST(CAST('x' || SUBSTR(MD5(CAST(asked AS TEXT)), {start}, 8) AS BIT(32)) AS BIGINT))"
            for start in (1, 9, 17, 25)
        )
        source = self.look.rows if "query" in self.look.settings else f"{self.look.rows} AS asked"

        def work() -> list[tuple[object, ...]]:
            with connect(self.server) as connection:
                run(connection, *_SESSION)
                return answers(connection, f"SELECT COUNT(*), {words} FROM {source}")  # noqa: S608 - quoted

        found = explained(work, lambda words: SourceUnreadable(f"{self.server.shown} {words} Nothing was charged."))
        return hashlib.sha256(repr((sorted(self.look.kinds.items()), found)).encode()).digest()


@dataclass(frozen=True, eq=False)
class PostgresWarehouse:
    """Tables of one database that can be asked from many threads: a question is one transaction that only reads."""

    server: Address
    tables: Mapping[str, StoredTable]
    places: Mapping[str, exp.Subquery]
    limits: Limits
    admitted: Mapping[str, PersonFilter] = field(default_factory=dict)
    """Tables of which only the rows of some people are seen."""

    def require(self, query: exp.Query, *, sampled: bool = False) -> None:
        """Refuse samples, and what the server would compute in its own way, or not for every row."""
        if sampled:
            raise QuestionRefused(
                "a secret sample is not drawn inside PostgreSQL: leave the rate out, or let the owner of the data "
                "leave pushdown out."
            )
        self.text(query)

    @cached_property
    def text(self) -> Callable[[exp.Query], str]:
        """What a tree is to the server; the same tree is rewritten once."""
        return lru_cache(_TEXTS)(self._text)

    def admitting(self, admitted: Mapping[str, PersonFilter]) -> PostgresWarehouse:
        """Return the same tables, of which some show the rows of admitted people alone."""
        return replace(self, admitted=dict(admitted))

    def load(self, queries: Sequence[exp.Query]) -> None:
        """Let the server compute every value of the views that these queries read, and keep nothing of it.

        A view may fail at a value, such as one that it cannot cast.  A question skips what its condition excludes; so
        without this, whether it fails would tell of rows, and it would fail after the charge.
        """
        for name in {name for query in queries for name in asked_tables(query, self.tables)}:
            if _server_rows(self.tables[name]).look.computed:
                self._compute(self.places[name].copy())

    def _compute(self, rows: exp.Subquery) -> None:
        text = f"SELECT SUM(LENGTH(CAST(r AS TEXT))) FROM {rows.sql(dialect='postgres')} AS r"  # noqa: S608 - our own tree
        limit = f"SET LOCAL statement_timeout = {max(1, int(self.limits.seconds * 1000))}"

        def work() -> list[tuple[object, ...]]:
            with connect(self.server) as connection:
                run(connection, *_SESSION, limit)
                return answers(connection, text)

        def trouble(words: str) -> IncrowdError:
            problem = f"the database {words} Nothing was charged."
            return QuestionFailed(problem) if is_outage(words) else SourceUnreadable(problem)

        explained(work, trouble)

    def check(self) -> None:
        """Do nothing: rows on a server may change, and are asked as they are."""

    def collect(self, query: exp.Query, drawn: SampledTable | None = None) -> pa.Table:
        """Run a query over the tables and return its rows; whatever goes wrong below is told in words without data."""
        return self.collect_together([query], drawn)[0]

    def collect_together(self, queries: Sequence[exp.Query], drawn: SampledTable | None = None) -> tuple[pa.Table, ...]:
        """Run queries in one transaction, so that all of them see the same rows whoever writes meanwhile."""
        for query in queries:
            self.require(query, sampled=drawn is not None)
        texts, begun = [self.text(query) for query in queries], time.monotonic()

        def work() -> tuple[pa.Table, ...]:
            with connect(self.server) as connection:
                run(connection, *_SESSION)
                asked = zip(queries, texts, strict=True)
                return tuple(self._fetch(connection, query, text, begun) for query, text in asked)

        def trouble(words: str) -> IncrowdError:
            if time.monotonic() - begun >= self.limits.seconds:
                return QuestionStopped(SLOW)
            return QuestionFailed(f"the database {words}") if is_outage(words) else SourceUnreadable(FAILED)

        return explained(work, trouble)

    def _fetch(self, connection: Any, query: exp.Query, text: str, begun: float) -> pa.Table:
        """Run one text in what is left of the time, over the rows of admitted people where there is a gate."""
        left = self.limits.seconds - (time.monotonic() - begun)
        run(connection, f"SET LOCAL statement_timeout = {max(1, int(left * 1000))}")
        return _fetched(connection, text, [self._people(connection, name) for name in self._gated(query)])

    def _text(self, query: exp.Query) -> str:
        places = dict(self.places)
        for number, name in enumerate(self._gated(query), 1):
            places[name] = _semi_join(self.places[name], self.admitted[name].person, number)
        return in_postgres(replace_tables(query, places)).sql(dialect="postgres")

    def _gated(self, query: exp.Query) -> list[str]:
        return [name for name in asked_tables(query, self.tables) if name in self.admitted]

    def _people(self, connection: Any, name: str) -> str:
        """Return the ids of a table that are admitted, as a list in JSON: in the state that the question will see."""
        whose, rows = self.admitted[name], self.places[name].sql(dialect="postgres")
        person = quote(whose.person.name)
        found = _fetched(connection, f"SELECT DISTINCT {person} FROM {rows} AS r WHERE {person} IS NOT NULL", ())  # noqa: S608 - our own tree
        ids = found.column(0).combine_chunks()
        return json.dumps([str(each) for each in ids.filter(pa.array(whose.of(ids))).to_pylist()], ensure_ascii=False)


def open_server_rows(source: object, options: SourceOptions) -> ServerRows:
    """Describe a table that is to be asked where it is."""
    if not isinstance(source, str) or not is_postgres(source):
        raise InvalidParameter(
            "with pushdown all tables are of one PostgreSQL database, and one of them is not: move it there, or leave "
            "pushdown out."
        )
    address = address_of(source)
    server, look = Address(address.uri), look_at(address, RowSelection(options.table or address.part, options.query))
    _require_unicode(server)
    return ServerRows(server, look)


def _require_unicode(server: Address) -> None:
    """Raise unless all text in the database is Unicode: else a row could hold some that cannot be sent."""

    def work() -> list[tuple[object, ...]]:
        with connect(server) as connection:
            return answers(connection, "SELECT current_setting('server_encoding')")

    ((encoding,),) = explained(work, lambda words: SourceUnreadable(f"{server.shown} {words} Nothing was charged."))
    if encoding != "UTF8":
        raise InvalidParameter(f"pushdown needs a database in UTF8, and this one is in {encoding}: leave pushdown out.")


@contextmanager
def postgres_warehouse(tables: Mapping[str, StoredTable], limits: Limits | None = None) -> Iterator[PostgresWarehouse]:
    """Make ready to ask tables of one database that `open_server_rows` described."""
    servers = {_server_rows(stored).server for stored in tables.values()}
    if len(servers) != 1:
        raise InvalidParameter("with pushdown all tables are of one database, at the same address.")
    limits = limits or Limits()
    places = {name: _declared(stored) for name, stored in tables.items()}
    if limits.timed:
        _require_refusing(tables)
    yield PostgresWarehouse(servers.pop(), dict(tables), places, limits)


def _require_refusing(tables: Mapping[str, StoredTable]) -> None:
    """Raise unless a source in which somebody has more rows than take part is refused by declaration.

    The database would number all rows of such a person for each question, so how long it takes would tell of them.  To
    look for them here and to refuse what is found would tell as much; only the policy can say that a source is refused.
    """
    for name, stored in tables.items():
        unit = stored.schema.unit
        if unit.column is not None and unit.more is not ExtraRowsRule.REFUSE:
            raise InvalidParameter(
                f"with pushdown the database numbers the rows of each person in table {name} for each question, and "
                "those who ask a server can measure how long that takes. Make a table or materialized view with at "
                f"most {counted(unit.max_rows, 'row')} of each person and write more: refuse into the unit, or leave "
                "pushdown out: then rows are numbered once."
            )


def _server_rows(stored: StoredTable) -> ServerRows:
    if not isinstance(stored.source, ServerRows):
        raise InvalidParameter("these rows were opened by another engine. Open the source with pushdown.")
    return stored.source


def _declared(stored: StoredTable) -> exp.Subquery:
    """Return the declared columns in their declared types."""
    look = _server_rows(stored).look
    wanted = ", ".join(
        _selected(column, look.kinds[column.name], longest_text(column, stored.schema))
        for column in stored.schema.columns
    )
    query = parse_one(f"SELECT {wanted} FROM {look.rows}", dialect="postgres")  # noqa: S608 - quoted, or the owner's own
    return exp.Subquery(this=query)


def _semi_join(rows: exp.Subquery, person: Column, number: int) -> exp.Subquery:
    """Return the rows of people whose ids are in a list that is sent beside the text, never in it."""
    values = exp.cast(exp.Parameter(this=exp.Literal.number(number)), "JSON")
    listed = exp.Anonymous(this="JSON_ARRAY_ELEMENTS_TEXT", expressions=[values])
    admitted = exp.select(exp.cast(exp.column("value"), _CAST[person.type])).from_(
        exp.alias_(listed, "value", table=True)
    )
    whose = next(each for each in rows.this.selects if each.alias_or_name == person.name).unalias()
    return exp.Subquery(this=rows.this.copy().where(exp.In(this=whose.copy(), query=exp.Subquery(this=admitted))))


def _fetched(connection: Any, text: str, parameters: Sequence[str]) -> pa.Table:
    with connection.cursor() as cursor:
        cursor.execute(text, parameters or None)
        return cursor.fetch_arrow_table()


def _selected(column: Column, kind: str, limit: TextLimit | None) -> str:
    if kind not in _STORED[column.type]:
        raise InvalidParameter(
            f"column {column.name} is declared as {column.type} and stored as {kind}, so its values would have to be "
            f"interpreted one by one. Store it as {_STORED[column.type][0]}, make a view that does, or leave pushdown "
            "out."
        )
    name = quote(column.name)
    read = _READ[column.type].format(name if limit is None else limit.sql(name))
    return f"{read} AS {name}"
