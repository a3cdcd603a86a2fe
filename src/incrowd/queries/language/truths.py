"""Truths: what a condition can be where its one column has one value, by three-valued logic; of others, all three."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from functools import partial, reduce
from itertools import product
from typing import Any

from sqlglot import exp

from incrowd.queries.language.domain import BoundTree, Constant
from incrowd.queries.language.expressions.function import Mean

Truths = frozenset[bool | None]
_ANY: Truths = frozenset({True, False, None})


def truths_of(part: exp.Expr, mean: Mean) -> Truths:
    """Return what a condition can be, by three-valued logic; all three where it is not known."""
    match part:
        case exp.Paren():
            return truths_of(part.this, mean)
        case exp.Not():
            return frozenset(None if truth is None else not truth for truth in truths_of(part.this, mean))
        case exp.And() | exp.Or():
            sides = truths_of(part.this, mean), truths_of(part.expression, mean)
            return _either(*sides, decisive=isinstance(part, exp.Or))
        case exp.In() if part.expressions:
            truths = [_compared(exp.EQ(this=part.this, expression=member), mean) for member in part.expressions]
            return reduce(partial(_either, decisive=True), truths)
        case exp.Between():
            ends = (
                exp.GTE(this=part.this, expression=part.args["low"]),
                exp.LTE(this=part.this, expression=part.args["high"]),
            )
            return truths_of(exp.And(this=ends[0], expression=ends[1]), mean)
        case exp.Like() if part.args.get("negate"):
            return truths_of(exp.Not(this=exp.Like(this=part.this, expression=part.expression)), mean)
        case exp.Is() if isinstance(part.expression, exp.Null):
            if _is_missing(part.this, mean):
                return frozenset({True})
            return frozenset({False}) if value_of(part.this, mean) is not None else _ANY
        case exp.Column():
            value = value_of(part, mean)
            return frozenset({value}) if isinstance(value, bool) else _ANY
        case exp.Binary() if type(part) in _COMPARISONS:
            return _compared(part, mean)
    return _ANY


def _either(one: Truths, two: Truths, *, decisive: bool) -> Truths:
    return frozenset(_joined(*pair, decisive=decisive) for pair in product(one, two))


def _joined(one: bool | None, two: bool | None, *, decisive: bool) -> bool | None:
    """Return AND (or OR, where True decides) of two truth values."""
    if decisive in (one, two):
        return decisive
    return None if None in (one, two) else not decisive


def _compared(part: exp.Binary, mean: Mean) -> Truths:
    if _is_missing(part.this, mean) or _is_missing(part.expression, mean):
        return frozenset({None})
    one, two = value_of(part.this, mean), value_of(part.expression, mean)
    one, two = as_date(one, two), as_date(two, one)
    numbers = isinstance(one, int | float) and isinstance(two, int | float)
    if one is None or two is None or (type(one) is not type(two) and not numbers):
        return _ANY
    return frozenset({bool(_COMPARISONS[type(part)](one, two))})


def as_date(value: Constant | None, other: Constant | None) -> Constant | None:
    """Return a text that is compared with a date as the date that it writes."""
    if not isinstance(value, str) or not isinstance(other, date):
        return value
    try:
        return date.fromisoformat(value)
    except ValueError:
        return None


def value_of(node: exp.Expr, mean: Mean) -> Constant | None:
    """Return the one value that an expression has, None where it can have several or none."""
    values = set[Constant]()
    for meaning in results_of(node, mean):
        members = None if meaning.optional else meaning.extent.members(2)
        if members is None:
            return None
        values.update(members)
    return values.pop() if len(values) == 1 else None


def _is_missing(node: exp.Expr, mean: Mean) -> bool:
    """Tell whether a column is missing for sure."""
    return isinstance(node, exp.Column) and mean(node).extent.values == ()


def _like(text: Constant, pattern: Constant) -> bool:
    parts = re.split("([%_])", str(pattern))
    return (
        re.fullmatch("".join({"%": ".*", "_": "."}.get(one, re.escape(one)) for one in parts), str(text), re.DOTALL)
        is not None
    )


_COMPARISONS: dict[type[exp.Expr], Callable[[Any, Any], bool]] = {
    exp.EQ: operator.eq, exp.NEQ: operator.ne, exp.LT: operator.lt, exp.LTE: operator.le, exp.GT: operator.gt,
    exp.GTE: operator.ge, exp.Like: _like,
}  # fmt: skip


def results_of(node: exp.Expr, mean: Mean) -> Iterator[BoundTree]:
    """Yield what an expression can be for one value of its column; of CASE and COALESCE, the parts that can come."""
    match node:
        case exp.Paren():
            yield from results_of(node.this, mean)
        case exp.Case():
            whole = mean(node)
            for branch in node.args["ifs"]:
                test = branch.this if node.this is None else exp.EQ(this=node.this, expression=branch.this)
                truths = truths_of(test, mean)
                yield from _branch(branch.args["true"], whole, mean) if True in truths else ()
                if truths == {True}:
                    return
            yield from _branch(node.args.get("default"), whole, mean)
        case exp.Coalesce():
            for part in (node.this, *node.expressions):
                if not isinstance(part, exp.Null):
                    meaning = mean(part)
                    yield replace(meaning, extent=replace(meaning.extent, optional=False))
                    if not meaning.optional:
                        return
            yield mean(node)
        case _:
            yield mean(node)


def _branch(node: exp.Expr | None, whole: BoundTree, mean: Mean) -> Iterator[BoundTree]:
    if node is None or isinstance(node, exp.Null):
        yield replace(whole, extent=replace(whole.extent, values=(), optional=True))
    elif mean(node).type is whole.type:
        yield from results_of(node, mean)
    else:  # a date written as a text, a whole number beside decimals
        yield whole
