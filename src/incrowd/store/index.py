"""Index: which entry last set each key, in a form that shows damage, also where a key is missing.

Every row names the key that follows it and holds a seal over its own content.  The seal shows a change of the row.  The
row before a key that was never set proves that, because it names a later key as the next one.  So a flipped bit cannot
make the ledger forget a dataset.  The rows form a ring that begins and ends at the empty key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from incrowd.core.codec import reread
from incrowd.errors import LedgerCorrupted
from incrowd.store.chain_entry import Seal

if TYPE_CHECKING:
    from incrowd.store.database import Tables, Transaction

DOMAIN = "incrowd index 3"
_COLUMNS = ("key", "sequence", "following", "seal")
RING = ""  # sorts before every key


@dataclass(frozen=True)
class Pointer:
    """One row of the index: the entry that last set a key, and the next key."""

    key: str
    sequence: int
    following: str

    def proves_absence(self, key: str) -> bool:
        """Whether no key lies between this row and the next, while `key` would."""
        return self.key < key and (key < self.following or self.following == RING)

    def row(self, seal: Seal) -> dict[str, Any]:
        """Return the sealed row."""
        content = [seal.chain, self.key, self.sequence, self.following]
        return {**vars(self), "seal": seal.of_text(DOMAIN, reread(content))}


@dataclass(frozen=True)
class Index:
    """The index of one chain, inside a transaction."""

    connection: Transaction
    tables: Tables
    seal: Seal

    def begin(self) -> None:
        """Write the ring of an empty index; its only row points at the first entry."""
        self._insert(Pointer(RING, 1, RING))

    def find(self, key: str) -> int | None:
        """Return the number of the entry that last set a key, or None if it was provably never set."""
        pointer = self._at_or_before(key)
        return pointer.sequence if pointer.key == key else None

    def between(self, first: str, beyond: str) -> dict[str, int]:
        """Return all keys from `first` on and before `beyond`, proved complete."""
        rows = self._rows('WHERE "key" >= :first AND "key" < :beyond ORDER BY "key"', first=first, beyond=beyond)
        pointers = [self._sealed(row) for row in rows]
        before = self._at_or_before(first)
        ring = pointers if pointers and pointers[0] == before else [before, *pointers]
        broken = any(one.following != other.key for one, other in pairwise(ring))
        if broken or RING < ring[-1].following < beyond:
            raise _damaged()
        return {pointer.key: pointer.sequence for pointer in pointers}

    def point(self, key: str, sequence: int) -> None:
        """Let a key point at a later entry; a new key is put between its neighbors."""
        pointer = self._at_or_before(key)
        if pointer.key == key:
            self._update(replace(pointer, sequence=sequence))
        else:
            self._insert(Pointer(key, sequence, pointer.following))
            self._update(replace(pointer, following=key))

    def reseal(self, seal: Seal) -> None:
        """Seal every row anew, after all of them were proved by the old seal."""
        pointers = [self._sealed(row) for row in self._rows('ORDER BY "key"')]
        ends = [*pointers[1:], *pointers[:1]]
        if not pointers or [one.following for one in pointers] != [other.key for other in ends]:
            raise _damaged()
        for pointer in pointers:
            self._update(pointer, seal)

    def rows(self) -> list[dict[str, Any]]:
        """Return all rows as they are, unchecked, in the order of their keys."""
        return [dict(zip(_COLUMNS, row, strict=True)) for row in self._rows('ORDER BY "key"')]

    def _at_or_before(self, key: str) -> Pointer:
        rows = self._rows('WHERE "key" <= :at ORDER BY "key" DESC LIMIT 1', at=key)
        pointer = self._sealed(rows[0] if rows else None)
        if pointer.key != key and not pointer.proves_absence(key):
            raise _damaged()
        return pointer

    def _rows(self, which: str, **values: str) -> Sequence[tuple[Any, ...]]:
        query = f'SELECT "key", sequence, following, seal FROM {self.tables.latest} {which}'  # noqa: S608 - our own
        return self.connection.execute(query, values)

    def _sealed(self, row: Any) -> Pointer:
        match row:
            case (str(key), int(sequence), str(following), str(seal)):
                pointer = Pointer(key, sequence, following)
                if pointer.row(self.seal)["seal"] == seal:
                    return pointer
        raise _damaged()

    def _insert(self, pointer: Pointer) -> None:
        self.connection.execute(
            f'INSERT INTO {self.tables.latest} ("key", sequence, following, seal) '  # noqa: S608 - our own table
            "VALUES (:key, :sequence, :following, :seal)",
            pointer.row(self.seal),
        )

    def _update(self, pointer: Pointer, seal: Seal | None = None) -> None:
        self.connection.execute(
            f"UPDATE {self.tables.latest} SET sequence = :sequence, "  # noqa: S608 - our own table
            'following = :following, seal = :seal WHERE "key" = :key',
            pointer.row(seal or self.seal),
        )


def sealed_rows(seal: Seal, index: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the rows that an index must have, given which entry last set each key.

    >>> [row["following"] for row in sealed_rows(Seal("c0ffee"), {"b": 3, "a": 2})]
    ['a', 'b', '']
    """
    ring = [RING, *sorted(index), RING]
    return [Pointer(key, index.get(key, 1), following).row(seal) for key, following in pairwise(ring)]


def _damaged() -> LedgerCorrupted:
    return LedgerCorrupted(
        "the index of the ledger is damaged, so the amount spent is not certain. Run incrowd ledger check, and "
        "restore the ledger from a backup."
    )
