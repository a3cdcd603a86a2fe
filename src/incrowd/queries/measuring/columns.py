"""Columns of an answer: their values with intervals, and how exact each will be before a row is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from incrowd.queries.answer import Answer, AnswerColumn
from incrowd.queries.measuring.estimates import NO_INTERVAL, Reading
from incrowd.queries.measuring.evaluation import Range, Row, check, evaluate, range_of
from incrowd.queries.measuring.intervals import Interval
from incrowd.queries.measuring.picks import Pick
from incrowd.queries.measuring.statistics import Of, Statistic, count_of
from incrowd.queries.question import Aggregate, OutputColumn, Question

COMPUTED = "computed from noisy numbers; its interval follows from theirs, where they have one"


@dataclass(frozen=True)
class Noisy:
    """The noisy numbers by name, keys and aggregates, of one length; `bounds` gives intervals that hold together."""

    columns: Mapping[str, AnswerColumn]
    length: int
    bounds: Callable[[frozenset[str]], Mapping[str, Interval]]

    @property
    def noisy(self) -> frozenset[str]:
        """The names that hold noise; the others are keys."""
        return frozenset(name for name, column in self.columns.items() if column.low is not None or column.note)

    def rows(self) -> list[Row]:
        """Return the values of each row by name."""
        values = [column.values.to_pylist() for column in self.columns.values()]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*values, strict=True)]


def present_answer(question: Question, noisy: Noisy) -> Answer:
    """Return the answer: rows that HAVING keeps, in the order asked for, cut by LIMIT; all of it costs nothing."""
    rows = None
    places = list(range(noisy.length))
    if question.having is not None or question.order or any(_computed(each, noisy) for each in question.outputs):
        rows = noisy.rows()
        places = [at for at in places if question.having is None or evaluate(question.having, rows[at]) is True]
        places = _ordered(question, rows, places)
    places = places[question.offset :]
    places = places if question.limit is None else places[: question.limit]
    chosen = pa.array(places, pa.int64())
    return Answer(tuple(_taken(_column(each, noisy, rows or []), chosen) for each in question.outputs))


def check_outputs(question: Question) -> None:
    """Refuse, before a row is read, what could not be computed from the answer."""
    names = frozenset([key.name for key in question.keys] + [each.name for each in question.aggregates])
    for output in question.outputs:
        check(output.expression, names)
    if question.having is not None:
        check(question.having, names)
    for term in question.order:
        check(term.this, names | {output.name for output in question.outputs})


def _computed(output: OutputColumn, noisy: Noisy) -> bool:
    return _bare(output) not in noisy.columns


def _bare(output: OutputColumn) -> str | None:
    """Return the name of the key or aggregate that an output is, if it is nothing more."""
    if output.aggregate is not None:
        return output.aggregate
    inner = output.expression.unalias()
    return inner.name if isinstance(inner, exp.Column) else None


def _column(output: OutputColumn, noisy: Noisy, rows: list[Row]) -> AnswerColumn:
    found = noisy.columns.get(_bare(output) or "")
    if found is not None:
        return AnswerColumn(output.name, found.values, found.low, found.high, found.note)
    inner = output.expression.unalias()
    values = _array([evaluate(inner, row) for row in rows])
    ends = _ranges(inner, noisy, rows)
    low, high = (pa.array([end[i] if end else None for end in ends], pa.float64()) for i in range(2))
    known = any(end is not None for end in ends)
    return AnswerColumn(output.name, values, low if known else None, high if known else None, COMPUTED)


def _ranges(inner: exp.Expr, noisy: Noisy, rows: list[Row]) -> list[Range | None]:
    """Return for each row what the expression can be while all aggregates in it stay within joint intervals."""
    names = frozenset(column.name for column in inner.find_all(exp.Column))
    bounds = noisy.bounds(names)
    ends: list[Range | None] = []
    for at, row in enumerate(rows):
        known = {name: (float(bound.low[at]), float(bound.high[at])) for name, bound in bounds.items()}
        numbers = {name: row[name] for name in names - known.keys() if name not in noisy.noisy}
        known |= {name: (float(v), float(v)) for name, v in numbers.items() if isinstance(v, int | float)}
        ends.append(range_of(inner, known))
    return ends


def _ordered(question: Question, rows: list[Row], places: list[int]) -> list[int]:
    named = {output.name: output.expression.unalias() for output in question.outputs}
    for term in reversed(question.order):
        inner = term.this
        if isinstance(inner, exp.Column) and inner.name not in (rows[0] if rows else {}):
            inner = named.get(inner.name, inner)
        values = {at: evaluate(inner, rows[at]) for at in places}
        missing = [at for at in places if values[at] is None]
        present = [at for at in places if values[at] is not None]
        present.sort(key=lambda at: values[at], reverse=bool(term.args.get("desc")))
        places = missing + present if term.args.get("nulls_first") else present + missing
    return places


def _taken(column: AnswerColumn, places: pa.Array) -> AnswerColumn:
    low, high = (None if end is None else end.take(places) for end in (column.low, column.high))
    return AnswerColumn(column.name, column.values.take(places), low, high, column.note)


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
"""For groups of so many rows the error of means is told."""


@dataclass(frozen=True)
class Expected:
    """The half-width of the 95 % interval of an output: one for all, or one for each of some sizes of a group."""

    output: str
    half_width: float | None = None
    by_size: tuple[tuple[int, float], ...] = ()
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the plain form.

        >>> Expected("n", 3.0).to_json()
        {'output': 'n', 'half_width': 3.0}
        """
        plain: dict[str, Any] = {"output": self.output}
        plain |= {} if self.half_width is None else {"half_width": self.half_width}
        plain |= {"by_size": [list(pair) for pair in self.by_size]} if self.by_size else {}
        return plain | ({"note": self.note} if self.note else {})


def expected_of(question: Question, reading: Reading | None, picks: tuple[Pick, ...]) -> tuple[Expected, ...]:
    """Return for each output how exact it will be; keys are exact and left out."""
    aggregates = {each.name: each for each in question.aggregates}
    notes = {pick.aggregate.name: pick.note for pick in picks}
    keys = {key.name for key in question.keys}
    return tuple(
        _expected(output, aggregates, reading, notes)
        for output in question.outputs
        if output.aggregate is not None or output.expression.unalias().name not in keys
    )


def _expected(
    output: OutputColumn, aggregates: dict[str, Aggregate], reading: Reading | None, notes: dict[str, str]
) -> Expected:
    aggregate = aggregates.get(output.aggregate or "")
    if aggregate is None:
        return Expected(output.name, note=COMPUTED)
    if aggregate.name in notes or reading is None:
        return Expected(output.name, note=notes.get(aggregate.name, ""))
    half = reading.half_width(aggregate)
    if half is not None:
        return Expected(output.name, half)
    sizes = tuple((size, _at(reading, aggregate, size)) for size in SIZES)
    known = all(math.isfinite(width) for _, width in sizes)
    return Expected(output.name, by_size=sizes) if known else Expected(output.name, note=NO_INTERVAL)


def _at(reading: Reading, aggregate: Aggregate, size: int) -> float:
    """Return half the interval of a group of `size` rows whose values balance around the middle of their range."""
    vector = np.zeros((1, len(reading.statistics.all)), dtype=np.int64)
    wanted = Statistic(Of.ROWS) if aggregate.value is None else count_of(aggregate.value)
    if wanted in reading.statistics.all:
        vector[0, reading.statistics.place(wanted)] = round(size * (reading.rate or 1))
    interval = reading.of(aggregate, vector).interval
    return math.inf if interval is None else float((interval.high - interval.low)[0] / 2.0)
