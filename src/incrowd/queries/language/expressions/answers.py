"""Answers: functions of numbers, texts and dates of an answer, in Python; what has no value is NULL."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from datetime import date
from typing import Any

from sqlglot import exp

from incrowd.queries.language.expressions.function import Evaluate, Range, RangeOf

_BITS = 1023
"""Whole numbers of more bits are no decimals, and ever longer ones would take ever longer."""


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


_Rule = Callable[[Any, RangeOf, Evaluate], Range | None]


def _of_arguments(rule: Callable[..., Range | None]) -> _Rule:
    """Return the rule of a function whose range follows from the ranges of all of its arguments."""

    def apply(node: Any, range_of: RangeOf, _: Evaluate) -> Range | None:
        parts = [range_of(part) for part in _arguments(node)]
        return None if None in parts else rule(*parts)

    return apply


def _arguments(node: Any) -> list[exp.Expr]:
    sides = [part for part in (node.this, node.args.get("expression")) if part is not None]
    return [*sides, *node.expressions]


def _absolute(inner: Range) -> Range:
    low, high = inner
    return (0.0 if low <= 0.0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


def _root(inner: Range) -> Range | None:
    low, high = inner
    return (math.sqrt(max(low, 0.0)), math.sqrt(high)) if high >= 0.0 else None


def _logarithm(inner: Range) -> Range | None:
    low, high = inner
    return (math.log(low), math.log(high)) if low > 0.0 else None


def _product(left: Range, right: Range) -> Range:
    ends = [x * y for x, y in itertools.product(left, right)]
    return min(ends), max(ends)


def _quotient(left: Range, right: Range) -> Range | None:
    if right[0] <= 0.0 <= right[1]:
        return None
    ends = [x / y for x, y in itertools.product(left, right)]
    return min(ends), max(ends)


def _hull(*parts: Range) -> Range:
    return min(low for low, _ in parts), max(high for _, high in parts)


negated_range = _of_arguments(lambda inner: (-inner[1], -inner[0]))
absolute_range = _of_arguments(_absolute)
root_range = _of_arguments(_root)
logarithm_range = _of_arguments(_logarithm)
sum_range = _of_arguments(lambda left, right: (left[0] + right[0], left[1] + right[1]))
difference_range = _of_arguments(lambda left, right: (left[0] - right[1], left[1] - right[0]))
product_range = _of_arguments(_product)
quotient_range = _of_arguments(_quotient)
least_range = _of_arguments(lambda *parts: (min(low for low, _ in parts), min(high for _, high in parts)))
greatest_range = _of_arguments(lambda *parts: (max(low for low, _ in parts), max(high for _, high in parts)))
hull_range = _of_arguments(_hull)


def increasing_range(node: Any, range_of: RangeOf, evaluate: Evaluate) -> Range | None:
    """Return the range of a function that grows with its first argument: its values at both ends."""
    inner = range_of(node.this)
    ends = [] if inner is None else [evaluate(_at(node, end)) for end in inner]
    numbers = [float(end) for end in ends if isinstance(end, int | float)]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None


def _at(node: Any, number: float) -> exp.Expr:
    """Return a function at a number."""
    function = node.copy()
    literal: exp.Expr = exp.Literal.number(repr(abs(number)))
    function.set("this", literal if number >= 0 else exp.Neg(this=literal))
    return function  # type: ignore[no-any-return]


def first_range(node: Any, range_of: RangeOf, _: Evaluate) -> Range | None:
    """Return the range of a function that is its first argument, or missing."""
    return range_of(node.this)


def case_range(node: Any, range_of: RangeOf, _: Evaluate) -> Range | None:
    """Return the range of CASE or IF: the least that holds all results that it can have, of which NULL is none."""
    parts = [range_of(branch) for branch in _branches(node, range_of) if not isinstance(branch, exp.Null)]
    ranges = [part for part in parts if part is not None]
    return _hull(*ranges) if ranges and len(ranges) == len(parts) else None


def _branches(node: Any, range_of: RangeOf) -> list[Any]:
    """Return what CASE or IF can be, while numbers stay within their ranges; a condition on others can be anything."""
    cases = [node] if isinstance(node, exp.If) else node.args["ifs"]
    possible = []
    for case in cases:
        met = _surely(case.this, range_of) if isinstance(node, exp.If) or node.this is None else None
        if met is not False:
            possible.append(case.args["true"])
        if met is True:
            return possible
    default = node.args.get("false" if isinstance(node, exp.If) else "default")
    return possible if default is None else [*possible, default]


def _surely(condition: Any, range_of: RangeOf) -> bool | None:
    """Return whether a comparison holds for all numbers in their ranges, or for none; None where that is open."""
    inner = condition.unnest()
    if not isinstance(inner, exp.GT | exp.GTE | exp.LT | exp.LTE):
        return None
    left, right = range_of(inner.this), range_of(inner.expression)
    if left is None or right is None:
        return None
    if isinstance(inner, exp.LT | exp.LTE):
        left, right = right, left
    strict = isinstance(inner, exp.GT | exp.LT)
    if left[0] > right[1] or (not strict and left[0] == right[1]):
        return True
    return False if left[1] < right[0] or (strict and left[1] == right[0]) else None
