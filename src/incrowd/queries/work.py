"""Work: how much a query can make an engine do for one unit of privacy, from its tree and the declarations alone.

One step is one character or number that an operation touches.  The bound is read off the very trees that an engine
runs: rows that one unit can bring to each SELECT, times what its expressions touch at most.  It depends on no row, so
what follows from it (a refusal, the time after which a reply shows) is the same whoever is in the table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlglot import exp

from incrowd.core.domain import Categories, Type
from incrowd.core.schema import Column
from incrowd.engines.sql.engine import by_period_name, ready_name
from incrowd.errors import QueryRefused
from incrowd.queries.language.expressions.function import TextWork, Width
from incrowd.queries.language.expressions.table import function_of
from incrowd.queries.language.row_query import PLACE
from incrowd.queries.language.trees import sources
from incrowd.queries.query import PERSON, Catalog

MOST_STEPS = 40_000_000
"""The most steps that one unit may cause: some hundredths of a second."""

_ROW, _WINDOW, _HASH = 20, 100, 300
"""What a row costs at each SELECT, in each window and in each hash, beside its values."""
_NUMBER, _WRITTEN = 1, 40
"""The width of a value that is no text, and of one that was written as text."""


class _Cost(NamedTuple):
    """What an expression touches for one row, and how long its value can be."""

    steps: int
    width: int = _NUMBER


@dataclass(frozen=True)
class _Flow:
    """The rows that one unit brings (None: nobody's), the widths of their columns, and the steps until here."""

    rows: int | None
    widths: Mapping[str, int] = field(default_factory=dict)
    steps: int = 0


def unit_steps(query: exp.Expr, catalog: Catalog) -> int:
    """Return how many steps one unit of privacy can cause at most where this tree is run.

    >>> from incrowd.core.schema import Column, Schema
    >>> from incrowd.queries.query import Relation
    >>> from sqlglot import parse_one
    >>> catalog = Catalog((Relation("t", Schema((Column("note"),)), dataset="t"),))
    >>> short = unit_steps(parse_one("SELECT LENGTH(note) FROM t"), catalog)
    >>> short < unit_steps(parse_one("SELECT LENGTH(REPLACE(note, 'a', 'bbbbbbbb')) FROM t"), catalog)
    True
    """
    return _flow(query, catalog).steps


def check_work(steps: int) -> int:
    """Return the steps, if they are no more than one unit may cause.

    >>> check_work(10**9)
    Traceback (most recent call last):
    incrowd.errors.QueryRefused: the duration of this query could reveal who is in the data: it takes ...
    """
    if steps > MOST_STEPS:
        raise QueryRefused(
            f"the duration of this query could reveal who is in the data: it takes {steps:,} steps for one person, "
            f"and {MOST_STEPS:,} are allowed. Join fewer tables, or shorten texts by LEFT(x, n)."
        )
    return steps


def _flow(query: exp.Expr, catalog: Catalog) -> _Flow:
    match query:
        case exp.Subquery():
            return _flow(query.this, catalog)
        case exp.Table():
            return _table(query.name, catalog)
        case exp.Union():
            left, right = _flow(query.this, catalog), _flow(query.expression, catalog)
            widths = {name: max(width, right.widths.get(name, _NUMBER)) for name, width in left.widths.items()}
            return _Flow((left.rows or 0) + (right.rows or 0), widths, left.steps + right.steps)
        case exp.Select():
            return _selected(query, catalog)
    raise TypeError("a query is made of SELECT, UNION ALL and tables")


def _table(name: str, catalog: Catalog) -> _Flow:
    """Return the rows of a table, as it is or as it is stored: one unit has at most so many that take part.

    Of one that is stored by period it has one row more in each, where that says who is left out.
    """
    relation = next(
        (one for one in catalog.relations if name in (ready_name(one.name), by_period_name(one.name))), None
    )
    relation = catalog[name] if relation is None else relation
    widths = {column.name: _width(column) for column in relation.schema.columns}
    if relation.unit.column is not None:
        widths[PERSON] = widths[relation.unit.column]
    rows = relation.unit.max_rows if relation.private else None
    if rows is not None and name == by_period_name(relation.name) and relation.days is not None:
        rows = (rows + (relation.unit.more is not None)) * len(relation.days.periods)
    return _Flow(rows, widths)


def _width(column: Column) -> int:
    """Return how long a value of a column can be."""
    if column.type is not Type.TEXT:
        return _NUMBER
    if isinstance(column.domain, Categories):
        return max(len(value) for value in column.domain.values) + len("other")
    return column.max_length


def _selected(query: exp.Select, catalog: Catalog) -> _Flow:
    """Return what comes out of a SELECT: its sources meet, pair by pair, and each pair is worked on."""
    flows = {source.alias_or_name: _flow(source, catalog) for source in sources(query)}
    counted = [flow.rows for flow in flows.values() if flow.rows is not None]
    pairs = math.prod(counted) if counted else None
    widths = {f"{name}.{item}": width for name, flow in flows.items() for item, width in flow.widths.items()}
    widths |= {item: width for flow in flows.values() for item, width in flow.widths.items()}
    conditions = [join.args["on"] for join in query.args.get("joins") or () if join.args.get("on") is not None]
    conditions += [query.args[part] for part in ("where", "group") if query.args.get(part) is not None]
    columns, steps = dict[str, int](), _ROW
    for item in query.expressions:
        if isinstance(item, exp.Star):
            columns |= {name: width for flow in flows.values() for name, width in flow.widths.items()}
            continue
        cost = _cost(item.unalias(), widths)
        columns[item.alias_or_name], steps = cost.width, steps + cost.steps
    steps += sum(_cost(condition, widths).steps for condition in conditions)
    limit = _limit(query)
    rows = pairs if limit is None else limit if pairs is None else min(pairs, limit)
    return _Flow(rows, columns, sum(flow.steps for flow in flows.values()) + (pairs or 0) * steps)


def _limit(query: exp.Select) -> int | None:
    """Return how many rows of a unit, or of a value, are kept by their numbers."""
    where = query.args.get("where")
    match None if where is None else where.this:
        case exp.LTE(this=exp.Column() as place, expression=exp.Literal() as most) if place.name == PLACE:
            return int(most.name)
    return None


def _cost(node: exp.Expr, widths: Mapping[str, int]) -> _Cost:
    """Return what an expression touches for one row; a value is never longer than all its parts together."""
    if isinstance(node, exp.Column):
        full = f"{node.table}.{node.name}" if node.table else node.name
        return _Cost(1, widths.get(full, widths.get(node.name, _NUMBER)))
    if isinstance(node, exp.Literal):
        return _Cost(1, max(_NUMBER, len(node.name)) if node.is_string else _NUMBER)
    parts = [_cost(part, widths) for part in node.iter_expressions()]
    steps, lengths = 1 + sum(map(sum, parts)), [part.width for part in parts]
    function = function_of(node)
    if function is not None:
        return _text(node, function.work, lengths, steps)
    match node:
        case exp.MD5():
            return _Cost(steps + _HASH, _WRITTEN)
        case exp.Window():
            return _Cost(steps + _WINDOW)
    return _Cost(steps, max(lengths, default=_NUMBER) if isinstance(node, _AS_LONG_AS_PARTS) else _NUMBER)


_AS_LONG_AS_PARTS = (
    exp.Paren, exp.Min, exp.Max, exp.Distinct, exp.Where, exp.Group, exp.Order, exp.Ordered, exp.Tuple,
)  # fmt: skip


def _text(node: exp.Expr, work: TextWork, lengths: list[int], steps: int) -> _Cost:
    """Return what a function costs, from the table of functions, and how long its value can be."""
    steps += math.prod(lengths[: work.searched]) if work.searched else 0
    match work.width:
        case Width.NUMBER:
            return _Cost(steps)
        case Width.SUM:
            return _Cost(steps, sum(lengths))
        case Width.LONGEST:
            return _Cost(steps, max(lengths))
        case Width.WRITTEN:
            as_text = node.args["to"].this in exp.DataType.TEXT_TYPES
            return _Cost(steps, max(lengths[0], _WRITTEN) if as_text else _NUMBER)
    growth = work.growth if isinstance(work.growth, int) else max(1, len(node.args[work.growth].name))
    width = lengths[0] * growth
    if work.cut is not None:
        return _Cost(steps, min(width, int(node.args[work.cut].name)))
    return _Cost(steps + width if work.growth != 1 else steps, width)
