"""Columns by name: those that are asked for, held against those that are there; and names as SQL writes them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from incrowd.errors import UnknownColumn

_DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}


def require(names: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise if a wanted column is not there, with the name that was probably meant.

    Names of columns are no secret, but a file whose header line is missing has somebody's values in its place.  So
    what is there is named only if it resembles what was asked for, or if some of what was asked for is there.

    >>> require(["age", "zip"], ["zip", "age"])
    >>> require(["age", "zipcode"], ["age", "zip_code"])
    Traceback (most recent call last):
    ...
    incrowd.errors.UnknownColumn: there is no column zip_code. Did you mean zipcode?
    """
    missing = [name for name in dict.fromkeys(wanted) if name not in names]
    if not missing:
        return
    absent = f"there is no column {missing[0]}" if len(missing) == 1 else f"there are no columns {', '.join(missing)}"
    raise UnknownColumn(f"{absent}. {_advice(names, wanted, missing)}")


def _advice(names: Sequence[str], wanted: Sequence[str], missing: Sequence[str]) -> str:
    near = [found for name in missing for found in _near(name, names)]
    if near:
        return f"Did you mean {', '.join(dict.fromkeys(near))}?"
    if len(missing) < len(set(wanted)):
        return f"The columns are: {', '.join(names)}."
    used = next((word for mark, word in _DELIMITERS.items() if len(names) == 1 and mark in names[0]), None)
    if used:
        return f"The header is a single column with {used} in its name: is that the delimiter of the file?"
    return "None of the columns asked for is there: is this the right source, and does its first line name the columns?"


def _near(name: str, names: Sequence[str]) -> list[str]:
    folded = {_fold(each): each for each in names}
    close = difflib.get_close_matches(_fold(name), list(folded), n=1, cutoff=0.75)
    return [folded[each] for each in close]


def _fold(name: str) -> str:
    return name.strip().casefold().replace(" ", "_").replace("-", "_")


def quote(name: str) -> str:
    """Return a name as SQL writes it, whatever characters are in it.

    >>> quote('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'
