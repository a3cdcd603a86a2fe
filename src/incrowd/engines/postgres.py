"""PostgreSQL: an address without a password, a connection to it, and its errors in words without values."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from incrowd.errors import IncrowdError, InvalidParameter, PackageMissing

_SCHEMES = ("postgresql://", "postgres://")
_SECRETS = {"password", "sslpassword"}
_CONNECT_SECONDS = 10  # a server that is there answers in less
Result = TypeVar("Result")
Trouble = Callable[[str], IncrowdError]
"""Makes the error from words that say what happened and what to do."""


@dataclass(frozen=True)
class Address:
    """A database, and perhaps a table in it: `uri` is for the client library, `part` is what follows `::`."""

    uri: str
    part: str | None = None

    @property
    def public(self) -> str:
        """The address in messages: without parameters."""
        return self.uri.partition("?")[0]

    @property
    def host(self) -> str:
        """The host, from the address or the environment."""
        host = self.uri.partition("://")[2].partition("?")[0].partition("/")[0].rpartition("@")[2]
        return host or _parameters(self.uri).get("host") or os.environ.get("PGHOST") or "localhost"


def is_postgres(source: object) -> bool:
    """Whether this is the address of a PostgreSQL database.

    >>> is_postgres("postgresql://me@host/db::visits"), is_postgres("visits.csv")
    (True, False)
    """
    return isinstance(source, str) and source.startswith(_SCHEMES)


def address_of(text: str) -> Address:
    """Read `postgresql://USER@HOST/DATABASE::TABLE`; a password in it is refused.

    An address ends up in shell histories, process lists, policies and internal files; the client library reads
    passwords from safer places.

    >>> address_of("postgresql://me@[::1]:5433/clinic::raw.visits")
    Address(uri='postgresql://me@[::1]:5433/clinic', part='raw.visits')
    >>> address_of("postgresql://me:secret@host/clinic")
    Traceback (most recent call last):
    ...
    incrowd.errors.InvalidParameter: an address must not hold a password: it would appear in files and process ...
    """
    scheme, mark, rest = text.partition("://")
    start = max(rest.find("/"), rest.find("]"), 0)
    before, split, part = rest[start:].rpartition("::")
    uri = f"{scheme}{mark}{rest[:start]}{before if split else rest[start:]}"
    user, at, _ = rest.partition("?")[0].rpartition("@")
    if (at and ":" in user) or _SECRETS & _parameters(uri).keys():
        raise InvalidParameter(
            "an address must not hold a password: it would appear in files and process lists. Put it into ~/.pgpass, "
            "or into the environment as PGPASSWORD."
        )
    return Address(uri, part if split else None)


@contextmanager
def connect(address: Address) -> Iterator[Any]:
    """Open a connection with a transaction, which is rolled back at the end unless it was committed."""
    settings = f"connect_timeout={_CONNECT_SECONDS}&application_name=incrowd&client_encoding=UTF8"
    mark = "&" if "?" in address.uri else "?"
    with _driver("dbapi").connect(f"{address.uri}{mark}{settings}", autocommit=False) as connection:
        yield connection


def explained(work: Callable[[], Result], trouble: Trouble) -> Result:
    """Do the work; an error of the driver becomes the error that `trouble` makes.

    A message of the server may quote the query or a value.  So only its code is read, and the new error is raised
    after the old one was released: nothing that holds a value is attached to it.
    """
    words = ""
    try:
        return work()
    except _errors() as error:
        words = _meaning(error)
    raise trouble(words)


def transact(address: Address, session: Sequence[str], work: Callable[[Any], Result], trouble: Trouble) -> Result:
    """Do the work on a connection after the statements of the session, as `explained` does."""

    def connected() -> Result:
        with connect(address) as connection:
            run(connection, *session)
            return work(connection)

    return explained(connected, trouble)


def stream(batches: Iterator[Any], trouble: Trouble) -> Iterator[Any]:
    """Pass on batches from the server; if they break off, raise the error that `trouble` makes."""
    words = None
    broken: tuple[type[Exception], ...] = (*_errors(), OSError)
    try:
        yield from batches
    except broken as error:
        words = _meaning(error)
    if words is not None:
        raise trouble(words)


def run(connection: Any, *statements: str) -> None:
    """Run statements without a result."""
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def answers(connection: Any, query: str) -> list[tuple[Any, ...]]:
    """Return the few rows of a query about the database itself."""
    with connection.cursor() as cursor:
        cursor.execute(query)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


def is_outage(words: str) -> bool:
    """Whether these words of `explained` say that the server was lost, not that rows are bad.

    >>> is_outage(_MEANINGS["57P"]), is_outage(_MEANINGS["22"])
    (True, False)
    """
    return words in {*(_MEANINGS[start] for start in ("08", "53", "57P")), _LET_IN, _UNREACHABLE, _BROKEN_OFF}


def _driver(module: str) -> Any:
    try:
        return importlib.import_module(f"adbc_driver_postgresql.{module}")
    except ImportError as error:
        raise PackageMissing(
            "PostgreSQL needs the package adbc_driver_postgresql, which is not installed. Run: "
            "pip install 'incrowd[postgres]'"
        ) from error


def _errors() -> tuple[type[Exception], ...]:
    import pyarrow as pa

    return (_driver("dbapi").Error, pa.ArrowException)


def _meaning(error: Exception) -> str:
    written = re.search(r"SQLSTATE: (\w{5})", str(error))  # an error in mid-stream has no other field for it
    state = getattr(error, "sqlstate", None) or (written and written[1])
    if not state:
        return _unreachable(str(error))
    for start, meaning in _MEANINGS.items():
        if state.startswith(start):
            return meaning
    return f"refuses the request (SQLSTATE {state}). Try it in psql, which shows the server's own words."


def _unreachable(text: str) -> str:
    if "Failed to connect" in text and ("FATAL" in text or "no password" in text):
        return _LET_IN
    return _UNREACHABLE if "Failed to connect" in text else _BROKEN_OFF


_LET_IN = (
    "does not admit this user: check database, user and password. The password comes from PGPASSWORD or ~/.pgpass."
)
_UNREACHABLE = "cannot be reached: check host and port, and that the server runs and accepts connections from here."
_BROKEN_OFF = "broke off: the connection was lost, or a value cannot be sent. Try again, or try it in psql."
_MEANINGS = {
    "42P01": "has no such table. Check the name, and the schema before it.",
    "42501": "does not permit this user to do it: ask its owner for the right, or write a query of what you may read.",
    "25006": "was asked to change something, and rows are only read here. Write a query that reads.",
    "3F": "has no such schema. Create it first, or name another.",
    "42P07": "now has a table of that name, and nothing is overwritten. Choose a new name.",
    "42701": "reserves a column's name, or takes two names for the same. Give the column another name.",
    "42710": "has a type of that name. Choose a new name.",
    "42": "does not understand the query, which must be one SELECT. Try it in psql, which shows the place.",
    "0A": "does not do this in a query that reads: it must be one SELECT that changes nothing. Try it in psql.",
    "22": "cannot process a value. Try it in psql, which shows the value.",
    "57014": "stopped the query: it ran longer than the server allows. Raise statement_timeout for this user.",
    "08": "broke off the connection. Try again when the server works.",
    "57P": "broke off the connection: it was shut down or the session ended. Try again when the server works.",
    "53": "has no disk space, memory or connection left. Free some and try again.",
}
"""What a class of codes means for a reader or a writer; the first that fits is used."""


def _parameters(uri: str) -> dict[str, str]:
    return dict(parse_qsl(uri.partition("?")[2]))
