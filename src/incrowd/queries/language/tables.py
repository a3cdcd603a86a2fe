"""Tables: their rows, each value brought into what was declared about its column, and so many rows of a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import pyarrow as pa
from sqlglot import exp

from incrowd.core.calendar import PeriodCalendar
from incrowd.core.domain import Categories, Dates, Numbers, Type
from incrowd.core.reading import parse
from incrowd.core.schema import MAX_LENGTH, OTHER, Column, Missing, Outside, Role
from incrowd.engines.sql.engine import by_period_name, ready_name
from incrowd.errors import QueryRefused
from incrowd.queries.language import trees as sql
from incrowd.queries.language.domain import (
    FIRST,
    LAST,
    BoundTree,
    Constant,
    ExpressionDomain,
    among,
    days,
    texts,
    truth,
)
from incrowd.queries.language.expressions.casts import GREATEST_DOUBLE
from incrowd.queries.language.row_query import (
    PLACE,
    TWIN,
    Context,
    Field,
    RowQuery,
    first_rows,
    own_rows,
    with_owned,
)
from incrowd.queries.query import PERSON, Block, Catalog, Relation

BASE = "t0"
"""The name of a table as it was before its columns were brought into what was declared."""
_PERIOD = "_period"
"""The column with the first day of the period in which a row lies, as it stands in the table."""


@dataclass(frozen=True)
class CleanColumn:
    """What a column means, and the conditions on which its row takes part at all."""

    meaning: BoundTree
    keeps: tuple[exp.Expr, ...] = ()


@dataclass(frozen=True, eq=False)
class _Declared:
    """A column that is the same if it is the same object: comparing all that it declares would take long."""

    column: Column

    def __hash__(self) -> int:
        return id(self.column)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Declared) and self.column is other.column


def clean_column(declared: Column) -> CleanColumn:
    """Return a column after its own rules for missing values and for values outside its domain.

    The engine delivers whole numbers as BIGINT, decimals as DOUBLE, dates as DATE, truth values as BOOLEAN and texts
    as VARCHAR, NULL where a value is missing or cannot be read.  Infinite and undefined decimals count as missing, as
    do dates outside the years 1 to 9999.  A value outside the domain whose rule is `other` is the text other; where
    the type has no such value, it is missing.

    >>> from incrowd.core.hierarchy.flat import Flat
    >>> clean_column(Column("age", type=Type.INTEGER, hierarchy=Flat(Numbers(0, 99)))).meaning.extent.ends
    (Fraction(0, 1), Fraction(99, 1))
    """
    return _clean_once(_Declared(declared))


@lru_cache(maxsize=1024)
def _clean_once(identity: _Declared) -> CleanColumn:
    """Return a column after its rules; nobody changes the trees in it, so queries share them."""
    declared = identity.column
    raw = sql.column(declared.name, BASE)
    absent = _absent(raw, declared)
    outside = _outside(raw, declared)
    keeps: list[exp.Expr] = [exp.Not(this=sql.operand(absent))] if declared.missing == Missing.DROP else []
    if outside is not None and declared.rule_outside is Outside.DROP:
        keeps.append(exp.Or(this=sql.operand(absent), expression=exp.Not(this=sql.operand(outside))))
    branches = [*_filled(absent, declared), *_moved(outside, declared)]
    tree = sql.case(*branches, default=raw) if branches else raw
    return CleanColumn(BoundTree(tree, _extent(declared, open_ended=outside is not None)), tuple(keeps))


def value_of(written: str, kind: Type) -> Constant:
    """Return a value that was declared as text, in its type.

    >>> value_of("5", Type.INTEGER), value_of("true", Type.BOOLEAN)
    (5, True)
    """
    stored = parse(written, kind)
    if kind is Type.BOOLEAN:
        return stored == "true"
    value: Any = pa.scalar(stored, kind.storage).as_py()
    constant_value: Constant = value
    return constant_value


def _absent(raw: exp.Expr, declared: Column) -> exp.Expr:
    """Return the condition that nothing usable is there."""
    gone = sql.missing(raw)
    if declared.type is Type.DECIMAL:
        endless = sql.operation(exp.GT, exp.Abs(this=raw.copy()), sql.constant(GREATEST_DOUBLE))
        return exp.Or(this=gone, expression=endless)
    if declared.type is Type.DATE:
        return exp.Or(
            this=gone, expression=exp.Not(this=sql.operand(sql.between(raw, sql.constant(FIRST), sql.constant(LAST))))
        )
    return gone


def _inside(declared: Column) -> ExpressionDomain:
    """Return the domain of a column's domain."""
    domain, kind = declared.domain, declared.type
    if isinstance(domain, Categories):
        return among(kind, [value_of(value, kind) for value in domain.values], optional=True)
    if isinstance(domain, Numbers):
        return ExpressionDomain(kind, *domain.bounds)
    if isinstance(domain, Dates):
        low, high = domain.bounds
        return ExpressionDomain(kind, Fraction(days(low or FIRST)), Fraction(days(high or LAST)))
    if kind is Type.BOOLEAN:
        return truth(optional=True)
    # Plans that were certified before texts had a length stay the same: only another length than usual is told.
    return texts(None if declared.max_length == MAX_LENGTH else declared.max_length, optional=True)


def _outside(raw: exp.Expr, declared: Column) -> exp.Expr | None:
    """Return the condition that a present value is outside the domain, or None if none can be."""
    domain, kind = declared.domain, declared.type
    if isinstance(domain, Categories):
        if kind is Type.BOOLEAN and len(domain.values) == 2:
            return None
        values = [sql.constant(value_of(value, kind)) for value in domain.values]
        return exp.Not(this=exp.In(this=raw.copy(), expressions=values))
    if not isinstance(domain, Numbers | Dates) or not domain.closed:
        return None
    low, high = declared.stored_bounds
    sides = [sql.operation(exp.LT, raw, sql.constant(low))] if low is not None else []
    sides += [sql.operation(exp.GT, raw, sql.constant(high))] if high is not None else []
    return sides[0] if len(sides) == 1 else exp.Or(this=sides[0], expression=sides[1])


def _filled(absent: exp.Expr, declared: Column) -> list[tuple[exp.Expr, exp.Expr]]:
    """Return what stands for a missing value."""
    if declared.fill is not None:
        return [(absent, sql.constant(value_of(declared.fill, declared.type)))]
    return [] if isinstance(absent, exp.Is) else [(absent, exp.Null())]


def _moved(outside: exp.Expr | None, declared: Column) -> list[tuple[exp.Expr, exp.Expr]]:
    """Return what stands for a value outside the domain."""
    if outside is None or declared.rule_outside is Outside.DROP:
        return []
    if declared.rule_outside is Outside.OTHER:
        return [(outside, sql.constant(OTHER) if declared.type is Type.TEXT else exp.Null())]
    raw = sql.column(declared.name, BASE)
    ends = zip(declared.stored_bounds, (exp.LT, exp.GT), strict=True)
    return [(sql.operation(kind, raw, sql.constant(end)), sql.constant(end)) for end, kind in ends if end is not None]


def _extent(declared: Column, *, open_ended: bool) -> ExpressionDomain:
    """Return what a column can be after its rules."""
    extent = replace(_inside(declared), optional=declared.missing != Missing.DROP and declared.fill is None)
    if not open_ended or declared.rule_outside is not Outside.OTHER:
        return extent
    if declared.type is Type.TEXT:
        declared_values = extent.values or ()
        values = among(Type.TEXT, (*declared_values, OTHER), optional=extent.optional)
        return values if OTHER in declared_values else replace(values, rest=OTHER)
    return replace(extent, optional=True)


_OTHER_UNIT = (
    "this dataset protects a person in a period, so a query reads the rows of one period: compare its day with "
    "constants in WHERE, such as day >= '2025-03-01' AND day < '2025-04-01'."
)
_TAKEN = "its name is used by the engine. Let the owner of the data rename it."
_IDENTIFIES = "it identifies people. Ask about other columns."
_DRAFTED = "what it can hold was drafted from the rows. Let the owner of the data name a public source for it."


def table_rows(relation: Relation, context: Context) -> RowQuery:
    """Return the rows of a table, each brought into what was declared, and at most `max_rows` of each person.

    They are read where an engine holds them ready, or made from the table as it is by the very tree that made those.
    """
    if not relation.askable:
        raise QueryRefused(
            _OTHER_UNIT
            if relation.calendar is not None
            else f"queries protect rows or people, and {relation.name!r} declares something else."
        )
    person = relation.unit.column if relation.private else None
    used = _used(relation, context)
    fields = [
        Field(item, clean.meaning.extent, block=0 if item == relation.period else None) for item, clean in used.items()
    ]
    if person is not None:
        fields.append(Field(person, ExpressionDomain(relation.schema[person].type, optional=False), person=True))
    return RowQuery(
        query=_rows(relation, used, [item.stored for item in fields]),
        fields=tuple(fields),
        tables=(relation.name,),
        unit=relation.unit if relation.private else None,
        person=None if person is None else relation.schema[person].type,
        most=relation.unit.max_rows if relation.private else 0,
        datasets=(relation.dataset,) if relation.dataset is not None else (),
        withheld=_withheld(relation),
        names=tuple(item for item in relation.schema.names if item.casefold() not in _withheld(relation)),
        relation=None if relation.private else relation,
        blocks=(Block(relation.name),) if relation.private else (),
    )


def ready_rows(relation: Relation) -> exp.Query:
    """Return the tree that makes of a table as it is the rows that queries read; it is the same for all of them.

    Which rows of a person take part is decided by those rows alone: `own_rows` takes the first by a hash of the person
    and of all columns that can be asked about.  Hence adding or removing a person changes the result by that person's
    rows only, of which there are at most `max_rows`.  Rows that do not say whose they are belong to nobody whom a bound
    could protect, and are left out.  Where the unit says what becomes of people with more rows, they are left out
    before that, with all their rows.

    Every rule that leaves out a row (for a missing value, or one outside its domain) looks at that row alone, and
    comes before.
    """
    person = relation.unit.column if relation.private else None
    used = _used(relation, Context(Catalog((relation,)), None))
    query = _clean(relation, used, person)
    if person is None:
        return query
    return own_rows(query, list(used), relation.unit.max_rows, _decimals(relation, used))


def rows_by_period(relation: Relation) -> exp.Query | None:
    """Return the tree that leaves of each person and period what can take part in a query; None where nothing decides.

    A query of some periods takes the rows of a person from these.  However many rows somebody has, it reads a bounded
    number of them, so its duration reveals no more than that.  Where people with more rows are left out, one row more
    than takes part is held, which says so.
    """
    person, day = relation.unit.column, relation.period
    used = _used(relation, Context(Catalog((relation,)), None))
    if not relation.private or person is None or day not in used or relation.calendar is None:
        return None
    first = sql.alias(_first_day(sql.column(day, BASE), relation.calendar), _PERIOD)
    ends = relation.calendar.days(relation.calendar.first)[0], relation.calendar.days(relation.calendar.last)[1]
    dated = sql.between(sql.column(day, BASE), *map(sql.constant, ends))  # others are in no period
    names, most = list(used), relation.unit.max_rows
    if relation.unit.more is None:
        query = _clean(replace(relation, days=None), used, person).select(first).where(dated)
        return own_rows(query, names, most, _decimals(relation, used), by=(PERSON, _PERIOD))
    columns = [sql.alias(sql.column(name, BASE), name) for name in dict.fromkeys((*names, person))]
    owner = sql.column(person, BASE)
    trees = [*columns, sql.alias(owner, PERSON), first]
    query = sql.select(trees, _table(relation.name), sql.every([sql.present(owner), dated]))
    return first_rows(query, [PERSON, _PERIOD], [sql.column(PERSON)], most + 1)


def _first_day(day: exp.Expr, calendar: PeriodCalendar) -> exp.Expr:
    unit = exp.Var(this=str(calendar.every).upper())
    return sql.cast(exp.TimestampTrunc(this=day, unit=unit), Type.DATE)


def _decimals(relation: Relation, used: Mapping[str, CleanColumn]) -> set[str]:
    """Return the columns that engines spell differently."""
    decimals = {item for item in used if relation.schema[item].type is Type.DECIMAL}
    person = relation.schema[relation.unit.column or ""]
    return decimals | ({PERSON} if person.type is Type.DECIMAL else set())


def _rows(relation: Relation, used: Mapping[str, CleanColumn], stored: Sequence[str]) -> exp.Query:
    """Return columns of the rows of a table, from where they are ready, or made from the table as it is."""
    columns = [sql.alias(sql.column(item, BASE), item) for item in stored]
    if relation.ready:
        return sql.select(columns, _table(ready_name(relation.name)))
    if PERSON in stored:
        return sql.select(columns, sql.subquery(ready_rows(relation), BASE))
    return _clean(relation, used, None)


def _clean(relation: Relation, used: Mapping[str, CleanColumn], person: str | None) -> exp.Select:
    """Return columns of a table after their rules, and whose each row is."""
    if relation.days is not None and relation.by_period and relation.unit.more is None:
        return _source(relation, [*used, PERSON])  # rules were applied before rows were taken
    trees = [sql.alias(clean.meaning.tree, item) for item, clean in used.items()]
    keeps = [keep for clean in used.values() for keep in clean.keeps]
    names = dict.fromkeys([*used, *([] if person is None else [person])])
    source = _table(relation.name) if relation.days is None else sql.subquery(_source(relation, list(names)), BASE)
    if person is not None:
        trees.append(sql.alias(sql.column(person, BASE), PERSON))
        keeps.append(sql.present(sql.column(person, BASE)))
        if relation.unit.more is not None:
            owned = with_owned(source, [*used, person], sql.column(person, BASE))
            source = sql.subquery(owned, BASE)
            keeps.append(sql.operation(exp.LTE, sql.column(PLACE, BASE), sql.constant(relation.unit.max_rows)))
    return sql.select(trees, source, sql.every(keeps))


def _source(relation: Relation, names: Sequence[str]) -> exp.Select:
    """Return columns of a table of which some periods are read: of the rows of these and no others.

    The day of a row decides as it stands in the table, before any rule about values.
    """
    days = relation.days
    if days is None:
        raise AssertionError("a table without periods is read whole")
    held, decides = (by_period_name(relation.name), _PERIOD) if relation.by_period else (relation.name, days.column)
    day = sql.column(decides, BASE)
    inside = [
        sql.operation(exp.GTE, day, sql.constant(days.first)),
        sql.operation(exp.LT, day.copy(), sql.constant(days.behind)),
    ]
    columns = [sql.alias(sql.column(name, BASE), name) for name in names]
    return sql.select(columns, _table(held), sql.every(inside))


def _used(relation: Relation, context: Context) -> dict[str, CleanColumn]:
    """Return the columns that the query names, and those that decide whether a row takes part."""
    withheld = _withheld(relation)
    used = {}
    for declared in relation.schema.columns:
        if declared.name.casefold() in withheld or declared.name == relation.unit.column:
            continue
        if context.names is None or declared.name.casefold() in context.names or declared.may_drop:
            used[declared.name] = clean_column(declared)
    return used


def _withheld(relation: Relation) -> dict[str, str]:
    reasons = dict.fromkeys((PERSON, PLACE, TWIN, _PERIOD, "_one"), _TAKEN)
    if not relation.private:
        return reasons
    reasons |= {item.casefold(): _DRAFTED for item in relation.schema.drafted}
    for declared in relation.schema.columns:
        if Role.IDENTIFIER.covers(declared.role) and declared.name != relation.unit.column:
            reasons[declared.name.casefold()] = _IDENTIFIES
    return reasons


def _table(called: str) -> exp.Table:
    return exp.Table(this=sql.name(called), alias=exp.TableAlias(this=sql.name(BASE)))
