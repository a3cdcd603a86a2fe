"""Database: where the three tables of a chain are stored, and what must hold before anything is written there."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, NamedTuple, Protocol

from incrowd.errors import InvalidParameter, LedgerUnavailable

_SQLITE = "sqlite:///"


class Conflict(LedgerUnavailable):
    """Two transactions met and the database undid this one whole; it may be tried again."""


class EntryRow(NamedTuple):
    """One row of the entries, unchecked: the columns of that table, in their order."""

    sequence: Any
    at: Any
    kind: Any
    body: Any
    sets: Any
    previous: Any
    hash: Any


@dataclass(frozen=True)
class StoreDialect:
    """How a database spells what the tables need: whole numbers, text ordered byte by byte, a table kept by its key."""

    number: str
    bytewise: str
    by_key: str


@dataclass(frozen=True)
class Tables:
    """The names of the tables of one chain; all but `entries` can be recomputed from `entries`."""

    name: str

    @property
    def entries(self) -> str:
        """The table of entries."""
        return f"{self.name}_entries"

    @property
    def latest(self) -> str:
        """The table of the entry that last set each key."""
        return f"{self.name}_latest"

    @property
    def head(self) -> str:
        """The table, of one row, that says where the chain ends."""
        return f"{self.name}_head"

    @property
    def all(self) -> tuple[str, str, str]:
        """The tables, in the order in which they are created.

        >>> Tables("ledger").all
        ('ledger_entries', 'ledger_latest', 'ledger_head')
        """
        return self.entries, self.latest, self.head

    def forbidden(self, end: str) -> list[tuple[str, str, str]]:
        """Return the changes that triggers stop: entries only grow after `end`, and nothing moves backwards.

        Each is a kind of change, a table, and the condition under which it is stopped.
        """
        entries, latest, head = self.all
        return [
            ("UPDATE", entries, "true"),
            ("DELETE", entries, "true"),
            ("DELETE", latest, "true"),
            ("DELETE", head, "true"),
            ("INSERT", entries, f"NEW.sequence <> {end} + 1"),
            ("UPDATE", latest, "NEW.sequence < OLD.sequence OR NEW.key <> OLD.key"),
            ("UPDATE", head, "NEW.sequence <= OLD.sequence OR NEW.chain <> OLD.chain"),
        ]

    def creation(self, dialect: StoreDialect) -> tuple[str, str, str]:
        """Return the statements that create the tables."""
        number, bytewise = dialect.number, dialect.bytewise
        return (
            (
                f"CREATE TABLE {self.entries} (sequence {number} NOT NULL, at TEXT NOT NULL, kind TEXT NOT NULL, "
                "body TEXT NOT NULL, sets TEXT NOT NULL, previous VARCHAR(64) NOT NULL, hash VARCHAR(64) NOT NULL, "
                "PRIMARY KEY (sequence))"
            ),
            (
                f'CREATE TABLE {self.latest} ("key" {bytewise} NOT NULL, sequence {number} NOT NULL, '
                'following TEXT NOT NULL, seal VARCHAR(64) NOT NULL, PRIMARY KEY ("key"), '
                f"FOREIGN KEY (sequence) REFERENCES {self.entries} (sequence)) {dialect.by_key}"
            ),
            (
                f"CREATE TABLE {self.head} (one INTEGER NOT NULL CHECK (one = 1), version INTEGER NOT NULL, "
                f"chain TEXT NOT NULL, sequence {number} NOT NULL, hash VARCHAR(64) NOT NULL, PRIMARY KEY (one))"
            ),
        )


class Transaction(Protocol):
    """An open transaction: statements in SQL that both databases understand, with their values by name (`:name`)."""

    def execute(self, statement: str, values: Mapping[str, Any] | None = None) -> Sequence[tuple[Any, ...]]:
        """Run one statement and return its rows, if it has some."""


class NamedLocks(Protocol):
    """Locks by name among all processes that share a database; those of a dead process are free."""

    def alone(self, name: str) -> AbstractContextManager[bool]:
        """Lock a name until the end of the block without waiting, and return whether that was possible."""

    def close(self) -> None:
        """Release everything."""


class Database(Protocol):
    """A place for one chain that commits durably, or raises."""

    @property
    def address(self) -> str:
        """The address for messages: without a password."""

    @property
    def tables(self) -> Tables:
        """The tables of the chain."""

    def bound(self) -> Database:
        """Return the same place, bound to the present file: one that takes its place later is refused."""

    def reading(self) -> AbstractContextManager[Transaction]:
        """Open a transaction that sees one state of the chain and changes nothing."""

    def writing(self) -> AbstractContextManager[Transaction]:
        """Open a serializable transaction, alone at the chain's head; leaving it commits durably."""

    def version(self) -> Hashable | None:
        """Return a value that changes with every change; None where that is not known without waiting."""

    def create(self, fill: Callable[[Transaction], None]) -> None:
        """Create the tables and fill them, all or nothing, unless something is at the address already."""

    def locks(self, chain: str) -> NamedLocks:
        """Return locks among all processes that work with this chain; the caller closes them."""


def database_at(address: str, name: str) -> Database:
    """Return the place of the chain called `name` at an address; nothing is opened yet.

    >>> database_at("sqlite:////tmp/ledger.sqlite", "ledger").address
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
    """Turn an error of a driver into one that says what to do."""
    try:
        yield
    except (driver, OSError) as error:
        raise explain(error) from error


def sibling_address(ledger: str, name: str) -> str:
    """Return the address of the store called `name` beside the ledger at an address.

    >>> sibling_address("sqlite:////srv/.incrowd/ledger.sqlite", "access")
    'sqlite:////srv/.incrowd/ledger.access.sqlite'
    >>> sibling_address("postgresql://me@host/privacy", "access")
    'postgresql://me@host/privacy'
    """
    if not ledger.startswith(_SQLITE):
        return ledger
    path = PurePosixPath(ledger.removeprefix(_SQLITE))
    return f"{_SQLITE}{path.with_name(f'{path.stem}.{name}{path.suffix}')}"
