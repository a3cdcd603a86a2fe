"""Canonical JSON: one text for one value, so that hashes mean something."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical(value: Any) -> str:
    """Return JSON with sorted keys and no spaces; numbers that are not finite are refused.

    >>> canonical({"b": 1, "a": "ä"})
    '{"a":"ä","b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """Return the SHA-256 of the canonical form, in hexadecimal.

    >>> digest({}) == hashlib.sha256(b"{}").hexdigest()
    True
    """
    return hashlib.sha256(canonical(value).encode()).hexdigest()
