"""Tokens: the right to send one report; a collector knows its own without keeping a list of them."""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import dataclass
from hashlib import sha256

from incrowd.errors import AccessDenied

_HALF = 32
_TOKEN = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Tokens:
    """Makes and recognizes tokens of one survey under a secret.

    >>> tokens = Tokens(b"secret", "survey")
    >>> tokens.number(tokens.issue()) == tokens.number("00" * 32)
    Traceback (most recent call last):
    incrowd.errors.AccessDenied: this token is not one of this survey: ask whoever invited you for one.
    """

    secret: bytes
    survey: str

    def issue(self) -> str:
        """Return a new token: a random number, and a proof that this collector made it."""
        number = secrets.token_hex(_HALF // 2)
        return number + self._proof(number)

    def number(self, token: object) -> str:
        """Return the number of a token, or refuse one that was not made here."""
        if isinstance(token, str) and _TOKEN.fullmatch(token):
            number, proof = token[:_HALF], token[_HALF:]
            if hmac.compare_digest(proof, self._proof(number)):
                return number
        raise AccessDenied("this token is not one of this survey: ask whoever invited you for one.")

    def _proof(self, number: str) -> str:
        text = f"incrowd token 1\n{self.survey}\n{number}"
        return hmac.new(self.secret, text.encode(), sha256).hexdigest()[:_HALF]
