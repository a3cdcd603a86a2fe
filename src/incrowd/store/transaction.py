"""What one transaction sees of a chain, and what it adds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from incrowd.core.codec import canonical
from incrowd.errors import InvalidParameter, LedgerCorrupted, UnsupportedVersion
from incrowd.store.index import Index
from incrowd.store.link import VERSION, Anchor, Key, Link, link, text_of

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

    from incrowd.store.tables import Tables


@dataclass(frozen=True)
class Reader:
    """One state of a chain; whatever it reads was checked against its hash."""

    connection: Connection
    tables: Tables
    head: Anchor

    @property
    def index(self) -> Index:
        """Where each key was last set."""
        return Index(self.connection, self.tables, self.head.chain)

    def value(self, key: Key) -> Any:
        """Return what the last entry that sets a key says, or None if no entry does."""
        text = text_of(key)
        number = self.index.find(text)
        return None if number is None else self._setting(number, text)

    def values(self, under: Key) -> dict[Key, Any]:
        """Return the values of all keys that begin with `under` and go on, in the order of their text."""
        first = text_of(under)[:-1] + ","
        beyond = first[:-1] + "-"  # the character after the comma
        found = self.index.between(first, beyond)
        return {tuple(json.loads(text)): self._setting(number, text) for text, number in found.items()}

    def links(self, after: int, limit: int) -> list[Link]:
        """Return up to `limit` entries that follow the one numbered `after`."""
        return [_sealed(row, self.head.chain) for row in self.rows(after, limit)]

    def rows(self, after: int, limit: int) -> Sequence[Row[Any]]:
        """Return the bare rows of entries, unchecked."""
        entries = self.tables.entries
        query = entries.select().where(entries.c.sequence > after).order_by(entries.c.sequence).limit(limit)
        return self.connection.execute(query).all()

    def _setting(self, number: int, text: str) -> Any:
        for found in self.links(number - 1, 1):
            if found.sequence == number and text in found.sets:
                return found.sets[text]
        raise LedgerCorrupted(
            f"entry {number} of the ledger is missing or is another one than it was. Run incrowd ledger check, and "
            "restore the ledger from a backup."
        )


@dataclass(frozen=True)
class Writer:
    """A chain held alone: what it read stays true, reads see what was already added, `flush` writes it all."""

    reader: Reader
    at: str
    added: list[Link] = field(default_factory=list)
    seen: dict[str, Any] = field(default_factory=dict)

    @property
    def head(self) -> Anchor:
        """The place after which the next entry comes."""
        return self.added[-1].anchor if self.added else self.reader.head

    def value(self, key: Key) -> Any:
        """Return the value of a key, or None."""
        text = text_of(key)
        if text not in self.seen:
            self.seen[text] = self.reader.value(key)
        return self.seen[text]

    def append(self, kind: str, body: Mapping[str, Any], sets: Mapping[Key, Any]) -> Link:
        """Add an entry at the end."""
        new = link(self.head, self.at, kind, body, sets)
        self.added.append(new)
        self.seen.update(new.sets)
        return new

    def flush(self) -> None:
        """Write what was added: the entries, the index, the head."""
        if not self.added:
            return
        connection, tables = self.reader.connection, self.reader.tables
        connection.execute(tables.entries.insert(), [_row(new) for new in self.added])
        for key, number in {key: new.sequence for new in self.added for key in new.sets}.items():
            self.reader.index.point(key, number)
        connection.execute(tables.head.update().values(sequence=self.head.sequence, hash=self.head.hash))


def head_of(connection: Connection, tables: Tables, shown: str) -> Anchor:
    """Return the place where a chain says it ends, after checking its version."""
    from sqlalchemy import select

    versions = connection.execute(select(tables.head.c.version)).scalars().all()
    if versions and versions[0] != VERSION:
        raise UnsupportedVersion(
            f"the ledger at {shown} has version {versions[0]}; this incrowd knows version {VERSION}. "
            "Use the version of incrowd that wrote it, or a newer one."
        )
    head = tables.head.c
    match connection.execute(select(head.chain, head.sequence, head.hash)).all():
        case [(str(chain), int(sequence), str(found))]:
            return Anchor(chain, sequence, found)
    raise LedgerCorrupted(f"the ledger at {shown} has lost its head: restore it from a backup.")


def checked(reader: Reader, shown: str) -> Reader:
    """Return the reader if the chain really ends where it says."""
    rows = reader.rows(reader.head.sequence - 1, 2)
    if len(rows) != 1 or _sealed(rows[0], reader.head.chain).anchor != reader.head:
        raise LedgerCorrupted(
            f"the ledger at {shown} does not end with entry {reader.head.sequence}, as its head says: entries were cut "
            "off, added or changed. Run incrowd ledger check, and restore the ledger from a backup."
        )
    return reader


def read_row(row: Row[Any], chain: str) -> Link | None:
    """Return the entry in a row, or None if the row holds no canonical entry.  The hash is not checked."""
    try:
        body, sets = json.loads(row.body), json.loads(row.sets)
        if canonical(body) != row.body or canonical(sets) != row.sets or not isinstance(sets, dict):
            return None
    except (ValueError, TypeError, RecursionError, InvalidParameter):
        return None
    return Link(chain, row.sequence, row.at, row.kind, body, sets, row.previous, row.hash)


def _sealed(row: Row[Any], chain: str) -> Link:
    found = read_row(row, chain)
    if found is None or not found.intact:
        raise LedgerCorrupted(
            f"entry {row.sequence} of the ledger was changed: its hash does not match its content. "
            "Run incrowd ledger check, and restore the ledger from a backup."
        )
    return found


def _row(new: Link) -> dict[str, Any]:
    plain = {name: value for name, value in vars(new).items() if name != "chain"}
    return plain | {"body": canonical(new.body), "sets": canonical(new.sets)}
