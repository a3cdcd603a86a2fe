"""Results: the columns of the answer, the condition on its rows, and their order, over keys and aggregates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.errors import InvalidParameter, QuestionRefused
from incrowd.queries.language.aggregates import aggregate_call, is_aggregate, qualify, split
from incrowd.queries.language.expressions.binder import title
from incrowd.queries.language.extent import BoundTree, Extent
from incrowd.queries.language.row_query import Scope
from incrowd.queries.question import Aggregate, AggregateKind, Key, OutputColumn, Value

_NUMERIC = (
    exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Abs, exp.Round, exp.Floor, exp.Ceil, exp.Sqrt, exp.Ln,
    exp.Exp, exp.Sign,
)  # fmt: skip
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between)
_LOGIC = (exp.And, exp.Or, exp.Not)
_CHOICES = (exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Least, exp.Greatest)
_PLAIN = (exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Is)

ALLOWED = (*_PLAIN, *_NUMERIC, *_COMPARISONS, *_LOGIC, *_CHOICES)
"""The kinds of nodes of which expressions over the answer are made."""


def output(tree: exp.Expr, types: Mapping[str, Type]) -> exp.Expression:
    """Return an expression over keys and aggregates in the few kinds of nodes that answers are computed with.

    Preconditions: every column in it is in `types`.

    >>> output(exp.Neg(this=exp.column("a1")), {"a1": Type.DECIMAL}).sql()
    '-a1'
    """
    plain = tree.transform(_plain)
    for node in plain.walk():
        if not isinstance(node, ALLOWED):
            raise QuestionRefused(
                f"{title(node)} is not computed on noisy answers: use arithmetic, CASE, ROUND and comparisons there, "
                "or apply it to the rows, inside the aggregate or after GROUP BY."
            )
        if isinstance(node, exp.In) and not node.expressions:
            raise QuestionRefused("IN takes a list of values such as ('a', 'b'), not another query.")
    if not isinstance(plain, exp.Expression):
        raise TypeError
    _kind(plain, types)
    return plain


def truth(tree: exp.Expression, types: Mapping[str, Type]) -> exp.Expression:
    """Return the expression if it is a condition.

    >>> truth(exp.GT(this=exp.column("a1"), expression=exp.Literal.number(5)), {"a1": Type.DECIMAL}).sql()
    'a1 > 5'
    """
    if _kind(tree, types) not in (Type.BOOLEAN, None):
        raise InvalidParameter("HAVING takes a condition such as COUNT(*) > 10.")
    return tree


def _kind(node: exp.Expr, types: Mapping[str, Type]) -> Type | None:
    """Return the type of an expression, or raise if its parts do not fit; numbers count as decimals, NULL as None."""
    if isinstance(node, exp.Column):
        kind = types[node.name]
        return Type.DECIMAL if kind is Type.INTEGER else kind
    if isinstance(node, exp.Literal):
        return Type.TEXT if node.is_string else Type.DECIMAL
    if isinstance(node, exp.Boolean):
        return Type.BOOLEAN
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Paren):
        return _kind(node.this, types)
    if isinstance(node, exp.Is):
        _kind(node.this, types)
        return Type.BOOLEAN
    if isinstance(node, exp.Case | exp.If):
        return _chosen(node, types)
    parts = {_kind(part, types) for part in node.iter_expressions()} - {None}
    wanted = Type.DECIMAL if isinstance(node, _NUMERIC) else Type.BOOLEAN if isinstance(node, _LOGIC) else None
    if len(parts) > 1 or (wanted is not None and not parts <= {wanted}):
        raise InvalidParameter(
            f"the parts of {title(node)} are of different types, or not of the type it works on: compare and compute "
            "numbers with numbers and texts with texts here; put conditions on dates into WHERE."
        )
    return Type.BOOLEAN if isinstance(node, _COMPARISONS) else wanted or next(iter(parts), None)


def _chosen(node: exp.Expr, types: Mapping[str, Type]) -> Type | None:
    branches = node.args.get("ifs") or [node]
    tests = {_kind(branch.this, types) for branch in branches} - {None}
    base = node.this if isinstance(node, exp.Case) else None
    results = [branch.args["true"] for branch in branches]
    results += [node.args[part] for part in ("default", "false") if node.args.get(part) is not None]
    kinds = {_kind(result, types) for result in results} - {None}
    wanted = {Type.BOOLEAN} if base is None else {_kind(base, types)}
    if len(kinds) > 1 or not tests <= wanted:
        raise InvalidParameter("CASE needs conditions after WHEN, and results of one type.")
    return next(iter(kinds), None)


def _plain(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Anonymous) and str(node.this).upper() == "CLAMP":
        if len(node.expressions) != 3:
            raise InvalidParameter("write CLAMP(x, low, high).")
        value, low, high = node.expressions
        ifs = [
            exp.If(this=exp.LT(this=value.copy(), expression=low.copy()), true=low.copy()),
            exp.If(this=exp.GT(this=value.copy(), expression=high.copy()), true=high.copy()),
        ]
        return exp.Case(ifs=ifs, default=value.copy())
    if isinstance(node, exp.If) and not isinstance(node.parent, exp.Case):
        return exp.Case(ifs=[exp.If(this=node.this, true=node.args["true"])], default=node.args.get("false"))
    return node


@dataclass
class AggregateRegister:
    """The aggregates met so far while a question is read; equal ones are one, and so are equal columns."""

    scope: Scope
    aggregates: dict[tuple[object, ...], Aggregate] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)
    meanings: dict[str, BoundTree] = field(default_factory=dict)

    def name(self, node: exp.Expr) -> str:
        """Return the name of an aggregate, a new one if it was not met before."""
        wish = aggregate_call(node, self.scope)
        value = None if wish.value is None else self._value(wish.value)
        key = (wish.kind, value, wish.at)
        if key not in self.aggregates:
            self.aggregates[key] = Aggregate(f"a{len(self.aggregates) + 1}", wish.kind, value, wish.at)
        return self.aggregates[key].name

    @property
    def types(self) -> dict[str, Type]:
        """The types of all aggregates by their names."""
        return {aggregate.name: _type(aggregate) for aggregate in self.aggregates.values()}

    def _value(self, meaning: BoundTree) -> Value:
        text = meaning.tree.sql("duckdb")
        if text not in self.values:
            name = f"v{len(self.values) + 1}"
            self.values[text] = _value(name, meaning.extent)
            self.meanings[name] = meaning
        return self.values[text]


def _type(aggregate: Aggregate) -> Type:
    if aggregate.value is None or aggregate.kind not in (AggregateKind.QUANTILE, AggregateKind.MODE):
        return Type.DECIMAL
    return aggregate.value.type


def _value(name: str, extent: Extent) -> Value:
    choices = None
    if extent.type is Type.TEXT and extent.values is not None:
        choices = tuple(str(value) for value in extent.values)
    return Value(name, extent.type, extent.low, extent.high, choices, extent.optional)


@dataclass(frozen=True)
class Result:
    """What expressions over the answer are made of: the outermost query, its sources, keys and aggregates."""

    query: exp.Select
    scope: Scope
    nodes: list[exp.Expr]
    keys: tuple[Key, ...]
    register: AggregateRegister

    def outputs(self) -> tuple[OutputColumn, ...]:
        """Return the columns of the answer."""
        outputs: list[OutputColumn] = []
        taken: set[str] = set()
        for item in self.query.expressions:
            node = item.unalias()
            if isinstance(node, exp.Star):
                raise QuestionRefused(
                    "SELECT * asks for rows, which never leave: ask for COUNT(*), SUM(x), AVG(x) and the like."
                )
            tree = self._over(node)
            bare = tree.name if isinstance(tree, exp.Column) and is_aggregate(node.unnest()) else None
            outputs.append(OutputColumn(_free(item.alias or self._called(node), taken), tree, bare))
        return tuple(outputs)

    def having(self) -> exp.Expression | None:
        """Return the condition on rows of the answer."""
        having = self.query.args.get("having")
        return None if having is None else truth(self._over(self._unnamed(having.this)), self._types)

    def order(self) -> tuple[exp.Ordered, ...]:
        """Return the order of rows of the answer."""
        order = self.query.args.get("order")
        return tuple(self._ordered(item) for item in (order.expressions if order is not None else ()))

    def _ordered(self, item: exp.Expr) -> exp.Ordered:
        if isinstance(item.this, exp.Var) or item.args.get("with_fill"):
            raise QuestionRefused("ORDER BY takes columns of the answer: name them.")
        node = item.this
        named = isinstance(node, exp.Column) and not node.table and node.name.casefold() in self._named
        tree = self._over(self._named[node.name.casefold()] if named else self._unnamed(node))
        flags = {flag: bool(item.args.get(flag)) for flag in ("desc", "nulls_first")}
        return exp.Ordered(this=tree, **flags)

    def _over(self, node: exp.Expr) -> exp.Expression:
        tree = split(qualify(node, self.scope), self.nodes, self.register.name)
        return output(tree, self._types)

    @property
    def _types(self) -> dict[str, Type]:
        return {key.name: key.type for key in self.keys} | self.register.types

    @property
    def _named(self) -> dict[str, exp.Expr]:
        return {item.alias.casefold(): item.this for item in self.query.expressions if isinstance(item, exp.Alias)}

    def _unnamed(self, node: exp.Expr) -> exp.Expr:
        """Return an expression in which names given by SELECT stand for what they name; columns of rows come first."""
        known = {item.name.casefold() for _, rows in self.scope.sources for item in rows.fields}
        named = {name: tree for name, tree in self._named.items() if name not in known}

        def change(part: exp.Expr) -> exp.Expr:
            if isinstance(part, exp.Column) and not part.table and part.name.casefold() in named:
                return exp.Paren(this=named[part.name.casefold()].copy())
            return part

        changed: exp.Expr = node.copy().transform(change)
        return changed

    def _called(self, node: exp.Expr) -> str:
        """Return the name of a column of the answer that the question does not name."""
        if isinstance(node, exp.Column):
            return self.scope.find(node)[1].name

        def bare(part: exp.Expr) -> exp.Expr:
            return exp.Column(this=part.this.copy()) if isinstance(part, exp.Column) else part

        text: str = node.copy().transform(bare).sql("duckdb")
        return text.lower()


def _free(wanted: str, taken: set[str]) -> str:
    name, place = wanted, 2
    while name.casefold() in taken:
        name, place = f"{wanted}_{place}", place + 1
    taken.add(name.casefold())
    return name
