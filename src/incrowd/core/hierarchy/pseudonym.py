"""Pseudonyms: a value replaced by a keyed hash; whoever holds the key can tell whose it is."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field

import pyarrow as pa

from incrowd.core.domain import DECLARED, Categories, Provenance, Text
from incrowd.core.hierarchy.flat import written
from incrowd.core.hierarchy.hierarchy import Hierarchy, HierarchyRule, RuleKind
from incrowd.errors import InvalidParameter

_LEAST_KEY = 32
_SHOWN = 32


@dataclass(frozen=True)
class Pseudonyms(Hierarchy):
    """HMAC-SHA-256 under a secret key, cut to 128 bits: level 1; the value itself, level 0, is never released.

    It hides a name from those without the key, and nothing else: the same value has the same pseudonym in every
    release made with that key.

    >>> sites = Pseudonyms(Text(), bytes(32))
    >>> sites.generalize("St. Anne", 1) == sites.generalize("St. Anne", 1) != sites.generalize("St. Paul", 1)
    True
    >>> Pseudonyms(Text(), b"secret")
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: a pseudonym's key needs at least 32 bytes ...
    """

    domain: Text | Categories
    key: bytes = field(repr=False)
    provenance: Provenance = DECLARED

    def __post_init__(self) -> None:
        if len(self.key) < _LEAST_KEY:
            raise InvalidParameter(
                "a pseudonym's key needs at least 32 bytes of chance: make one with 'openssl rand -out FILE 32'."
            )

    @property
    def depth(self) -> int:
        """How many levels are declared between the value itself and `*`."""
        return 1

    @property
    def rule(self) -> HierarchyRule:
        return HierarchyRule(RuleKind.PSEUDONYM)

    def _lift(self, values: pa.Array, level: int) -> pa.Array:  # noqa: ARG002 (there is one level)
        coded = values.dictionary_encode()
        names = [None if value is None else self._pseudonym(value) for value in coded.dictionary.to_pylist()]
        return pa.array(names, pa.string()).take(coded.indices)

    def _members(self, level: int) -> pa.Array | None:
        """Return pseudonyms in their own order: that of the values would tell which is whose."""
        members = super()._members(level)
        return members if members is None or level == 0 else members.sort()

    def _names(self, marks: pa.Array, level: int) -> pa.Array:  # noqa: ARG002 (a pseudonym is its own label)
        return marks

    def _generalize(self, value: str, level: int) -> str | None:
        inside = written(value, self.domain)
        return inside if inside is None or level == 0 else self._pseudonym(inside)

    def _pseudonym(self, value: str) -> str:
        return hmac.new(self.key, value.encode(), hashlib.sha256).hexdigest()[:_SHOWN]
