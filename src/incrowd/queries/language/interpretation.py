"""Interpretation: what SQL asks, one query or several whose answers meet, and what is made of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.errors import InvalidParameter, QueryRefused
from incrowd.queries import operations as ops
from incrowd.queries.language.expressions.table import refusal
from incrowd.queries.language.joined_answers import Names, apart, join_sheets, named
from incrowd.queries.language.normal import normal_text
from incrowd.queries.language.outer import AnswerSheet, gathers, is_answer, output_types, shown_columns, subquery_of
from incrowd.queries.language.reading import branches, read_query
from incrowd.queries.language.row_query import Context
from incrowd.queries.language.trees import sources
from incrowd.queries.language.understanding import (
    MOST_GROUPS,
    count_groups,
    cut_of,
    dated,
    query_of,
    understanding,
    used_names,
)
from incrowd.queries.query import Catalog, Combination, Interpreted, OutputColumn, Query

MOST_PARTS = 30  # answers of a query share its ε
_DEEPEST = 40
"""The most queries that one is made of, and how often one is built on another."""


def interpret(sql: str, catalog: Catalog, max_groups: int | None = None) -> Interpreted:
    """Return what a text asks of the tables of a catalog: one query, or several whose answers meet.

    Preconditions: as those of `understand`.

    >>> from incrowd.core.domain import Type
    >>> from incrowd.core.schema import Column, Schema
    >>> from incrowd.queries.query import Relation
    >>> births = Relation("births", Schema((Column("smokes", type=Type.BOOLEAN),)), dataset="births")
    >>> count = "SELECT COUNT(*) AS n FROM births"
    >>> asked = interpret(f"{count} WHERE smokes UNION ALL {count}", Catalog((births,)))
    >>> [part.text for part in asked.parts]
    ['SELECT COUNT(*) AS n FROM births WHERE smokes', 'SELECT COUNT(*) AS n FROM births']
    """
    with understanding(max_groups):
        text = dated(normal_text(sql), catalog)
        query = _aliased(read_query(text))
        answers = _Answers(Context(catalog, used_names(query)))
        if isinstance(query, exp.Select) and not answers.meet(query):
            return query_of(text, query, catalog, max_groups)
        return _combined(text, query, answers, max_groups)


@dataclass(frozen=True)
class _Answers:
    """Which of the queries after FROM and JOIN are queries of their own; each is looked at once."""

    context: Context
    cached: dict[int, bool] = field(default_factory=dict)

    def inside(self, query: exp.Select) -> list[exp.Expr | None]:
        """Return the query that each source of a query is, None where it is something else."""
        return [
            inner if inner is not None and self._is_answer(inner) else None
            for inner in map(subquery_of, sources(query))
        ]

    def _is_answer(self, query: exp.Expr) -> bool:
        if id(query) not in self.cached:
            self.cached[id(query)] = is_answer(query, self.context)
        return self.cached[id(query)]

    def meet(self, query: exp.Expr) -> bool:
        """Return whether several answers meet in a query: below each other, joined, or inside of expressions."""
        if not isinstance(query, exp.Select):
            return True
        if query.find(exp.Subquery) is None:
            return False
        if any(True for _ in scalars(query)):
            return True
        inner_queries = [inner for inner in self.inside(query) if inner is not None]
        return bool(inner_queries) and (bool(query.args.get("joins")) or self.meet(inner_queries[0]))

    def leaves(self, query: exp.Expr) -> Iterator[str]:
        """Yield the texts of the queries that read rows, as often as they occur."""
        if not isinstance(query, exp.Select):
            for branch in branches(query):
                yield from self.leaves(branch)
            return
        for scalar in scalars(query):
            yield from self.leaves(subquery_of(scalar) or scalar)
        inner_queries = [inner for inner in self.inside(query) if inner is not None]
        for inner in inner_queries:
            yield from self.leaves(inner)
        if not inner_queries:
            yield query.sql("duckdb")


def scalars(query: exp.Select) -> Iterator[exp.Subquery]:
    """Yield the queries inside of the expressions of a SELECT; those after IN are none."""
    stack: list[exp.Expr] = [
        part
        for name in ("expressions", "where", "group", "having", "qualify", "order")
        for part in (query.args.get(name) if name == "expressions" else [query.args.get(name)]) or ()
        if part is not None
    ]
    while stack:
        node = stack.pop()
        if isinstance(node, exp.Subquery):
            yield node
        elif isinstance(node, exp.In):
            stack.extend(part for part in (node.this, *node.expressions))
        elif not isinstance(node, exp.Query | exp.Exists):
            stack.extend(node.iter_expressions())


def _aliased(query: exp.Select | exp.SetOperation) -> exp.Select | exp.SetOperation:
    """Return a tree in which a query with a name among the columns of SELECT has it as any other column has."""
    for select in query.find_all(exp.Select):
        for item in select.expressions:
            if isinstance(item, exp.Subquery) and item.alias:
                name = item.alias
                item.set("alias", None)
                item.replace(named(item.copy(), name))
    return query


def _combined(text: str, query: exp.Expr, answers: _Answers, max_groups: int | None) -> Combination:
    def ask(part: str) -> Query:
        tree = read_query(part)
        if not isinstance(tree, exp.Select):
            raise TypeError
        return query_of(part, tree, answers.context.catalog, max_groups)

    combiner = _Combiner(answers, ask, Counter(answers.leaves(query)))
    sheet = combiner.sheet(query)
    parts = tuple(combiner.parts.values())
    if _depth_of(sheet) > _DEEPEST:
        raise QueryRefused(f"answers are joined and computed with at most {_DEEPEST} times: split the query.")
    if len({part.datasets for part in parts}) > 1:
        raise QueryRefused("a query combines answers about the same datasets only: ask for each.")
    if sum(count_groups(part.keys) or 0 for part in parts) > MOST_GROUPS:
        raise QueryRefused(f"all answers together have at most {MOST_GROUPS:,} groups: group by coarser values.")
    return Combination(text, parts, sheet)


def _depth_of(sheet: ops.Sheet) -> int:
    """Return how many sheets lie on each other at most."""
    match sheet:
        case ops.StackedSheet(sheets=sheets):
            return 1 + max(map(_depth_of, sheets))
        case ops.JoinedSheet(left=left, right=right):
            return 1 + max(_depth_of(left), _depth_of(right))
        case ops.WorkedSheet(source=source):
            return 1 + _depth_of(source)
    return 1


@dataclass
class _Combiner:
    """What is known so far: the queries by their texts, and how often each query that reads rows occurs."""

    answers: _Answers
    ask: Callable[[str], Query]
    leaves: Counter[str]
    parts: dict[str, Query] = field(default_factory=dict)

    def sheet(self, query: exp.Expr) -> ops.Sheet:
        """Return what a query makes of answers."""
        if not isinstance(query, exp.Select):
            return self._stacked(query)
        inside, held = self.answers.inside(query), list(scalars(query))
        if not any(inside):
            return self._computed(query, held) if held else self._part(query)
        shared = any(self.leaves[text] > 1 for text in self.answers.leaves(query))
        if not shared and not self.answers.meet(query):
            return self._part(query)
        if not all(inside):
            raise QueryRefused(
                "answers join answers, not tables: leave out the join (a dashboard's series limit), or GROUP BY in "
                "both parts and join them ON a.key = b.key."
            )
        sheets = [self.sheet(inner) for inner in inside if inner is not None]
        names, source = join_sheets(query, sheets, self._parts)
        return self._worked(query, names, source, held)

    @property
    def _parts(self) -> tuple[Query, ...]:
        return tuple(self.parts.values())

    def _part(self, query: exp.Select) -> ops.PartSheet:
        """Return the answer to a query of its own; the same is asked once."""
        text = normal_text(query.sql("duckdb"))
        if text not in self.parts:
            if len(self.parts) == MOST_PARTS:
                raise QueryRefused(f"a query is made of at most {MOST_PARTS} answers: ask them in a batch.")
            self.parts[text] = self.ask(text)
        part = self.parts[text]
        types = zip(part.outputs, output_types(part), strict=True)
        columns = tuple(ops.SheetColumn(output.name, kind) for output, kind in types)
        return ops.PartSheet(list(self.parts).index(text), columns, _determining(part))

    def _stacked(self, query: exp.Expr) -> ops.Sheet:
        """Return answers below each other, and their order and cut."""
        sheets = tuple(self.sheet(branch) for branch in branches(query))
        first = sheets[0].columns
        if len({len(column.columns) for column in sheets}) > 1:
            raise InvalidParameter("all sides of UNION ALL need the same number of columns.")
        names = [column.name.casefold() for column in first]
        if len(set(names)) < len(names):
            raise InvalidParameter("the columns of an answer need different names: use AS in the first SELECT.")
        columns = tuple(
            ops.SheetColumn(column.name, _one_type([sheet.columns[at].type for sheet in sheets], at))
            for at, column in enumerate(first)
        )
        stacked = ops.StackedSheet(sheets, columns)
        if not any(query.args.get(part) for part in ("order", "limit", "offset")):
            return stacked
        every = exp.Select(expressions=[exp.Star()], order=_ordered(query, columns))
        return self._worked(every, Names.of(stacked), stacked, [], cut_of(query))

    def _computed(self, query: exp.Select, held: list[exp.Subquery]) -> ops.Sheet:
        """Return what is computed from numbers of rows and from other answers: the former are asked alone."""
        if any(
            subquery.find_ancestor(exp.Where, exp.Group, exp.AggFunc)
            for subquery in held
            if subquery.parent_select is query
        ):
            raise refusal(held[0])
        if query.args.get("from_") is None:
            return self._worked(query, Names(()), ops.RowSheet(), held)
        both = apart(query, held, self.answers.context)
        source = self._part(both.inner)
        return self._worked(both.outer, Names.of(source), source, held, cut_of(query))

    def _worked(
        self, query: exp.Select, names: Names, source: ops.Sheet, held: list[exp.Subquery], cut: ops.Take | None = None
    ) -> ops.Sheet:
        """Return a SELECT over a sheet; each query in its expressions stands beside all rows."""
        texts = list(dict.fromkeys(subquery.sql("duckdb") for subquery in held))
        named_columns = list(names.columns)
        for place, text in enumerate(texts):
            single = self.sheet(_query_of(next(subquery for subquery in held if subquery.sql("duckdb") == text)))
            if len(single.columns) != 1 or not ops.is_single(single, self._parts):
                raise QueryRefused("a query inside an expression gives one number: leave GROUP BY out, or JOIN it.")
            named_columns.append((_scalar_name(place), single.columns[0].name))
            source = ops.JoinedSheet(source, single, (), padded=True)

        def change(node: exp.Expr) -> exp.Expr:
            here = isinstance(node, exp.Subquery) and node.sql("duckdb") in texts
            return exp.column(_scalar_name(texts.index(node.sql("duckdb")))) if here else node

        if texts and gathers(query):
            raise QueryRefused("aggregates of answers do not mix with scalar queries: put them into FROM ( … ).")
        plain = names.plain(query).transform(change)
        if not isinstance(plain, exp.Select):
            raise TypeError
        columns = {key: (name, exp.column(ops.column_name(at))) for at, (key, name) in enumerate(named_columns)}
        types = {ops.column_name(at): column.type or Type.DECIMAL for at, column in enumerate(source.columns)}
        operations: list[ops.Operation] = []
        outputs = shown_columns(AnswerSheet(dict(columns), types, operations), plain, cut or cut_of(query))
        return ops.WorkedSheet(source, tuple(operations), tuple(map(_bare, outputs)))


def _bare(output: OutputColumn) -> OutputColumn:
    """Return an output without the brackets around it."""
    inner = output.expression.unnest()
    return replace(output, expression=inner) if isinstance(inner, exp.Column) else output


def _scalar_name(place: int) -> str:
    return f"query {place}"


def _query_of(scalar: exp.Subquery) -> exp.Expr:
    inner = subquery_of(scalar)
    if inner is None:
        raise refusal(scalar)
    return inner


def _determining(query: Query) -> frozenset[int] | None:
    """Return the places of columns that no two rows of an answer share all values of, if it shows such columns."""
    gathers = [operation for operation in query.operations if isinstance(operation, ops.Gather)]
    if query.totals and not gathers:
        return None
    names = {key.name for key in (gathers[-1].keys if gathers else query.keys)}
    inner = [output.expression.unnest() for output in query.outputs]
    places = {tree.name: at for at, tree in enumerate(inner) if isinstance(tree, exp.Column)}
    return frozenset(places[name] for name in names) if names <= places.keys() else None


_NUMBERS = (Type.INTEGER, Type.DECIMAL)


def _one_type(kinds: list[Type | None], at: int) -> Type | None:
    """Return the type that a column has on all sides of UNION ALL, or refuse different ones."""
    types = {kind for kind in kinds if kind is not None}
    if types and types <= set(_NUMBERS):
        return Type.INTEGER if types == {Type.INTEGER} else Type.DECIMAL
    if len(types) > 1:
        raise InvalidParameter(f"column {at + 1} has different types in UNION ALL: use CAST(x AS TEXT).")
    return next(iter(types), None)


def _ordered(query: exp.Expr, columns: tuple[ops.SheetColumn, ...]) -> exp.Expr | None:
    """Return the order of answers below each other, in which a number is a place of a column."""
    order = query.args.get("order")
    if order is None:
        return None
    ordered: exp.Expr = order.copy()
    for term in ordered.expressions:
        inner = term.this
        if isinstance(inner, exp.Literal) and not inner.is_string:
            place = int(inner.name) if inner.name.isdigit() else 0
            if not 1 <= place <= len(columns):
                raise InvalidParameter(f"a number after ORDER BY points at one of the {len(columns)} columns.")
            term.set("this", exp.column(exp.to_identifier(columns[place - 1].name, quoted=True)))
    return ordered
