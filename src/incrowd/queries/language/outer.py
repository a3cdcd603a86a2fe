"""Outer queries: SELECT over the answer to another query; they work on released numbers alone, and cost nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.errors import InvalidParameter, QueryRefused
from incrowd.queries import operations as ops
from incrowd.queries.language.aggregates import split
from incrowd.queries.language.expressions.function import title
from incrowd.queries.language.joins import join_memberships
from incrowd.queries.language.outputs import WindowRegister, has_window, kind_of, ordered, output, truth
from incrowd.queries.language.row_query import Context
from incrowd.queries.language.sources import check_clauses, sources_of
from incrowd.queries.language.trees import changed, place_of, sources, unwrapped
from incrowd.queries.query import Aggregate, AggregateKind, Interpreted, OutputColumn, Query

_CLAUSES = (
    "expressions", "from_", "where", "group", "having", "order", "limit", "offset", "distinct", "qualify",
)  # fmt: skip
_TOTALS: dict[type[exp.Expr], ops.Function] = {
    exp.Count: ops.Function.COUNT,
    exp.Sum: ops.Function.SUM,
    exp.Avg: ops.Function.AVG,
    exp.Min: ops.Function.MIN,
    exp.Max: ops.Function.MAX,
    exp.Median: ops.Function.MEDIAN,
}
_NUMBERS = (ops.Function.SUM, ops.Function.AVG, ops.Function.MEDIAN)


def answer_inside(query: exp.Select, context: Context) -> exp.Select | None:
    """Return the query in FROM if it is a query of its own: its groups are not people, so noise makes its answer.

    A subquery that is grouped by person makes rows, and is none.
    """
    from_ = query.args.get("from_")
    inner = None if from_ is None else subquery_of(from_.this)
    if not isinstance(inner, exp.Select) or not is_answer(inner, context):
        return None
    if query.args.get("joins"):
        raise QueryRefused("a batch does not join answers: ask this query alone, or use COUNT(*) FILTER (WHERE …).")
    return inner


def subquery_of(source: exp.Expr) -> exp.Expr | None:
    """Return the query in brackets that a source after FROM is, if it is one."""
    return unwrapped(source.this) if isinstance(source, exp.Subquery) else None


def is_answer(query: exp.Expr, context: Context) -> bool:
    """Return whether a query is a query: what it gives are numbers of groups, which are not people."""
    if isinstance(query, exp.Union):
        return all(is_answer(subquery_of(side) or side, context) for side in (query.this, query.expression))
    if not isinstance(query, exp.Select):
        return False
    inside = [subquery_of(source) for source in sources(query)]
    if any(inner is not None and is_answer(inner, context) for inner in inside):
        return True
    group = query.args.get("group")
    if group is None:
        return any(_aggregates(item) for item in query.expressions)
    joined = sources_of(join_memberships(query, context.catalog), context)
    plain = [node for node in group.expressions if isinstance(node, exp.Column)]
    field_names = {item.name.casefold() for _, rows in joined.scope.sources for item in rows.fields}
    return not any(joined.scope.find(node)[1].person for node in plain if node.name.casefold() in field_names)


def _aggregates(node: exp.Expr) -> bool:
    windows = {id(window.this) for window in node.find_all(exp.Window)}
    own = (part for part in node.find_all(exp.AggFunc) if part.parent_select is node.parent_select)
    return any(id(part) not in windows for part in own)


def gathers(query: exp.Select) -> bool:
    """Return whether a query over an answer makes one row of several."""
    grouped = query.args.get("group") is not None or query.args.get("distinct") is not None
    return grouped or any(_aggregates(item) for item in query.expressions)


def ending(order: tuple[exp.Ordered, ...], cut: ops.Take) -> list[ops.Operation]:
    """Return the operations of ORDER BY and LIMIT."""
    sort: list[ops.Operation] = [ops.Sort(order)] if order else []
    return sort if cut == ops.Take(None) else [*sort, cut]


@dataclass
class AnswerSheet:
    """An answer so far: what its columns are called and stand for, the names below them, and what was done to it."""

    columns: dict[str, tuple[str, exp.Expr]]
    types: dict[str, Type]
    operations: list[ops.Operation]

    def over(self, node: exp.Expr) -> exp.Expr:
        """Return an expression over columns of the answer as one over the names below them."""

        def change(part: exp.Expr) -> exp.Expr:
            if not isinstance(part, exp.Column):
                return part
            column = self.columns.get(part.name.casefold())
            if isinstance(part.this, exp.Star) or column is None:
                names = ", ".join(name for name, _ in self.columns.values())
                raise InvalidParameter(f"there is no column {part.name!r} in the answer. There are: {names}.")
            return exp.Paren(this=column[1].copy())

        return changed(node, change)


def ask_answer(base: Query, query: exp.Select, cut: ops.Take) -> Query:
    """Return a query that asks `query` of the answer to another."""
    made = list(base.operations) or [
        *([] if base.having is None else [ops.Keep(base.having)]),
        *ending(base.order, ops.Take(base.limit, base.offset)),
    ]
    columns: dict[str, tuple[str, exp.Expr]] = {
        output.name.casefold(): (output.name, output.expression) for output in base.outputs
    }
    answer = AnswerSheet(columns, types_of(base), made)
    outputs = shown_columns(answer, query, cut)
    names = {aggregate.name for aggregate in base.aggregates} - _gathered(answer.operations)
    bare_outputs = tuple(_bare(output, names) for output in outputs)
    return replace(
        base, outputs=bare_outputs, having=None, order=(), limit=None, offset=0, operations=tuple(answer.operations)
    )


def shown_columns(answer: AnswerSheet, query: exp.Select, cut: ops.Take) -> tuple[OutputColumn, ...]:
    """Return the columns that a query shows of an answer, after what else it asks was added to its operations."""
    check_clauses(query, _CLAUSES)
    return _Outer(answer, query, cut).outputs()


def types_of(query: Query) -> dict[str, Type]:
    """Return the names of which the columns of an answer are made, and their types."""
    types = {key.name: key.type for key in query.keys} | dict.fromkeys(query.marks, Type.INTEGER)
    types |= {aggregate.name: aggregate.type for aggregate in query.aggregates}
    return ops.types_after(query.operations, types)


def output_types(query: Query) -> tuple[Type | None, ...]:
    """Return the types of the columns of an answer, None where one is NULL alone."""
    types = types_of(query)
    return tuple(_kind(output_.expression, types) for output_ in query.outputs)


_COUNTED = (AggregateKind.ROWS, AggregateKind.COUNT, AggregateKind.PEOPLE, AggregateKind.DISTINCT)


def answer_columns(query: Interpreted) -> tuple[tuple[str, Type], ...]:
    """Return the names and types of the columns that the answer to a query will have; no row is read for it."""
    if not isinstance(query, Query):
        return tuple((column.name, column.type or Type.TEXT) for column in query.sheet.columns)
    aggregates = {aggregate.name: aggregate for aggregate in query.aggregates}
    columns = []
    for output_, kind in zip(query.outputs, output_types(query), strict=True):
        aggregate = aggregates.get(output_.aggregate or "")
        whole = aggregate is not None and (aggregate.kind in _COUNTED or _is_whole_sum(aggregate))
        columns.append((output_.name, Type.INTEGER if whole else kind or Type.TEXT))
    return tuple(columns)


def _is_whole_sum(aggregate: Aggregate) -> bool:
    return aggregate.kind is AggregateKind.SUM and aggregate.needed_value.type is Type.INTEGER


def _gathered(operations: list[ops.Operation]) -> set[str]:
    """Return the names that no longer mean an aggregate of rows."""
    gathers = [gather for gather in operations if isinstance(gather, ops.Gather)]
    return {name for gather in gathers for name in ops.types_after([gather], {})}


def _bare(output_: OutputColumn, names: set[str]) -> OutputColumn:
    inner = output_.expression.unnest()
    bare = inner.name if isinstance(inner, exp.Column) and inner.name in names else None
    return replace(output_, aggregate=bare, expression=exp.column(bare) if bare else output_.expression)


@dataclass
class _Outer:
    """One SELECT over an answer; `keys` are what its rows are gathered by, None where they are not gathered."""

    answer: AnswerSheet
    query: exp.Select
    cut: ops.Take
    before: dict[str, Type] = field(default_factory=dict)
    keys: list[exp.Expr] | None = None
    register: WindowRegister = field(default_factory=WindowRegister)
    named: dict[str, exp.Expression] = field(default_factory=dict)

    def outputs(self) -> tuple[OutputColumn, ...]:
        """Do what the query asks with the answer, and return its columns."""
        answer, query = self.answer, self.query
        where = query.args.get("where")
        if where is not None:
            answer.operations.append(ops.Keep(truth(self._tree(where.this), answer.types)))
        self.keys = self._gather()
        self.register.first += sum(isinstance(operation, ops.WindowColumn) for operation in answer.operations)
        items = [(name, self._windowed(node)) for name, node in self._items()]
        self.named = {name.casefold(): tree for name, tree in items}
        having, qualify = self._condition("having"), self._condition("qualify")
        terms = () if query.args.get("order") is None else query.args["order"].expressions

        def sorted_by(node: exp.Expr) -> exp.Expression:
            place = place_of(node, len(items))
            return self._later(node) if place is None else items[place][1]

        order = tuple(ordered(term, sorted_by) for term in terms)
        answer.operations += [ops.Keep(having)] if having is not None else []
        answer.operations += self.register.columns.values()
        answer.operations += [ops.Keep(qualify)] if qualify is not None else []
        answer.operations += ending(order, self.cut)
        return tuple(OutputColumn(name, tree, None, _kind(tree, answer.types)) for name, tree in items)

    def _items(self) -> list[tuple[str, exp.Expr]]:
        """Return the columns that the query names, a star standing for all."""
        items: list[tuple[str, exp.Expr]] = []
        for item in self.query.expressions:
            node = item.unalias()
            if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
                if any(node.args.get(part) for part in ("except_", "replace", "rename")):
                    raise QueryRefused("* stands for all columns: name the columns instead of leaving some out.")
                items += [(name, exp.column(exp.to_identifier(key, quoted=True))) for key, (name, _) in self._columns]
            else:
                column = self.answer.columns.get(node.name.casefold()) if isinstance(node, exp.Column) else None
                items.append((item.alias or (column[0] if column else node.sql("duckdb").lower()), node))
        names = [name.casefold() for name, _ in items]
        if len(set(names)) < len(names):
            raise InvalidParameter("the columns of an answer need different names: name them by AS.")
        return items

    @property
    def _columns(self) -> list[tuple[str, tuple[str, exp.Expr]]]:
        return list(self.answer.columns.items())

    def _tree(self, node: exp.Expr) -> exp.Expression:
        if has_window(node) or _aggregates(node):
            raise QueryRefused("aggregates and OVER (…) do not stand here: use HAVING or QUALIFY.")
        return output(self.answer.over(node), self.answer.types)

    def _gather(self) -> list[exp.Expr] | None:
        """Gather rows of the answer, if that is asked; return what they are grouped by, over the names below.

        Aggregates that are named later are added to what is gathered here.
        """
        group, distinct = self.query.args.get("group"), self.query.args.get("distinct")
        nodes = [] if group is None else [self._named(node) for node in group.expressions]
        if distinct is not None:
            if group is not None or distinct.args.get("on") is not None:
                raise QueryRefused("SELECT DISTINCT goes without GROUP BY: leave one of them out.")
            nodes = [node for _, node in self._items()]
        elif not gathers(self.query):
            return None
        elif group is not None:
            check_clauses(group, ("expressions",))
        keys = [self._tree(node) for node in nodes]
        before = dict(self.answer.types)
        made = [ops.GatherKey(f"k{at}", key, _kind(key, before) or Type.DECIMAL) for at, key in enumerate(keys, 1)]
        self.answer.operations.append(ops.Gather(tuple(made), ()))
        self.before, self.answer.types = before, {key.name: key.type for key in made}
        return [self.answer.over(node) for node in nodes]

    def _named(self, node: exp.Expr) -> exp.Expr:
        """Return what a name after GROUP BY stands for: a column of the answer, or else what SELECT calls so."""
        if isinstance(node, exp.Column) and node.name.casefold() not in self.answer.columns:
            for item in self.query.expressions:
                if isinstance(item, exp.Alias) and item.alias.casefold() == node.name.casefold():
                    meant: exp.Expr = item.this
                    return meant
        return node

    def _windowed(self, node: exp.Expr) -> exp.Expression:
        """Return an expression over the names that are there after rows were gathered, its windows as columns."""
        tree, register = self.answer.over(node), self.register
        if self.keys is not None:
            tree = split(tree, [key.unnest() for key in self.keys], self._total)
        expression = output(register.plain(tree, self.answer.types), self.answer.types | register.types)
        self.answer.types |= register.types
        return expression

    def _total(self, node: exp.Expr) -> str:
        """Return the name of an aggregate of rows of the answer, a new one if it was not met before."""
        function = _TOTALS.get(type(node))
        inner = node.this
        distinct = isinstance(inner, exp.Distinct)
        if distinct and function is ops.Function.COUNT and len(inner.expressions) == 1:
            function, inner = ops.Function.COUNT_DISTINCT, inner.expressions[0]
        elif distinct:
            function = None
        odd = any(value for name, value in node.args.items() if name not in ("this", "big_int"))
        if function is None or odd:
            raise QueryRefused(f"{title(node)} is not computed on answers: use COUNT, SUM, AVG, MIN, MAX or MEDIAN.")
        star = inner is None or isinstance(inner, exp.Star)
        argument = None if star else output(inner, self.before)
        kind = None if argument is None else kind_of(argument, self.before)
        if function in _NUMBERS and kind not in (Type.DECIMAL, None):
            raise InvalidParameter(f"{function} works on numbers of the answer.")
        gather = self.answer.operations[-1]
        if not isinstance(gather, ops.Gather):
            raise TypeError
        earlier = next((t.name for t in gather.totals if (t.function, t.argument) == (function, argument)), None)
        name = earlier or f"a{len(gather.totals) + 1}"
        if earlier is None:
            whole = Type.INTEGER if function in (ops.Function.COUNT, ops.Function.COUNT_DISTINCT) else Type.DECIMAL
            made = (kind or Type.DECIMAL) if function in (ops.Function.MIN, ops.Function.MAX) else whole
            self.answer.operations[-1] = replace(
                gather, totals=(*gather.totals, ops.Total(name, function, argument, made))
            )
            self.answer.types[name] = made
        return name

    def _condition(self, part: str) -> exp.Expression | None:
        clause = self.query.args.get(part)
        if clause is None:
            return None
        if part == "having" and (self.keys is None or has_window(clause.this)):
            raise QueryRefused("HAVING goes with GROUP BY, and without OVER (…): use WHERE, or QUALIFY.")
        return truth(self._later(clause.this), self.answer.types)

    def _later(self, node: exp.Expr) -> exp.Expression:
        """Return an expression in which names given by SELECT stand for what they name; columns come first."""
        if isinstance(node, exp.Column) and not node.table and node.name.casefold() in self.named:
            return self.named[node.name.casefold()]
        aliases = {item.alias.casefold(): item.this for item in self.query.expressions if isinstance(item, exp.Alias)}
        own = (self.named.keys() - self.answer.columns.keys()) & aliases.keys()

        def change(part: exp.Expr) -> exp.Expr:
            if isinstance(part, exp.Column) and not part.table and part.name.casefold() in own:
                return exp.Paren(this=aliases[part.name.casefold()].copy())
            return part

        return self._windowed(changed(node, change))


def _kind(tree: exp.Expr, types: Mapping[str, Type]) -> Type | None:
    inner = tree.unnest()
    return types.get(inner.name) if isinstance(inner, exp.Column) else kind_of(tree, types)
