"""Periods: which periods a query reads by its conditions alone, and the table with the rows of these periods.

The rows of other periods are left out before rows are taken from each person, so that nothing of them has any influence
on the answer: what the conditions were understood to say decides which periods are charged, and never what is read
beside them.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

from sqlglot import exp

from incrowd.core.calendar import PeriodCalendar
from incrowd.core.domain import Dates
from incrowd.core.schema import Outside
from incrowd.queries.language.interpretation import interpret
from incrowd.queries.language.normal import normal_text
from incrowd.queries.language.reading import read_query
from incrowd.queries.language.understanding import dated
from incrowd.queries.query import Catalog, DaysRead, Query, Relation

_MOST = 62
"""The most periods that a query is charged to one by one; one that reads more is charged to every period."""
_DAY = timedelta(days=1)


def reading_periods(sql: str, catalog: Catalog, max_groups: int | None = None) -> tuple[Catalog, DaysRead | None]:
    """Return the tables as a query reads them, and the periods that it reads alone; None where it may read them all.

    A query that names one table once is restricted, where its conditions on the deciding column leave days that are
    known from the query and the declarations.

    >>> from incrowd.core.calendar import Every
    >>> from incrowd.core.domain import Type
    >>> from incrowd.core.schema import Column, Schema
    >>> months = PeriodCalendar("day", Every.MONTH, "2025-01", "2025-12")
    >>> stays = Relation("stays", Schema((Column("day", type=Type.DATE),)), "stays", calendar=months)
    >>> text = "SELECT COUNT(*) FROM stays WHERE day >= '2025-03-01' AND day < DATE '2025-04-01'"
    >>> reading_periods(text, Catalog((stays,)))[1].periods
    ('2025-03',)
    >>> reading_periods("SELECT COUNT(*) FROM stays", Catalog((stays,)))[1] is None
    True
    """
    if all(relation.period is None for relation in catalog.relations):
        return catalog, None
    relation = _alone(read_query(dated(normal_text(sql), catalog)), catalog)
    if relation is None or relation.calendar is None or not _exact(relation, relation.calendar):
        return catalog, None
    whole = _restricted(catalog, relation, _reading(relation.calendar, relation.calendar.labels[:1]))
    understood = interpret(sql, whole, max_groups)
    days = _days(understood, relation.calendar) if isinstance(understood, Query) else None
    return (catalog, None) if days is None else (_restricted(catalog, relation, days), days)


def _alone(query: exp.Expr, catalog: Catalog) -> Relation | None:
    """Return the one table that a query reads once, where it has periods."""
    tables = list(query.find_all(exp.Table))
    if len(tables) != 1:
        return None
    named = (relation for relation in catalog.relations if relation.name.casefold() == tables[0].name.casefold())
    relation = next(named, None)
    return None if relation is None or relation.period is None else relation


def first_period(relation: Relation) -> Relation | None:
    """Return a table of which the first period alone is read; None where queries of some periods read none apart."""
    if not relation.by_period or relation.calendar is None:
        return None
    return replace(relation, ready=False, days=_reading(relation.calendar, relation.calendar.labels[:1]))


def _restricted(catalog: Catalog, relation: Relation, days: DaysRead) -> Catalog:
    restricted = replace(relation, ready=False, days=days)
    return Catalog(tuple(restricted if other is relation else other for other in catalog.relations))


def _exact(relation: Relation, calendar: PeriodCalendar) -> bool:
    """Whether no row of another period, or without a date, is moved to a day of a period by its column's rules."""
    column = relation.schema[calendar.decides]
    if column.fill is not None:
        return False
    if not isinstance(column.domain, Dates) or column.rule_outside in (Outside.DROP, Outside.OTHER):
        return True
    low, high = column.domain.bounds
    first, behind = calendar.days(calendar.first)[0], calendar.days(calendar.last)[1]
    return (low is None or low <= first) and (high is None or high >= behind - _DAY)


def _days(query: Query, calendar: PeriodCalendar) -> DaysRead | None:
    """Return the periods of the days that a query leaves; None of days that are unknown, or in no period."""
    if len(query.blocks) != 1 or not query.blocks[0].days:
        return None
    days = [day for day in query.blocks[0].days if isinstance(day, date)]
    periods = calendar.covering(min(days), max(days) + _DAY) if len(days) == len(query.blocks[0].days) else None
    if not periods or len(periods) > _MOST or len(periods) == calendar.size:
        return None
    return _reading(calendar, periods)


def _reading(calendar: PeriodCalendar, periods: tuple[str, ...]) -> DaysRead:
    return DaysRead(calendar.decides, calendar.days(periods[0])[0], calendar.days(periods[-1])[1], periods)
