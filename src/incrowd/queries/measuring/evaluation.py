"""Evaluation: expressions over the numbers of a noisy answer, or over their ranges: total, so that nothing can fail."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sqlglot import exp

from incrowd.errors import InvalidParameter
from incrowd.queries.language.expressions.answers import safely
from incrowd.queries.language.expressions.function import NodeRule, Range, SqlFunction
from incrowd.queries.language.expressions.table import ANSWER_NAMES, BY_NODE, function_of

Row = Mapping[str, object]
_Rule = Callable[[Any, Row], object]


def evaluate(expression: exp.Expr, row: Row) -> Any:
    """Return the value of an expression for one row of names and values; None is NULL.

    What has no value, such as a division by zero, is NULL.

    >>> from sqlglot import parse_one
    >>> evaluate(parse_one("total / n"), {"total": 10, "n": 4}), evaluate(parse_one("1 / n"), {"n": 0})
    (2.5, None)
    """
    rule = next((_RULES[kind] for kind in type(expression).__mro__ if kind in _RULES), None)
    if rule is None:
        raise InvalidParameter(
            f"{expression.sql()} cannot be computed from an answer: use arithmetic, comparisons, CASE or one of "
            f"{', '.join(ANSWER_NAMES)}."
        )
    return rule(expression, row)


def check(expression: exp.Expr, names: frozenset[str]) -> None:
    """Refuse, before a row is read, an expression that cannot be evaluated over these names."""
    for node in expression.walk():
        if isinstance(node, exp.Column) and node.name not in names:
            raise InvalidParameter(f"{node.name!r} is not part of the answer. There are: {', '.join(sorted(names))}.")
        if not isinstance(node, (exp.Identifier, exp.DataType, exp.Var, *_RULES)):
            evaluate(node, {})


def _computed(function: SqlFunction) -> _Rule:
    """Return how a function is computed: from its node, or from its arguments where none is missing."""
    compute = function.on_answers
    if isinstance(compute, NodeRule):
        of_node = compute.compute
        return lambda node, row: of_node(node, lambda part: evaluate(part, row))
    if compute is None:
        raise TypeError
    of_values = compute

    def rule(node: Any, row: Row) -> object:
        values = [
            part.name if isinstance(part, exp.Var) else evaluate(part, row)
            for part in _arguments(node, function.arguments)
        ]
        return None if None in values else safely(lambda: of_values(*values))

    return rule


def _arguments(node: Any, names: tuple[str, ...]) -> Iterator[exp.Expr]:
    """Yield the expressions that a node has as its arguments; the rest are signs of how it was written."""
    for name in names:
        argument = node.args.get(name)
        if isinstance(argument, list):
            yield from argument
        elif isinstance(argument, exp.Expr):
            yield argument


def _literal(node: Any, _: Row) -> object:
    if node.is_string:
        return str(node.this)
    return int(node.this) if node.is_int else float(node.this)


_RULES: dict[type[exp.Expr], _Rule] = {
    exp.Literal: _literal,
    exp.Column: lambda node, row: row.get(node.name),
    exp.Boolean: lambda node, _: bool(node.this),
    exp.Null: lambda _, __: None,
    exp.Paren: lambda node, row: evaluate(node.this, row),
    **{kind: _computed(function) for kind, function in BY_NODE.items() if function.on_answers is not None},
}


def range_of(expression: exp.Expr, ranges: Mapping[str, Range]) -> Range | None:
    """Return the range of an expression of numbers, by interval arithmetic; None where it has none.

    >>> from sqlglot import parse_one
    >>> range_of(parse_one("100 * a / b"), {"a": (1.0, 2.0), "b": (4.0, 5.0)})
    (20.0, 50.0)
    >>> range_of(parse_one("1 / b"), {"b": (-1.0, 1.0)}) is None
    True
    """
    result = _range(expression, ranges)
    return result if result is not None and all(map(math.isfinite, result)) else None


def _range(node: Any, ranges: Mapping[str, Range]) -> Range | None:
    match node:
        case exp.Column():
            return ranges.get(node.name)
        case exp.Literal():
            return None if node.is_string else (float(node.this), float(node.this))
        case exp.Paren():
            return _range(node.this, ranges)
    function = function_of(node)
    if function is None or function.range is None:
        return None
    return function.range(node, lambda part: _range(part, ranges), lambda part: evaluate(part, {}))
