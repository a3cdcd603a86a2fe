"""Passwords: checked by Argon2, which is slow on purpose, and never stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.errors import InvalidParameter, PackageMissing

if TYPE_CHECKING:
    from argon2 import PasswordHasher

SHORTEST, LONGEST = 12, 1024


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
