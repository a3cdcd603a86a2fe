"""Ranges: where the value of a function of noisy numbers lies while these stay within their intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from incrowd.queries.language.expressions.function import Evaluate, Range, RangeOf

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


negated = _of_arguments(lambda inner: (-inner[1], -inner[0]))
absolute = _of_arguments(_absolute)
root = _of_arguments(_root)
logarithm = _of_arguments(_logarithm)
total = _of_arguments(lambda left, right: (left[0] + right[0], left[1] + right[1]))
difference = _of_arguments(lambda left, right: (left[0] - right[1], left[1] - right[0]))
product = _of_arguments(_product)
quotient = _of_arguments(_quotient)
least = _of_arguments(lambda *parts: (min(low for low, _ in parts), min(high for _, high in parts)))
greatest = _of_arguments(lambda *parts: (max(low for low, _ in parts), max(high for _, high in parts)))
hull = _of_arguments(_hull)


def increasing(node: Any, range_of: RangeOf, evaluate: Evaluate) -> Range | None:
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


def first(node: Any, range_of: RangeOf, _: Evaluate) -> Range | None:
    """Return the range of a function that is its first argument, or missing."""
    return range_of(node.this)


def chosen(node: Any, range_of: RangeOf, _: Evaluate) -> Range | None:
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
