"""Restriction: the groups that WHERE leaves possible, by what is declared; a week has seven days, whoever is in it.

A group that no row can be in, whatever the rows hold, is not shown.  Only the query and the declarations decide that,
so it reveals nothing; all other groups are shown with noise, also those without a row.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from functools import reduce
from typing import Any

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.errors import IncrowdError, QueryRefused
from incrowd.queries.language.domain import BoundTree, Constant, ExpressionDomain, days
from incrowd.queries.language.expressions.function import Mean
from incrowd.queries.language.expressions.table import binder
from incrowd.queries.language.row_query import Scope
from incrowd.queries.language.trees import column as named
from incrowd.queries.language.trees import conjuncts
from incrowd.queries.language.truths import as_date, results_of, truths_of, value_of
from incrowd.queries.query import Block, Possible

_MOST = 4096
"""Values of a column that are tried."""
_MOST_WORK = 60_000
"""Values times parts of conditions: more is not tried."""
_MOST_LISTED = 100_000
"""Values of a key that are listed, where conditions leave it a range."""
_NOTHING_LEFT = (
    "no declared value fits the conditions, so the answer would have no row: compare with values that DESCRIBE shows."
)


class NothingLeft(Exception):
    """No declared value of a key fits the conditions."""


_LOGIC = (exp.And, exp.Or, exp.Not, exp.Paren)
_SEES_NULL = (
    exp.Is, exp.Coalesce, exp.Case, exp.If, exp.Nullif, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Boolean,
    exp.Greatest, exp.Least, exp.Concat, exp.ConcatWs,
)  # fmt: skip
"""What can have a value although an argument is missing."""
_Column = tuple[str, str]


def restricted(
    query: exp.Select, scope: Scope, nodes: Sequence[exp.Expr], meanings: Sequence[BoundTree]
) -> list[BoundTree]:
    """Return the meanings of keys, without values that no row under the conditions of a query can have.

    A key that is made of one column is restricted by the conditions on that column, and on those that are equal to it.
    """
    left = _remaining(query, scope)
    try:
        return [_narrowed(meaning, left(node)) for node, meaning in zip(nodes, meanings, strict=True)]
    except NothingLeft:
        raise QueryRefused(f"{_NOTHING_LEFT}{_nearest(query, scope)}") from None


def _nearest(query: exp.Select, scope: Scope) -> str:
    """Return a hint at the declared value that is written most like one that a condition names, if there is any."""
    for part in _conditions(query):
        named_columns = {id(column): column for column in part.find_all(exp.Column)}
        if len(named_columns) != 1:
            continue
        declared = scope.resolve(*named_columns.values()).extent.values or ()
        texts = [value for value in declared if isinstance(value, str)]
        for literal in part.find_all(exp.Literal):
            if literal.is_string and literal.name not in texts:
                folded = {text.casefold(): text for text in texts}
                for near in difflib.get_close_matches(literal.name.casefold(), folded, 1):
                    return f" Did you mean '{folded[near]}'?"
    return ""


def remaining(query: exp.Select, scope: Scope, nodes: Sequence[exp.Expr]) -> list[Possible | None]:
    """Return the values that columns of a subquery can have under its conditions; None where nothing restricts them."""
    left = _remaining(query, scope)
    return [left(node) for node in nodes]


def blocks(query: exp.Select, scope: Scope) -> tuple[Block, ...]:
    """Return the private rows that a query reads, by the days that its conditions leave, of each source in order."""
    left, result = _remaining(query, scope), list[Block]()
    for source, rows in scope.sources:
        for place, block in enumerate(rows.blocks):
            own = [left(named(field.name, source)) for field in rows.fields if field.block == place]
            result.append(replace(block, days=reduce(_both, own, block.days)))
    return tuple(result)


def block_of(node: exp.Expr, scope: Scope) -> int | None:
    """Return the place of the rows of whose period a column decides, among those of all sources; None of others."""
    if not isinstance(node, exp.Column):
        return None
    source, field = scope.find(node)
    before = itertools.takewhile(lambda other: other[0] != source, scope.sources)
    return None if field.block is None else field.block + sum(len(rows.blocks) for _, rows in before)


def _remaining(query: exp.Select, scope: Scope) -> Callable[[exp.Expr], Possible | None]:
    conditions = _conditions(query)
    equal = _equal(conditions, scope)

    def left(node: exp.Expr) -> Possible | None:
        try:
            column = _column_of(node, conditions, equal, scope)
            return None if column is None else column.image(node)
        except IncrowdError:  # what it says is said where the condition itself is understood
            return None

    return left


def _conditions(query: exp.Select) -> list[exp.Expr]:
    """Return what holds for every row: after WHERE, and after ON of tables whose rows all have a partner."""
    where, joins = query.args.get("where"), query.args.get("joins") or ()
    padded = any(join.args.get("side") for join in joins)
    wholes = [where and where.this, *(join.args.get("on") for join in joins if not padded)]
    parts = [part.unnest() for whole in wholes if whole is not None for part in conjuncts(whole)]
    return [part for part in parts if part.find(exp.Query) is None]


def _equal(conditions: Sequence[exp.Expr], scope: Scope) -> list[set[_Column]]:
    """Return the sets of columns that are equal in every row, and so present."""
    sets = list[set[_Column]]()
    for part in conditions:
        match part:
            case exp.EQ(this=exp.Column() as one, expression=exp.Column() as other):
                pair = _same_kind(one, other, scope)
                if pair is not None:
                    near = [same for same in sets if same & pair]
                    sets = [same for same in sets if not same & pair] + [pair.union(*near)]
    return sets


def _same_kind(one: exp.Column, other: exp.Column, scope: Scope) -> set[_Column] | None:
    try:
        places = [scope.find(side) for side in (one, other)]
    except IncrowdError:
        return None
    if any(field.person for _, field in places) or len({field.extent.type for _, field in places}) > 1:
        return None
    return {(source, field.name) for source, field in places}


def _columns(node: exp.Expr, scope: Scope) -> set[_Column]:
    places = [scope.find(column) for column in node.find_all(exp.Column)]
    return {(source, field.name) for source, field in places}


def _column_of(
    node: exp.Expr, conditions: Sequence[exp.Expr], equal: Sequence[set[_Column]], scope: Scope
) -> _Restricted | None:
    """Return the one column that an expression is made of, None where nothing restricts it."""
    own = _columns(node, scope)
    if len(own) != 1:
        return None
    same = next((alike for alike in equal if own <= alike), own)
    about = [implied for part in conditions if (implied := _implied(part, same, scope)) is not None]
    first = next(iter(node.find_all(exp.Column)))
    within = reduce(_both, (_within(scope, source, name) for source, name in same))
    if not about and within is None and len(same) == 1:
        return None
    return _Restricted(scope, scope.resolve(first).extent, tuple(about), within, present=len(same) > 1)


def _implied(part: exp.Expr, own: set[_Column], scope: Scope, *, negated: bool = False) -> exp.Expr | None:
    """Return what a condition, or its negation, implies for some columns alone; None where it is nothing.

    It is true wherever the condition is, as De Morgan's laws hold for NULL, too (Kleene 1952, § 64).
    """
    part = part.unnest()
    if isinstance(part, exp.Not):
        return _implied(part.this, own, scope, negated=not negated)
    if isinstance(part, exp.And | exp.Or):
        sides = [_implied(side, own, scope, negated=negated) for side in (part.this, part.expression)]
        left = [exp.Paren(this=side) for side in sides if side is not None]
        kind = exp.Or if isinstance(part, exp.And) is negated else exp.And
        if len(left) < len(sides):
            return left[0].this if left and kind is exp.And else None
        return kind(this=left[0], expression=left[1])
    names = _columns(part, scope)
    if not names or not names <= own or len(names) > 1 < len(own):
        return None
    return exp.Not(this=part.copy()) if negated else part.copy()


def _within(scope: Scope, source: str, name: str) -> Possible | None:
    rows = dict(scope.sources)[source]
    within = next(field.within for field in rows.fields if field.name == name)
    return within if within is None or source not in scope.optional else within | {None}


def _both(one: Possible | None, other: Possible | None) -> Possible | None:
    return one if other is None else other if one is None else one & other


@dataclass(frozen=True)
class _Restricted:
    """A column, the conditions on it, and the values that are left by subqueries."""

    scope: Scope
    base: ExpressionDomain
    about: tuple[exp.Expr, ...]
    within: Possible | None
    present: bool

    def image(self, node: exp.Expr) -> Possible | None:
        """Return the values that an expression of the column can have, None among them where it can be missing."""
        results = set[Constant | None]()
        for meaning in self._meanings(node):
            members = None if meaning is None else meaning.extent.members(_MOST_LISTED)
            if meaning is None or members is None:
                return None
            results.update(members)
            if meaning.optional:
                results.add(None)
        if self._missing:
            sees = node.find(*_SEES_NULL) is not None
            for meaning in results_of(node, self._mean(None)) if sees else ():
                if (members := meaning.extent.members(_MOST_LISTED)) is None:
                    return None
                results.update((*members, *([None] if meaning.optional else ())))
            results.update(() if sees else (None,))
        return frozenset(results)

    def _meanings(self, node: exp.Expr) -> Iterator[BoundTree | None]:
        """Yield what an expression means for each value that is left, or once for the range of all that are."""
        narrow = self._ranged()
        if narrow is None:
            return
        points = [points for part in self.about if (points := _points(part, self._mean(None))) is not None]
        values = narrow.members(_MOST) if not points else _inside(frozenset.intersection(*points), narrow)
        if self.within is not None:
            left = [value for value in self.within if value is not None]
            values = _inside(frozenset(left), narrow) if values is None else [v for v in values if v in self.within]
        work = len(values or ()) * sum(1 for part in (*self.about, node) for _ in part.walk())
        if values is None or work > _MOST_WORK:
            wide = binder(lambda column: BoundTree(self.scope.resolve(column).tree, replace(narrow, optional=False)))
            yield wide(node) if narrow is not self.base else None
            return
        for mean in map(self._mean, values):
            if all(True in truths_of(part, mean) for part in self.about):
                yield from results_of(node, mean)

    def _ranged(self) -> ExpressionDomain | None:
        """Return the domain within the ends that conditions set; None where nothing is left."""
        low, high = self.base.low, self.base.high
        if low is None or high is None:
            return self.base
        for part in self.about:
            start, end = _ends(part, self._mean(None))
            low, high = max(low, low if start is None else start), min(high, high if end is None else end)
        if low > high:
            return None
        if (low, high) == (self.base.low, self.base.high):
            return self.base
        values = self.base.values
        numbers = {} if values is None else {value: _number(value) for value in values}
        inside = None if values is None else tuple(v for v, n in numbers.items() if n is not None and low <= n <= high)
        return replace(self.base, low=low, high=high, values=inside)

    def _mean(self, value: Constant | None) -> Mean:
        """Return what expressions mean where the column has a value, or none."""
        number = None if value is None else _number(value)
        ends = (self.base.low, self.base.high) if number is None else (number, number)
        values = () if value is None else (value,)
        extent = replace(self.base, values=values, optional=value is None, low=ends[0], high=ends[1], rest=None)
        return binder(lambda column: BoundTree(self.scope.resolve(column).tree, extent))

    @property
    def _missing(self) -> bool:
        """Whether the column can be missing under the conditions."""
        possible = self.base.optional and not self.present and (self.within is None or None in self.within)
        return possible and not any(map(_rules_out_null, self.about))


def _number(value: Constant) -> Fraction | None:
    """Return a value as a domain counts it; None of a text or a truth value."""
    number = days(value) if isinstance(value, date) else value
    return Fraction(number) if isinstance(number, int | float) and not isinstance(number, bool) else None


def _inside(points: frozenset[Constant | None], base: ExpressionDomain) -> list[Constant]:
    """Return those of some values that lie in a domain, in its type."""
    values = set(base.values) if base.values is not None else None
    inside = list[Any]()
    for point in points:
        number = None if point is None else _number(point)
        if base.low is not None and base.high is not None and (number is None or not base.low <= number <= base.high):
            continue
        whole = number is not None and base.type is Type.INTEGER and number.denominator == 1
        value = int(number) if whole and number is not None else point
        if value is not None and (values is None or value in values):
            inside.append(value)
    return sorted(inside)


def _points(part: exp.Expr, mean: Mean) -> frozenset[Constant | None] | None:
    """Return the values to which a condition binds its column, None where it does not: x = 1 OR x IN (2, 3)."""
    match part:
        case exp.Paren():
            return _points(part.this, mean)
        case exp.And():
            return _both(_points(part.this, mean), _points(part.expression, mean))
        case exp.Or():
            one, other = _points(part.this, mean), _points(part.expression, mean)
            return None if one is None or other is None else one | other
        case exp.In(this=exp.Column()) if part.expressions:
            return _constants(part.this, part.expressions, mean)
        case (
            exp.EQ(this=exp.Column() as column, expression=other)
            | exp.EQ(this=other, expression=exp.Column() as column)
        ):
            return _constants(column, [other], mean)
    return None


def _constants(column: exp.Expr, nodes: Sequence[exp.Expr], mean: Mean) -> frozenset[Constant | None] | None:
    values = [None if node.find(exp.Column) else value_of(node, mean) for node in nodes]
    if mean(column).type is Type.DATE:
        values = [as_date(value, date.min) for value in values]
    return None if None in values else frozenset(values)


def _ends(part: exp.Expr, mean: Mean) -> tuple[Fraction | None, Fraction | None]:
    """Return the ends that a condition sets for its column: x > 1, 5 >= x, x BETWEEN 1 AND 5."""
    match part:
        case exp.Paren():
            return _ends(part.this, mean)
        case exp.Between(this=exp.Column() as column):
            low, high = (_constants(column, [part.args[name]], mean) for name in ("low", "high"))
            return _end(low), _end(high)
        case exp.GT() | exp.GTE() | exp.LT() | exp.LTE():
            one, other, up = part.this, part.expression, isinstance(part, exp.GT | exp.GTE)
            if isinstance(other, exp.Column):
                one, other, up = other, one, not up
            end = _end(_constants(one, [other], mean)) if isinstance(one, exp.Column) else None
            return (end, None) if up else (None, end)
    return None, None


def _end(points: frozenset[Constant | None] | None) -> Fraction | None:
    (point,) = points or (None,)
    return None if point is None else _number(point)


def _narrowed(meaning: BoundTree, image: Possible | None) -> BoundTree:
    """Return a key with the values that are left to it."""
    if image is None:
        return meaning
    members, kind = meaning.extent.members(_MOST_LISTED), meaning.type
    if members is None and kind is Type.DECIMAL:
        return meaning
    values: list[Any] = [value for value in image if value is not None]
    listed = tuple(sorted(values)) if members is None else tuple(member for member in members if member in image)
    optional = meaning.optional and None in image
    if not listed and not optional:
        raise NothingLeft
    if len(listed) > _MOST_LISTED:
        return meaning
    rest = meaning.extent.rest if meaning.extent.rest in listed else None
    return BoundTree(meaning.tree, replace(meaning.extent, values=listed, optional=optional, rest=rest))


def _rules_out_null(part: exp.Expr) -> bool:
    """Tell whether a condition on one column does not hold where that is missing: every comparison in it is of it."""
    part = part.unnest()
    if isinstance(part, exp.And | exp.Or):
        decide = any if isinstance(part, exp.And) else all
        return decide(map(_rules_out_null, (part.this, part.expression)))
    if isinstance(part, exp.Not) and isinstance(part.this, exp.Is) and isinstance(part.this.this, exp.Column):
        return isinstance(part.this.expression, exp.Null)
    if part.find(*_SEES_NULL) is not None:
        return False
    leaves = [part]
    while any(isinstance(leaf, _LOGIC) for leaf in leaves):
        leaves = [
            inner for leaf in leaves for inner in (leaf.iter_expressions() if isinstance(leaf, _LOGIC) else [leaf])
        ]
    return all(side.find(exp.Column) is not None for leaf in leaves for side in _comparisons(leaf))


def _comparisons(leaf: exp.Expr) -> list[exp.Expr]:
    """Return the comparisons that a condition is made of: 4 NOT BETWEEN x AND 3 holds where x is missing."""
    if not isinstance(leaf, exp.Between):
        return [leaf]
    ends = (leaf.args["low"], leaf.args["high"])
    return [exp.LTE(this=leaf.this.copy(), expression=end.copy()) for end in ends]
