"""A DB-API 2 connection to a server (PEP 249), so that `pandas.read_sql` and `polars.read_database` can ask.

Every `execute` is a query that costs what the connection was told; a repeated one costs the dataset nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, Self, TypedDict, Unpack

from incrowd.client.client import Client, Number
from incrowd.client.reply import Reply
from incrowd.errors import IncrowdError, LedgerUnavailable, ServerUnavailable

apilevel = "2.0"
threadsafety = 1
paramstyle = "qmark"

STRING, NUMBER, DATETIME = frozenset({"text"}), frozenset({"integer", "double", "boolean"}), frozenset({"date"})
_CODES = {"decimal": "double"}
"""The codes of types, where they differ from the names in answers: as other drivers call numbers with a point."""


class Warning(Exception):  # noqa: A001 (PEP 249 names it)
    """Never raised; PEP 249 wants it."""


class AnswerWarning(UserWarning):
    """Says of which part of a table the numbers of an answer are, such as of at most 4 rows of each person."""


class Error(Exception):
    """The root of the errors of this module."""


class InterfaceError(Error):
    """The connection or cursor is closed, or nothing was asked yet."""


class DatabaseError(Error):
    """The server refused the query."""


class DataError(DatabaseError):
    """Never raised; PEP 249 wants it."""


class OperationalError(DatabaseError):
    """The server does not answer."""


class IntegrityError(DatabaseError):
    """Never raised; PEP 249 wants it."""


class InternalError(DatabaseError):
    """Never raised; PEP 249 wants it."""


class ProgrammingError(DatabaseError):
    """The query or its parameters cannot be read."""


class NotSupportedError(DatabaseError):
    """Something that no query can do."""


class Wishes(TypedDict, total=False):
    """How a connection answers, and whether the way to the server is safe without HTTPS."""

    intervals: bool
    insecure: bool


def connect(
    address: str, token: str, epsilon: Number, delta: Number | None = None, **wishes: Unpack[Wishes]
) -> Connection:
    """Return a connection on which every query costs ε (and δ); `intervals` adds `…_low` and `…_high` columns.

    >>> connect("http://localhost:8000", "ic_token", epsilon=0.1).cursor().fetchall()
    Traceback (most recent call last):
    incrowd.client.dbapi.InterfaceError: no query was executed yet: call execute first.
    """
    client = Client(address, token, insecure=wishes.get("insecure", False))
    return Connection(client, epsilon, delta, wishes.get("intervals", False))


@contextmanager
def _standard_errors() -> Iterator[None]:
    """Raise what a server refuses as the errors of PEP 249."""
    try:
        yield
    except (ServerUnavailable, LedgerUnavailable) as problem:
        raise OperationalError(str(problem)) from problem
    except IncrowdError as problem:
        raise (ProgrammingError if problem.exit_code == 2 else DatabaseError)(str(problem)) from problem


class Connection:
    """A connection; it holds nothing open, so closing it only forbids further queries."""

    Warning, Error, InterfaceError, DatabaseError = Warning, Error, InterfaceError, DatabaseError
    DataError, OperationalError, IntegrityError = DataError, OperationalError, IntegrityError
    InternalError, ProgrammingError, NotSupportedError = InternalError, ProgrammingError, NotSupportedError

    def __init__(self, client: Client, epsilon: Number, delta: Number | None, intervals: bool) -> None:
        self._client, self._epsilon, self._delta, self._intervals = client, epsilon, delta, intervals
        self._closed = False

    def cursor(self) -> Cursor:
        """Return a new cursor."""
        self._check()
        return Cursor(self)

    def commit(self) -> None:
        """Do nothing: an answer is charged for good as soon as it was asked."""
        self._check()

    def rollback(self) -> None:
        """Do nothing: an answer cannot be taken back."""
        self._check()

    def close(self) -> None:
        """Forbid further queries."""
        self._closed = True

    def ask(self, sql: str, parameters: Sequence[Any] = ()) -> tuple[Reply, list[tuple[str, str, tuple[Any, ...]]]]:
        """Return the reply to a query, and its columns as they were wished."""
        self._check()
        with _standard_errors():
            reply = self._client.query(sql, self._epsilon, self._delta, parameters)
        if reply.note and reply.certificate:
            warnings.warn(reply.note, AnswerWarning, stacklevel=4)
        plain = [(column.name, column.type, column.values) for column in reply.columns]
        return reply, reply.parts() if self._intervals else plain

    def tables(self) -> list[dict[str, Any]]:
        """Return the tables that may be asked about, as they are declared; it costs nothing."""
        self._check()
        with _standard_errors():
            return list(self._client.schema()["tables"])

    def _check(self) -> None:
        if self._closed:
            raise InterfaceError("this connection is closed: open another one.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_arguments: object) -> None:
        self.close()


class Cursor:
    """A cursor; `reply` holds the last answer with its intervals, cost and certificate."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self.reply: Reply | None = None
        self._columns: list[tuple[str, str, tuple[Any, ...]]] | None = None
        self._rows: Iterator[tuple[Any, ...]] = iter(())
        self._closed = False

    @property
    def description(self) -> list[tuple[str, str, None, None, None, None, bool]] | None:
        """Name and type of each column, or None if nothing was asked yet."""
        if self._columns is None:
            return None
        return [(name, _CODES.get(kind, kind), None, None, None, None, True) for name, kind, _ in self._columns]

    @property
    def rowcount(self) -> int:
        """How many rows the last answer has; -1 if nothing was asked yet."""
        return -1 if self._columns is None else len(self._columns[0][2]) if self._columns else 0

    def execute(self, operation: str, parameters: Sequence[Any] = ()) -> Cursor:
        """Ask a query; parameters stand for question marks in it, and are bound by the server as values."""
        self._check()
        self.reply, self._columns = self.connection.ask(operation, parameters or ())
        self._rows = iter(zip(*(values for _, _, values in self._columns), strict=True))
        return self

    def executemany(self, *_arguments: object) -> NoReturn:
        """Refuse: several queries would be charged, and only one answer be seen."""
        raise NotSupportedError("execute one query at a time, or use Client.query_batch for one charge.")

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, or None after the last one."""
        self._check_asked()
        return next(self._rows, None)

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """Return the next rows."""
        self._check_asked()
        count = self.arraysize if size is None else size
        return [row for _, row in zip(range(count), self._rows, strict=False)]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows that are left."""
        self._check_asked()
        return list(self._rows)

    def close(self) -> None:
        """Forbid further use."""
        self._closed = True

    def setinputsizes(self, sizes: object) -> None:
        """Do nothing; PEP 249 allows that."""

    def setoutputsize(self, size: object, column: object = None) -> None:
        """Do nothing; PEP 249 allows that."""

    def _check(self) -> None:
        if self._closed:
            raise InterfaceError("this cursor is closed: open another.")

    def _check_asked(self) -> None:
        self._check()
        if self._columns is None:
            raise InterfaceError("no query was executed yet: call execute first.")

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        self._check_asked()
        return self._rows

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_arguments: object) -> None:
        self.close()
