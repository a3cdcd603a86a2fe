"""Token: 256 random bits that speak for somebody; only their hash is ever stored."""

from __future__ import annotations

import hmac
import re
import secrets
from hashlib import sha256

_BYTES = 32
_FORM = re.compile(r"ic_[A-Za-z0-9_-]{43}")
_STORED, _FORGERY = b"incrowd token 1\n", b"incrowd session 1\n"


def new_token() -> str:
    """Return a fresh token from the operating system's generator.

    >>> len(new_token()), new_token() == new_token()
    (46, False)
    """
    return f"ic_{secrets.token_urlsafe(_BYTES)}"


def fingerprint(token: str) -> str | None:
    """Return the SHA-256 under which a token is stored, or None for a text that no token can be.

    A token has 256 random bits, so nobody finds it from its hash, and no slow hash is needed.

    >>> fingerprint("guess") is None, len(fingerprint(new_token()) or "")
    (True, 64)
    """
    return sha256(_STORED + token.encode()).hexdigest() if _FORM.fullmatch(token) else None


def forgery_mark(token: str) -> str:
    """Return what a page must send beside its session cookie: whoever cannot read the cookie cannot tell it.

    >>> token = new_token()
    >>> forgery_mark(token) == forgery_mark(token) != fingerprint(token)
    True
    """
    return sha256(_FORGERY + token.encode()).hexdigest()


def is_mark(given: str | None, token: str) -> bool:
    """Whether a page sent the mark of its session, compared in constant time.

    >>> is_mark(None, "ic_…"), is_mark(forgery_mark("ic_…"), "ic_…")
    (False, True)
    """
    return given is not None and hmac.compare_digest(given.encode(), forgery_mark(token).encode())
