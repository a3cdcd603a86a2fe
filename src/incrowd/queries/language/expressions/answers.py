"""Answers: functions of numbers, texts and dates of an answer, in Python; what has no value is NULL."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date
from typing import Any

from sqlglot import exp

from incrowd.queries.language.expressions.function import Evaluate

_BITS = 1023
"""Whole numbers of more bits are no decimals, and ever longer ones would take ever longer."""
_PATTERNS = ("%Y", "%m", "%d")


def safely(compute: Callable[[], Any]) -> Any:
    """Return what is computed; NULL where there is no such number, or it is beyond all decimals.

    >>> safely(lambda: 1 / 0) is None, safely(lambda: 10**400) is None
    (True, True)
    """
    try:
        value = compute()
    except (ArithmeticError, ValueError, TypeError):
        return None
    if isinstance(value, int):
        return value if value.bit_length() <= _BITS else None
    return None if isinstance(value, complex) or (isinstance(value, float) and not math.isfinite(value)) else value


def rounded(value: float, digits: float = 0) -> float:
    """Return a number rounded to digits after the point; halves go away from zero, as in SQL.

    >>> rounded(2.5), rounded(-0.25, 1)
    (3.0, -0.3)
    """
    places = int(digits)
    if isinstance(value, int) and places >= 0:
        return value
    shift = 10.0**places
    return math.copysign(math.floor(abs(value) * shift + 0.5) / shift, value)


def logarithm(first: float, second: float | None = None) -> float:
    """Return LOG(x) of base 10, or LOG(base, x)."""
    return math.log10(first) if second is None else math.log(second) / math.log(first)


def truncated(when: date, unit: str) -> date | None:
    """Return the first day of the year, quarter or month."""
    match unit.upper():
        case "YEAR":
            return when.replace(month=1, day=1)
        case "QUARTER":
            return when.replace(month=(when.month - 1) // 3 * 3 + 1, day=1)
        case "MONTH":
            return when.replace(day=1)
    return None


def written(when: date, pattern: str) -> str:
    """Return a date in writing, of %Y, %m and %d.

    >>> written(date(2024, 2, 29), "%m/%Y")
    '02/2024'
    """
    parts = zip(_PATTERNS, when.isoformat().split("-"), strict=True)
    for sign, part in parts:
        pattern = pattern.replace(sign, part)
    return pattern


def text_of(value: Any) -> str:
    """Return a value as SQL writes it.

    >>> text_of(True), text_of(2.0)
    ('true', '2.0')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


def joined(*parts: Any) -> str:
    """Return texts, or what is written as one, behind each other."""
    return "".join(map(text_of, parts))


def cast(node: Any, evaluate: Evaluate) -> object:
    """Return a value as another type; NULL where it cannot be read as one."""
    value = evaluate(node.this)
    if value is None:
        return None
    if node.is_type(*exp.DataType.INTEGER_TYPES):
        return safely(lambda: int(rounded(float(value))))
    if node.is_type(*exp.DataType.REAL_TYPES):
        return safely(lambda: float(value))
    if node.is_type(*exp.DataType.TEXT_TYPES):
        return text_of(value)
    if node.is_type(exp.DataType.Type.DATE):
        return value if isinstance(value, date) else safely(lambda: date.fromisoformat(str(value)))
    return value


def both(node: Any, evaluate: Evaluate) -> object:
    """Return AND: false if a side is, missing if a side is missing and the other true."""
    return _logic(node, evaluate, ends=False)


def either(node: Any, evaluate: Evaluate) -> object:
    """Return OR: true if a side is, missing if a side is missing and the other false."""
    return _logic(node, evaluate, ends=True)


def _logic(node: Any, evaluate: Evaluate, *, ends: bool) -> object:
    sides = evaluate(node.this), evaluate(node.expression)
    if any(side is not None and bool(side) is ends for side in sides):
        return ends
    return None if None in sides else not ends


def is_same(node: Any, evaluate: Evaluate) -> object:
    """Return x IS NULL, IS TRUE or IS FALSE, which is never missing."""
    expected = evaluate(node.expression)
    value = evaluate(node.this)
    return value is None if expected is None else value is not None and bool(value) == bool(expected)


def is_among(node: Any, evaluate: Evaluate) -> object:
    """Return x IN (…): missing if x is, or if it is none of the values and one of them is missing."""
    value = evaluate(node.this)
    among = [evaluate(part) for part in node.expressions]
    if value is None:
        return None
    return True if value in among else None if None in among else False


def case(node: Any, evaluate: Evaluate) -> object:
    """Return the result of the first condition that holds."""
    base = node.this
    for branch in node.args["ifs"]:
        met = evaluate(branch.this)
        met = bool(met) if base is None else met is not None and evaluate(base) == met
        if met:
            return evaluate(branch.args["true"])
    default = node.args.get("default")
    return None if default is None else evaluate(default)


def when(node: Any, evaluate: Evaluate) -> object:
    """Return one result or the other of IF."""
    result = node.args["true"] if evaluate(node.this) else node.args.get("false")
    return None if result is None else evaluate(result)


def coalesce(node: Any, evaluate: Evaluate) -> object:
    """Return the first value that is not missing."""
    values = (evaluate(part) for part in (node.this, *node.expressions))
    return next((value for value in values if value is not None), None)


def nullif(node: Any, evaluate: Evaluate) -> object:
    """Return a value, missing where it equals another."""
    value = evaluate(node.this)
    return None if value == evaluate(node.expression) else value
