"""Parameters as they travel: the values of Python, NumPy and pandas in JSON, each with its type."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

from incrowd.errors import InvalidParameter

_WORDS = "a parameter is a finite number, a text, a date, a truth value or None."


def written_parameters(parameters: Sequence[Any]) -> list[Any]:
    """Return parameters as a server reads them.

    >>> written_parameters([True, None, "it's", -3, date(2020, 1, 31)])
    [True, None, "it's", {'number': '-3'}, {'date': '2020-01-31'}]
    """
    if isinstance(parameters, str | bytes) or not isinstance(parameters, Sequence):
        raise InvalidParameter("parameters are a list or a tuple, one for each question mark.")
    return [_written(_plain(value)) for value in parameters]


def _plain(value: Any) -> Any:
    """Return a value of NumPy as Python writes it; all others as they are."""
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    if kind is None or getattr(value, "shape", None) != ():
        return value
    plain = value.astype("datetime64[us]").item() if kind == "M" else value.item()
    if plain is None:
        raise InvalidParameter(_WORDS)
    return plain


def _written(value: Any) -> Any:
    match value:
        case None | bool():
            return value
        case str():
            return str(value)
        case datetime():
            return {"date": _day(value).isoformat()}
        case date():
            return {"date": value.isoformat()}
        case Decimal() if value.is_finite():
            return {"number": format(value, "f")}
        case Integral():
            return {"number": str(int(value))}
        case Real():
            return {"number": _finite(float(value))}
    raise InvalidParameter(_WORDS)


def _finite(value: float) -> str:
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 (the test for what is no number)
        raise InvalidParameter(_WORDS)
    written = format(Decimal(repr(value)), "f")
    return written if "." in written else f"{written}.0"


def _day(moment: datetime) -> date:
    """Return the day of a moment at its beginning: pandas has no other way to write a day."""
    if moment != moment or moment.tzinfo is not None or moment.time() != time():  # noqa: PLR0124 (pandas.NaT)
        raise InvalidParameter("a parameter cannot have a time: give a date, or a Timestamp at midnight.")
    return moment.date()
