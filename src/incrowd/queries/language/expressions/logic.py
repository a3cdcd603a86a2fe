"""Logic: comparisons, conditions, and the choice between values; a missing value makes a comparison missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.errors import InvalidParameter, QueryRefused
from incrowd.queries.language import trees as sql
from incrowd.queries.language.domain import BoundTree, Constant, ExpressionDomain, decimals, hull, listed, truth
from incrowd.queries.language.expressions import answers
from incrowd.queries.language.expressions.dates import written
from incrowd.queries.language.expressions.function import (
    COMPARED,
    CONDITIONS,
    LONGEST,
    Mean,
    NodeRule,
    SqlFunction,
    TextWork,
    condition,
    sole,
    text,
)

_MOST_WILDCARDS = 5  # matching backtracks at each: work would depend on the row
_LONGEST_PATTERN = 200  # work per row is bounded by it


def together(parts: Sequence[BoundTree]) -> tuple[BoundTree, ...]:
    """Return meanings of one kind: a text written beside dates is a date, whole numbers beside decimals decimals.

    >>> [part.type.value for part in together((sql.fixed(1, Type.INTEGER), sql.fixed(0.5, Type.DECIMAL)))]
    ['decimal', 'decimal']
    """
    kinds = {part.type for part in parts}
    if Type.DATE in kinds and Type.TEXT in kinds:
        return together([_as_date(part) for part in parts])
    if kinds == {Type.INTEGER, Type.DECIMAL}:
        return tuple(_widened(part) for part in parts)
    if len(kinds) > 1:
        first, second, *_ = parts
        other = next((part for part in parts if part.type is not first.type), second)
        raise InvalidParameter(
            f"{sql.only_type(first.extent)} does not go with {sql.only_type(other.extent)}: use CAST."
        )
    return tuple(parts)


def _compare(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand = <> < <= > >=."""
    left, right = together((mean(node.this), mean(node.expression)))
    return BoundTree(sql.operation(type(node), left.tree, right.tree), truth(optional=_any_missing(left, right)))


def _same(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand IS NOT DISTINCT FROM and IS DISTINCT FROM: comparisons that are never missing."""
    left, right = together((mean(node.this), mean(node.expression)))
    return BoundTree(sql.operation(type(node), left.tree, right.tree), truth(optional=False))


def _in_between(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand x BETWEEN low AND high."""
    parts = together((mean(node.this), mean(node.args["low"]), mean(node.args["high"])))
    return BoundTree(sql.between(*(part.tree for part in parts)), truth(optional=_any_missing(*parts)))


def _is_in(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand x IN (values that are written out)."""
    if node.args.get("query") or node.args.get("unnest") or node.args.get("field") or not node.expressions:
        raise QueryRefused("IN takes a list of values such as ('a', 'b'), not a query: JOIN the other table.")
    parts = together([mean(node.this), *(mean(value) for value in node.expressions)])
    for part in parts[1:]:
        sole(part, "a value in the list after IN")
    tree = exp.In(this=sql.operand(parts[0].tree), expressions=[part.tree.copy() for part in parts[1:]])
    return BoundTree(tree, truth(optional=parts[0].optional))


def _is_a(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand x IS NULL, and IS TRUE or IS FALSE of a condition."""
    part = mean(node.this)
    if isinstance(node.expression, exp.Boolean):
        condition(part, "IS TRUE")
    elif not isinstance(node.expression, exp.Null):
        raise QueryRefused("IS goes with NULL, TRUE or FALSE: compare by = otherwise.")
    return BoundTree(exp.Is(this=sql.operand(part.tree), expression=node.expression.copy()), truth(optional=False))


def _like(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand x LIKE 'pattern', with a few wildcards."""
    part, pattern = text(mean(node.this), "LIKE"), sole(text(mean(node.expression), "LIKE"), "the pattern of LIKE")
    if len(str(pattern)) > _LONGEST_PATTERN or str(pattern).count("%") > _MOST_WILDCARDS or "\\" in str(pattern):
        raise QueryRefused(f"LIKE takes at most {_LONGEST_PATTERN} characters, {_MOST_WILDCARDS} % and no backslash.")
    tree: exp.Expr = exp.Like(this=sql.operand(part.tree), expression=sql.constant(pattern))
    tree = exp.Not(this=tree) if node.args.get("negate") else tree
    return BoundTree(tree, truth(optional=part.optional))


def _combine(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand AND and OR."""
    parts = [condition(mean(side), type(node).__name__.upper()) for side in (node.this, node.expression)]
    return BoundTree(sql.operation(type(node), *(part.tree for part in parts)), truth(optional=_any_missing(*parts)))


def _negation(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand NOT."""
    part = condition(mean(node.this), "NOT")
    extent = listed(truth(optional=part.optional), (part,), lambda value: not value)
    return BoundTree(exp.Not(this=sql.operand(part.tree)), extent)


def _choose(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand CASE, with or without a value after it."""
    ifs: list[exp.Expr] = node.args["ifs"]
    if node.this is not None:
        tests = [_compare(exp.EQ(this=node.this.copy(), expression=branch.this.copy()), mean) for branch in ifs]
    else:
        tests = [condition(mean(branch.this), "WHEN") for branch in ifs]
    return _chosen(tests, [branch.args["true"] for branch in ifs], node.args.get("default"), mean)


def _when(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand IF(condition, then, else)."""
    return _chosen([condition(mean(node.this), "IF")], [node.args["true"]], node.args.get("false"), mean)


def _coalesce(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand COALESCE: the first that is not missing."""
    nodes = [part for part in (node.this, *node.expressions) if not isinstance(part, exp.Null)]
    if not nodes:
        raise InvalidParameter("COALESCE needs something that is not NULL.")
    parts = together([mean(part) for part in nodes])
    extent = hull([part.extent for part in parts], optional=all(part.optional for part in parts))
    first, *others = (part.tree.copy() for part in parts)
    return BoundTree(exp.Coalesce(this=first, expressions=others), extent)


def _nullif(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand NULLIF(x, y): missing where both are equal."""
    left, right = together((mean(node.this), mean(node.expression)))
    return BoundTree(
        exp.Nullif(this=left.tree.copy(), expression=right.tree.copy()), replace(left.extent, optional=True)
    )


def _extreme(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand LEAST and GREATEST: of those that are not missing."""
    parts = together([mean(part) for part in (node.this, *node.expressions)])
    kind = parts[0].type
    if kind not in (Type.INTEGER, Type.DECIMAL, Type.DATE):
        raise InvalidParameter(f"{type(node).__name__.upper()} compares numbers or dates.")
    optional = all(part.optional for part in parts)
    least = isinstance(node, exp.Least)
    outer = [part.extent.low if least else part.extent.high for part in parts]
    inner = _inner_end([part.extent for part in parts], least=least)
    pick = min if least else max
    far = None if None in outer else pick(end for end in outer if end is not None)
    low, high = (far, inner) if least else (inner, far)
    first, *others = (part.tree.copy() for part in parts)
    tree = type(node)(this=first, expressions=others, ignore_nulls=True) if others else first
    extent = ExpressionDomain(kind, low, high, optional=optional)
    certain = not any(part.optional for part in parts)
    return BoundTree(tree, listed(extent, parts, lambda *values: pick(values)) if certain else extent)


def clamp(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand CLAMP(x, low, high): what lies beyond an end is moved to it.

    >>> values = iter((sql.fixed(9, Type.INTEGER), sql.fixed(0, Type.INTEGER), sql.fixed(5, Type.INTEGER)))
    >>> clamp(exp.Anonymous(this="CLAMP", expressions=[exp.Null()] * 3), lambda _: next(values)).extent.values
    (5,)
    """
    if len(node.expressions) != 3:
        raise InvalidParameter("write CLAMP(x, low, high).")
    part, *ends = together([mean(value) for value in node.expressions])
    if not (part.extent.numeric or part.type is Type.DATE):
        raise InvalidParameter(f"CLAMP works on numbers and dates, not on {sql.only_type(part.extent)}.")
    bottom, top = (sole(end, "an end of CLAMP") for end in ends)
    low, high = (end.ends[0] for end in ends)
    if low > high:
        raise InvalidParameter("CLAMP(x, low, high) goes from low to high: swap its ends.")
    start, end = (
        _moved(side, low, high, open_end) for side, open_end in ((part.extent.low, low), (part.extent.high, high))
    )
    tree = sql.clamped(part.tree, bottom, top)
    if part.type is Type.DECIMAL:
        extent = decimals(start, end, optional=part.optional)
    else:
        extent = ExpressionDomain(part.type, start, end, optional=part.optional)
    return BoundTree.of(tree, extent, (part,), lambda value: min(max(value, bottom), top))


def _moved(side: Fraction | None, low: Fraction, high: Fraction, open_end: Fraction) -> Fraction:
    return open_end if side is None else min(max(side, low), high)


def _inner_end(extents: Sequence[ExpressionDomain], *, least: bool) -> Fraction | None:
    """Return the end that an argument sets which is never missing; without one, the farthest end of all."""
    sure = [extent.high if least else extent.low for extent in extents if not extent.optional]
    sure_ends = [end for end in sure if end is not None]
    if sure_ends:
        return min(sure_ends) if least else max(sure_ends)
    ends = [extent.high if least else extent.low for extent in extents]
    if None in ends:
        return None
    return max(e for e in ends if e is not None) if least else min(e for e in ends if e is not None)


def _chosen(tests: Sequence[BoundTree], results: Sequence[exp.Expr], default: exp.Expr | None, mean: Mean) -> BoundTree:
    nodes = [*results, exp.Null() if default is None else default]
    present_at = [index for index, node in enumerate(nodes) if not isinstance(node, exp.Null)]
    if not present_at:
        raise InvalidParameter("CASE needs a result that is not NULL.")
    parts = dict(zip(present_at, together([mean(nodes[index]) for index in present_at]), strict=True))
    trees = [parts[index].tree if index in parts else exp.Null() for index in range(len(nodes))]
    optional = len(present_at) < len(nodes) or any(part.optional for part in parts.values())
    branches = [(test.tree, tree) for test, tree in zip(tests, trees[:-1], strict=True)]
    return BoundTree(
        sql.case(*branches, default=None if default is None else trees[-1]),
        hull([part.extent for part in parts.values()], optional=optional),
    )


def _as_date(part: BoundTree) -> BoundTree:
    if part.type is not Type.TEXT:
        return part
    value: Constant = sole(part, "a date beside a column of dates")
    return sql.fixed(written(str(value)), Type.DATE)


def _widened(part: BoundTree) -> BoundTree:
    if part.type is Type.DECIMAL:
        return part
    members = part.values
    values = None if members is None else tuple(float(value) for value in members)  # type: ignore[arg-type]
    return BoundTree(sql.as_decimal(part), replace(part.extent, type=Type.DECIMAL, values=values))


def _any_missing(*parts: BoundTree) -> bool:
    return any(part.optional for part in parts)


def _clamped_answer(node: exp.Expr) -> exp.Expr:
    """Return CLAMP on an answer as CASE."""
    if len(node.expressions) != 3:
        raise InvalidParameter("write CLAMP(x, low, high).")
    value, low, high = node.expressions
    ifs = [
        exp.If(this=exp.LT(this=value.copy(), expression=low.copy()), true=low.copy()),
        exp.If(this=exp.GT(this=value.copy(), expression=high.copy()), true=high.copy()),
    ]
    return exp.Case(ifs=ifs, default=value.copy())


def _case_of(node: exp.Expr) -> exp.Expr:
    """Return IF on an answer as CASE, of which a branch is an IF as well."""
    if isinstance(node.parent, exp.Case):
        return node
    return exp.Case(ifs=[exp.If(this=node.this, true=node.args["true"])], default=node.args.get("false"))


_TWO = ("this", "expression")
_IN = ("this", "expressions", "query", "unnest", "field")
_CASE = ("this", "ifs", "default")
_ALL = ("this", "expressions")
_comparison = partial(SqlFunction, types=COMPARED)
_condition = partial(SqlFunction, types=CONDITIONS)
_choice = partial(SqlFunction, work=LONGEST)

OPERATORS = (
    _comparison("=", exp.EQ, _compare, _TWO, on_answers=lambda x, y: x == y),
    _comparison("<>", exp.NEQ, _compare, _TWO, ("!=",), on_answers=lambda x, y: x != y),
    _comparison("<", exp.LT, _compare, _TWO, on_answers=lambda x, y: x < y),
    _comparison("<=", exp.LTE, _compare, _TWO, on_answers=lambda x, y: x <= y),
    _comparison(">", exp.GT, _compare, _TWO, on_answers=lambda x, y: x > y),
    _comparison(">=", exp.GTE, _compare, _TWO, on_answers=lambda x, y: x >= y),
    _comparison("BETWEEN", exp.Between, _in_between, ("this", "low", "high"), on_answers=lambda x, a, b: a <= x <= b),
    _comparison("IN", exp.In, _is_in, _IN, on_answers=NodeRule(answers.is_among)),
    SqlFunction("IS NOT DISTINCT FROM", exp.NullSafeEQ, _same, _TWO),
    SqlFunction("IS DISTINCT FROM", exp.NullSafeNEQ, _same, _TWO),
    SqlFunction("IS NULL", exp.Is, _is_a, _TWO, ("IS TRUE", "IS FALSE"), on_answers=NodeRule(answers.is_same)),
    SqlFunction("LIKE", exp.Like, _like, (*_TWO, "negate"), work=TextWork(searched=2)),
    _condition("AND", exp.And, _combine, _TWO, on_answers=NodeRule(answers.both)),
    _condition("OR", exp.Or, _combine, _TWO, on_answers=NodeRule(answers.either)),
    _condition("NOT", exp.Not, _negation, on_answers=lambda x: not x),
    _choice("CASE", exp.Case, _choose, _CASE, on_answers=NodeRule(answers.case), range=answers.case_range),
)

_extreme_of = partial(_choice, on_rows=_extreme, arguments=(*_ALL, "ignore_nulls"))

FUNCTIONS = (
    _choice(
        "IF",
        exp.If,
        _when,
        ("this", "true", "false"),
        on_answers=NodeRule(answers.when),
        rewritten=_case_of,
        range=answers.case_range,
    ),
    _choice(
        "COALESCE", exp.Coalesce, _coalesce, _ALL, ("IFNULL",), NodeRule(answers.coalesce), range=answers.hull_range
    ),
    _choice("NULLIF", exp.Nullif, _nullif, _TWO, on_answers=NodeRule(answers.nullif), range=answers.first_range),
    _extreme_of("LEAST", exp.Least, on_answers=lambda *parts: min(parts), range=answers.least_range),
    _extreme_of("GREATEST", exp.Greatest, on_answers=lambda *parts: max(parts), range=answers.greatest_range),
    SqlFunction("CLAMP", exp.Anonymous, clamp, _ALL, rewritten=_clamped_answer),
)
