"""Periods: which periods a query reads by its WHERE alone, and the table with the rows of these periods.

The rows of other periods are left out before rows are taken from each person, so that nothing of them has any influence
on the answer: what WHERE was understood to say decides which periods are charged, and never what is read beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta

from sqlglot import exp

from incrowd.core.calendar import Calendar
from incrowd.core.domain import Type
from incrowd.queries.language.normal import normal_text
from incrowd.queries.language.reading import read_query
from incrowd.queries.language.trees import conjuncts
from incrowd.queries.language.understanding import dated
from incrowd.queries.query import Catalog, DaysRead, Relation

Days = tuple[date, date]
"""The first day of a range, and the first day behind it."""
_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.EQ: exp.EQ,
}
_DAY = timedelta(days=1)


def reading_periods(sql: str, catalog: Catalog) -> tuple[Catalog, DaysRead | None]:
    """Return the tables as a query reads them, and the periods that it reads alone; None where it may read them all.

    Only one SELECT from one table is restricted, by comparisons of the deciding column with constants.

    >>> from incrowd.core.calendar import Every
    >>> from incrowd.core.schema import Column, Schema
    >>> months = Calendar("day", Every.MONTH, "2025-01", "2025-12")
    >>> stays = Relation("stays", Schema((Column("day", type=Type.DATE),)), "stays", calendar=months)
    >>> text = "SELECT COUNT(*) FROM stays WHERE day >= '2025-03-01' AND day < DATE '2025-04-01'"
    >>> reading_periods(text, Catalog((stays,)))[1].periods
    ('2025-03',)
    >>> reading_periods("SELECT COUNT(*) FROM stays WHERE day >= '2025-03-01'", Catalog((stays,)))[1] is None
    True
    """
    if all(relation.calendar is None for relation in catalog.relations):
        return catalog, None
    query = read_query(dated(normal_text(sql), catalog))
    relation = _alone(query, catalog)
    days = None if relation is None else _days(query, relation)
    if relation is None or days is None:
        return catalog, None
    restricted = replace(relation, ready=False, days=days)
    others = (restricted if other is relation else other for other in catalog.relations)
    return Catalog(tuple(others)), days


def _alone(query: exp.Expr, catalog: Catalog) -> Relation | None:
    """Return the one table that one SELECT reads, where it has periods."""
    tables, selects = list(query.find_all(exp.Table)), list(query.find_all(exp.Select, exp.SetOperation))
    if len(tables) != 1 or len(selects) != 1:
        return None
    named = (relation for relation in catalog.relations if relation.name.casefold() == tables[0].name.casefold())
    relation = next(named, None)
    return None if relation is None or relation.calendar is None else relation


def _days(query: exp.Expr, relation: Relation) -> DaysRead | None:
    calendar, where = relation.calendar, query.args.get("where")
    if calendar is None or where is None or relation.schema[calendar.decides].type is not Type.DATE:
        return None
    first, behind = date.min, date.max
    for low, high in _ranges(where.this, calendar):
        first, behind = max(first, low), min(behind, high)
    periods = calendar.covering(first, behind)
    if not periods:
        return None
    return DaysRead(calendar.decides, calendar.days(periods[0])[0], calendar.days(periods[-1])[1], periods)


def _ranges(where: exp.Expr, calendar: Calendar) -> Iterator[Days]:
    """Yield the days that each condition on the deciding column alone leaves; other conditions leave all."""
    for node in conjuncts(where):
        part = node.unnest()
        if isinstance(part, exp.Between):
            ends = _constant(part.args["low"]), _constant(part.args["high"])
            if _decides(part.this, calendar) and ends[0] and ends[1] and not part.args.get("symmetric"):
                yield ends[0], _after(ends[1])
        elif type(part) in _MIRRORED:
            left, right = part.this, part.expression
            kind = type(part) if _decides(left, calendar) else _MIRRORED[type(part)]
            column, value = (left, _constant(right)) if _decides(left, calendar) else (right, _constant(left))
            if _decides(column, calendar) and value is not None:
                yield _range(kind, value)


def _range(kind: type[exp.Expr], value: date) -> Days:
    first = value if kind in (exp.GTE, exp.EQ) else _after(value) if kind is exp.GT else date.min
    behind = value if kind is exp.LT else _after(value) if kind in (exp.LTE, exp.EQ) else date.max
    return first, behind


def _after(day: date) -> date:
    return day + _DAY if day < date.max else day


def _decides(node: exp.Expr, calendar: Calendar) -> bool:
    """Whether a tree is the deciding column, bare."""
    plain = node.unnest()
    return isinstance(plain, exp.Column) and plain.name.casefold() == calendar.decides.casefold()


def _constant(node: exp.Expr) -> date | None:
    """Return a day that is written out; None for anything else."""
    plain = node.unnest()
    if isinstance(plain, exp.Cast) and plain.to.is_type(exp.DataType.Type.DATE):
        plain = plain.this
    try:
        return date.fromisoformat(plain.this) if isinstance(plain, exp.Literal) and plain.is_string else None
    except ValueError:
        return None
