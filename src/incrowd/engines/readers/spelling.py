"""Spelling: a single value as the text a person would have typed into a CSV file."""

from __future__ import annotations

import datetime as dt
import math

_EXACT = 2**53


def spell(value: object) -> str | None:
    """Write a value as text; None, an empty text and NaN are missing.

    Whole numbers carry no point even where a format stores every number as a float, dates are ISO 8601, and a time of
    midnight is not mentioned: spreadsheets keep a date as the moment it begins.

    >>> [spell(value) for value in ("01234", 7, 7.0, 0.5, True, dt.datetime(2024, 2, 29), "", None)]
    ['01234', '7', '7', '0.5', 'true', '2024-02-29', None, None]
    """
    if isinstance(value, str):
        return value or None
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _spell_float(value)
    if isinstance(value, dt.datetime) and value.time() == dt.time():
        return value.date().isoformat()
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    return str(value)


def _spell_float(value: float) -> str | None:
    if math.isnan(value):
        return None
    if value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    return repr(value)
