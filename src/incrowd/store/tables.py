"""The three tables of a chain: its entries, which entry last set each key, and where it ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple


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
    """The names of the tables of one chain; everything but `entries` can be derived again from `entries`."""

    name: str

    @property
    def entries(self) -> str:
        """The table of entries."""
        return f"{self.name}_entries"

    @property
    def latest(self) -> str:
        """The table that tells which entry last set each key."""
        return f"{self.name}_latest"

    @property
    def head(self) -> str:
        """The table, of one row, that tells where the chain ends."""
        return f"{self.name}_head"

    @property
    def all(self) -> tuple[str, str, str]:
        """The tables, in the order in which they are made.

        >>> Tables("ledger").all
        ('ledger_entries', 'ledger_latest', 'ledger_head')
        """
        return self.entries, self.latest, self.head

    def creation(self, dialect: StoreDialect) -> tuple[str, str, str]:
        """Return the statements that make the tables."""
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
