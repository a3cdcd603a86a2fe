"""Canonical JSON: one text per value, so that a hash of the text is a hash of the value."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from incrowd.errors import InvalidParameter


def canonical(value: Any) -> str:
    """Return the one JSON text of a value: keys sorted by code point, no spaces, nothing escaped that need not be.

    Floats are refused because their text is not unique between programs: amounts travel as decimal text.

    >>> canonical({"b": [1, None], "a": "ε"})
    '{"a":"ε","b":[1,null]}'
    """
    _plain(value)
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    if not text.isascii():
        _encoded(text)
    return text


def digest(domain: str, value: Any) -> str:
    """Return the SHA-256 of a value's canonical text, under a domain that keeps different uses of hashes apart.

    >>> digest("a use", 1) == digest("another use", 1)
    False
    """
    return sha256(domain.encode() + b"\n" + _encoded(canonical(value))).hexdigest()


def _plain(value: Any) -> None:
    match value:
        case None | bool() | int() | str():
            return
        case list() | tuple():
            for item in value:
                _plain(item)
        case dict():
            for key, item in value.items():
                if not isinstance(key, str):
                    raise InvalidParameter("the keys of an entry must be text.")
                _plain(item)
        case _:
            raise InvalidParameter(f"an entry cannot hold a {type(value).__name__}: write numbers as decimal text.")


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidParameter("an entry holds text that is not valid Unicode.") from error
