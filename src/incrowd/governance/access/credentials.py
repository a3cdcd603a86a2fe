"""Credentials: tokens of 256 random bits, of which only a hash is stored, and passwords, checked slowly by Argon2."""

from __future__ import annotations

import hmac
import re
import secrets
from hashlib import sha256
from typing import TYPE_CHECKING

from incrowd.errors import InvalidParameter, PackageMissing

if TYPE_CHECKING:
    from argon2 import PasswordHasher

_BYTES = 32
_FORM = re.compile(r"ic_[A-Za-z0-9_-]{43}")
_STORED, _FORGERY = b"incrowd token 1\n", b"incrowd session 1\n"
SHORTEST, LONGEST = 12, 1024


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


def hashed(password: str) -> str:
    """Return what is stored of a password.

    >>> hashed("short")
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: a password has 12 to 1024 characters.
    >>> matches(hashed("a long enough one"), "a long enough one")
    True
    """
    if not SHORTEST <= len(password) <= LONGEST:
        raise InvalidParameter(f"a password has {SHORTEST} to {LONGEST} characters.")
    return _hasher().hash(password)


def matches(stored: str | None, password: str) -> bool:
    """Whether a password is the one that was stored; where none is (None), as much work is done for nothing.

    >>> matches(None, "a long enough one")
    False
    """
    hasher = _hasher()
    from argon2.exceptions import Argon2Error, InvalidHashError

    if stored is None:
        hasher.hash(password[:LONGEST])
        return False
    try:
        return hasher.verify(stored, password[:LONGEST])
    except (Argon2Error, InvalidHashError):
        return False


def _hasher() -> PasswordHasher:
    try:
        from argon2 import PasswordHasher
    except ImportError:
        raise PackageMissing("passwords need the package argon2-cffi: pip install 'incrowd[web]'.") from None
    return PasswordHasher()
