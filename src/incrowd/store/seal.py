"""Seal: the marks by which a chain knows its own entries and pointers, keyed by its secret.

Entries of version 1 bear plain hashes, which anyone can compute.  From the entry numbered `since` on, a hash is keyed
by a secret that the first entry holds: whoever edits a row without it cannot make the edit look right.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

from incrowd.core.codec import canonical, text_digest

NEVER = 2**63
"""No entry has so high a number: a seal that begins there is that of version 1."""


@dataclass(frozen=True)
class Seal:
    """How the entries of one chain are sealed.

    >>> plain, keyed = Seal("c0ffee"), Seal("c0ffee", b"secret", 1)
    >>> plain.of(2, "a domain", {}) == keyed.of(2, "a domain", {})
    False
    """

    chain: str
    secret: bytes = field(default=b"", repr=False)
    since: int = NEVER

    def of(self, sequence: int, domain: str, content: Any) -> str:
        """Return the mark of something that belongs to the entry with this number."""
        return self.of_text(sequence, domain, canonical(content))

    def of_text(self, sequence: int, domain: str, text: str) -> str:
        """Return the mark of something of which the canonical text is known."""
        plain = text_digest(domain, text)
        if sequence < self.since:
            return plain
        return hmac.digest(self._key, plain.encode(), "sha256").hex()

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
