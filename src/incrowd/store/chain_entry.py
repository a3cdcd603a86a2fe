"""One entry of a chain: bound by its hash to all entries before it, with the running totals up to it.

Every hash is keyed by a secret that the first entry holds: without it, nobody can edit a row and make it look right.
"""

from __future__ import annotations

import hmac
import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any, Protocol

from incrowd.core.codec import canonical, text_digest
from incrowd.errors import InvalidParameter
from incrowd.store.database import EntryRow

VERSION = 3
DOMAIN = "incrowd chain 3"
NOTHING_BEFORE = "0" * 64
SECRET_BYTES = 32
RENEWED = "renewed"
"""An entry that gives the chain a new secret, which keys the hashes of all later entries."""
MOVED, ARRIVED = "moved", "arrived"
"""The last entry of a chain that was moved to another place, and the one after it, which only the new place has."""

Key = tuple[str, ...]
Texts = tuple[str, str]
Sums = Mapping[str, Any]


@dataclass(frozen=True)
class Seal:
    """The key of the hashes of one chain.

    >>> Seal("c0ffee", b"secret").of("a domain", {}) == Seal("c0ffee", b"guess").of("a domain", {})
    False
    """

    chain: str
    secret: bytes = field(default=b"", repr=False)
    renewals: tuple[tuple[int, bytes], ...] = field(default=(), repr=False)
    """Later secrets, each with the number of the entry that holds it."""

    def of(self, domain: str, content: Any) -> str:
        """Return the hash of some content, for one purpose, keyed by the latest secret."""
        return self.of_text(domain, canonical(content))

    def of_text(self, domain: str, text: str, sequence: int | None = None) -> str:
        """Return the hash of content whose canonical text is known.

        It is keyed by the latest secret; for an entry with a number, by the latest one before it.
        """
        place = len(self.renewals) if sequence is None else bisect_left(self._starts, sequence)
        return hmac.digest(self._keys[place], text_digest(domain, text).encode(), "sha256").hex()

    def renewed(self, entry: ChainEntry) -> Seal:
        """Return the seal after an entry that holds a new secret."""
        return replace(self, renewals=(*self.renewals, (entry.sequence, secret_of(entry.body))))

    @cached_property
    def _starts(self) -> list[int]:
        return [number for number, _ in self.renewals]

    @cached_property
    def _keys(self) -> list[bytes]:
        secrets = [self.secret, *(secret for _, secret in self.renewals)]
        return [sha256(b"seal " + secret).digest() for secret in secrets]


def secret_of(body: Any) -> bytes:
    """Return the secret that the first entry of a chain, or a renewal, holds; none where the entry is damaged.

    >>> secret_of({"secret": "4142"}), secret_of({"secret": "?"})
    (b'AB', b'')
    """
    try:
        return bytes.fromhex(body["secret"])
    except (KeyError, TypeError, ValueError):
        return b""


@dataclass(frozen=True)
class Anchor:
    """A place in a chain, kept outside of it to detect a chain that lost or rewrote this place.

    >>> Anchor.from_json({"chain": "c0ffee", "sequence": 3, "hash": "ab"}).sequence
    3
    """

    chain: str
    sequence: int
    hash: str

    def to_json(self) -> dict[str, Any]:
        """Return the plain form that certificates hold."""
        return {"chain": self.chain, "sequence": self.sequence, "hash": self.hash}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Anchor:
        """Read what `to_json` wrote."""
        match plain:
            case {"chain": str(chain), "sequence": int(sequence), "hash": str(hash_)} if sequence > 0:
                return cls(chain, sequence, hash_)
        raise InvalidParameter("an anchor has a chain, a sequence number above 0 and a hash.")


@dataclass(frozen=True)
class ChainEntry:
    """One entry: an event (`kind`, `body`), and the value of each key that it `sets`.

    The last entry that sets a key gives its value, so running totals are in the chain itself.  Every entry also holds
    the totals of the whole chain, under a key of their own.
    """

    chain: str
    sequence: int
    at: str
    kind: str
    body: Mapping[str, Any]
    sets: Mapping[str, Any]
    previous: str
    hash: str

    @property
    def anchor(self) -> Anchor:
        """The place of this entry, for a certificate."""
        return Anchor(self.chain, self.sequence, self.hash)

    @property
    def totals(self) -> Mapping[str, Any] | None:
        """The totals of the chain up to this entry; None in a damaged row."""
        totals = self.sets.get(RUNNING)
        return totals if isinstance(totals, dict) else None

    @property
    def own(self) -> dict[str, Any]:
        """The values that this entry sets, without the totals."""
        return {key: value for key, value in self.sets.items() if key != RUNNING}

    def intact(self, seal: Seal, texts: Texts | None = None) -> bool:
        """Return whether the hash is that of the content; false also for content that no entry can have.

        `texts` are the canonical texts of body and sets, where they are known.
        """
        try:
            return self.totals is not None and self.hash == self._hash(seal, texts or self.texts)
        except InvalidParameter:  # content that no entry can have has no hash
            return False

    def sealed(self, seal: Seal, texts: Texts | None = None) -> ChainEntry:
        """Return the entry with its hash."""
        return replace(self, hash=self._hash(seal, texts or self.texts))

    @property
    def texts(self) -> Texts:
        """The canonical texts of body and sets."""
        return canonical(self.body), canonical(self.sets)

    def _hash(self, seal: Seal, texts: Texts) -> str:
        row = EntryRow(self.sequence, self.at, self.kind, *texts, self.previous, self.hash)
        return seal.of_text(DOMAIN, row_text(row, self.chain), self.sequence)


_PLAIN = re.compile(r"[\w.:+-]*", re.ASCII)
"""Texts that are the same between quotes as without them; times, kinds and hashes are."""
_TYPES = (int, str, str, str)


def row_text(row: EntryRow, chain: str) -> str:
    """Return the canonical text of all fields of an entry but the hash.

    >>> row_text(EntryRow(1, "2025-01-01T00:00:00Z", "note", "{}", "{}", "", ""), "c0ffee")
    '{"at":"2025-01-01T00:00:00Z","body":{},"chain":"c0ffee","kind":"note","previous":"","sequence":1,"sets":{}}'
    """
    sequence, at, kind, body, sets, previous, _ = row
    types = (type(sequence), type(at), type(kind), type(previous))
    if types != _TYPES or not _PLAIN.fullmatch(f"{at}{chain}{kind}{previous}"):
        at, chain, kind, previous, sequence = map(canonical, (at, chain, kind, previous, sequence))
        at, chain, kind, previous = (text[1:-1] for text in (at, chain, kind, previous))
    return (
        f'{{"at":"{at}","body":{body},"chain":"{chain}","kind":"{kind}","previous":"{previous}",'
        f'"sequence":{sequence},"sets":{sets}}}'
    )


def is_sealed(row: EntryRow, seal: Seal) -> bool:
    """Return whether a row has the hash of its content; false also for content that no entry can have."""
    try:
        return bool(seal.of_text(DOMAIN, row_text(row, seal.chain), row.sequence) == row.hash)
    except InvalidParameter:
        return False


def link(after: Anchor, at: str, kind: str, body: Mapping[str, Any], sets: Mapping[Key, Any]) -> ChainEntry:
    """Return the entry that follows the place `after`, not sealed yet.

    >>> first = link(Anchor("c0ffee", 0, NOTHING_BEFORE), "2025-01-01T00:00:00Z", "created", {}, {("total",): "1"})
    >>> first.sequence, first.sets
    (1, {'["total"]': '1'})
    """
    named = {text_of(key): value for key, value in sets.items()}
    return ChainEntry(after.chain, after.sequence + 1, at, kind, body, named, after.hash, "")


@lru_cache(maxsize=1024)
def text_of(key: Key) -> str:
    """Return the text under which a key is stored; different keys have different texts.

    >>> text_of(("spent", "births")), text_of(("spent", "births of 2025"))
    ('["spent","births"]', '["spent","births of 2025"]')
    """
    return '["' + '","'.join(key) + '"]' if key and _PLAIN.fullmatch("".join(key)) else canonical(list(key))


RUNNING = text_of(("running",))
RENEWALS: Key = ("renewals",)
"""The key under which a chain has the numbers of the entries that gave it new secrets."""


class Tally(Protocol):
    """The running totals that every entry holds, to be checked against all entries before it."""

    @property
    def under(self) -> Key:
        """The first part of the keys whose values add up to the totals."""

    def total(self, values: Mapping[Key, Any]) -> Sums:
        """Return the totals of these values: those of all keys that begin with `under`."""

    def after(self, totals: Sums, link: ChainEntry) -> Sums:
        """Return the totals after one more entry, from its body."""

    def few(self, totals: Sums) -> bool:
        """Return whether the values are few enough to be added up again at every charge."""


class NoTally:
    """No totals: entries are only bound to each other.

    >>> NoTally().total({("notes",): 1})
    {}
    """

    under: Key = ("",)

    def total(self, _values: Mapping[Key, Any]) -> Sums:
        return {}

    def after(self, totals: Sums, _link: ChainEntry) -> Sums:
        return totals

    def few(self, _totals: Sums) -> bool:
        return False
