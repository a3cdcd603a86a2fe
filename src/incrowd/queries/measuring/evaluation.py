"""Evaluation: expressions over the numbers of a noisy answer, or over their ranges: total, so that nothing can fail."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from sqlglot import exp

from incrowd.errors import InvalidParameter
from incrowd.queries.measuring.functions import FUNCTIONS, text_of

Row = Mapping[str, object]
_Rule = Callable[[Any, Row], object]
_BITS = 1023
"""Whole numbers of more bits are no decimals, and ever longer ones would take ever longer."""


def evaluate(expression: exp.Expr, row: Row) -> Any:
    """Return the value of an expression for one row of names and values; None is NULL.

    What has no value, such as a division by zero, is NULL.

    >>> from sqlglot import parse_one
    >>> evaluate(parse_one("total / n"), {"total": 10, "n": 4}), evaluate(parse_one("1 / n"), {"n": 0})
    (2.5, None)
    """
    rule = next((rule for kind, rule in _RULES.items() if isinstance(expression, kind)), None)
    if rule is None:
        raise InvalidParameter(
            f"{expression.sql()} cannot be computed from an answer: use arithmetic, comparisons, CASE, COALESCE, "
            "NULLIF, LEAST, GREATEST, ABS, ROUND, FLOOR, CEIL, SQRT, LN, EXP, SIGN, CAST, UPPER or LOWER."
        )
    return rule(expression, row)


def check(expression: exp.Expr, names: frozenset[str]) -> None:
    """Refuse, before a row is read, an expression that cannot be evaluated over these names."""
    for node in expression.walk():
        if isinstance(node, exp.Column) and node.name not in names:
            raise InvalidParameter(f"{node.name!r} is not part of the answer. There are: {', '.join(sorted(names))}.")
        if not isinstance(node, (exp.Identifier, exp.DataType, exp.Var, *_RULES)):
            evaluate(node, {})


def _binary(compute: Callable[[Any, Any], Any]) -> _Rule:
    def rule(node: Any, row: Row) -> object:
        left, right = evaluate(node.this, row), evaluate(node.expression, row)
        if left is None or right is None:
            return None
        return safely(lambda: compute(left, right))

    return rule


def _unary(compute: Callable[[Any], Any]) -> _Rule:
    def rule(node: Any, row: Row) -> object:
        value = evaluate(node.this, row)
        return None if value is None else safely(lambda: compute(value))

    return rule


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


def _literal(node: Any, _: Row) -> object:
    if node.is_string:
        return str(node.this)
    return int(node.this) if node.is_int else float(node.this)


def _column(node: Any, row: Row) -> object:
    return row.get(node.name)


def _and(node: Any, row: Row) -> object:
    return _logic(node, row, ends=False)


def _or(node: Any, row: Row) -> object:
    return _logic(node, row, ends=True)


def _logic(node: Any, row: Row, *, ends: bool) -> object:
    sides = evaluate(node.this, row), evaluate(node.expression, row)
    if any(side is not None and bool(side) is ends for side in sides):
        return ends
    return None if None in sides else not ends


def _is(node: Any, row: Row) -> object:
    wanted = evaluate(node.expression, row)
    value = evaluate(node.this, row)
    return value is None if wanted is None else value is not None and bool(value) == bool(wanted)


def _between(node: Any, row: Row) -> object:
    value, low, high = (evaluate(node.args[part], row) for part in ("this", "low", "high"))
    return None if None in (value, low, high) else safely(lambda: low <= value <= high)


def _in(node: Any, row: Row) -> object:
    value = evaluate(node.this, row)
    among = [evaluate(each, row) for each in node.expressions]
    if value is None:
        return None
    return True if value in among else None if None in among else False


def _case(node: Any, row: Row) -> object:
    base = node.this
    for branch in node.args["ifs"]:
        met = evaluate(branch.this, row)
        met = bool(met) if base is None else met is not None and evaluate(base, row) == met
        if met:
            return evaluate(branch.args["true"], row)
    default = node.args.get("default")
    return None if default is None else evaluate(default, row)


def _if(node: Any, row: Row) -> object:
    chosen = node.args["true"] if evaluate(node.this, row) else node.args.get("false")
    return None if chosen is None else evaluate(chosen, row)


def _coalesce(node: Any, row: Row) -> object:
    values = (evaluate(each, row) for each in (node.this, *node.expressions))
    return next((value for value in values if value is not None), None)


def _nullif(node: Any, row: Row) -> object:
    value = evaluate(node.this, row)
    return None if value == evaluate(node.expression, row) else value


def _extreme(choose: Callable[[list[Any]], Any]) -> _Rule:
    def rule(node: Any, row: Row) -> object:
        values = [evaluate(each, row) for each in (node.this, *node.expressions)]
        return None if None in values else safely(lambda: choose(values))

    return rule


def _round(node: Any, row: Row) -> object:
    value = evaluate(node.this, row)
    digits = 0 if node.args.get("decimals") is None else evaluate(node.args["decimals"], row)
    if value is None or digits is None:
        return None
    return safely(lambda: _half_up(value, int(digits)))


def _half_up(value: float, digits: int) -> float:
    """Round halves away from zero, as SQL does."""
    if isinstance(value, int) and digits >= 0:
        return value
    shift = 10.0**digits
    return math.copysign(math.floor(abs(value) * shift + 0.5) / shift, value)


def _cast(node: Any, row: Row) -> object:
    value = evaluate(node.this, row)
    if value is None:
        return None
    if node.is_type(*exp.DataType.INTEGER_TYPES):
        return safely(lambda: int(_half_up(float(value), 0)))
    if node.is_type(*exp.DataType.REAL_TYPES):
        return safely(lambda: float(value))
    if node.is_type(*exp.DataType.TEXT_TYPES):
        return text_of(value)
    if node.is_type(exp.DataType.Type.DATE):
        return value if isinstance(value, date) else safely(lambda: date.fromisoformat(str(value)))
    return value


def _called(parts: tuple[str, ...], compute: Callable[..., Any]) -> _Rule:
    def rule(node: Any, row: Row) -> object:
        given = [node.args[part] for part in parts if node.args.get(part) is not None]
        values = [part.name if isinstance(part, exp.Var) else evaluate(part, row) for part in given]
        return None if None in values else safely(lambda: compute(*values))

    return rule


_RULES: dict[type[exp.Expression], _Rule] = {
    exp.Literal: _literal,
    exp.Column: _column,
    exp.Boolean: lambda node, _: bool(node.this),
    exp.Null: lambda _, __: None,
    exp.Paren: lambda node, row: evaluate(node.this, row),
    exp.Neg: _unary(lambda x: -x),
    exp.Add: _binary(lambda x, y: x + y),
    exp.Sub: _binary(lambda x, y: x - y),
    exp.Mul: _binary(lambda x, y: x * y),
    exp.Div: _binary(lambda x, y: x / y),
    exp.Mod: _binary(math.fmod),
    exp.EQ: _binary(lambda x, y: x == y),
    exp.NEQ: _binary(lambda x, y: x != y),
    exp.LT: _binary(lambda x, y: x < y),
    exp.LTE: _binary(lambda x, y: x <= y),
    exp.GT: _binary(lambda x, y: x > y),
    exp.GTE: _binary(lambda x, y: x >= y),
    exp.And: _and,
    exp.Or: _or,
    exp.Not: _unary(lambda x: not x),
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _coalesce,
    exp.Nullif: _nullif,
    exp.Least: _extreme(min),
    exp.Greatest: _extreme(max),
    exp.Abs: _unary(abs),
    exp.Round: _round,
    exp.Floor: _unary(lambda x: float(math.floor(x))),
    exp.Ceil: _unary(lambda x: float(math.ceil(x))),
    exp.Sqrt: _unary(math.sqrt),
    exp.Ln: _unary(math.log),
    exp.Exp: _unary(math.exp),
    exp.Sign: _unary(lambda x: (x > 0) - (x < 0)),
    exp.Cast: _cast,
    exp.TryCast: _cast,
    **{kind: _called(parts, compute) for kind, (parts, compute) in FUNCTIONS.items()},
}


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
        case exp.Paren() | exp.Nullif():
            return _range(node.this, known)
        case exp.Neg() | exp.Sqrt() | exp.Ln() | exp.Abs():
            return _of_one(node, _range(node.this, known))
        case exp.Floor() | exp.Ceil() | exp.Round() | exp.Exp() | exp.Sign() | exp.Cast():
            return _growing(node, _range(node.this, known))
        case exp.Case() | exp.If():
            return _hull([_range(each, known) for each in _branches(node, known) if not isinstance(each, exp.Null)])
        case exp.Coalesce():
            return _hull([_range(each, known) for each in (node.this, *node.expressions)])
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
    """Return the range of a sign change, an absolute value, a root or a logarithm."""
    if inner is None:
        return None
    low, high = inner
    match node:
        case exp.Neg():
            return -high, -low
        case exp.Abs():
            return (0.0 if low <= 0.0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
        case exp.Ln():
            return (math.log(low), math.log(high)) if low > 0.0 else None
    return (math.sqrt(max(low, 0.0)), math.sqrt(high)) if high >= 0.0 else None


def _growing(node: Any, inner: Range | None) -> Range | None:
    """Return the range of a function that grows with its argument: its values at both ends."""
    ends = [] if inner is None else [evaluate(_at(node, end), {}) for end in inner]
    numbers = [float(end) for end in ends if isinstance(end, int | float)]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None


def _hull(parts: list[Range | None]) -> Range | None:
    """Return the least range that holds several, None where one of them has none."""
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _branches(node: Any, known: Mapping[str, Range]) -> list[Any]:
    """Return what CASE or IF can be, while numbers stay within their ranges; a condition on others can be anything."""
    cases = [node] if isinstance(node, exp.If) else node.args["ifs"]
    possible = []
    for case in cases:
        met = _surely(case.this, known) if isinstance(node, exp.If) or node.this is None else None
        if met is not False:
            possible.append(case.args["true"])
        if met is True:
            return possible
    default = node.args.get("false" if isinstance(node, exp.If) else "default")
    return possible if default is None else [*possible, default]


def _surely(condition: Any, known: Mapping[str, Range]) -> bool | None:
    """Return whether a comparison holds for all numbers in their ranges, or for none; None where that is open."""
    inner = condition.unnest()
    if not isinstance(inner, exp.GT | exp.GTE | exp.LT | exp.LTE):
        return None
    left, right = _range(inner.this, known), _range(inner.expression, known)
    if left is None or right is None:
        return None
    if isinstance(inner, exp.LT | exp.LTE):
        left, right = right, left
    strict = isinstance(inner, exp.GT | exp.LT)
    if left[0] > right[1] or (not strict and left[0] == right[1]):
        return True
    return False if left[1] < right[0] or (strict and left[1] == right[0]) else None


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
