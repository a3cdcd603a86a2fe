"""Ranges: what an expression can be while the numbers in it stay within their intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from incrowd.queries.measuring.evaluation import evaluate

Range = tuple[float, float]


def range_of(expression: exp.Expr, known: Mapping[str, Range]) -> Range | None:
    """Return the range of an expression of numbers, by interval arithmetic; None where it has none.

    >>> from sqlglot import parse_one
    >>> range_of(parse_one("100 * a / b"), {"a": (1.0, 2.0), "b": (4.0, 5.0)})
    (20.0, 50.0)
    >>> range_of(parse_one("1 / b"), {"b": (-1.0, 1.0)}) is None
    True
    """
    found = _range(expression, known)
    return found if found is not None and all(map(math.isfinite, found)) else None


def _range(node: Any, known: Mapping[str, Range]) -> Range | None:
    match node:
        case exp.Column():
            return known.get(node.name)
        case exp.Literal() if not node.is_string:
            number = float(node.this)
            return number, number
        case exp.Paren():
            return _range(node.this, known)
        case exp.Neg() | exp.Sqrt() | exp.Floor() | exp.Ceil() | exp.Round() | exp.Abs():
            return _of_one(node, _range(node.this, known))
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
            return _of_two(node, _range(node.this, known), _range(node.expression, known))
        case exp.Least() | exp.Greatest():
            parts = [_range(each, known) for each in (node.this, *node.expressions)]
            choose: Callable[..., float] = min if isinstance(node, exp.Least) else max
            sure = [part for part in parts if part is not None]
            return (
                (choose(low for low, _ in sure), choose(high for _, high in sure)) if len(sure) == len(parts) else None
            )
    return None


def _of_one(node: Any, inner: Range | None) -> Range | None:
    """Return the range of a function that grows with its argument, or of a sign change or an absolute value."""
    if inner is None:
        return None
    low, high = inner
    if isinstance(node, exp.Neg):
        return -high, -low
    if isinstance(node, exp.Abs):
        return (0.0 if low <= 0.0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
    if isinstance(node, exp.Sqrt):
        return (math.sqrt(max(low, 0.0)), math.sqrt(high)) if high >= 0.0 else None
    ends = [evaluate(_at(node, end), {}) for end in inner]
    return None if None in ends else (float(ends[0]), float(ends[1]))


def _at(node: Any, number: float) -> exp.Expr:
    """Return a function at a number."""
    function = node.copy()
    literal: exp.Expr = exp.Literal.number(repr(abs(number)))
    function.set("this", literal if number >= 0 else exp.Neg(this=literal))
    return function  # type: ignore[no-any-return]


def _of_two(node: Any, left: Range | None, right: Range | None) -> Range | None:
    if left is None or right is None:
        return None
    match node:
        case exp.Add():
            return left[0] + right[0], left[1] + right[1]
        case exp.Sub():
            return left[0] - right[1], left[1] - right[0]
        case exp.Div():
            if right[0] <= 0.0 <= right[1]:
                return None
            ends = [x / y for x, y in itertools.product(left, right)]
        case _:
            ends = [x * y for x, y in itertools.product(left, right)]
    return min(ends), max(ends)
