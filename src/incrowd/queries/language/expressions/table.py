"""The table of SQL functions: binding, evaluation, intervals, refusals and the reference page all read it."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sqlglot import exp
from sqlglot.helper import ensure_list

from incrowd.core.domain import Type
from incrowd.core.rounding import exact
from incrowd.errors import InvalidParameter, QueryRefused
from incrowd.queries.language.domain import BoundTree
from incrowd.queries.language.expressions import arithmetic, casts, dates, logic, texts
from incrowd.queries.language.expressions.answers import safely
from incrowd.queries.language.expressions.function import LARGEST, Mean, NodeRule, Range, SqlFunction, title
from incrowd.queries.language.trees import fixed

FUNCTIONS: tuple[SqlFunction, ...] = (
    *arithmetic.FUNCTIONS,
    *logic.FUNCTIONS,
    *texts.FUNCTIONS,
    *dates.FUNCTIONS,
    *casts.FUNCTIONS,
)
"""What is written as a name with arguments in brackets."""

OPERATORS: tuple[SqlFunction, ...] = (*arithmetic.OPERATORS, *logic.OPERATORS, *texts.OPERATORS, *dates.OPERATORS)
"""What stands between its arguments, or around them."""

BY_NODE: Mapping[type[exp.Expr], SqlFunction] = {
    node: function for function in (*FUNCTIONS, *OPERATORS) for node in function.nodes if node is not exp.Anonymous
}
BY_NAME: Mapping[str, SqlFunction] = {
    name: function for function in FUNCTIONS if exp.Anonymous in function.nodes for name in function.names
}
"""The functions that sqlglot has no kind of node for."""


def names_of(functions: Iterable[SqlFunction]) -> tuple[str, ...]:
    """Return all names of functions, in their order in the alphabet.

    >>> names_of(function for function in FUNCTIONS if function.name in ("SQRT", "POWER"))
    ('POW', 'POWER', 'SQRT')
    """
    return tuple(sorted(name for function in functions for name in function.names if name.isidentifier()))


NAMES = names_of(FUNCTIONS)
"""The functions of rows, by name."""

ANSWER_NAMES = names_of(function for function in FUNCTIONS if function.answered)
"""The functions of noisy answers, by name."""


def function_of(node: exp.Expr) -> SqlFunction | None:
    """Return the function that a node is a call of.

    >>> function_of(exp.Sqrt(this=exp.column("x"))).name, function_of(exp.column("x"))
    ('SQRT', None)
    """
    if isinstance(node, exp.Anonymous):
        return BY_NAME.get(str(node.this).upper())
    return BY_NODE.get(type(node))  # not of a subclass: CONCAT_WS is one of CONCAT, and means something else


_SMALL, _GROWTH = 500, 20
"""A tree has at most so many parts, and so many more for each part of what was asked."""


def binder(resolve: Callable[[exp.Column], BoundTree]) -> Mean:
    """Return what expressions mean where columns mean what `resolve` says.

    >>> binder(lambda _: None)(exp.Add(this=exp.Literal.number(1), expression=exp.Literal.number(2))).extent.values
    (3,)
    """

    def mean(node: exp.Expr) -> BoundTree:
        if isinstance(node, exp.Paren):
            return mean(node.this)
        if isinstance(node, exp.Column):
            return resolve(node)
        if isinstance(node, exp.Literal):
            return _literal(node)
        if isinstance(node, exp.Boolean):
            return fixed(bool(node.this), Type.BOOLEAN)
        function = function_of(node)
        if function is None:
            raise refusal(node)
        function.check(node)
        return _small(function.on_rows(node, mean), node)

    return mean


def _literal(node: exp.Literal) -> BoundTree:
    """Return what a number or a text that is written out means."""
    written = str(node.this)
    if node.args.get("is_string"):
        if len(written) > 1000:
            raise InvalidParameter("a text in a query has at most 1,000 characters.")
        return fixed(written, Type.TEXT)
    value = exact(written, "a number in the query")
    if abs(value) > LARGEST:
        raise InvalidParameter("numbers in a query lie within ±10^15: write a smaller one.")
    if value.denominator == 1 and written.isdigit():
        return fixed(int(value), Type.INTEGER)
    return fixed(float(value), Type.DECIMAL)


def _small(meaning: BoundTree, node: exp.Expr) -> BoundTree:
    """Return a meaning, unless its tree has outgrown what was asked.

    What is made safe can name its argument several times, so that what is nested n deep would be written 3^n times.
    """
    size = _size(meaning.tree)
    if size > _SMALL and size > _SMALL + _GROWTH * _size(node):
        raise QueryRefused(f"{title(node)} is nested too deeply: compute the inner part in a subquery.")
    return meaning


def _size(tree: exp.Expr) -> int:
    return sum(1 for _ in tree.walk())


def refusal(node: exp.Expr) -> Exception:
    """Return why a kind of expression is not understood, with the nearest that is.

    >>> type(refusal(exp.Window())).__name__
    'QueryRefused'
    """
    if isinstance(node, exp.Null):
        return InvalidParameter("NULL stands in CASE and COALESCE only: write x IS NULL to find missing values.")
    reason = next((reason for kinds, reason in _REASONS if isinstance(node, kinds)), None)
    if reason is not None:
        return QueryRefused(reason.format(title(node)))
    name = title(node)
    if name in INSTEAD:
        return QueryRefused(f"{name} is not answered: write {INSTEAD[name]}.")
    names = [*(function.name for function in FUNCTIONS), "COUNT", "SUM", "AVG", "MEDIAN", "QUANTILE", "STDDEV"]
    near = difflib.get_close_matches(name, names, 1, _ALIKE)
    hint = f" Did you mean {near[0]}?" if near else f" There are: {', '.join(NAMES)}."
    return QueryRefused(f"{name} is not among the functions that no row can make fail.{hint}")


_ALIKE = 0.75
"""How alike two names are at least, for one to be meant by the other: LAST_DAY and LEAST are 0.62."""
INSTEAD: Mapping[str, str] = {
    "AGE": "DATE_DIFF('year', x, CURRENT_DATE)",
    **dict.fromkeys(("LOGICAL_OR", "BOOL_OR"), "COUNT_IF(c) > 0"),
    **dict.fromkeys(("LOGICAL_AND", "BOOL_AND", "EVERY"), "COUNT_IF(NOT c) = 0"),
    **dict.fromkeys(
        ("ANY_VALUE", "FIRST", "LAST", "FIRST_VALUE", "LAST_VALUE", "ARG_MAX", "ARG_MIN"),
        "MODE(x), or MIN(x) and MAX(x)",
    ),
    **dict.fromkeys(
        ("ARRAY_AGG", "LIST", "GROUP_CONCAT", "STRING_AGG", "LISTAGG", "JSON_ARRAY_AGG"), "GROUP BY x with COUNT(*)"
    ),
    "INITCAP": "UPPER(x)",
    "TOTAL": "SUM(x)",
    "ISOWEEK": "WEEK(x)",
    "LAST_DAY": "DATE_TRUNC('month', x), its first day",
    "TO_DAYS": "DATE_DIFF('day', DATE '1970-01-01', x)",
    "RANDOM": "the query without it, since rows are drawn in secret",
    "RAND": "the query without it, since rows are drawn in secret",
}
"""What to write instead of functions that no row may decide, or that have another name here."""

_REASONS: tuple[tuple[tuple[type[exp.Expr], ...], str], ...] = (
    ((exp.Window,), "OVER compares single rows: GROUP BY first, windows go over the groups."),
    ((exp.AggFunc,), "{} cannot stand here: aggregates stand in SELECT, HAVING and ORDER BY, not inside each other."),
    (
        (exp.Query, exp.Subquery, exp.Exists),
        (
            "a query inside an expression is computed after the noise, in SELECT, HAVING and ORDER BY of a query that "
            "is not in a batch. To select rows by it, ask it first and write its number, or use x IN (SELECT …)."
        ),
    ),
    (
        (exp.RegexpExtract, exp.RegexpReplace),
        "no text is taken apart by a regular expression: use SPLIT_PART(x, '/', 2), LEFT(x, n) or SUBSTRING(x, 2, n).",
    ),
    ((exp.SimilarTo,), "SIMILAR TO differs between dialects: write LIKE, or REGEXP_FULL_MATCH(x, 'w.*')."),
    ((exp.Tuple,), "pairs stand on both sides of IN, and all are as long: write (a, b) IN ((1, 2), (3, 4))."),
    ((exp.Star,), "* stands for rows, which are never released: name what to count, sum or average."),
)


Row = Mapping[str, object]
_Rule = Callable[[Any, Row], object]


def evaluate(expression: exp.Expr, row: Row) -> Any:
    """Return the value of an expression for one row of names and values; None is NULL.

    What has no value, such as a division by zero, is NULL.

    >>> from sqlglot import parse_one
    >>> evaluate(parse_one("total / n"), {"total": 10, "n": 4}), evaluate(parse_one("1 / n"), {"n": 0})
    (2.5, None)
    """
    rule = _RULES.get(type(expression))
    if rule is None:
        raise InvalidParameter(f"{expression.sql()} is not computed on answers: use {', '.join(ANSWER_NAMES)}.")
    return rule(expression, row)


def check_expression(expression: exp.Expr, names: frozenset[str]) -> None:
    """Refuse, before a row is read, an expression that cannot be evaluated over these names."""
    for node in expression.walk():
        if isinstance(node, exp.Column) and node.name not in names:
            raise InvalidParameter(f"{node.name!r} is not part of the answer. There are: {', '.join(sorted(names))}.")
        if not isinstance(node, exp.Identifier | exp.DataType | exp.Var) and type(node) not in _RULES:
            evaluate(node, {})


def _computed(function: SqlFunction) -> _Rule:
    """Return how a function is computed: from its node, or from its arguments where none is missing."""
    compute = function.on_answers

    def rule(node: Any, row: Row) -> object:
        if isinstance(compute, NodeRule):
            return compute.compute(node, lambda part: evaluate(part, row))
        arguments = (part for name in function.arguments for part in ensure_list(node.args.get(name)))
        parts = [part for part in arguments if isinstance(part, exp.Expr)]  # the rest are signs of how it was written
        values = [part.name if isinstance(part, exp.Var) else evaluate(part, row) for part in parts]
        return None if compute is None or None in values else safely(lambda: compute(*values))

    return rule


def _literal_value(node: Any, _: Row) -> object:
    if node.is_string:
        return str(node.this)
    return int(node.this) if node.is_int else float(node.this)


_RULES: dict[type[exp.Expr], _Rule] = {
    exp.Literal: _literal_value,
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
