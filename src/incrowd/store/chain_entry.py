"""One entry of a chain: bound by its hash to all entries before it, with the running totals up to it.

Every hash is keyed by a secret that the first entry holds: without it, nobody can edit a row and make it look right.
"""

from __future__ import annotations

import hmac
import re
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

    def of(self, domain: str, content: Any) -> str:
        """Return the keyed hash of some content, for one purpose."""
        return self.of_text(domain, canonical(content))

    def of_text(self, domain: str, text: str) -> str:
        """Return the keyed hash of content whose canonical text is known."""
        return hmac.digest(self._key, text_digest(domain, text).encode(), "sha256").hex()

    @cached_property
    def _key(self) -> bytes:
        return sha256(b"seal " + self.secret).digest()


def secret_of(body: Any) -> bytes:
    """Return the secret that the first entry of a chain holds; none where the entry is damaged.

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
        return seal.of_text(DOMAIN, row_text(row, self.chain))


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
        return bool(seal.of_text(DOMAIN, row_text(row, seal.chain)) == row.hash)
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
