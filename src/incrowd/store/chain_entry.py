"""One entry of a chain: bound by its hash to all entries before it, with the running totals up to it.

Every hash is keyed by a secret that the first entry holds: without it, nobody can edit a row and make it look right.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, Protocol

from incrowd.core.codec import canonical, text_digest
from incrowd.errors import InvalidParameter

VERSION = 3
DOMAIN = "incrowd chain 3"
NOTHING_BEFORE = "0" * 64

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
        except InvalidParameter:
            return False

    def sealed(self, seal: Seal, texts: Texts | None = None) -> ChainEntry:
        """Return the entry with its hash."""
        return replace(self, hash=self._hash(seal, texts or self.texts))

    @property
    def texts(self) -> Texts:
        """The canonical texts of body and sets."""
        return canonical(self.body), canonical(self.sets)

    def _hash(self, seal: Seal, texts: Texts) -> str:
        """Return the keyed hash of the canonical text of all fields but the hash."""
        plain = {name: canonical(getattr(self, name)) for name in ("at", "chain", "kind", "previous", "sequence")}
        parts = {**plain, "body": texts[0], "sets": texts[1]}
        text = ",".join(f'"{name}":{parts[name]}' for name in sorted(parts))
        return seal.of_text(DOMAIN, f"{{{text}}}")


def link(after: Anchor, at: str, kind: str, body: Mapping[str, Any], sets: Mapping[Key, Any]) -> ChainEntry:
    """Return the entry that follows the place `after`, not sealed yet.

    >>> first = link(Anchor("c0ffee", 0, NOTHING_BEFORE), "2025-01-01T00:00:00Z", "created", {}, {("total",): "1"})
    >>> first.sequence, first.sets
    (1, {'["total"]': '1'})
    """
    named = {text_of(key): value for key, value in sets.items()}
    return ChainEntry(after.chain, after.sequence + 1, at, kind, body, named, after.hash, "")


def text_of(key: Key) -> str:
    """Return the text under which a key is stored; different keys have different texts."""
    return canonical(list(key))


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
