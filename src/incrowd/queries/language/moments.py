"""Moments: variances of all rows, skewness, covariances, correlations and lines, as expressions over counts and sums.

Each is computed from noisy sums alone, which are planned, bounded and paid like any others: of x and y around the
middle of their declared ranges, of their squares and of their product, over the rows in which both are there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.queries.language.domain import ExpressionDomain, day
from incrowd.queries.language.expressions.function import number, title
from incrowd.queries.language.expressions.table import binder
from incrowd.queries.language.row_query import Scope
from incrowd.queries.language.trees import changed

_PAIRS = (
    exp.CovarPop, exp.CovarSamp, exp.Corr, exp.RegrSlope, exp.RegrIntercept, exp.RegrR2, exp.RegrCount, exp.RegrAvgx,
    exp.RegrAvgy,
)  # fmt: skip
_SHAPES = (exp.Skewness, exp.Kurtosis)
_KNOWN = (exp.VariancePop, exp.StddevPop, exp.ApproxDistinct, exp.ApproxQuantile, exp.Avg, *_SHAPES, *_PAIRS)


def simple(node: exp.Expr, scope: Scope) -> exp.Expr:
    """Return an expression in which every aggregate is one that noise is added to; where all are, the same.

    >>> simple(exp.ApproxDistinct(this=exp.column("x")), Scope(())).sql()
    'COUNT(DISTINCT x)'
    """
    if node.find(*_KNOWN) is None:
        return node

    def change(part: exp.Expr) -> exp.Expr:
        filter_ = part.expression.this if isinstance(part, exp.Filter) else None
        inner = part.this if isinstance(part, exp.Filter) else part
        if not isinstance(inner, _KNOWN) or (isinstance(inner, exp.Avg) and _is_of_answers(inner)):
            return part
        return exp.Paren(this=made) if isinstance(made := _simple(inner, filter_, scope), exp.Binary) else made

    return changed(node, change)


def _simple(node: exp.Expr, filter_: exp.Expr | None, scope: Scope) -> exp.Expr:
    if isinstance(node, exp.ApproxDistinct):
        return _filtered(exp.Count(this=exp.Distinct(expressions=[node.this.copy()])), filter_)
    if isinstance(node, exp.Avg):
        return _mean(node, filter_, scope)
    if isinstance(node, exp.ApproxQuantile):
        return _filtered(exp.Quantile(this=node.this.copy(), quantile=node.args["quantile"].copy()), filter_)
    if isinstance(node, _PAIRS):
        y, x = node.this, node.expression
        return _Pair(_side(x, node, scope), _side(y, node, scope), filter_).of(node)
    if isinstance(node, _SHAPES):
        side = _side(node.this, node, scope)
        return _Pair(side, side, filter_).shape(node)
    many = _filtered(exp.Count(this=node.this.copy()), filter_)
    spread = _filtered(exp.Variance(this=node.this.copy()), filter_)
    variance = _times(spread, _over(_minus(many, _literal(1)), _at_least(many, 1)))
    return exp.Sqrt(this=variance) if isinstance(node, exp.StddevPop) else variance


def _is_of_answers(node: exp.Avg) -> bool:
    """Return whether a mean is one of numbers of groups, as in AVG(SUM(x)) OVER (…)."""
    return isinstance(node.parent, exp.Window) or node.this.find(exp.AggFunc, exp.Window) is not None


def _mean(node: exp.Avg, filter_: exp.Expr | None, scope: Scope) -> exp.Expr:
    """Return the mean of dates as the day that is as many days after a public one; a mean of numbers as it is."""
    extent = None if isinstance(node.this, exp.Distinct) else binder(scope.resolve)(node.this).extent
    if extent is None or extent.type is not Type.DATE or not extent.bounded:
        return _filtered(node.copy(), filter_)
    middle = int(sum(extent.ends) / 2)
    origin = exp.cast(exp.Literal.string(day(middle).isoformat()), "DATE")
    past = exp.DateDiff(this=node.this.copy(), expression=origin, unit=exp.var("DAY"))
    return exp.DateFromUnixDate(this=exp.Add(this=_filtered(exp.Avg(this=past), filter_), expression=_literal(middle)))


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
    extent: ExpressionDomain = number(binder(scope.resolve)(node), title(of)).extent
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
        held = _held(share, exp.Neg(this=one.copy()), one)
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
        alone = self._sum(side.moved)
        return _minus(_times(self._rows, self._even(side, 2)), _times(alone, alone))

    def _even(self, side: _Side, power: int) -> exp.Expr:
        """Σ x² or Σ x⁴, added up around the middle of what it can be."""
        half = Fraction(math.floor(side.reach**power / 2))
        raised = exp.Abs(this=_product(*[side.moved] * power))
        total = self._sum(_minus(raised, _literal(half)) if half else raised)
        return exp.Add(this=total, expression=_times(_literal(half), self._rows)) if half else total

    def shape(self, node: exp.Expr) -> exp.Expr:
        """Return the skewness or the kurtosis of x, as they follow from a sample; NULL where it is too small.

        Both are held within what they can be of so many numbers.
        """
        least, moment = (2, self._skewness) if isinstance(node, exp.Skewness) else (3, self._kurtosis)
        enough = exp.GT(this=self._rows, expression=_literal(least))
        spread = exp.GT(this=_grouped(self._spread(self.x)), expression=_literal(0))
        return exp.Case(ifs=[exp.If(this=exp.And(this=enough, expression=spread), true=moment)])

    @property
    def _skewness(self) -> exp.Expr:
        n, x, one = self._rows, self.x.moved, self._sum(self.x.moved)
        three = self._sum(_product(x, x, x))
        twisted = _minus(_product(n, n, three), _product(_literal(3), n, one, self._even(self.x, 2)))
        moment = exp.Add(this=_grouped(twisted), expression=_product(_literal(2), one, one, one))
        below = exp.Pow(this=_grouped(self._spread(self.x)), expression=exp.Literal.number("1.5"))
        factor = _over(_root(_times(n, _minus(n, _literal(1)))), _minus(n, _literal(2)))
        return _held(_times(factor, _over(moment, below)), exp.Neg(this=_root(n)), _root(n))

    @property
    def _kurtosis(self) -> exp.Expr:
        n, x, one = self._rows, self.x.moved, self._sum(self.x.moved)
        two, three, spread = self._even(self.x, 2), self._sum(_product(x, x, x)), self._spread(self.x)
        high = _minus(_product(n, n, n, self._even(self.x, 4)), _product(_literal(4), n, n, three, one))
        low = _minus(_product(_literal(6), n, two, one, one), _product(_literal(3), one, one, one, one))
        ratio = _over(exp.Add(this=_grouped(high), expression=_grouped(low)), _times(spread, spread))
        less, more = _minus(n, _literal(1)), exp.Add(this=n.copy(), expression=_literal(1))
        wide = _minus(_times(more, ratio), _times(_literal(3), less))
        kurtosis = _over(_times(less, wide), _times(_minus(n, _literal(2)), _minus(n, _literal(3))))
        return _held(kurtosis, _over(_times(_literal(-2), less), _minus(n, _literal(3))), n)

    @property
    def _slope(self) -> exp.Expr:
        spread = self._spread(self.x)
        positive = exp.GT(this=exp.Paren(this=spread.copy()), expression=_literal(0))
        return exp.Case(ifs=[exp.If(this=positive, true=_over(self._joint, spread))])

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


def _product(first: exp.Expr, *others: exp.Expr) -> exp.Expr:
    product = first
    for other in others:
        product = _times(product, other)
    return product


def _held(node: exp.Expr, low: exp.Expr, high: exp.Expr) -> exp.Expr:
    return exp.Greatest(this=exp.Least(this=node, expressions=[high.copy()]), expressions=[low])


def _over(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.Div(this=_grouped(left), expression=_grouped(right))


def _root(node: exp.Expr) -> exp.Expr:
    return exp.Sqrt(this=node.copy())


def _at_least(node: exp.Expr, least: int) -> exp.Expr:
    return exp.Greatest(this=node.copy(), expressions=[_literal(least)])
