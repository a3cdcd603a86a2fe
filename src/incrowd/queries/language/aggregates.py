"""Aggregates: what may be asked of the rows of a group, and expressions taken apart into keys and aggregates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.errors import InvalidParameter, QueryRefused
from incrowd.queries.language.domain import BoundTree, ExpressionDomain, whole
from incrowd.queries.language.expressions.function import LARGEST, condition, sole, title
from incrowd.queries.language.expressions.table import BY_NAME, INSTEAD, binder, refusal
from incrowd.queries.language.row_query import Scope
from incrowd.queries.language.trees import case, cast, changed, column, constant, every, only_type, operand, present
from incrowd.queries.query import PERSON, AggregateKind

_AGGREGATES = ("MEAN", "HISTOGRAM")


def is_aggregate(node: exp.Expr) -> bool:
    """Return whether a node is one aggregate, with its FILTER if it has one.

    >>> is_aggregate(exp.Filter(this=exp.Count(this=exp.Star())))
    True
    """
    if isinstance(node, exp.Anonymous):
        return str(node.this).upper() in _AGGREGATES
    return isinstance(
        node, exp.AggFunc | exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls | exp.Window
    )


def has_aggregate(node: exp.Expr) -> bool:
    """Return whether an aggregate stands somewhere in a node.

    >>> has_aggregate(exp.Neg(this=exp.Count(this=exp.Star())))
    True
    """
    return any(is_aggregate(part) for part in node.walk())


def qualify(node: exp.Expr, scope: Scope) -> exp.Expr:
    """Return an expression in which every column says the source it is from, by the name declared for it."""

    def change(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column) or isinstance(part.this, exp.Star):
            return part
        source, field = scope.find(part)
        return column(field.name, source)

    return changed(node, change)


def split(node: exp.Expr, keys: Sequence[exp.Expr], aggregate: Callable[[exp.Expr], str]) -> exp.Expr:
    """Return an expression over k1, k2, … for keys, and over the names that `aggregate` gives to aggregates.

    Preconditions: the node and the keys are qualified.

    >>> split(exp.Neg(this=exp.column("x")), [exp.column("x")], lambda _: "a1").sql()
    '-k1'
    """
    node = node.unnest()
    if isinstance(node, exp.Window):
        return _beside(node, keys, aggregate)
    if isinstance(node, exp.Grouping):
        return _mark(node, keys)
    if is_aggregate(node):
        return exp.column(aggregate(node))
    for place, key in enumerate(keys, 1):
        if node == key:
            return exp.column(f"k{place}")
    if isinstance(node, exp.Column):
        raise QueryRefused(f"{node.name!r} is a value of single rows: put it after GROUP BY, or into COUNT or AVG.")
    if isinstance(node, exp.Query) or (isinstance(node, exp.Anonymous) and str(node.this).upper() not in BY_NAME):
        raise refusal(node)
    made = node.copy()
    for part, value in node.args.items():
        if isinstance(value, exp.Expr):
            made.set(part, _again(node, value, keys, aggregate))
        elif isinstance(value, list):
            made.set(part, [split(v, keys, aggregate) if isinstance(v, exp.Expr) else v for v in value])
    return made


def _mark(node: exp.Grouping, keys: Sequence[exp.Expr]) -> exp.Expr:
    """Return GROUPING(key) as g1, g2, …: 1 in a total over all values of the key, else 0."""
    parts = [part.unnest() for part in node.expressions]
    if len(parts) != 1 or parts[0] not in list(keys):
        raise QueryRefused("GROUPING(x) is asked of one expression after GROUP BY at a time.")
    return exp.column(f"g{list(keys).index(parts[0]) + 1}")


def _beside(window: exp.Window, keys: Sequence[exp.Expr], aggregate: Callable[[exp.Expr], str]) -> exp.Expr:
    """Return a window whose function, parts and order are over keys and aggregates."""
    made = window.copy()
    if isinstance(made.this, exp.AggFunc) and isinstance(made.this.this, exp.Column) and made.this.this not in keys:
        raise QueryRefused(WINDOW_OF_ROWS)
    for holder in filter(None, (made.this, made.args.get("order"))):
        for name, value in list(holder.args.items()):
            parts = value if isinstance(value, list) else [value]
            new = [_inside(part, keys, aggregate) if isinstance(part, exp.Expr) else part for part in parts]
            holder.set(name, new if isinstance(value, list) else new[0])
    made.set("partition_by", [split(part, keys, aggregate) for part in window.args.get("partition_by") or ()])
    return made


def _inside(node: exp.Expr, keys: Sequence[exp.Expr], aggregate: Callable[[exp.Expr], str]) -> exp.Expr:
    if isinstance(node, exp.Ordered):
        ordered: exp.Expr = node.copy()
        ordered.set("this", split(node.this, keys, aggregate))
        return ordered
    return node.copy() if isinstance(node, exp.Star | exp.Literal) else split(node, keys, aggregate)


def _again(
    parent: exp.Expr, child: exp.Expr, keys: Sequence[exp.Expr], aggregate: Callable[[exp.Expr], str]
) -> exp.Expr:
    made = split(child, keys, aggregate)
    plain = isinstance(made, exp.Column | exp.Literal | exp.Func | exp.Paren | exp.Boolean | exp.Null)
    loose = isinstance(parent, exp.Binary | exp.Unary | exp.Predicate) and (
        not plain or isinstance(made, exp.Connector)
    )
    return exp.Paren(this=made) if loose else made


WINDOW_OF_ROWS = (
    "OVER shows rows beside each other: GROUP BY first, windows go over the groups, as in SUM(SUM(x)) OVER (). For one "
    "number of each group leave OVER out."
)
AGGREGATES = (
    "COUNT, SUM, AVG, VARIANCE, STDDEV, VAR_POP, STDDEV_POP, SKEWNESS, KURTOSIS, COVAR_POP, CORR, REGR_SLOPE, "
    "REGR_INTERCEPT, MIN, MAX, MEDIAN, QUANTILE, MODE and HISTOGRAM"
)

_KINDS: dict[type[exp.Expr], AggregateKind] = {
    exp.Sum: AggregateKind.SUM,
    exp.Avg: AggregateKind.MEAN,
    exp.Variance: AggregateKind.VARIANCE,
    exp.Stddev: AggregateKind.DEVIATION,
    exp.StddevSamp: AggregateKind.DEVIATION,
    exp.Mode: AggregateKind.MODE,
    exp.Min: AggregateKind.QUANTILE,
    exp.Max: AggregateKind.QUANTILE,
    exp.Median: AggregateKind.QUANTILE,
}
_PLACES: dict[type[exp.Expr], Fraction] = {exp.Min: Fraction(0), exp.Max: Fraction(1), exp.Median: Fraction(1, 2)}
_MOST_CHOICES = 4096  # groups of a declared domain that are listed in an answer
_ONE = BoundTree(constant(1), whole(1, 1))


@dataclass(frozen=True)
class AggregateCall:
    """One aggregate, bound: its kind, the value it is about, and the quantile."""

    kind: AggregateKind
    value: BoundTree | None = None
    at: Fraction | None = None


def aggregate_call(node: exp.Expr, scope: Scope) -> AggregateCall:
    """Return what an aggregate asks.

    Preconditions: `node` is an aggregate as `splitting.is_aggregate` knows it, over the columns of the scope.  A sum
    or a mean needs numbers with bounds, a quantile numbers or dates with bounds, a mode values that can be listed.
    """
    filter_ = None
    if isinstance(node, exp.Filter):
        filter_ = condition(binder(scope.resolve)(node.expression.this), "FILTER").tree
        node = node.this
    if isinstance(node, exp.Anonymous) and str(node.this).upper() == "MEAN" and len(node.expressions) == 1:
        node = exp.Avg(this=node.expressions[0])
    if isinstance(node, exp.CountIf):
        both = [condition(binder(scope.resolve)(node.this), "COUNT_IF").tree, *([] if filter_ is None else [filter_])]
        return _counted(_ONE, both)
    if isinstance(node, exp.Count):
        return _count(node, scope, filter_)
    if isinstance(node, exp.Quantile | exp.PercentileCont | exp.PercentileDisc):
        return AggregateCall(AggregateKind.QUANTILE, _measured(node, scope, filter_), _place(node, scope))
    kind = _KINDS.get(type(node))
    if kind is None:
        raise _unknown(node)
    _check_plain(node, ("this",))
    value = _measured(node, scope, filter_)
    if kind is AggregateKind.MODE:
        return AggregateCall(kind, _choice(value))
    if kind is not AggregateKind.QUANTILE and not value.extent.numeric:
        instead = "MEDIAN, MIN or MAX" if value.type is Type.DATE else "COUNT(*)"
        raise InvalidParameter(f"{title(node)} works on numbers, not on {only_type(value.extent)}: use {instead}.")
    return AggregateCall(kind, value, _PLACES.get(type(node)))


def _count(node: exp.Count, scope: Scope, filter_: exp.Expr | None) -> AggregateCall:
    _check_plain(node, ("this", "big_int"))
    what = node.this
    if what is None or isinstance(what, exp.Star):
        return AggregateCall(AggregateKind.ROWS) if filter_ is None else _counted(_ONE, [filter_])
    conditions = [] if filter_ is None else [filter_]
    if isinstance(what, exp.Distinct):
        return _different(what, scope, conditions)
    if isinstance(what, exp.Column) and scope.find(what)[1].person:
        source = scope.find(what)[0]
        tests = [*conditions, *([present(column(PERSON, source))] if source in scope.optional else [])]
        return _counted(_ONE, tests)
    return _counted(binder(scope.resolve)(what), conditions)


def _different(what: exp.Distinct, scope: Scope, conditions: list[exp.Expr]) -> AggregateCall:
    """Return a count of people, or of the values of another expression that differ.

    A person counts once in a group.  Of other values, one row can be the only one to hold a value: so each row of a
    unit moves their number by one at most, and a unit by as many as it has rows.
    """
    if len(what.expressions) != 1:
        raise QueryRefused("COUNT(DISTINCT …) counts the values of one expression: put columns together by CONCAT.")
    inner, conditions = _of_people(what.expressions[0].unnest(), scope, conditions)
    if not isinstance(inner, exp.Column) or not scope.find(inner)[1].person:
        value = binder(scope.resolve)(inner)
        test = every(conditions)
        if test is None:
            return AggregateCall(AggregateKind.DISTINCT, value)
        return AggregateCall(
            AggregateKind.DISTINCT, BoundTree(case((test, value.tree)), replace(value.extent, optional=True))
        )
    if scope.find(inner)[0] in scope.optional:
        raise QueryRefused("after LEFT JOIN, COUNT(DISTINCT …) counts people of the first table: or use JOIN.")
    test = every(conditions)
    flag = None if test is None else BoundTree(case((test, constant(1))), whole(1, 1, optional=True))
    return AggregateCall(AggregateKind.PEOPLE, flag)


def _of_people(node: exp.Expr, scope: Scope, conditions: list[exp.Expr]) -> tuple[exp.Expr, list[exp.Expr]]:
    """Return the person of CASE WHEN condition THEN person END, and the condition beside the others."""
    if not isinstance(node, exp.Case) or node.this is not None or len(node.args["ifs"]) != 1:
        return node, conditions
    (branch,), default = node.args["ifs"], node.args.get("default")
    then = branch.args["true"].unnest()
    if not isinstance(then, exp.Column) or not scope.find(then)[1].person:
        return node, conditions
    if default is not None and not isinstance(default, exp.Null):
        raise QueryRefused("of CASE in COUNT(DISTINCT …) one branch is the person, and there is no ELSE.")
    return then, [*conditions, condition(binder(scope.resolve)(branch.this), "WHEN").tree]


def _counted(value: BoundTree, conditions: list[exp.Expr]) -> AggregateCall:
    """Return a count of the rows in which a value is there and conditions hold."""
    if not conditions and value.optional and value.extent.numeric and _bounded(value.extent):
        return AggregateCall(AggregateKind.COUNT, value)  # the column that SUM and AVG of the same expression are about
    tests = [*conditions, *([present(value.tree)] if value.optional else [])]
    if not tests:
        return AggregateCall(AggregateKind.ROWS)
    tree = operand(tests[0])
    for test in tests[1:]:
        tree = exp.And(this=tree, expression=operand(test))
    return AggregateCall(AggregateKind.COUNT, BoundTree(case((tree, constant(1))), whole(1, 1, optional=True)))


def _measured(node: exp.Expr, scope: Scope, filter_: exp.Expr | None) -> BoundTree:
    if isinstance(node.this, exp.Distinct):
        raise QueryRefused(f"{title(node)}(DISTINCT …) compares rows with each other: leave DISTINCT out.")
    value = binder(scope.resolve)(node.this)
    extent = value.extent
    if (extent.numeric or extent.type is Type.DATE) and not _bounded(extent):
        raise QueryRefused(f"{title(node)} needs numbers with bounds within ±10^15: write CLAMP(x, low, high).")
    if not isinstance(node, exp.Mode) and extent.type in (Type.TEXT, Type.BOOLEAN):
        raise InvalidParameter(f"{title(node)} works on numbers and dates, not on {only_type(extent)}: use COUNT(*).")
    if filter_ is None:
        return value
    return BoundTree(case((filter_, value.tree)), replace(extent, optional=True))


def _bounded(extent: ExpressionDomain) -> bool:
    return extent.bounded and (extent.type is Type.DATE or max(map(abs, extent.ends)) <= 2 * LARGEST)


def _choice(value: BoundTree) -> BoundTree:
    """Return a value of which the most frequent is asked, as a text that can be listed."""
    members = value.extent.members(_MOST_CHOICES)
    if members is None or value.type is Type.DECIMAL:
        raise QueryRefused("MODE needs declared values: use categories, or coarser values such as FLOOR(x / 10).")
    if value.type is Type.TEXT:
        return value
    if value.type is Type.BOOLEAN:
        gone = exp.Not(this=exp.Paren(this=value.tree.copy()))
        tree = case((value.tree, constant("true")), (gone, constant("false")))
        written = tuple(str(member).lower() for member in members)
    else:
        tree, written = cast(value.tree, Type.TEXT), tuple(str(member) for member in members)
    return BoundTree(tree, ExpressionDomain(Type.TEXT, values=written, optional=value.optional))


def _place(node: exp.Expr, scope: Scope) -> Fraction:
    quantile = node.args.get("quantile") or node.args.get("expression")
    if quantile is None:
        raise InvalidParameter("write QUANTILE(x, 0.9): the quantile is missing.")
    written = sole(binder(scope.resolve)(quantile), "the quantile")
    if isinstance(written, bool) or not isinstance(written, int | float) or not 0 <= written <= 1:
        raise InvalidParameter("a quantile is a number from 0 to 1.")
    return Fraction(str(written))


def _check_plain(node: exp.Expr, parts: tuple[str, ...]) -> None:
    if any(value for name, value in node.args.items() if name not in parts):
        raise QueryRefused(f"{title(node)} takes one argument here: leave out the others.")


def _unknown(node: exp.Expr) -> Exception:
    if isinstance(node, exp.Window):
        return QueryRefused(WINDOW_OF_ROWS)
    inner = node.this if isinstance(node, exp.IgnoreNulls | exp.RespectNulls | exp.Filter | exp.WithinGroup) else node
    if title(inner) in INSTEAD:
        return QueryRefused(f"{title(inner)} shows values of single rows: write {INSTEAD[title(inner)]}.")
    return QueryRefused(f"{title(inner)} is not an aggregate that noise can protect. There are {AGGREGATES}.")
