"""Seal: the marks by which a chain knows its own entries and pointers, keyed by its secret.

Every hash is keyed by a secret that the first entry holds: without it, nobody can edit a row and make it look right.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

from incrowd.core.codec import canonical, text_digest


@dataclass(frozen=True)
class Seal:
    """How the entries of one chain are sealed.

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
