"""Limits: how large the whole numbers of a policy can be, so that no number makes a plan run for minutes.

They are public and depend on nothing but the policy: what exceeds one is refused at once, before anything is computed.
"""

from __future__ import annotations

MOST = 10**12
"""No whole number is larger: not even the size of a population."""

LIMITS = {
    "k": 100_000,
    "l": 100_000,
    "irregular": 100_000,
    "max_rows": 1_000,
    "max_length": 10_000,
    "max_groups": 1_000_000,
    "s": 1_000_000,
    "top": 1_000_000,
    "rounds": 100_000,
    "depth": 64,
    "size": 64,
    "m": 64,
    "redaction": 1_000,
    "prefix": 1_000,
    "groups": 1_000_000,
    "levels": 1_000,
    "lowest": 1_000,
    "highest": 1_000,
    "subsets": 100_000,
    "header_row": 1_000,
}
"""The largest value of a key, wherever it stands; for a list or a mapping, of each of its numbers."""


def limit_of(key: str) -> int:
    """Return the largest whole number that a key takes.

    >>> limit_of("k"), limit_of("population")
    (100000, 1000000000000)
    """
    return LIMITS.get(key, MOST)
