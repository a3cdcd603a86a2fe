"""Joins: sources put beside each other, with a bound on how many rows one unit can then change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from incrowd.core.unit import Unit
from incrowd.errors import InvalidParameter, MixedUnits, QuestionRefused
from incrowd.queries.language.expressions.function import condition
from incrowd.queries.language.expressions.table import binder
from incrowd.queries.language.row_query import RowQuery, Scope, first_rows
from incrowd.queries.language.trees import column, conjuncts, every, operation, subquery
from incrowd.queries.question import PERSON

MOST_PAIRS = 10_000
"""The most rows of one unit that a join may make."""

Pair = tuple[exp.Column, exp.Column]


@dataclass(frozen=True)
class JoinedRows:
    """Sources after FROM: the first, the joins, how columns are found in them, and the rows that they make together.

    `used` are the conditions after WHERE on which sources without ON are joined.  `padded` is a public table from which
    LEFT JOIN leads to a private one: its rows without a partner are not among the rows.
    """

    source: exp.Expr
    joins: tuple[exp.Join, ...]
    scope: Scope
    rows: RowQuery
    carrier: str = "t1"
    used: tuple[exp.Expr, ...] = ()
    padded: str | None = None

    @property
    def person(self) -> exp.Column:
        """The column that tells people apart, of the first private source."""
        return column(PERSON, self.carrier)


def join_rows(
    first: RowQuery, others: Sequence[tuple[exp.Join, RowQuery]], where: Sequence[exp.Expr] = ()
) -> JoinedRows:
    """Return sources joined from left to right.

    A private row meets at most `most` rows of a public table, as many as share the values it is joined on: so one
    unit changes that many times as many rows.  Two private tables are joined on the person: of a person with at most m
    rows in one and n in the other there are at most m·n pairs, and no pair holds rows of two people.

    Each dataset has a guarantee of its own, for somebody who leaves it and stays in all others.  A pair vanishes with
    either of its rows, so that too takes away m·n pairs at most.  After LEFT JOIN of another dataset it would turn
    pairs into rows without a partner, which are rows in addition: that is refused.
    """
    joined = JoinedRows(subquery(first.query, "t1"), (), Scope((("t1", first),)), first)
    for place, (join, rows) in enumerate(others, 2):
        join, used = _with_condition(join, joined, (rows, f"t{place}"), where)  # noqa: PLW2901 (the join goes on)
        joined = replace(_beside(joined, join, rows, f"t{place}"), used=(*joined.used, *used))
    return joined


def _with_condition(
    join: exp.Join, joined: JoinedRows, what: tuple[RowQuery, str], where: Sequence[exp.Expr]
) -> tuple[exp.Join, list[exp.Expr]]:
    """Return a join without ON under those conditions after WHERE that make its columns equal to those before it."""
    bare = not join.args.get("on") and not join.args.get("using") and not join.args.get("side")
    if not bare or join.args.get("kind") not in (None, "", "CROSS") or join.args.get("method"):
        return join, []
    rows, name = what
    scope = Scope((*joined.scope.sources, (name, rows)), joined.scope.shared, joined.scope.optional)
    used = [part for part in where if _known_pair(part, scope, name)]
    moved: exp.Join = join.copy()
    moved.set("kind", None)
    moved.set("on", every([part.copy() for part in used]))
    return moved, used


def _known_pair(part: exp.Expr, scope: Scope, name: str) -> bool:
    try:
        return _pair(part.unnest(), scope, name) is not None
    except (InvalidParameter, QuestionRefused):  # a column of a source that comes later, or none: told where it stands
        return False


def same_unit(left: RowQuery, right: RowQuery) -> Unit:
    """Return the unit of privacy of both, which must agree."""
    if left.unit is None or right.unit is None:
        raise TypeError
    if (left.unit.kind, left.unit.adjacency) != (right.unit.kind, right.unit.adjacency):
        raise MixedUnits("these tables protect different units of privacy: ask about each of them alone.")
    return left.unit


def _beside(joined: JoinedRows, join: exp.Join, rows: RowQuery, name: str) -> JoinedRows:
    side, kind = (join.args.get("side") or ""), (join.args.get("kind") or "")
    odd = [part for part, value in join.args.items() if value and part not in ("this", "on", "using", "side", "kind")]
    if odd or side not in ("", "LEFT") or kind not in ("", "INNER", "OUTER"):
        raise QuestionRefused("tables are joined by JOIN … ON … = …, or LEFT JOIN from the private table.")
    left = side == "LEFT"
    if left and not joined.rows.private:
        if not rows.private or len(joined.scope.sources) > 1:
            raise QuestionRefused("LEFT JOIN goes from the private table to the other: start with the private table.")
        inner: exp.Join = join.copy()
        inner.set("side", None)
        return replace(_beside(joined, inner, rows, name), padded="t1")
    scope = Scope(
        (*joined.scope.sources, (name, rows)),
        joined.scope.shared | {str(item.name).casefold() for item in join.args.get("using") or ()},
        joined.scope.optional | ({name} if left else frozenset()),
    )
    on, pairs = _conditions(join, joined, replace(scope, optional=joined.scope.optional), name)
    if joined.rows.private and rows.private:
        return _people(joined, (join, on), (rows, name), scope)
    if not joined.rows.private and not rows.private:
        raise QuestionRefused("start with the private table, then join the public ones to it.")
    public = rows if joined.rows.private else joined.rows
    keys = [(right if joined.rows.private else left_).name for left_, right in pairs]
    limited, many = _limited(public, keys)
    private = joined.rows if joined.rows.private else rows
    total = replace(
        private,
        most=_multiplied(private.most, many),
        tables=(*joined.rows.tables, *rows.tables),
        relation=None,
    )
    first = joined.source if joined.rows.private else subquery(limited, "t1")
    second = limited if joined.rows.private else rows.query
    carrier = joined.carrier if joined.rows.private else name
    joins = (*joined.joins, _join(second, name, on, side))
    return JoinedRows(first, joins, scope, total, carrier, padded=joined.padded)


def _people(joined: JoinedRows, how: tuple[exp.Join, exp.Expr], what: tuple[RowQuery, str], scope: Scope) -> JoinedRows:
    (join, on), (rows, name) = how, what
    unit = same_unit(joined.rows, rows)
    same = any(
        {side.name for side in (part.this, part.expression)} == {PERSON}
        for part in on.find_all(exp.EQ)
        if isinstance(part.this, exp.Column) and isinstance(part.expression, exp.Column)
    )
    if unit.column is None or not same:
        raise QuestionRefused("private tables are joined on the person ID column: ON a.person = b.person AND ….")
    if join.args.get("side") and len({*joined.rows.datasets, *rows.datasets}) > 1:
        raise QuestionRefused("LEFT JOIN, NOT IN (SELECT …) and NOT EXISTS need one dataset: use JOIN, or IN.")
    total = replace(
        joined.rows,
        most=_multiplied(joined.rows.most, rows.most),
        tables=(*joined.rows.tables, *rows.tables),
        datasets=(*joined.rows.datasets, *rows.datasets),
    )
    joins = (*joined.joins, _join(rows.query, name, on, join.args.get("side") or ""))
    return JoinedRows(joined.source, joins, scope, total, joined.carrier, padded=joined.padded)


def _conditions(join: exp.Join, joined: JoinedRows, scope: Scope, name: str) -> tuple[exp.Expr, list[Pair]]:
    """Return the condition of a join, bound, and the pairs of columns that it makes equal."""
    mean = binder(scope.resolve)
    parts = [part.unnest() for part in conjuncts(join.args.get("on"))]
    for item in join.args.get("using") or ():
        lefts = [
            source
            for source, rows in joined.scope.sources
            if any(f.name.casefold() == item.name.casefold() for f in rows.fields)
        ]
        if not lefts:
            raise InvalidParameter(f"USING needs a column that both sides have: {item.name!r} is not on the left.")
        parts.append(exp.EQ(this=column(item.name, lefts[0]), expression=column(item.name, name)))
    trees, pairs = [], []
    for part in parts:
        pair = _pair(part, scope, name)
        if pair is not None:
            pairs.append(pair)
        if pair is not None and all(scope.find(side)[1].person for side in pair):
            sources = [scope.find(side)[0] for side in pair]
            if len({scope.find(side)[1].extent.type for side in pair}) > 1:
                raise InvalidParameter("the columns that tell people apart are of different types in these tables.")
            trees.append(operation(exp.EQ, *(column(PERSON, source) for source in sources)))
        else:
            trees.append(condition(mean(part), "ON").tree)
            if pair is not None:
                _check_alike(pair, scope)
    on = every(trees)
    if on is None or not pairs:
        raise QuestionRefused("a join needs ON a.column = b.column: without it, every row would meet every other.")
    return on, pairs


def _pair(part: exp.Expr, scope: Scope, name: str) -> Pair | None:
    """Return the column of the left side and that of the right side which a condition makes equal."""
    if (
        not isinstance(part, exp.EQ)
        or not isinstance(part.this, exp.Column)
        or not isinstance(part.expression, exp.Column)
    ):
        return None
    sides = {scope.find(side)[0] == name: side for side in (part.this, part.expression)}
    return (sides[False], sides[True]) if len(sides) == 2 else None


def _check_alike(pair: Pair, scope: Scope) -> None:
    """Raise if two columns are equal in another sense than that in which rows were counted.

    Different whole numbers beyond 2^53 are one decimal: a row would meet more rows of a public table than share its
    value.
    """
    kinds = {scope.find(side)[1].extent.type for side in pair}
    if len(kinds) > 1:
        raise InvalidParameter(f"{pair[0].name!r} and {pair[1].name!r} have different types: use CAST.")


def _limited(rows: RowQuery, keys: list[str]) -> tuple[exp.Query, int]:
    """Return a public table with at most as many rows for each value joined on as were counted, and that number."""
    if rows.relation is None:
        raise QuestionRefused("a public table is joined as it is, not inside a subquery: filter in WHERE.")
    key_names = frozenset(key.casefold() for key in keys)
    counts = [
        many
        for columns, many in rows.relation.most.items()
        if frozenset(name.casefold() for name in columns) <= key_names
    ]
    if not counts:
        raise QuestionRefused(f"rows of {rows.relation.name!r} per joined value are not bounded: join on its key.")
    many = min(counts)
    names = [item.name for item in rows.fields]
    by = [item for item in names if item.casefold() in key_names]
    return first_rows(rows.query, by, [column(item) for item in names], many), many


def _multiplied(most: int, many: int) -> int:
    if many > 1 and most * many > MOST_PAIRS:
        raise QuestionRefused(
            f"a person could have {most * many:,} joined rows, above {MOST_PAIRS:,}: GROUP BY the person."
        )
    return most * many


def _join(query: exp.Query, name: str, on: exp.Expr, side: str) -> exp.Join:
    return exp.Join(this=subquery(query, name), on=on.copy(), side=side or None)
