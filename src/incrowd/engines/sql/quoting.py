"""Quoting: a name as SQL writes it."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Return a name as SQL writes it, whatever characters are in it.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'
