"""Restriction: the groups that WHERE leaves possible, by what is declared; a week has seven days, whoever is in it.

A group that no row can be in, whatever the rows hold, is not shown.  Only the query and the declarations decide that,
so it reveals nothing; all other groups are shown with noise, also those without a row.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from functools import partial, reduce
from itertools import product
from typing import Any

from sqlglot import exp

from incrowd.errors import IncrowdError
from incrowd.queries.language.domain import BoundTree, Constant, ExpressionDomain, days
from incrowd.queries.language.expressions.function import Mean
from incrowd.queries.language.expressions.table import binder
from incrowd.queries.language.row_query import Scope
from incrowd.queries.language.trees import conjuncts

_MOST = 4096
"""Values of a column that are tried."""
_MOST_WORK = 60_000
"""Values times parts of conditions: more is not tried."""
Truths = frozenset[bool | None]
_ANY: Truths = frozenset({True, False, None})
_LOGIC = (exp.And, exp.Or, exp.Not, exp.Paren)
_SEES_NULL = (exp.Is, exp.Coalesce, exp.Case, exp.If, exp.Nullif, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Boolean)


def restricted(
    where: exp.Expr | None, scope: Scope, nodes: Sequence[exp.Expr], meanings: list[BoundTree]
) -> list[BoundTree]:
    """Return the meanings of keys, without values that no row under a condition can have.

    A key that is made of one column with declared values is restricted by the conditions on that column alone.
    """
    if where is None:
        return meanings
    conditions = [part for part in conjuncts(where) if part.find(exp.Query) is None]
    return [_restricted(conditions, scope, node, meaning) for node, meaning in zip(nodes, meanings, strict=True)]


def _restricted(conditions: Sequence[exp.Expr], scope: Scope, node: exp.Expr, meaning: BoundTree) -> BoundTree:
    try:
        own = _columns(node, scope)
        if len(own) != 1 or meaning.extent.members(_MOST) is None:
            return meaning
        (name,) = own
        about = [part for part in conditions if _columns(part, scope) == {name}]
        base = scope.resolve(next(iter(node.find_all(exp.Column)))).extent
        values = base.members(_MOST)
        work = len(values or ()) * sum(1 for part in (*about, node) for _ in part.walk())
        if not about or values is None or work > _MOST_WORK:
            return meaning
        present = any(map(_rules_out_null, about))
        means = [binder(_only(scope, base, value)) for value in values]
        possible = [mean(node) for mean in means if all(True in _truths(part, mean) for part in about)]
        return _narrowed(meaning, possible, present=present)
    except IncrowdError:  # what it says is said where the condition itself is understood
        return meaning


def _narrowed(meaning: BoundTree, possible: Sequence[BoundTree], *, present: bool) -> BoundTree:
    """Return a key with the values that it has for possible values of its column."""
    values = set[Constant]()
    for part in possible:
        members = part.extent.members()
        if members is None:
            return meaning
        values.update(members)
    optional = (meaning.optional and not present) or any(part.optional for part in possible)
    listed = tuple(member for member in meaning.extent.members(_MOST) or () if member in values)
    if not listed and not optional:  # nothing is possible: all groups are shown, with noise
        return meaning
    rest = meaning.extent.rest if meaning.extent.rest in listed else None
    return BoundTree(meaning.tree, replace(meaning.extent, values=listed, optional=optional, rest=rest))


def _columns(node: exp.Expr, scope: Scope) -> set[tuple[str, str]]:
    places = [scope.find(column) for column in node.find_all(exp.Column)]
    return {(source, field.name) for source, field in places}


def _only(scope: Scope, base: ExpressionDomain, value: Constant) -> Callable[[exp.Column], BoundTree]:
    """Return what columns mean where the one that all of them are has this value."""
    number = days(value) if isinstance(value, date) else value
    end = Fraction(number) if isinstance(number, int | float) and not isinstance(number, bool) else None
    extent = replace(base, values=(value,), optional=False, low=end, high=end, rest=None)
    return lambda column: BoundTree(scope.resolve(column).tree, extent)


def _truths(part: exp.Expr, mean: Mean) -> Truths:
    """Return what a condition can be, by three-valued logic; all three where it is not known."""
    match part:
        case exp.Paren():
            return _truths(part.this, mean)
        case exp.Not():
            return frozenset(None if truth is None else not truth for truth in _truths(part.this, mean))
        case exp.And() | exp.Or():
            sides = _truths(part.this, mean), _truths(part.expression, mean)
            return _either(*sides, decisive=isinstance(part, exp.Or))
        case exp.In() if part.expressions:
            truths = [_compared(exp.EQ(this=part.this, expression=member), mean) for member in part.expressions]
            return reduce(partial(_either, decisive=True), truths)
        case exp.Between():
            ends = (
                exp.GTE(this=part.this, expression=part.args["low"]),
                exp.LTE(this=part.this, expression=part.args["high"]),
            )
            return _truths(exp.And(this=ends[0], expression=ends[1]), mean)
        case exp.Like() if part.args.get("negate"):
            return _truths(exp.Not(this=exp.Like(this=part.this, expression=part.expression)), mean)
        case exp.Is() if isinstance(part.expression, exp.Null):
            return frozenset({False}) if _value(part.this, mean) is not None else _ANY
        case exp.Column():
            value = _value(part, mean)
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
    one, two = _value(part.this, mean), _value(part.expression, mean)
    one, two = _alike(one, two), _alike(two, one)
    numbers = isinstance(one, int | float) and isinstance(two, int | float)
    if one is None or two is None or (type(one) is not type(two) and not numbers):
        return _ANY
    return frozenset({bool(_COMPARISONS[type(part)](one, two))})


def _alike(value: Constant | None, other: Constant | None) -> Constant | None:
    """Return a text that is compared with a date as the date that it writes."""
    if not isinstance(value, str) or not isinstance(other, date):
        return value
    try:
        return date.fromisoformat(value)
    except ValueError:
        return None


def _value(node: exp.Expr, mean: Mean) -> Constant | None:
    """Return the one value that an expression has, None where it can have several or none."""
    meaning = mean(node)
    members = None if meaning.optional else meaning.extent.members(2)
    return members[0] if members is not None and len(members) == 1 else None


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


def _rules_out_null(part: exp.Expr) -> bool:
    """Tell whether a condition on one column does not hold where that is missing: every comparison in it is of it."""
    if isinstance(part, exp.Not) and isinstance(part.this, exp.Is) and isinstance(part.this.this, exp.Column):
        return isinstance(part.this.expression, exp.Null)
    if part.find(*_SEES_NULL) is not None:
        return False
    leaves = [part]
    while any(isinstance(leaf, _LOGIC) for leaf in leaves):
        leaves = [
            inner for leaf in leaves for inner in (leaf.iter_expressions() if isinstance(leaf, _LOGIC) else [leaf])
        ]
    return all(leaf.find(exp.Column) is not None for leaf in leaves)
