"""Functions of numbers, texts and dates of an answer, in Python: what has no value is NULL."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date
from typing import Any

from sqlglot import exp

_PATTERNS = ("%Y", "%m", "%d")


def _truncated(when: date, unit: str) -> date | None:
    match unit.upper():
        case "YEAR":
            return when.replace(month=1, day=1)
        case "QUARTER":
            return when.replace(month=(when.month - 1) // 3 * 3 + 1, day=1)
        case "MONTH":
            return when.replace(day=1)
    return None


def _logarithm(first: float, second: float | None = None) -> float:
    return math.log10(first) if second is None else math.log(second) / math.log(first)


def _written(when: date, pattern: str) -> str:
    """Return a date in writing, of %Y, %m and %d."""
    parts = zip(_PATTERNS, when.isoformat().split("-"), strict=True)
    for sign, part in parts:
        pattern = pattern.replace(sign, part)
    return pattern


def _joined(*parts: Any) -> str:
    return "".join(map(text_of, parts))


def text_of(value: Any) -> str:
    """Return a value as SQL writes it.

    >>> text_of(True), text_of(2.0)
    ('true', '2.0')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


def _power(base: float, exponent: float) -> float:
    return math.pow(base, exponent)


FUNCTIONS: dict[type[exp.Expression], tuple[tuple[str, ...], Callable[..., Any]]] = {
    exp.Upper: (("this",), lambda x: str(x).upper()),
    exp.Lower: (("this",), lambda x: str(x).lower()),
    exp.Trim: (("this",), lambda x: str(x).strip(" ")),
    exp.Length: (("this",), lambda x: len(str(x))),
    exp.Left: (("this", "expression"), lambda x, n: str(x)[: int(n)]),
    exp.DPipe: (("this", "expression"), _joined),
    exp.Pow: (("this", "expression"), _power),
    exp.Log: (("this", "expression"), _logarithm),
    exp.Trunc: (("this",), math.trunc),
    exp.Year: (("this",), lambda when: when.year),
    exp.Quarter: (("this",), lambda when: (when.month + 2) // 3),
    exp.Month: (("this",), lambda when: when.month),
    exp.Day: (("this",), lambda when: when.day),
    exp.TimeToStr: (("this", "format"), _written),
    exp.TimestampTrunc: (("this", "unit"), _truncated),
    exp.DateTrunc: (("this", "unit"), _truncated),
}
"""Kinds of nodes, the parts that they have, and what is computed from these where all are there."""
