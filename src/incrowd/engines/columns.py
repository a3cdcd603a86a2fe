"""Columns by name: requested ones compared with existing ones, and names as SQL writes them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from incrowd.errors import UnknownColumn

DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
"""The delimiters of text files that are detected and written, in words; the first is the default."""


def require(names: Sequence[str], required: Sequence[str]) -> None:
    """Raise if a required column is missing, with the name that was probably meant.

    Names of columns are not secret, but in a file without a header line the first line holds a person's values.  So
    existing names are shown only if they resemble a required one, or if some required columns exist.

    >>> require(["age", "zip"], ["zip", "age"])
    >>> require(["age", "zipcode"], ["age", "zip_code"])
    Traceback (most recent call last):
    ...
    incrowd.errors.UnknownColumn: there is no column zip_code. Did you mean zipcode?
    """
    missing = [name for name in dict.fromkeys(required) if name not in names]
    if not missing:
        return
    absent = f"there is no column {missing[0]}" if len(missing) == 1 else f"there are no columns {', '.join(missing)}"
    raise UnknownColumn(f"{absent}. {_advice(names, required, missing)}")


def _advice(names: Sequence[str], required: Sequence[str], missing: Sequence[str]) -> str:
    near = [match for name in missing for match in _near(name, names)]
    if near:
        return f"Did you mean {', '.join(dict.fromkeys(near))}?"
    if len(missing) < len(set(required)):
        return f"The columns are: {', '.join(names)}."
    used = next((word for mark, word in DELIMITERS.items() if len(names) == 1 and mark in names[0]), None)
    if used:
        return f"The header is a single column with {used} in its name: is that the delimiter of the file?"
    return "No requested column exists: is this the right source, and does its first line name the columns?"


def _near(name: str, names: Sequence[str]) -> list[str]:
    by_fold = {_fold(existing): existing for existing in names}
    return [by_fold[match] for match in difflib.get_close_matches(_fold(name), list(by_fold), n=1, cutoff=0.75)]


def _fold(name: str) -> str:
    return name.strip().casefold().replace(" ", "_").replace("-", "_")


def quote(name: str) -> str:
    """Return a name as SQL writes it, with any characters in it.

    >>> quote('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'
