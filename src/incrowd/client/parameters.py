"""Parameters of a statement, written into its text as literals; nothing else could carry them to the server."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

# Quoted texts, quoted names and comments are passed over: a question mark in them is a question mark.
_PIECES = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|\?", re.DOTALL)


def filled(sql: str, parameters: Sequence[Any]) -> str:
    """Return a statement with a literal for each question mark.

    >>> filled("SELECT COUNT(*) FROM t WHERE a = ? AND b = '?' AND c < ?", ["it's", 3])
    "SELECT COUNT(*) FROM t WHERE a = 'it''s' AND b = '?' AND c < 3"
    """
    left = list(parameters)

    def piece(found: re.Match[str]) -> str:
        if found[0] != "?":
            return found[0]
        if not left:
            raise ValueError("there are more question marks than parameters")
        return literal(left.pop(0))

    text = _PIECES.sub(piece, sql)
    if left:
        raise ValueError("there are more parameters than question marks")
    return text


def literal(value: Any) -> str:
    """Return a value as SQL writes it.

    >>> literal(True), literal(None), literal(date(2020, 1, 31)), literal(-1.5)
    ('TRUE', 'NULL', "DATE '2020-01-31'", '-1.5')
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime():
            raise ValueError("a moment cannot be a parameter: give a date")
        case date():
            return f"DATE '{value.isoformat()}'"
        case int() | Decimal():
            return str(value)
        case float() if math.isfinite(value):
            return repr(value)
    raise ValueError("a parameter is a finite number, a text, a date, a truth value or None")
