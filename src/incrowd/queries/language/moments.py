"""Moments: variances of all rows, covariances, correlations and lines, as expressions over counts and sums.

Each is computed from noisy sums alone, which are planned, bounded and paid like any others: of x and y around the
middle of their declared ranges, of their squares and of their product, over the rows in which both are there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.queries.language.expressions.binder import binder, title
from incrowd.queries.language.expressions.rules import number
from incrowd.queries.language.extent import Extent
from incrowd.queries.language.row_query import Scope
from incrowd.queries.language.trees import copied

_PAIRS = (
    exp.CovarPop, exp.CovarSamp, exp.Corr, exp.RegrSlope, exp.RegrIntercept, exp.RegrR2, exp.RegrCount, exp.RegrAvgx,
    exp.RegrAvgy,
)  # fmt: skip
_KNOWN = (exp.VariancePop, exp.StddevPop, exp.ApproxDistinct, exp.ApproxQuantile, *_PAIRS)


def simple(node: exp.Expr, scope: Scope) -> exp.Expr:
    """Return an expression in which every aggregate is one that noise is added to.

    >>> simple(exp.ApproxDistinct(this=exp.column("x")), Scope(())).sql()
    'COUNT(DISTINCT x)'
    """

    def change(part: exp.Expr) -> exp.Expr:
        filter_ = part.expression.this if isinstance(part, exp.Filter) else None
        inner = part.this if isinstance(part, exp.Filter) else part
        if not isinstance(inner, _KNOWN):
            return part
        return exp.Paren(this=found) if isinstance(found := _simple(inner, filter_, scope), exp.Binary) else found

    changed: exp.Expr = copied(node).transform(change, copy=False)
    return changed


def _simple(node: exp.Expr, filter_: exp.Expr | None, scope: Scope) -> exp.Expr:
    if isinstance(node, exp.ApproxDistinct):
        return _filtered(exp.Count(this=exp.Distinct(expressions=[node.this.copy()])), filter_)
    if isinstance(node, exp.ApproxQuantile):
        return _filtered(exp.Quantile(this=node.this.copy(), quantile=node.args["quantile"].copy()), filter_)
    if isinstance(node, _PAIRS):
        y, x = node.this, node.expression
        return _Pair(_side(x, node, scope), _side(y, node, scope), filter_).of(node)
    many = _filtered(exp.Count(this=node.this.copy()), filter_)
    spread = _filtered(exp.Variance(this=node.this.copy()), filter_)
    found = _times(spread, _over(_minus(many, _literal(1)), _at_least(many, 1)))
    return exp.Sqrt(this=found) if isinstance(node, exp.StddevPop) else found


@dataclass(frozen=True)
class _Side:
    """One of two numbers: its expression, and the middle and the half-width of its range."""

    node: exp.Expr
    middle: Fraction
    reach: Fraction

    @property
    def moved(self) -> exp.Expr:
        """The number, counted from the middle of its range."""
        return _minus(self.node, _literal(self.middle)) if self.middle else self.node.copy()


def _side(node: exp.Expr, of: exp.Expr, scope: Scope) -> _Side:
    extent: Extent = number(binder(scope.resolve)(node), title(of)).extent
    low, high = extent.ends
    middle = (low + high) / 2
    middle = Fraction(math.floor(middle)) if extent.type is Type.INTEGER else Fraction(round(float(middle), 6))
    return _Side(node, middle, max(high - middle, middle - low))


@dataclass(frozen=True)
class _Pair:
    """Two numbers of each row, and the rows in which both are there."""

    x: _Side
    y: _Side
    filter_: exp.Expr | None

    def of(self, node: exp.Expr) -> exp.Expr:
        """Return a moment as an expression over counts and sums."""
        match node:
            case exp.RegrCount():
                return self._count
            case exp.RegrAvgx():
                return self._mean(self.x)
            case exp.RegrAvgy():
                return self._mean(self.y)
            case exp.CovarPop():
                return _over(self._joint, _times(self._rows, self._rows))
            case exp.CovarSamp():
                return _over(self._joint, _times(self._rows, _at_least(_minus(self._count, _literal(1)), 1)))
            case exp.RegrSlope():
                return self._slope
            case exp.RegrIntercept():
                return _minus(self._mean(self.y), _times(self._slope, self._mean(self.x)))
        share = _over(self._joint, _times(_root(self._spread(self.x)), _root(self._spread(self.y))))
        one = exp.Literal.number("1.0")
        held = exp.Greatest(this=exp.Least(this=share, expressions=[one]), expressions=[exp.Neg(this=one.copy())])
        return _times(held, held) if isinstance(node, exp.RegrR2) else held

    @property
    def _count(self) -> exp.Expr:
        return self._sum(None)

    @property
    def _rows(self) -> exp.Expr:
        return _at_least(self._count, 1)

    @property
    def _joint(self) -> exp.Expr:
        """N Σ x y − Σ x Σ y, the covariance times n²."""
        product = self._sum(_times(self.x.moved, self.y.moved))
        return _minus(_times(self._rows, product), _times(self._sum(self.x.moved), self._sum(self.y.moved)))

    def _spread(self, side: _Side) -> exp.Expr:
        """N Σ x² − (Σ x)², the variance times n²; squares are added up around the middle of what they can be."""
        half = Fraction(math.floor(side.reach**2 / 2))
        square = exp.Abs(this=_times(side.moved, side.moved))
        total = self._sum(_minus(square, _literal(half)) if half else square)
        squares = exp.Add(this=total, expression=_times(_literal(half), self._rows)) if half else total
        alone = self._sum(side.moved)
        return _minus(_times(self._rows, squares), _times(alone, alone))

    @property
    def _slope(self) -> exp.Expr:
        spread = self._spread(self.x)
        known = exp.GT(this=exp.Paren(this=spread.copy()), expression=_literal(0))
        return exp.Case(ifs=[exp.If(this=known, true=_over(self._joint, spread))])

    def _mean(self, side: _Side) -> exp.Expr:
        mean = _over(self._sum(side.moved), self._rows)
        return exp.Add(this=_literal(side.middle), expression=mean) if side.middle else mean

    def _sum(self, node: exp.Expr | None) -> exp.Expr:
        """Return the sum of an expression, or the number of rows, over the rows that have both numbers."""
        there = [exp.Not(this=exp.Is(this=_grouped(side.node), expression=exp.Null())) for side in (self.x, self.y)]
        both: exp.Expr = exp.And(this=there[0], expression=there[1])
        both = both if self.filter_ is None else exp.And(this=_grouped(self.filter_), expression=both)
        return _filtered(exp.Count(this=exp.Star()) if node is None else exp.Sum(this=node), both)


def _filtered(node: exp.Expr, condition: exp.Expr | None) -> exp.Expr:
    return node if condition is None else exp.Filter(this=node, expression=exp.Where(this=condition.copy()))


def _literal(number_: Fraction | int) -> exp.Expr:
    size = abs(Fraction(number_))
    literal = exp.Literal.number(size.numerator if size.denominator == 1 else repr(float(size)))
    return exp.Paren(this=exp.Neg(this=literal)) if number_ < 0 else literal


def _grouped(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node.copy())


def _minus(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.Sub(this=_grouped(left), expression=_grouped(right))


def _times(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.Mul(this=_grouped(left), expression=_grouped(right))


def _over(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.Div(this=_grouped(left), expression=_grouped(right))


def _root(node: exp.Expr) -> exp.Expr:
    return exp.Sqrt(this=node.copy())


def _at_least(node: exp.Expr, least: int) -> exp.Expr:
    return exp.Greatest(this=node.copy(), expressions=[_literal(least)])
