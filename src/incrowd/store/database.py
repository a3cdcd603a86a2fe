"""Database: where the tables of a chain live, and what must hold before anything is written there."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol

from incrowd.errors import InvalidParameter, LedgerUnavailable

if TYPE_CHECKING:
    from incrowd.store.tables import Tables

_SQLITE = "sqlite:///"


class Conflict(LedgerUnavailable):
    """Two transactions met and the database undid this one whole; it may be tried again."""


class Transaction(Protocol):
    """An open transaction: statements in SQL that both databases understand, with their values by name (`:name`)."""

    def execute(self, statement: str, values: Mapping[str, Any] | None = None) -> Sequence[tuple[Any, ...]]:
        """Run one statement and return its rows, if it has some."""


class NamedLocks(Protocol):
    """Names of which each is held by one at a time among all who share a database; safe for many threads.

    What somebody held is let go when he is gone.
    """

    def alone(self, name: str) -> AbstractContextManager[bool]:
        """Hold a name until the end of the block, and tell whether that was possible: it is not waited for."""

    def close(self) -> None:
        """Let go of everything."""


class Database(Protocol):
    """A place for one chain that commits durably or says that it cannot."""

    @property
    def shown(self) -> str:
        """The address as it may be shown: without a password."""

    @property
    def tables(self) -> Tables:
        """The tables of the chain."""

    def bound(self) -> Database:
        """Return the same place, bound to what is there now: a file that takes its place later is refused."""

    def reading(self) -> AbstractContextManager[Transaction]:
        """Open a transaction that sees one state of the chain and changes nothing."""

    def writing(self) -> AbstractContextManager[Transaction]:
        """Open a serializable transaction, alone at the chain's head; leaving it commits durably."""

    def version(self) -> Hashable | None:
        """Return a value that changes with every change; None where that is not known without waiting."""

    def create(self, fill: Callable[[Transaction], None]) -> None:
        """Make the tables and fill them, all or nothing, unless there is something at the address already."""

    def holds(self, chain: str) -> NamedLocks:
        """Return what can be held alone among all who work with the chain of this name; to be closed at the end."""


def database_at(address: str, name: str) -> Database:
    """Return the place of the chain called `name` at an address; nothing is opened yet.

    >>> database_at("sqlite:////tmp/ledger.sqlite", "ledger").shown
    '/tmp/ledger.sqlite'
    """
    if not re.fullmatch(r"[a-z][a-z_]{0,30}", name):
        raise InvalidParameter("the name of a chain is at most 31 lowercase letters and underscores.")
    scheme = address.partition(":")[0].partition("+")[0]
    if scheme == "sqlite":
        from incrowd.store.sqlite import sqlite_at

        return sqlite_at(address, name)
    if scheme in ("postgresql", "postgres"):
        from incrowd.store.postgres import postgres_at

        return postgres_at(address, name)
    raise InvalidParameter(
        "this address is not one of a ledger; write sqlite:///FILE for a file, or postgresql://USER@HOST/DATABASE."
    )


@contextmanager
def explained(explain: Callable[[Exception], LedgerUnavailable], driver: type[Exception]) -> Iterator[None]:
    """Turn what a driver raises inside into an error that says what to do."""
    try:
        yield
    except (driver, OSError) as error:
        raise explain(error) from error


def sibling_address(ledger: str, name: str) -> str:
    """Return the address of the book called `name` that belongs to the ledger at an address.

    >>> sibling_address("sqlite:////srv/.incrowd/ledger.sqlite", "access")
    'sqlite:////srv/.incrowd/ledger.access.sqlite'
    >>> sibling_address("postgresql://me@host/privacy", "access")
    'postgresql://me@host/privacy'
    """
    if not ledger.startswith(_SQLITE):
        return ledger
    path = PurePosixPath(ledger.removeprefix(_SQLITE))
    return f"{_SQLITE}{path.with_name(f'{path.stem}.{name}{path.suffix}')}"
