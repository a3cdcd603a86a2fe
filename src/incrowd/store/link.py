"""Link: one entry of a chain, bound by its hash to all entries before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from incrowd.core.codec import canonical, digest
from incrowd.errors import InvalidParameter

VERSION = 1
DOMAIN = f"incrowd chain {VERSION}"
NOTHING_BEFORE = "0" * 64

Key = tuple[str, ...]


@dataclass(frozen=True)
class Anchor:
    """A place in a chain, to be kept outside of it: a copy of the chain that lost or rewrote this place is found out.

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
            case {"chain": str(chain), "sequence": int(sequence), "hash": str(found)} if sequence > 0:
                return cls(chain, sequence, found)
        raise InvalidParameter("an anchor has a chain, a sequence number above 0 and a hash.")


@dataclass(frozen=True)
class Link:
    """One entry: what happened (`kind`, `body`), and the value of each key that it `sets`.

    The value of a key is what the last entry that sets it says; so running totals live inside the chain.
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
    def intact(self) -> bool:
        """Whether the hash is that of the content; false also for content that no entry can have."""
        try:
            return self.hash == _hash(self)
        except InvalidParameter:
            return False


def link(after: Anchor, at: str, kind: str, body: Mapping[str, Any], sets: Mapping[Key, Any]) -> Link:
    """Return the entry that follows the place `after`.

    >>> first = link(Anchor("c0ffee", 0, NOTHING_BEFORE), "2025-01-01T00:00:00Z", "created", {}, {("total",): "1"})
    >>> first.sequence, first.intact, first.sets
    (1, True, {'["total"]': '1'})
    """
    named = {text_of(key): value for key, value in sets.items()}
    unsealed = Link(after.chain, after.sequence + 1, at, kind, body, named, after.hash, "")
    return Link(**{**vars(unsealed), "hash": _hash(unsealed)})


def text_of(key: Key) -> str:
    """Return the text under which a key is stored; different keys have different texts."""
    return canonical(list(key))


def _hash(unsealed: Link) -> str:
    content = {name: value for name, value in vars(unsealed).items() if name != "hash"}
    return digest(DOMAIN, content)
