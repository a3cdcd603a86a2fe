"""Chain: an append-only list of entries on disk, each bound to all before it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from incrowd.store.chain_entry import (
    NOTHING_BEFORE,
    RENEWALS,
    RENEWED,
    SECRET_BYTES,
    VERSION,
    Anchor,
    ChainEntry,
    NoTally,
    Seal,
    Tally,
    is_sealed,
)
from incrowd.store.database import Conflict, Database, EntryRow, Transaction, database_at
from incrowd.store.group_commit import CommitQueue, QueuedChange
from incrowd.store.transaction import NEWEST, Reader, Writer, changed, check_totals, checked, reader_of, require_here

T = TypeVar("T")

_ATTEMPTS = 50  # of a write that others overtake: waits grow from 2 ms to 0.1 s, 2.5 s in all, then the error is raised
_BATCH, _ROWS = 500, 5_000  # entries read at a time; fewer transactions, some megabytes
_REMEMBERED = 256
"""How many results are remembered until something is written."""


def _now() -> datetime:
    return datetime.now(UTC)


class ChainMemory:
    """What this process has read of a chain.

    It needs no lock: threads exchange each attribute whole, and a dictionary belongs to one state of the chain.  A
    thread that loses a race adds to a dictionary that nobody reads any more.
    """

    def __init__(self) -> None:
        self.last = 0  # the number of an entry that certainly exists
        self._values: tuple[Anchor | None, dict[str, Any]] = (None, {})
        self._results: tuple[Hashable, dict[Hashable, Any]] = (None, {})

    def values(self, head: Anchor) -> dict[str, Any]:
        """Return the values of keys that were read at this head; those of an earlier head are forgotten."""
        known_head, values = self._values
        if known_head != head:
            values = {}
            self._values = (head, values)
        return values

    def results(self, version: Hashable) -> dict[Hashable, Any]:
        """Return the results of reading this version of the database; those of another version are forgotten."""
        known_version, results = self._results
        if known_version != version:
            results = {}
            self._results = (version, results)
        return results


@dataclass(frozen=True)
class Chain:
    """The chain in a database; no transaction stays open between calls.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     chain = Chain.create(f"sqlite:///{folder}/notes.sqlite", "notes")
    ...     _ = chain.transact(lambda writer: writer.append("note", {"text": "hello"}, {("notes",): 1}))
    ...     [(link.sequence, link.kind) for link in chain.links()], chain.read(lambda reader: reader.value(("notes",)))
    ([(1, 'created'), (2, 'note')], 1)
    """

    database: Database
    clock: Callable[[], datetime] = _now
    tally: Tally = field(default_factory=NoTally)
    newest: int = NEWEST
    """How many of the last entries are checked before anything is written after them."""
    queue: CommitQueue = field(default_factory=CommitQueue, repr=False, compare=False)
    memory: ChainMemory = field(default_factory=ChainMemory, repr=False, compare=False)

    @classmethod
    def create(cls, address: str, name: str, tally: Tally | None = None, newest: int = NEWEST) -> Chain:
        """Create the chain unless it exists, and open it; of several processes at once exactly one creates it."""
        chain = cls(database_at(address, name), tally=tally or NoTally())
        chain.database.create(lambda connection: _begin(chain, connection))
        return cls.open(address, name, tally, newest)

    @classmethod
    def open(cls, address: str, name: str, tally: Tally | None = None, newest: int = NEWEST) -> Chain:
        """Open a chain that must exist; a damaged one opens too, to be checked, but refuses all else.

        From now on it must stay the same file: one that takes its place is refused.
        """
        chain = cls(database_at(address, name).bound(), tally=tally or NoTally(), newest=newest)
        chain.inspect(lambda reader: reader.head)
        return chain

    def read(self, work: Callable[[Reader], T]) -> T:
        """Return the result of `work` on one state of the chain."""
        with self.database.reading() as connection:
            reader = checked(self._reader(connection), self.database.address)
            self.memory.last = reader.head.sequence
            return work(replace(reader, cached=self.memory.values(reader.head)))

    def remember(self, key: Hashable, work: Callable[[Reader], T]) -> T:
        """Return the result of `work`, which `key` names, or its last result if nothing was written since."""
        version = self.database.version()  # before anything is read: whatever is written from now on changes it
        if version is None:
            return self.read(work)
        results = self.memory.results(version)
        result: T | None = results.get(key)
        if result is None:
            result = self.read(work)
            if len(results) < _REMEMBERED and result is not None:
                results[key] = result
        return result

    def at_hand(self, key: Hashable) -> Any:
        """Return the result that is remembered under a key if nothing was written since, else None; never wait."""
        version = self.database.version()
        return None if version is None else self.memory.results(version).get(key)

    def transact(self, work: Callable[[Writer], T]) -> T:
        """Run `work` alone at the end of the chain and commit what it added before returning.

        Changes of several threads that wait at once are committed together.  If the database undoes the transaction
        because of another one, `work` runs again from the start.  After any other failure nothing was added, or the
        outcome is unknown: either way an error is raised.
        """
        result: T = self.queue.run(work, self._commit)
        return result

    def renew(self, by: Mapping[str, str]) -> ChainEntry:
        """Give the chain a new secret, for all later entries; `by` says who did it and why.

        Whoever read an old copy can then neither test guesses against hashes of later entries nor forge one.
        """
        return self.transact(lambda writer: _renew(writer, by))

    def inspect(self, work: Callable[[Reader], T]) -> T:
        """Return the result of `work` on one state of the chain, even if the chain is damaged."""
        with self.database.reading() as connection:
            return work(self._reader(connection))

    def before(self) -> int:
        """Return the number of an entry that existed before this call: later ones have higher numbers."""
        return self.memory.last or self.head().sequence

    def head(self) -> Anchor:
        """Return the place of the last entry."""
        return self.read(lambda reader: reader.head)

    def links(self, after: int = 0) -> Iterator[ChainEntry]:
        """Yield all entries that follow the one numbered `after`, each checked against its hash."""
        while batch := self._batch(after):
            yield from batch
            after = batch[-1].sequence

    def rows(self) -> Iterator[EntryRow]:
        """Yield the rows of all entries, each checked against its hash and the entry before it; nothing is parsed.

        Parsing takes four times as long as this.  A reader that needs a few fields of many entries parses those.
        """
        number, before = 0, NOTHING_BEFORE
        while True:
            seal, batch = self.read(lambda reader: (reader.seal, reader.rows(number, _ROWS)))  # noqa: B023 - read at once
            for row in batch:
                number += 1
                if row.sequence != number or row.previous != before or not is_sealed(row, seal):
                    raise changed(number)
                before = row.hash
                yield row
            if not batch:
                return

    def time(self, reader: Reader) -> str:
        """Return the time for the next entry: never earlier than the newest one, even if the clock went back."""
        return self.time_after(*(entry.at for entry in reader.newest))

    def time_after(self, *stamps: str) -> str:
        """Return the time in the form of entries, never earlier than these."""
        now = self.clock().astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        return max([now, *stamps])

    def now(self) -> datetime:
        """Return the time by the chain: the clock's, or that of the newest entry if the clock went back."""
        return datetime.fromisoformat(self.read(self.time))

    def _commit(self, changes: list[QueuedChange]) -> None:
        for attempt in range(1, _ATTEMPTS):
            try:
                return self._commit_once(changes)
            except Conflict:
                time.sleep(0.002 * attempt)
        return self._commit_once(changes)

    def _commit_once(self, changes: list[QueuedChange]) -> None:
        with self.database.writing() as connection:
            self.queue.take_waiting(changes)  # those that came while this one waited for the database
            reader = checked(self._reader(connection), self.database.address, self.newest)
            require_here(reader, self.database.address)
            check_totals(reader, self.tally)
            writer = Writer(reader, self.time(reader), self.tally)
            for change in changes:
                change.apply(writer)
            writer.flush()

    def _batch(self, after: int) -> list[ChainEntry]:
        return self.read(lambda reader: reader.links(after, _BATCH))

    def _reader(self, connection: Transaction) -> Reader:
        return reader_of(connection, self.database.tables, self.database.address)


def _renew(writer: Writer, by: Mapping[str, str]) -> ChainEntry:
    numbers = [*(writer.value(RENEWALS) or ()), writer.head.sequence + 1]
    return writer.append(RENEWED, {"secret": secrets.token_bytes(SECRET_BYTES).hex(), **by}, {RENEWALS: numbers})


def _begin(chain: Chain, connection: Transaction) -> None:
    """Write the first entry: it gives the chain a random name, and a secret that is never published.

    Certificates publish the name and hashes of entries.  The secret keys these hashes, so that nobody can test a guess
    about rows against them.
    """
    tables, start = chain.database.tables, Anchor(secrets.token_hex(16), 0, NOTHING_BEFORE)
    secret = secrets.token_bytes(SECRET_BYTES)
    connection.execute(
        f"INSERT INTO {tables.head} (one, version, chain, sequence, hash) "  # noqa: S608 - our own table
        "VALUES (1, :version, :chain, :sequence, :hash)",
        {"version": VERSION, **vars(start)},
    )
    reader = Reader(connection, tables, start, Seal(start.chain, secret))
    writer = Writer(reader, chain.time(reader), chain.tally)
    writer.append("created", {"chain": start.chain, "version": VERSION, "secret": secret.hex()}, {})
    writer.flush()
    writer.reader.index.begin()
