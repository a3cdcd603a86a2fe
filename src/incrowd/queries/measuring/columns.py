"""Columns of an answer: their values with intervals, and how exact each will be before a row is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.drawing.answer import up
from incrowd.queries.answer import Answer, AnswerColumn
from incrowd.queries.language.expressions.answers import safely
from incrowd.queries.language.expressions.function import Range
from incrowd.queries.language.expressions.table import Row, check_expression, evaluate, range_of
from incrowd.queries.measuring.estimates import NO_INTERVAL, Reading
from incrowd.queries.measuring.groups import ARROW, Names
from incrowd.queries.measuring.intervals import Interval
from incrowd.queries.measuring.statistics import Of, Statistic
from incrowd.queries.measuring.windows import in_order, work_through
from incrowd.queries.operations import Operation, types_after
from incrowd.queries.query import Aggregate, OutputColumn, Query

COMPUTED = "computed from noisy numbers; its interval follows from theirs, where they have one"
NO_RANGE = "no interval: computed from noisy numbers that have none, that a function takes anywhere, or that are many"
TOTALED = "totals are sums of the noisy groups they are over: no interval"
_FINEST = "in each of the finest groups, of which totals are sums; their noise adds up"
SEVERAL = "computed from noisy numbers of several groups: no interval"
CHOSEN = (
    "a condition or LIMIT chose groups by their noisy numbers: intervals hold in 95 of 100 groups of the whole answer, "
    "in fewer of those that were chosen"
)


@dataclass(frozen=True)
class Noisy:
    """The noisy numbers by name, keys and aggregates, of one length; `bounds` gives simultaneous intervals."""

    columns: Mapping[str, AnswerColumn]
    length: int
    bounds: Callable[[frozenset[str]], Mapping[str, Interval]]

    @property
    def noisy(self) -> frozenset[str]:
        """The names that hold noise; the others are keys."""
        return frozenset(name for name, column in self.columns.items() if column.low is not None or column.note)

    def rows(self) -> list[Row]:
        """Return the values of each row by name."""
        if not self.columns:
            return [{}] * self.length
        values = [column.values.to_pylist() for column in self.columns.values()]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*values, strict=True)]


def key_columns(query: Query, names: tuple[Names, ...]) -> dict[str, AnswerColumn]:
    """Return the columns of the keys of groups, by the names of the keys."""
    values = zip(*names, strict=True) if names else [()] * len(query.keys)
    return {
        key.name: AnswerColumn(key.name, pa.array(column, ARROW[key.type]))
        for key, column in zip(query.keys, values, strict=bool(query.keys))
    }


def present_answer(query: Query, noisy: Noisy) -> Answer:
    """Return the answer: rows that HAVING keeps, in the order asked for, cut by LIMIT; all of it costs nothing."""
    if query.operations:
        return _worked_through(query, noisy)
    rows = None
    places = list(range(noisy.length))
    if query.having is not None or query.order or any(_computed(output, noisy) for output in query.outputs):
        rows = noisy.rows()
        places = [at for at in places if query.having is None or evaluate(query.having, rows[at]) is True]
        places = _ordered(query, rows, places)
    places = places[query.offset :]
    places = places if query.limit is None else places[: query.limit]
    chosen = pa.array(places, pa.int64())
    note = CHOSEN if _choosing(query) & noisy.noisy else ""
    columns = tuple(_taken(_column(output, noisy, rows or []), chosen, note) for output in query.outputs)
    return Answer(columns, query.caps.sentence, _undeclared(query, noisy, places))


def _worked_through(query: Query, noisy: Noisy) -> Answer:
    """Return the answer after its operations."""
    columns, places = worked_columns(query.operations, query.outputs, noisy)
    undeclared = () if places is None else _undeclared(query, noisy, list(places))
    return Answer(columns, query.caps.sentence, undeclared)


def worked_columns(
    operations: Iterable[Operation], outputs: Iterable[OutputColumn], noisy: Noisy
) -> tuple[tuple[AnswerColumn, ...], tuple[int, ...] | None]:
    """Return columns after operations, and the rows that are left, None where several became one.

    What is still of one row keeps its interval.
    """
    rows = noisy.rows()
    sheet = work_through(operations, rows, frozenset(noisy.columns) - noisy.noisy)
    columns = []
    for output in outputs:
        if sheet.places is not None and output.names <= noisy.columns.keys():
            note = CHOSEN if sheet.chosen else ""
            columns.append(_taken(_column(output, noisy, rows), pa.array(sheet.places, pa.int64()), note))
        else:
            values = [evaluate(output.expression, row) for row in sheet.rows]
            note = "" if output.names <= sheet.exact else SEVERAL
            columns.append(AnswerColumn(output.name, _of_type(values, output.type), note=note))
    return tuple(columns), sheet.places


def _number(value: Any) -> Any:
    return None if value is None else safely(lambda: float(value))


def _of_type(values: list[Any], kind: Type | None) -> pa.Array:
    """Return values in the type that was planned for them, whatever they are."""
    if kind is Type.DECIMAL or kind is None:
        return pa.array(map(_number, values), pa.float64())
    return pa.array(values, ARROW[kind])


def _undeclared(query: Query, noisy: Noisy, places: list[int]) -> tuple[int, ...]:
    """Return which of the rows are of groups that no declaration names, where all groups are answered."""
    if not query.public_keys:
        return ()
    at, undeclared = pa.array(places, pa.int64()), np.zeros(len(places), dtype=np.bool_)
    for place, key in enumerate(query.keys):
        values = noisy.columns[key.name].values.take(at)
        marked = pc.is_in(values, value_set=pa.array(key.undeclared, values.type)).to_numpy(zero_copy_only=False)
        if query.totals:
            marked &= noisy.columns[query.marks[place]].values.take(at).to_numpy() == 0
        undeclared |= marked
    return tuple(np.flatnonzero(undeclared).tolist())


def check_outputs(query: Query) -> None:
    """Refuse, before a row is read, what could not be computed from the answer."""
    names = frozenset([key.name for key in query.keys] + [aggregate.name for aggregate in query.aggregates])
    names = check_worked(query.operations, query.outputs, names | set(query.marks))
    if query.having is not None:
        check_expression(query.having, names)
    for term in query.order:
        check_expression(term.this, names | {output.name for output in query.outputs})


def check_worked(
    operations: Iterable[Operation], outputs: Iterable[OutputColumn], names: frozenset[str]
) -> frozenset[str]:
    """Return the names that are there after operations, if these and the outputs can be computed."""
    for operation in operations:
        for tree in operation.trees:
            check_expression(tree, names)
        names = frozenset(types_after([operation], dict.fromkeys(names, Type.DECIMAL)))
    for output in outputs:
        check_expression(output.expression, names)
    return names


def _choosing(query: Query) -> frozenset[str]:
    """Return the names of what decides which groups are in the answer: those of HAVING, and of ORDER BY with LIMIT."""
    cut = query.limit is not None or query.offset > 0
    named = {output.name: output.expression for output in query.outputs}
    trees = [] if query.having is None else [query.having]
    trees += [term.this for term in query.order] if cut else []
    names = {column.name for tree in trees for column in tree.find_all(exp.Column)}
    inner = {column.name for name in names if name in named for column in named[name].find_all(exp.Column)}
    return frozenset(names | inner)


def _computed(output: OutputColumn, noisy: Noisy) -> bool:
    return _bare(output) not in noisy.columns


def _bare(output: OutputColumn) -> str | None:
    """Return the name of the key or aggregate that an output is, if it is nothing more."""
    if output.aggregate is not None:
        return output.aggregate
    inner = output.expression.unalias()
    return inner.name if isinstance(inner, exp.Column) else None


def _column(output: OutputColumn, noisy: Noisy, rows: list[Row]) -> AnswerColumn:
    noisy_column = noisy.columns.get(_bare(output) or "")
    if noisy_column is not None:
        return AnswerColumn(output.name, noisy_column.values, noisy_column.low, noisy_column.high, noisy_column.note)
    inner = output.expression.unalias()
    if not noisy.noisy & output.names:
        return AnswerColumn(output.name, _array([evaluate(inner, row) for row in rows]))
    ends = _ranges(inner, noisy, rows)
    values = _array([_held(evaluate(inner, row), end) for row, end in zip(rows, ends, strict=True)])
    low, high = (pa.array([end[i] if end else None for end in ends], pa.float64()) for i in range(2))
    if all(end is None for end in ends):
        return AnswerColumn(output.name, values, note=NO_RANGE)
    return AnswerColumn(output.name, values, low, high, COMPUTED)


def _ranges(inner: exp.Expr, noisy: Noisy, rows: list[Row]) -> list[Range | None]:
    """Return for each row what the expression can be while all aggregates in it stay within joint intervals."""
    names = frozenset(column.name for column in inner.find_all(exp.Column))
    bounds = noisy.bounds(names)
    ends: list[Range | None] = []
    for at, row in enumerate(rows):
        numbers_at = {name: (float(bound.low[at]), float(bound.high[at])) for name, bound in bounds.items()}
        numbers = {name: row[name] for name in names - numbers_at.keys() if name not in noisy.noisy}
        numbers_at |= {name: (float(v), float(v)) for name, v in numbers.items() if isinstance(v, int | float)}
        ends.append(range_of(inner, numbers_at))
    return ends


def _held(value: Any, end: Range | None) -> Any:
    """Return a computed number within its interval; a whole number stays whole."""
    if end is None or isinstance(value, bool) or not isinstance(value, int | float):
        return value
    low, high = end
    if low <= value <= high:
        return value
    if isinstance(value, float):
        return max(low, min(high, value))
    return math.ceil(low) if value < low else math.floor(high)


def _ordered(query: Query, rows: list[Row], places: list[int]) -> list[int]:
    named = {output.name: output.expression.unalias() for output in query.outputs}
    terms = []
    for term in query.order:
        inner = term.this
        if isinstance(inner, exp.Column) and inner.name not in (rows[0] if rows else {}):
            inner = named.get(inner.name, inner)
        terms.append(exp.Ordered(**{**term.args, "this": inner.copy()}))
    return in_order(terms, rows, places)


def _taken(column: AnswerColumn, places: pa.Array, note: str) -> AnswerColumn:
    low, high = (None if end is None else end.take(places) for end in (column.low, column.high))
    notes = (column.note, note if column.low is not None else "")
    return AnswerColumn(column.name, column.values.take(places), low, high, "; ".join(filter(None, notes)))


def _array(values: list[Any]) -> pa.Array:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pa.array(values, pa.bool_())
    if kinds == {int}:
        return pa.array([None if v is None or abs(v) >= 2**63 else v for v in values], pa.int64())
    if kinds == {date}:
        return pa.array(values, pa.date32())
    if kinds <= {int, float, bool}:
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    return pa.array([None if value is None else str(value) for value in values], pa.string())


SIZES = (10, 100, 1000, 10_000)
"""For groups of so many rows it is said how far off a number may be."""
TYPICAL = "values spread evenly over their bounds"
_NEAR = "from {sure:,} on; groups are shown from {least:,} on, and of those near it less is known"
# shares of the bounds at which the widest interval is looked for; more is finer and slower
_MEANS, _SQUARES = (0.0, 0.25, 0.5, 0.75, 1.0), (0.0, 0.25, 0.5, 1.0)


@dataclass(frozen=True)
class Expected:
    """How far off 95 % of the numbers of an output are at most: one for all groups, or one for each of some sizes.

    `by_size` is the worst case over all values within the declared bounds, `typical` that of values which are spread
    evenly over them; it is left out where it is the same.
    """

    output: str
    half_width: float | None = None
    by_size: tuple[tuple[int, float], ...] = ()
    typical: tuple[tuple[int, float], ...] = ()
    note: str = ""

    @property
    def words(self) -> str:
        """How far off the numbers are, in words."""
        if self.half_width is not None:
            return " ".join(filter(None, (f"± {up(self.half_width, 6)}", self.note)))
        sizes = _sizes(self.by_size)
        if self.typical:
            sizes = f"at worst {sizes}. Typically ({TYPICAL}) {_sizes(self.typical)}"
        return ". ".join(filter(None, (sizes, self.note)))

    def to_json(self) -> dict[str, Any]:
        """Return the plain form.

        >>> Expected("n", 3.0).to_json()
        {'output': 'n', 'half_width': 3.0}
        """
        plain: dict[str, Any] = {"output": self.output}
        plain |= {} if self.half_width is None else {"half_width": self.half_width}
        plain |= {"by_size": [list(pair) for pair in self.by_size]} if self.by_size else {}
        plain |= {"typical": {"of": TYPICAL, "by_size": [list(pair) for pair in self.typical]}} if self.typical else {}
        return plain | ({"note": self.note} if self.note else {})


def _sizes(pairs: tuple[tuple[int, float], ...]) -> str:
    return "; ".join(f"± {up(width, 4)} in a group of {size:,}" for size, width in pairs)


def expected_of(query: Query, reading: Reading | None, notes: Mapping[str, str]) -> tuple[Expected, ...]:
    """Return for each output how exact it will be; keys are exact and left out, of some aggregates there are notes."""
    aggregates = {aggregate.name: aggregate for aggregate in query.aggregates}
    keys = {key.name for key in query.keys} | set(query.marks)
    expectations = tuple(
        _expected(output, aggregates, reading, notes)
        for output in query.outputs
        if output.aggregate is not None or not output.names <= keys
    )
    if not query.totals:
        return expectations
    return tuple(
        replace(expectation, note="; ".join(filter(None, (_FINEST, expectation.note)))) for expectation in expectations
    )


def _expected(
    output: OutputColumn, aggregates: dict[str, Aggregate], reading: Reading | None, notes: Mapping[str, str]
) -> Expected:
    aggregate = aggregates.get(output.aggregate or "")
    if aggregate is None:
        return Expected(output.name, note=COMPUTED if output.type is None else SEVERAL)
    if aggregate.name in notes or reading is None:
        return Expected(output.name, note=notes.get(aggregate.name, ""))
    selection = reading.selection
    near = "" if selection is None else _NEAR.format(sure=selection.sure, least=selection.least)
    half = reading.half_width(aggregate)
    if half is not None:
        return Expected(output.name, half, note=near)
    sizes = SIZES if selection is None else tuple(size for size in SIZES if size >= selection.sure) or (selection.sure,)
    worst = tuple((size, _off(reading, aggregate, size, _MEANS, _SQUARES)) for size in sizes)
    if not all(math.isfinite(width) for _, width in worst):
        return Expected(output.name, note=NO_INTERVAL)
    typical = tuple((size, _off(reading, aggregate, size, (0.0,), (1.0 / 3.0,))) for size in sizes)
    return Expected(output.name, by_size=worst, typical=() if typical == worst else typical, note=near)


def _off(
    reading: Reading, aggregate: Aggregate, size: int, means: tuple[float, ...], squares: tuple[float, ...]
) -> float:
    """Return how far off 95 % of answers are, the worst of groups of `size` rows with some means and squares.

    Means are shares of the way from the middle of the range to its end.  Squares are shares of the way from the least
    that they can be beside such a mean, where all values are the same, to the most.
    """
    pairs = [(mean, mean**2 + (1.0 - mean**2) * share) for mean in means for share in squares]
    rows_each = size * float(reading.rate or 1)
    rows = [
        [_total(statistic, mean, square) * rows_each for statistic in reading.statistics.all] for mean, square in pairs
    ]
    estimate = reading.of(aggregate, np.rint(rows).astype(np.int64))
    if estimate.interval is None:
        return math.inf
    return float(np.maximum(estimate.interval.high - estimate.values, estimate.values - estimate.interval.low).max())


def _total(statistic: Statistic, mean: float, square: float) -> float:
    """Return what a row adds to a statistic on average, where values have this mean and these squares."""
    if statistic.grid is None:
        return 1.0
    width = float(statistic.grid.width)
    if statistic.of is Of.SQUARES:
        return (2.0 * square - 1.0) * width**2 / float(statistic.coarse)
    return mean * width
