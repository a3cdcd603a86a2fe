"""Canonical JSON: one text per value, so that a hash of the text is a hash of the value."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from incrowd.errors import InvalidParameter


def _no_float(_text: str) -> None:
    raise ValueError


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_DECODER = json.JSONDecoder(parse_float=_no_float)


def canonical(value: Any) -> str:
    """Return the one JSON text of a value: keys sorted by code point, no spaces, nothing escaped that need not be.

    The value must be what JSON gives back: texts, whole numbers, truth values, nulls, lists, and mappings of texts.
    Floats are refused because their text is not unique between programs: amounts travel as decimal text.

    >>> canonical({"b": [1, None], "a": "ε"})
    '{"a":"ε","b":[1,null]}'
    """
    try:
        text = _ENCODER.encode(value)
        returned = _DECODER.decode(text)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidParameter("an entry holds something that has no unique text: write numbers as text.") from error
    if returned != value:
        raise InvalidParameter("an entry holds something that JSON does not give back: use lists, and texts as keys.")
    return text


def digest(domain: str, value: Any) -> str:
    """Return the SHA-256 of a value's canonical text, under a domain that keeps different uses of hashes apart.

    >>> digest("a use", 1) == digest("another use", 1)
    False
    """
    return sha256(domain.encode() + b"\n" + canonical(value).encode()).hexdigest()
