"""The three tables of a chain: its entries, which entry last set each key, and where it ends."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKey, Integer, MetaData, String, Table, Text
from sqlalchemy.types import TypeEngine

_SEQUENCE = BigInteger().with_variant(Integer(), "sqlite")


@dataclass(frozen=True)
class Tables:
    """The tables of one chain; everything but `entries` can be derived again from `entries`."""

    metadata: MetaData
    entries: Table
    latest: Table
    head: Table

    @property
    def all(self) -> tuple[Table, Table, Table]:
        """The tables, in the order in which they are made."""
        return self.entries, self.latest, self.head


def tables_of(name: str) -> Tables:
    """Describe the tables of the chain called `name`.

    >>> [table.name for table in tables_of("ledger").all]
    ['ledger_entries', 'ledger_latest', 'ledger_head']
    """
    metadata = MetaData()
    entries = Table(
        f"{name}_entries",
        metadata,
        Column("sequence", _SEQUENCE, primary_key=True, autoincrement=False),
        *(Column(column, Text, nullable=False) for column in ("at", "kind", "body", "sets")),
        *(Column(column, String(64), nullable=False) for column in ("previous", "hash")),
    )
    latest = Table(
        f"{name}_latest",
        metadata,
        Column("key", _bytewise(), primary_key=True),
        Column("sequence", _SEQUENCE, ForeignKey(entries.c.sequence), nullable=False),
        Column("following", Text, nullable=False),
        Column("seal", String(64), nullable=False),
        sqlite_with_rowid=False,
    )
    head = Table(
        f"{name}_head",
        metadata,
        Column("one", Integer, CheckConstraint("one = 1"), primary_key=True, autoincrement=False),
        Column("version", Integer, nullable=False),
        Column("chain", Text, nullable=False),
        Column("sequence", _SEQUENCE, nullable=False),
        Column("hash", String(64), nullable=False),
    )
    return Tables(metadata, entries, latest, head)


def _bytewise() -> TypeEngine[str]:
    """Return a text type that is ordered byte by byte, whatever the language of the server."""
    return Text(collation="C").with_variant(Text(), "sqlite")
