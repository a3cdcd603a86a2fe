"""Arithmetic: numbers with bounds in, numbers with bounds out; what has no value is NULL."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.errors import InvalidParameter
from incrowd.queries.language.domain import LISTED, BoundTree, Constant, ExpressionDomain, among, decimals, listed
from incrowd.queries.language.expressions import answers
from incrowd.queries.language.expressions.dates import days_between, moved, shifted
from incrowd.queries.language.expressions.function import (
    LARGEST,
    NUMBERS,
    Mean,
    SqlFunction,
    number,
    sole,
    whole_number,
    within,
)
from incrowd.queries.language.trees import as_decimal, case, cast, constant, function, operand, operation

_LEAST_DIVISOR = Fraction(1, 10**6)  # a quotient by less would have bounds too wide to be useful
_MOST_EXPONENT = 8  # bounds grow with the power, and so does the noise
_DIGITS = 9  # decimals that a float of ordinary size has
_LEAST_BASE, _MOST_BASE = 1.01, 10**6  # nearer to 1 a logarithm's bounds explode


def _add(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand a sum: of two numbers, or of a date and days."""
    if isinstance(node.expression, exp.Interval):
        return moved(mean(node.this), node.expression, 1)
    left, right = mean(node.this), mean(node.expression)
    if left.type is Type.DATE:
        return shifted(left, right)
    if right.type is Type.DATE:
        return shifted(right, left)
    (a, b), (c, d) = (number(part, "+").extent.ends for part in (left, right))
    return _combined(exp.Add, (left, right), within(a + c, b + d, "+"))


def _subtract(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand a difference: of two numbers, of two dates in days, or of a date and days."""
    if isinstance(node.expression, exp.Interval):
        return moved(mean(node.this), node.expression, -1)
    left, right = mean(node.this), mean(node.expression)
    if left.type is Type.DATE and right.type is Type.DATE:
        return days_between(left, right)
    if left.type is Type.DATE:
        return shifted(left, negated(number(right, "-")))
    (a, b), (c, d) = (number(part, "-").extent.ends for part in (left, right))
    return _combined(exp.Sub, (left, right), within(a - d, b - c, "-"))


def _multiply(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand a product."""
    left, right = number(mean(node.this), "*"), number(mean(node.expression), "*")
    corners = [x * y for x in left.ends for y in right.ends]
    return _combined(exp.Mul, (left, right), within(min(corners), max(corners), "*"))


def _divide(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand a quotient; it is NULL where the divisor is 0, and where it would leave ±10^15."""
    left, right = number(mean(node.this), "/"), number(mean(node.expression), "/")
    optional = left.optional or right.optional
    above, below = as_decimal(left), as_decimal(right)
    divided = exp.Div(this=operand(above), expression=_not_zero(below), typed=False, safe=False)
    low, high = right.ends
    least = max(low, -high, Fraction(right.type is Type.INTEGER))
    if least >= _LEAST_DIVISOR:
        most = max(map(abs, left.ends)) / least
        zero = low <= 0 <= high
        ends = _quotient_ends(left.extent, right.extent) if not zero else (-most, most)
        extent = decimals(*within(*ends, "/"), optional=optional or zero)
        return BoundTree.of(divided, extent, (left, right), _divided)
    # One less than the limit leaves room for the rounding of both sides.
    room = operation(exp.Mul, function(exp.Abs, below), constant(float(LARGEST - 1)))
    guarded = case((operation(exp.GTE, room, function(exp.Abs, above)), divided))
    return BoundTree(guarded, decimals(Fraction(-LARGEST), Fraction(LARGEST), optional=True))


def _remainder(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand what a division of whole numbers leaves; NULL where the divisor is 0."""
    left, right = number(mean(node.this), "%"), number(mean(node.expression), "%")
    if Type.DECIMAL in (left.type, right.type):
        raise InvalidParameter("% works on whole numbers: use FLOOR(x) first.")
    low, high = left.ends
    most = min(max(map(abs, right.ends)) - 1, max(abs(low), abs(high)))
    most = max(most, Fraction(0))
    zero = right.ends[0] <= 0 <= right.ends[1]
    extent = ExpressionDomain(
        Type.INTEGER,
        -most if low < 0 else Fraction(0),
        most if high > 0 else Fraction(0),
        optional=left.optional or right.optional or zero,
    )
    tree = exp.Mod(this=operand(left.tree), expression=_not_zero(right.tree))
    return BoundTree.of(tree, extent, (left, right), lambda x, y: int(math.fmod(x, y)) if y else None)


def _floor_divide(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand x // y as FLOOR(x / y)."""
    return _floor(exp.Floor(this=exp.Div(this=node.this.copy(), expression=node.expression.copy())), mean)


def _negate(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand a number with its sign changed."""
    return negated(number(mean(node.this), "-"))


def negated(part: BoundTree) -> BoundTree:
    """Return a number with its sign changed; a number that is written out stays one.

    >>> from incrowd.queries.language.trees import fixed
    >>> negated(fixed(5, Type.INTEGER)).extent.values
    (-5,)
    """
    low, high = part.ends
    extent = replace(part.extent, low=-high, high=-low, values=None)
    values = part.values
    if values is not None and len(values) == 1 and not part.optional:
        value: Constant = -values[0]  # type: ignore[operator]
        return BoundTree(constant(value), among(part.type, (value,), optional=False))
    return BoundTree.of(exp.Neg(this=operand(part.tree)), extent, (part,), lambda x: -x)


def _absolute(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand a number without its sign."""
    part = number(mean(node.this), "ABS")
    low, high = part.ends
    ends = (max(low, -high, Fraction(0)), max(abs(low), abs(high)))
    extent = ExpressionDomain(part.type, *ends, optional=part.optional)
    return BoundTree.of(function(exp.Abs, part.tree), extent, (part,), abs)


def _sign(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand the sign of a number: -1, 0 or 1."""
    part = number(mean(node.this), "SIGN")
    low, high = part.ends
    values = [v for v, can in ((-1, low < 0), (0, low <= 0 <= high), (1, high > 0)) if can]
    tree = cast(function(exp.Sign, part.tree), Type.INTEGER)
    return BoundTree(tree, among(Type.INTEGER, values, optional=part.optional))


def _floor(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand a number rounded down."""
    return _integral(number(mean(node.this), "FLOOR"), exp.Floor)


def _ceil(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand a number rounded up."""
    return _integral(number(mean(node.this), "CEIL"), exp.Ceil)


def rounded(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand a number rounded to digits after the point; halves go away from zero.

    >>> from incrowd.queries.language.trees import fixed
    >>> rounded(exp.Round(this=exp.Null()), lambda _: fixed(2.5, Type.DECIMAL)).extent.ends
    (Fraction(3, 1), Fraction(3, 1))
    """
    part = number(mean(node.this), "ROUND")
    decimals_ = node.args.get("decimals")
    digits = 0 if decimals_ is None else whole_number(mean(decimals_), "the digits of ROUND", -_DIGITS, _DIGITS)
    if digits <= 0 and part.type is Type.INTEGER and digits == 0:
        return part
    tree = exp.Round(this=as_decimal(part), decimals=exp.Literal.number(digits))
    low, high = part.ends
    ends = within(_half_away(low, digits), _half_away(high, digits), "ROUND")
    kind = Type.INTEGER if digits <= 0 else Type.DECIMAL
    if kind is Type.DECIMAL:
        return BoundTree(tree, decimals(*ends, optional=part.optional))
    return BoundTree(cast(tree, kind), _multiples(ends, 10**-digits, optional=part.optional))


def _root(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand a square root; NULL below 0."""
    part = number(mean(node.this), "SQRT")
    low, high = (max(end, Fraction(0)) for end in part.ends)
    tree = case((operation(exp.GTE, part.tree, constant(0)), function(exp.Sqrt, as_decimal(part))))
    ends = _outward(math.sqrt(low), math.sqrt(high))
    optional = part.optional or part.ends[0] < 0
    return BoundTree(tree, decimals(max(ends[0], Fraction(0)), ends[1], optional=optional))


def _logarithm(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand a natural logarithm; NULL at and below 0."""
    part = number(mean(node.this), "LN")
    low, high = part.ends
    least = max(low, Fraction(1)) if part.type is Type.INTEGER else max(low, Fraction(math.ulp(0.0)))
    ends = _outward(_log(least), _log(max(high, least)))
    tree = case((operation(exp.GT, part.tree, constant(0)), function(exp.Ln, as_decimal(part))))
    return BoundTree(tree, decimals(*ends, optional=part.optional or low <= 0))


def _log_to_base(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand LOG(x) and LOG10(x), LOG2(x) and LOG(base, x): quotients of natural logarithms, on every engine."""
    value, base = node.this, 10.0
    if node.args.get("expression") is not None:
        value, written = node.expression, sole(mean(node.this), "the base of LOG")
        base = float(written) if isinstance(written, int | float) else 0.0
    if not _LEAST_BASE <= base <= _MOST_BASE:
        raise InvalidParameter(f"the base of LOG is a number from {_LEAST_BASE} to {_MOST_BASE:,}.")
    part = _logarithm(exp.Ln(this=value.copy()), mean)
    ends = _outward(*(end / Fraction(math.log(base)) for end in part.ends))
    quotient = exp.Div(this=part.tree, expression=constant(math.log(base)), typed=False, safe=False)
    return BoundTree(quotient, decimals(*ends, optional=part.optional))


def _truncate(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand TRUNC(x): the whole number towards zero."""
    part = number(mean(node.this), "TRUNC")
    if part.type is Type.INTEGER:
        return part
    below = cast(function(exp.Ceil, part.tree), Type.INTEGER)
    tree = case(
        (operation(exp.LT, part.tree, constant(0)), below), default=cast(function(exp.Floor, part.tree), Type.INTEGER)
    )
    low, high = (Fraction(math.trunc(end)) for end in part.ends)
    return BoundTree(
        tree, listed(ExpressionDomain(Type.INTEGER, low, high, optional=part.optional), (part,), math.trunc)
    )


def _bucket(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand WIDTH_BUCKET(x, low, high, n): 1 to n from low on, 0 below it, n + 1 from high on."""
    part = number(mean(node.this), "WIDTH_BUCKET")
    ends = [sole(mean(node.args[arg]), "an end of WIDTH_BUCKET") for arg in ("min_value", "max_value")]
    low, high = (float(end) if isinstance(end, int | float) else 0.0 for end in ends)
    many = whole_number(mean(node.args["num_buckets"]), "the number of buckets", 1, LISTED - 2)
    if not low < high:
        raise InvalidParameter("WIDTH_BUCKET(x, low, high, n) goes from low to a higher number: swap its ends.")
    x = as_decimal(part)
    above = exp.Mul(this=exp.Paren(this=operation(exp.Sub, x, constant(low))), expression=constant(float(many)))
    steps = exp.Div(this=exp.Paren(this=above), expression=constant(high - low), typed=False, safe=False)
    inside = operation(exp.Add, cast(exp.Floor(this=steps), Type.INTEGER), constant(1))
    held = exp.Least(this=inside, expressions=[constant(many)], ignore_nulls=True)
    tree = case(
        (operation(exp.LT, x, constant(low)), constant(0)),
        (operation(exp.GTE, x, constant(high)), constant(many + 1)),
        (operation(exp.GTE, x, constant(low)), held),
    )
    return BoundTree(tree, ExpressionDomain(Type.INTEGER, Fraction(0), Fraction(many + 1), optional=part.optional))


def _exponential(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand e to the power of a number that is not above 34."""
    part = number(mean(node.this), "EXP")
    low, high = part.ends
    within(low, high, "EXP")
    ends = _outward(*(math.exp(min(max(float(end), -700.0), 700.0)) for end in (low, high)))
    within(Fraction(0), ends[1], "EXP")
    extent = decimals(max(ends[0], Fraction(0)), ends[1], optional=part.optional)
    return BoundTree(function(exp.Exp, as_decimal(part)), extent)


def _power(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand a number to a small whole power."""
    part = number(mean(node.this), "POWER")
    times = whole_number(mean(node.expression), "the exponent of POWER", 0, _MOST_EXPONENT)
    ends = [end**times for end in part.ends]
    if part.ends[0] < 0 < part.ends[1]:
        ends.append(Fraction(times == 0))
    ends = list(_outward(*within(min(ends), max(ends), "POWER")))
    extent = decimals(*ends, optional=part.optional)
    tree = exp.Pow(this=as_decimal(part), expression=exp.Literal.number(times))
    return BoundTree.of(tree, extent, (part,), lambda x: float(x) ** times)


def _combined(kind: type[exp.Expr], parts: tuple[BoundTree, BoundTree], ends: tuple[Fraction, Fraction]) -> BoundTree:
    both = {part.type for part in parts}
    of = Type.DECIMAL if Type.DECIMAL in both else Type.INTEGER
    optional = any(part.optional for part in parts)
    extent = (
        decimals(*ends, optional=optional) if of is Type.DECIMAL else ExpressionDomain(of, *ends, optional=optional)
    )
    twins: dict[type[exp.Expr], Callable[..., Constant]] = {
        exp.Add: lambda x, y: x + y,
        exp.Sub: lambda x, y: x - y,
        exp.Mul: lambda x, y: x * y,
    }
    trees = [part.tree if of is Type.INTEGER else as_decimal(part) for part in parts]
    narrowed = listed(extent, parts, twins[kind])
    if of is Type.DECIMAL and narrowed.values is not None:
        narrowed = among(of, [float(value) for value in narrowed.values], optional=narrowed.optional)  # type: ignore[arg-type]
    return BoundTree(operation(kind, *trees), narrowed)


def _not_zero(tree: exp.Expr) -> exp.Expr:
    return exp.Nullif(this=tree.copy(), expression=exp.Literal.number(0))


def _divided(x: float, y: float) -> float | None:
    return float(x) / float(y) if y else None


def _quotient_ends(above: ExpressionDomain, below: ExpressionDomain) -> tuple[Fraction, Fraction]:
    corners = [x / y for x in above.ends for y in below.ends]
    return min(corners), max(corners)


def _integral(part: BoundTree, kind: type[exp.Expr]) -> BoundTree:
    if part.type is Type.INTEGER:
        return part
    whole = math.floor if kind is exp.Floor else math.ceil
    low, high = (Fraction(whole(end)) for end in part.ends)
    extent = ExpressionDomain(Type.INTEGER, low, high, optional=part.optional)
    return BoundTree.of(cast(function(kind, part.tree), Type.INTEGER), extent, (part,), whole)


def _half_away(value: Fraction, digits: int) -> Fraction:
    scale = Fraction(10) ** digits
    steps = math.floor(abs(value) * scale + Fraction(1, 2))
    return (steps if value >= 0 else -steps) / scale


def _multiples(ends: tuple[Fraction, Fraction], step: int, *, optional: bool) -> ExpressionDomain:
    numbers = range(int(ends[0]), int(ends[1]) + 1, step)
    listable = len(numbers) <= LISTED and step > 1
    return (
        among(Type.INTEGER, numbers, optional=optional)
        if listable
        else ExpressionDomain(Type.INTEGER, *ends, optional=optional)
    )


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)


def _outward(low: float | Fraction, high: float | Fraction) -> tuple[Fraction, Fraction]:
    spare = Fraction(1, 10**9)
    return (Fraction(low) - abs(Fraction(low)) * spare - spare, Fraction(high) + abs(Fraction(high)) * spare + spare)


_TWO = ("this", "expression")
_BUCKETS = ("min_value", "max_value", "num_buckets")
_numeric = partial(SqlFunction, types=NUMBERS)
_growing = partial(SqlFunction, types=NUMBERS, range=answers.increasing_range)

OPERATORS = (
    _numeric("+", exp.Add, _add, _TWO, on_answers=lambda x, y: x + y, range=answers.sum_range),
    _numeric("-", exp.Sub, _subtract, _TWO, on_answers=lambda x, y: x - y, range=answers.difference_range),
    _numeric("-", exp.Neg, _negate, on_answers=lambda x: -x, range=answers.negated_range),
    _numeric("*", exp.Mul, _multiply, _TWO, on_answers=lambda x, y: x * y, range=answers.product_range),
    _numeric("/", exp.Div, _divide, _TWO, on_answers=lambda x, y: x / y, range=answers.quotient_range),
    SqlFunction("//", exp.IntDiv, _floor_divide, _TWO),
)

FUNCTIONS = (
    _numeric("ABS", exp.Abs, _absolute, on_answers=abs, range=answers.absolute_range),
    _growing("SIGN", exp.Sign, _sign, on_answers=lambda x: (x > 0) - (x < 0)),
    _growing("FLOOR", exp.Floor, _floor, on_answers=lambda x: float(math.floor(x))),
    _growing("CEIL", exp.Ceil, _ceil, other_names=("CEILING",), on_answers=lambda x: float(math.ceil(x))),
    _growing("ROUND", exp.Round, rounded, ("this", "decimals"), on_answers=answers.rounded),
    _numeric("MOD", exp.Mod, _remainder, _TWO, ("%",), on_answers=math.fmod),
    _numeric("TRUNC", exp.Trunc, _truncate, on_answers=math.trunc),
    _numeric("SQRT", exp.Sqrt, _root, on_answers=math.sqrt, range=answers.root_range),
    _numeric("LN", exp.Ln, _logarithm, on_answers=math.log, range=answers.logarithm_range),
    _numeric("LOG", exp.Log, _log_to_base, _TWO, ("LOG10", "LOG2"), on_answers=answers.logarithm),
    _growing("EXP", exp.Exp, _exponential, on_answers=math.exp, in_postgres=False),
    _numeric("POWER", exp.Pow, _power, _TWO, ("POW",), on_answers=math.pow, in_postgres=False),
    SqlFunction("WIDTH_BUCKET", exp.WidthBucket, _bucket, ("this", *_BUCKETS), required=_BUCKETS),
)
