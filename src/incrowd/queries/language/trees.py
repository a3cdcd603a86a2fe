"""Trees: the few shapes of SQL that rewritten queries are made of, the same on every engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from typing import Any, TypeVar

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.errors import InvalidParameter
from incrowd.queries.language.domain import BoundTree, Constant, ExpressionDomain, among

T = TypeVar("T", bound=exp.Expr)

STORED = {
    Type.INTEGER: exp.DataType.Type.BIGINT,
    Type.DECIMAL: exp.DataType.Type.DOUBLE,
    Type.TEXT: exp.DataType.Type.VARCHAR,
    Type.DATE: exp.DataType.Type.DATE,
    Type.BOOLEAN: exp.DataType.Type.BOOLEAN,
}
"""The type of a column in the engine."""

_OPERATORS = (exp.Binary, exp.Neg, exp.Not, exp.Between, exp.In, exp.Is, exp.Like)


def copied(tree: T) -> T:
    """Return a copy of a tree: its nodes and what they hold, without comments or places in a text.

    >>> copied(exp.column("a", "t")).sql()
    't.a'
    """
    parts: dict[str, Any] = {}
    for name, part in tree.args.items():
        if isinstance(part, exp.Expr):
            parts[name] = copied(part)
        elif isinstance(part, list):
            parts[name] = [copied(child) if isinstance(child, exp.Expr) else child for child in part]
        else:
            parts[name] = part
    return type(tree)(**parts)


def changed(tree: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Return a copy of a tree in which `change` was made to every node.

    >>> changed(exp.column("a", "t"), lambda node: exp.column("b") if isinstance(node, exp.Column) else node).sql()
    'b'
    """
    made: exp.Expr = copied(tree).transform(change, copy=False)
    return made


def unqualified(node: exp.Expr) -> exp.Expr:
    """Return an expression whose columns name no source: the only source of a query has no name.

    >>> unqualified(exp.column("a", "t")).sql()
    'a'
    """
    return changed(node, lambda part: exp.Column(this=part.this.copy()) if isinstance(part, exp.Column) else part)


def unwrapped(query: exp.Expr) -> exp.Expr:
    """Return a query without the brackets around it; brackets with a name or a clause of their own stay.

    >>> unwrapped(exp.select("x").subquery()).sql()
    'SELECT x'
    """
    while isinstance(query, exp.Subquery) and not any(value for part, value in query.args.items() if part != "this"):
        query = query.this
    return query


def sources(query: exp.Expr) -> list[exp.Expr]:
    """Return what stands after FROM and JOIN."""
    first = query.args.get("from_")
    return [*([] if first is None else [first.this]), *(join.this for join in query.args.get("joins") or ())]


def conjuncts(node: exp.Expr | None) -> Iterator[exp.Expr]:
    """Yield the conditions that AND joins.

    >>> from sqlglot import parse_one
    >>> [part.sql() for part in conjuncts(parse_one("a AND (b AND c OR d)"))]
    ['a', '(b AND c OR d)']
    """
    inner = None if node is None else node.unnest()
    if isinstance(inner, exp.And):
        yield from conjuncts(inner.this)
        yield from conjuncts(inner.expression)
    elif node is not None:
        yield node


def operand(tree: exp.Expr) -> exp.Expr:
    """Return a tree that may stand beside any operator: in brackets, if it is one itself.

    >>> operand(exp.Add(this=exp.column("a"), expression=exp.column("b"))).sql()
    '(a + b)'
    """
    return exp.Paren(this=copied(tree)) if isinstance(tree, _OPERATORS) else copied(tree)


def operation(kind: type[exp.Expr], left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Return two trees joined by a binary operator.

    >>> operation(exp.GT, exp.column("x"), exp.column("y")).sql()
    'x > y'
    """
    return kind(this=operand(left), expression=operand(right))


def function(kind: type[exp.Expr], argument: exp.Expr) -> exp.Expr:
    """Return a function of one argument.

    >>> function(exp.Abs, exp.column("x")).sql()
    'ABS(x)'
    """
    return kind(this=copied(argument))


def cast(tree: exp.Expr, kind: Type) -> exp.Expr:
    """Return a tree as another type; only for values of which the engine can always make one.

    >>> cast(exp.column("x"), Type.DECIMAL).sql()
    'CAST(x AS DOUBLE)'
    """
    return exp.Cast(this=copied(tree), to=exp.DataType(this=STORED[kind]))


def try_cast(tree: exp.Expr, kind: Type) -> exp.Expr:
    """Return a text as another type, NULL where it is not written as one.

    >>> try_cast(exp.column("x"), Type.DATE).sql()
    'TRY_CAST(x AS DATE)'
    """
    return exp.TryCast(this=copied(tree), to=exp.DataType(this=STORED[kind]), safe=True)


def constant(value: Constant) -> exp.Expr:
    """Return the tree of a value; numbers say their type, since engines type bare ones differently.

    >>> constant(3).sql("duckdb"), constant(0.5).sql("duckdb"), constant(date(2020, 1, 2)).sql("duckdb")
    ('CAST(3 AS BIGINT)', 'CAST(0.5e0 AS DOUBLE)', "CAST('2020-01-02' AS DATE)")
    """
    match value:
        case bool():
            return exp.Boolean(this=value)
        case int():
            return cast(exp.Literal.number(value), Type.INTEGER)
        case float():
            written = repr(value)
            return cast(exp.Literal.number(written if "e" in written else written + "e0"), Type.DECIMAL)
        case date():
            return cast(exp.Literal.string(value.isoformat()), Type.DATE)
        case str():
            return exp.Literal.string(value)


def fixed(value: Constant, kind: Type) -> BoundTree:
    """Return the meaning of a value that does not depend on rows.

    >>> fixed(5, Type.INTEGER).extent.values
    (5,)
    """
    return BoundTree(constant(value), among(kind, (value,), optional=False))


def case(*branches: tuple[exp.Expr, exp.Expr], default: exp.Expr | None = None) -> exp.Expr:
    """Return CASE WHEN … THEN … ELSE … END.

    >>> case((exp.column("c"), exp.column("x"))).sql()
    'CASE WHEN c THEN x END'
    """
    ifs = [exp.If(this=copied(when), true=copied(then)) for when, then in branches]
    return exp.Case(ifs=ifs, default=None if default is None else copied(default))


def missing(tree: exp.Expr) -> exp.Expr:
    """Return the condition that a tree is NULL.

    >>> missing(exp.column("x")).sql()
    'x IS NULL'
    """
    return exp.Is(this=operand(tree), expression=exp.Null())


def present(tree: exp.Expr) -> exp.Expr:
    """Return the condition that a tree is not NULL.

    >>> present(exp.column("x")).sql()
    'NOT x IS NULL'
    """
    return exp.Not(this=missing(tree))


def between(tree: exp.Expr, low: exp.Expr, high: exp.Expr) -> exp.Expr:
    """Return the condition that a tree lies between two others, both included.

    >>> between(exp.column("x"), exp.column("a"), exp.column("b")).sql()
    'x BETWEEN a AND b'
    """
    return exp.Between(this=operand(tree), low=operand(low), high=operand(high))


def every(conditions: list[exp.Expr]) -> exp.Expr | None:
    """Return the condition that all hold, or None if there is none.

    >>> every([exp.column("a"), exp.column("b")]).sql()
    'a AND b'
    """
    if not conditions:
        return None
    tree = operand(conditions[0])
    for condition in conditions[1:]:
        tree = exp.And(this=tree, expression=operand(condition))
    return tree


def name(text: str) -> exp.Identifier:
    """Return a name in quotes, so that no name is taken for a word of the language.

    >>> name("select").sql()
    '"select"'
    """
    return exp.Identifier(this=text, quoted=True)


def column(field: str, source: str | None = None) -> exp.Column:
    """Return a column of a source.

    >>> column("x", "t1").sql()
    '"t1"."x"'
    """
    return exp.Column(this=name(field), table=None if source is None else name(source))


def alias(tree: exp.Expr, as_name: str) -> exp.Expr:
    """Return a tree under a name.

    >>> alias(exp.column("x"), "y").sql()
    'x AS "y"'
    """
    return exp.Alias(this=copied(tree), alias=name(as_name))


def subquery(query: exp.Expr, as_name: str) -> exp.Subquery:
    """Return a query as a source of another.

    >>> subquery(exp.select("x"), "t1").sql()
    '(SELECT x) AS "t1"'
    """
    return exp.Subquery(this=copied(query), alias=exp.TableAlias(this=name(as_name)))


def select(columns: list[exp.Expr], source: exp.Expr, where: exp.Expr | None = None) -> exp.Select:
    """Return SELECT columns FROM source WHERE condition; without columns, one that is always 1.

    >>> select([], exp.Table(this=name("t"))).sql()
    'SELECT CAST(1 AS BIGINT) AS "_one" FROM "t"'
    """
    chosen = columns or [alias(constant(1), "_one")]
    query = exp.Select(expressions=[copied(tree) for tree in chosen], from_=exp.From(this=copied(source)))
    if where is not None:
        query.set("where", exp.Where(this=copied(where)))
    return query


def clamped(tree: exp.Expr, low: Constant | None, high: Constant | None) -> exp.Expr:
    """Return a tree whose values beyond an end are moved to it; NULL stays NULL.

    >>> clamped(exp.column("x"), None, "b").sql()
    "CASE WHEN x > 'b' THEN 'b' ELSE x END"
    """
    branches = []
    if low is not None:
        branches.append((operation(exp.LT, tree, constant(low)), constant(low)))
    if high is not None:
        branches.append((operation(exp.GT, tree, constant(high)), constant(high)))
    return case(*branches, default=tree) if branches else copied(tree)


def as_decimal(meaning: BoundTree) -> exp.Expr:
    """Return the tree of a number as a decimal.

    >>> as_decimal(fixed(5, Type.INTEGER)).sql()
    'CAST(CAST(5 AS BIGINT) AS DOUBLE)'
    """
    return cast(meaning.tree, Type.DECIMAL) if meaning.extent.type is Type.INTEGER else copied(meaning.tree)


def only_type(extent: ExpressionDomain) -> str:
    """Return a type in the words of messages.

    >>> only_type(among(Type.TEXT, (), optional=True))
    'a text'
    """
    words = {Type.INTEGER: "a whole number", Type.DECIMAL: "a number", Type.TEXT: "a text", Type.DATE: "a date"}
    return words.get(extent.type, "a condition")


def place_of(node: exp.Expr, many: int) -> int | None:
    """Return the place, from 0, that a number after GROUP BY or ORDER BY points at; None of anything else.

    >>> place_of(exp.Literal.number(2), 3), place_of(exp.column("x"), 3)
    (1, None)
    """
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    place = int(str(node.this)) if str(node.this).isdigit() else 0
    if not 1 <= place <= many:
        raise InvalidParameter(f"GROUP BY and ORDER BY take numbers from 1 to {many}, or names.")
    return place - 1
