"""Reader and Writer: what one transaction sees of a chain, and what it adds."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from incrowd.core.codec import parsed
from incrowd.errors import InvalidParameter, LedgerCorrupted, LedgerMoved, UnsupportedVersion
from incrowd.store.chain_entry import (
    MOVED,
    RENEWALS,
    RENEWED,
    RUNNING,
    VERSION,
    Anchor,
    ChainEntry,
    Key,
    Seal,
    Texts,
    link,
    secret_of,
    text_of,
)
from incrowd.store.database import EntryRow
from incrowd.store.index import Index

if TYPE_CHECKING:
    from incrowd.store.chain_entry import Sums, Tally
    from incrowd.store.database import Tables, Transaction

NEWEST = 32
"""How many entries at the end are usually checked again before anything is written after them."""
_FOUND = 64
"""How many values that were read are remembered until something is written."""
_ENTRY = ", ".join(EntryRow._fields)
_LIKE = re.compile(r"[%_|]")
"""What LIKE does not take for itself."""
_WHOLE = r"\g<0>"


@dataclass(frozen=True)
class Reader:
    """One state of a chain; every entry that it reads is checked against its hash."""

    connection: Transaction
    tables: Tables
    head: Anchor
    seal: Seal
    newest: tuple[ChainEntry, ...] = ()
    cached: dict[str, Any] | None = None
    """Values that were read before at the same head, which is bound to every entry; None where something is written."""

    @property
    def index(self) -> Index:
        """Where each key was last set."""
        return Index(self.connection, self.tables, self.seal)

    @cached_property
    def recent(self) -> dict[str, int]:
        """The number of the last of the newest entries that sets each of their keys."""
        return {key: entry.sequence for entry in self.newest for key in entry.own}

    def value(self, key: Key) -> Any:
        """Return the value in the last entry that sets a key, or None if no entry does."""
        text = text_of(key)
        if self.cached is not None and text in self.cached:
            return self.cached[text]
        number = self.index.find(text)
        value = None if number is None and text not in self.recent else self._setting(number or 0, text)
        if self.cached is not None and len(self.cached) < _FOUND:
            self.cached[text] = value
        return value

    def values(self, under: Key) -> dict[Key, Any]:
        """Return the values of all keys that begin with `under` and go on, in the order of their text."""
        first = text_of(under)[:-1] + ","
        beyond = first[:-1] + "-"  # the character after the comma
        numbers = self.index.between(first, beyond)
        return {tuple(json.loads(text)): self._setting(number, text) for text, number in numbers.items()}

    def links(self, after: int, limit: int) -> list[ChainEntry]:
        """Return up to `limit` entries that follow the one numbered `after`."""
        return [_intact(row, self.seal) for row in self.rows(after, limit)]

    def naming(self, texts: Sequence[str], limit: int) -> list[ChainEntry]:
        """Return up to `limit` entries whose body has one of some texts in it: the database looks for them."""
        named = {f"text{place}": f"%{_LIKE.sub('|' + _WHOLE, text)}%" for place, text in enumerate(texts)}
        condition = " OR ".join(f"body LIKE :{name} ESCAPE '|'" for name in named)
        rows = self.connection.execute(
            f"SELECT {_ENTRY} FROM {self.tables.entries} "  # noqa: S608 - our own table
            f"WHERE {condition} ORDER BY sequence LIMIT :most",
            {**named, "most": limit},
        )
        return [_intact(EntryRow(*row), self.seal) for row in rows]

    def rows(self, after: int, limit: int) -> list[EntryRow]:
        """Return the bare rows of entries, unchecked."""
        rows = self.connection.execute(
            f"SELECT {_ENTRY} FROM {self.tables.entries} "  # noqa: S608 - our own table
            "WHERE sequence > :after ORDER BY sequence LIMIT :most",
            {"after": after, "most": limit},
        )
        return list(map(EntryRow._make, rows))

    def _setting(self, number: int, text: str) -> Any:
        for entry in self.links(number - 1, 1) if number >= self.recent.get(text, 1) else ():
            if entry.sequence == number and text in entry.sets:
                return entry.sets[text]
        raise LedgerCorrupted(
            f"entry {number} of the ledger is missing, or is another one than it was, or not the last of its kind. Run "
            "incrowd ledger check, and restore the ledger from a backup."
        )


@dataclass(frozen=True)
class Writer:
    """The only writer of a chain: what it read stays true, reads see what it added, `flush` writes all of it."""

    reader: Reader
    at: str
    tally: Tally
    added: list[ChainEntry] = field(default_factory=list)
    texts: list[Texts] = field(default_factory=list)
    seen: dict[str, Any] = field(default_factory=dict)
    renewals: list[ChainEntry] = field(default_factory=list)
    """The entries among those added that hold a new secret."""

    @property
    def seal(self) -> Seal:
        """The seal of the next entry."""
        return reduce(Seal.renewed, self.renewals, self.reader.seal)

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

    def append(self, kind: str, body: Mapping[str, Any], sets: Mapping[Key, Any]) -> ChainEntry:
        """Add an entry at the end."""
        bare = link(self.head, self.at, kind, body, sets)
        new = replace(bare, sets={**bare.sets, RUNNING: dict(self.tally.after(self._totals(), bare))})
        texts = new.texts
        new = new.sealed(self.seal, texts)
        self.added.append(new)
        self.renewals.extend([new] if kind == RENEWED else [])
        self.texts.append(texts)
        self.seen.update(new.own)
        return new

    def flush(self) -> None:
        """Write what was added: the entries, the index, the head."""
        if not self.added:
            return
        connection, tables = self.reader.connection, self.reader.tables
        values = ", ".join(f":{name}" for name in EntryRow._fields)
        for new, texts in zip(self.added, self.texts, strict=True):
            row = _row(new, texts)
            connection.execute(f"INSERT INTO {tables.entries} ({_ENTRY}) VALUES ({values})", row)  # noqa: S608 - our own
            _note_made(EntryRow(**row), self.seal, new)
        for key, number in {key: new.sequence for new in self.added for key in new.own}.items():
            self.reader.index.point(key, number)
        if self.renewals:
            self.reader.index.reseal(self.seal)
        connection.execute(
            f"UPDATE {tables.head} SET sequence = :sequence, hash = :hash",  # noqa: S608 - our own table
            {"sequence": self.head.sequence, "hash": self.head.hash},
        )

    def _totals(self) -> Sums:
        """Return the totals so far; those of a chain without entries are zero."""
        newest = self.added or self.reader.newest
        return _totals_of(newest[-1]) if newest else self.tally.total({})


def reader_of(connection: Transaction, tables: Tables, address: str) -> Reader:
    """Return a reader of a chain of which only the version is checked yet."""
    head = _head_of(connection, tables, address)
    bare = Reader(connection, tables, head, Seal(head.chain))
    rows = connection.execute(
        f"SELECT {_ENTRY} FROM {tables.entries} WHERE sequence = 1 OR sequence = "  # noqa: S608 - our own tables
        f'(SELECT sequence FROM {tables.latest} WHERE "key" = :renewals) ORDER BY sequence',
        {"renewals": text_of(RENEWALS)},
    )
    first, *last = (_read_once(EntryRow(*row), head.chain) for row in rows) if rows else (None,)
    if first is None:
        return bare
    return replace(bare, seal=_renewed(bare, Seal(head.chain, secret_of(first.body)), last))


def _renewed(bare: Reader, seal: Seal, last: Sequence[ChainEntry | None]) -> Seal:
    """Return the seal with all later secrets, of which the last renewal names the entries.

    Nothing is checked here: with a wrong or a missing secret no entry after it has its hash.
    """
    numbers = [] if not last or last[0] is None else last[0].sets.get(text_of(RENEWALS), [])
    for number in numbers if isinstance(numbers, list) and all(type(one) is int for one in numbers) else ():
        for row in bare.rows(number - 1, 1):
            entry = _read_once(row, seal.chain)
            seal = seal if entry is None else seal.renewed(entry)
    return seal


def checked(reader: Reader, address: str, newest: int = 1) -> Reader:
    """Return the reader if the chain ends where its head says, and its newest entries are intact."""
    first = max(1, reader.head.sequence - newest + 1)
    links = reader.links(first - 1, newest + 1)
    numbers = [entry.sequence for entry in links]
    if numbers != list(range(first, reader.head.sequence + 1)) or links[-1].anchor != reader.head:
        raise LedgerCorrupted(
            f"the ledger at {address} does not end with entry {reader.head.sequence}, as its head says: entries were "
            "cut off, added or changed. Run incrowd ledger check, and restore the ledger from a backup."
        )
    for one, other in pairwise(links):
        if one.hash != other.previous:
            raise _off(other)
    return replace(reader, newest=tuple(links))


def moved_to(reader: Reader) -> str | None:
    """Return where a chain was moved to, if its last entry says so."""
    newest = reader.newest or reader.links(reader.head.sequence - 1, 1)
    return str(newest[-1].body["to"]) if newest and newest[-1].kind == MOVED else None


def require_here(reader: Reader, address: str) -> None:
    """Refuse a chain that was moved away: it takes no more entries, and what remains of its budgets is not here."""
    place = moved_to(reader)
    if place is not None:
        raise LedgerMoved(
            f"the ledger {address} was moved to {place}. Nothing was charged: name the ledger there, in the policy or "
            "by INCROWD_LEDGER."
        )


def check_totals(reader: Reader, tally: Tally) -> None:
    """Raise unless the totals of the newest entries follow from each other, and from the values in the index."""
    last = reader.newest[-1]
    for one, other in pairwise(reader.newest):
        if not _follow_once(one, other, tally):
            raise _off(other)
    totals = _totals_of(last)
    if tally.few(totals) and tally.total(reader.values(tally.under)) != totals:
        raise _off(last)


_PAIRS = 256  # checked pairs that are remembered: only the newest entries are read again and again
_paired: dict[tuple[str, str, type], None] = {}
"""Pairs of entries, by their hashes, whose totals were checked: two entries with these hashes cannot change."""


def _follow_once(one: ChainEntry, other: ChainEntry, tally: Tally) -> bool:
    """Return whether the totals of two entries follow from each other; the same two are checked once."""
    pair = one.hash, other.hash, type(tally)
    if pair not in _paired:
        if not follows(other, one, tally.after(_totals_of(one), other)):
            return False
        _paired[pair] = None
        _forget_oldest(_paired, _PAIRS)
    return True


def follows(new: ChainEntry, before: ChainEntry | None, totals: Sums) -> bool:
    """Return whether the totals of an entry follow from the entry before it, and its time is not earlier."""
    in_time = before is None or new.at >= before.at
    return in_time and new.totals == dict(totals)


def _totals_of(entry: ChainEntry) -> Sums:
    return {} if entry.totals is None else entry.totals


def _off(bad: ChainEntry) -> LedgerCorrupted:
    return LedgerCorrupted(
        f"the totals of the ledger do not add up at entry {bad.sequence}: an entry or the index was changed. Run "
        "incrowd ledger check, and restore the ledger from a backup."
    )


def _head_of(connection: Transaction, tables: Tables, address: str) -> Anchor:
    """Return the recorded end of a chain; another version is refused, and never counts as absent."""
    versions = [row[0] for row in connection.execute(f"SELECT version FROM {tables.head}")]  # noqa: S608 - our own
    if versions and isinstance(versions[0], int) and versions[0] != VERSION:
        raise UnsupportedVersion(
            f"the ledger at {address} has version {versions[0]}; this incrowd reads version {VERSION} only. Use the "
            "version of incrowd that wrote it."
        )
    match connection.execute(f"SELECT chain, sequence, hash FROM {tables.head}"):  # noqa: S608 - our own table
        case [(str(chain), int(sequence), str(hash_))] if versions == [VERSION]:
            return Anchor(chain, sequence, hash_)
    raise LedgerCorrupted(f"the ledger at {address} has lost its head: restore it from a backup.")


def read_row(row: EntryRow, chain: str) -> ChainEntry | None:
    """Return the entry in a row, or None if its text is not canonical.  The hash is not checked."""
    try:
        body, sets = parsed(row.body), parsed(row.sets)
    except InvalidParameter:  # the caller reports a damaged entry
        return None
    if not isinstance(sets, dict):
        return None
    return ChainEntry(chain, row.sequence, row.at, row.kind, body, sets, row.previous, row.hash)


_SHORT = 20_000  # characters of an entry that may be remembered
_read_once = lru_cache(maxsize=64)(read_row)
"""Equal rows hold the same entry: each is parsed once."""


_MADE, _MADE_LONG = 256, 8  # entries remembered, fewer of the long ones: a few megabytes in all
_made: dict[str, tuple[EntryRow, Seal, ChainEntry]] = {}
_made_long: dict[str, tuple[EntryRow, Seal, ChainEntry]] = {}
"""The last entries that this process wrote, by their hashes: an equal row need not be parsed to be checked."""


def _note_made(row: EntryRow, seal: Seal, new: ChainEntry) -> None:
    made, most = (_made, _MADE) if _is_short(row) else (_made_long, _MADE_LONG)
    made[new.hash] = (row, seal, new)
    _forget_oldest(made, most)


def _forget_oldest(cache: dict[Any, Any], most: int) -> None:
    if len(cache) > most:
        for oldest in list(cache)[:-most]:
            cache.pop(oldest, None)  # another thread may have forgotten it


def _is_short(row: EntryRow) -> bool:
    return isinstance(row.body, str) and isinstance(row.sets, str) and len(row.body) + len(row.sets) <= _SHORT


def _intact(row: EntryRow, seal: Seal) -> ChainEntry:
    """Return the entry in a row, or raise if it was changed; equal rows are checked once."""
    short = _is_short(row)
    made = (_made if short else _made_long).get(row.hash) if isinstance(row.hash, str) else None
    if made is not None and made[:2] == (row, seal):
        return made[2]
    return (_short_once if short else _long_once)(row, seal)


def _check(row: EntryRow, seal: Seal) -> ChainEntry:
    entry = read_row(row, seal.chain)
    if entry is None or not entry.intact(seal, (row.body, row.sets)):
        raise changed(row.sequence)
    return entry


def changed(sequence: int) -> LedgerCorrupted:
    """Return what is raised for an entry that is not as it was written."""
    return LedgerCorrupted(
        f"entry {sequence} of the ledger was changed: its hash does not match its content. "
        "Run incrowd ledger check, and restore the ledger from a backup."
    )


_short_once, _long_once = lru_cache(maxsize=256)(_check), lru_cache(maxsize=4)(_check)


def _row(new: ChainEntry, texts: Texts) -> dict[str, Any]:
    plain = {name: value for name, value in vars(new).items() if name != "chain"}
    return plain | dict(zip(("body", "sets"), texts, strict=True))
