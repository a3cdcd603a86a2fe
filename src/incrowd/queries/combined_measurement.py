"""Combined measurement: how the parts of a combination are answered, paid for as one, and what is made of them.

Noisy answers stand below and beside each other, and further columns are computed from them; no row is read for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.core.steps.step import fold
from incrowd.errors import InvalidParameter
from incrowd.queries import operations as ops
from incrowd.queries.answer import Answer, AnswerColumn, AnswerTables, check_names
from incrowd.queries.batch import Batch, batch
from incrowd.queries.measurement import NAME, Measurement, QueryPlan, measurement, price_of
from incrowd.queries.measuring.columns import CHOSEN, COMPUTED, SEVERAL, Expected, Noisy, check_worked, worked_columns
from incrowd.queries.measuring.groups import ARROW
from incrowd.queries.measuring.intervals import Interval
from incrowd.queries.query import Combination, Interpreted, Query, QueryTerms
from incrowd.queries.steps.query import Combine, QueryBatch

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.unit import Unit
    from incrowd.engines.sql.engine import QueryTables

NoisyAnswer = Callable[[int], Answer]
"""An answer with intervals of which so many hold simultaneously."""
MET = (
    "rows of several answers met by noisy numbers: intervals hold in 95 of 100 groups of the whole answers, in fewer "
    "of those that met"
)
_MOST_TOGETHER = 1024
"""The most numbers of which an interval is computed."""
_KINDS: dict[Type, type] = {Type.TEXT: str, Type.DATE: date, Type.BOOLEAN: bool}


def measure(query: Interpreted, unit: Unit, terms: QueryTerms) -> Measured:
    """Return how a query is answered on these terms, alone or as a combination of several; no row is read."""
    check_names(column.name for column in (query.outputs if isinstance(query, Query) else query.sheet.columns))
    if isinstance(query, Query):
        return measurement(query, unit, terms)
    if terms.epsilon is None or terms.rate is not None:
        raise InvalidParameter("a query that combines answers has one epsilon for all: give epsilon, and no rate.")
    check_sheet(query.sheet)
    return CombinedMeasurement(query, batch(query.parts, unit, terms), terms)


@dataclass(frozen=True)
class CombinedMeasurement:
    """A combination on terms: its parts are planned together as a batch is, each on its share."""

    question: Combination
    parts: Batch
    terms: QueryTerms | None = None

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """How the parts are answered."""
        return self.parts.measurements

    @cached_property
    def plan(self) -> QueryPlan:
        """What will be done and what the answer guarantees, folded from the steps of all parts."""
        combine = Combine(self.question.text, tuple(column.name for column in self.question.sheet.columns))
        steps = (QueryBatch(tuple(measured.steps for measured in self.measurements)), combine)
        guarantee = fold(steps, self.parts.unit, self.parts.delta)
        return QueryPlan(NAME, steps, guarantee, price_of(guarantee, self.terms), self.draw)

    @property
    def statistics(self) -> tuple[exp.Query, ...]:
        """The queries whose results all parts need."""
        return tuple(query for measured in self.measurements for query in measured.statistics)

    def draw(self, rows: QueryTables, coins: Coins) -> AnswerTables:
        """Collect the statistics of all parts from one state of the tables, and make one answer of theirs."""
        return AnswerTables((self.answer(rows.collect_together(self.statistics), coins),))

    def answer(self, collected: tuple[pa.Table, ...], coins: Coins) -> Answer:
        """Return the answer that is made of those to what the engine collected for `statistics`."""
        tables = iter(collected)
        answers = [
            measured.noisy_answer(tuple(next(tables) for _ in measured.statistics), coins)
            for measured in self.measurements
        ]
        return combined_answer(self.question, answers)

    @cached_property
    def expected(self) -> tuple[Expected, ...]:
        """How exact each column of the answer will be; of one with numbers of several answers, each is told."""
        results: list[Expected] = []
        for at, column in enumerate(self.question.sheet.columns):
            for part, place in dict.fromkeys(_origins(self.question.sheet, at)):
                results += self._expected(column.name, part, place)
        return tuple(dict.fromkeys(results))

    def _expected(self, name: str, part: int | None, place: int) -> Iterator[Expected]:
        if part is None:
            yield Expected(name, note=COMPUTED)
            return
        measured = self.measurements[part]
        output = measured.question.outputs[place].name
        yield from (
            replace(expectation, output=name) for expectation in measured.expected if expectation.output == output
        )


Measured = Measurement | CombinedMeasurement
"""How a query is answered, alone or made of several."""


def _origins(sheet: ops.Sheet, at: int) -> Iterator[tuple[int | None, int]]:
    """Yield the parts and places of the columns that a column shows as they are, None for what is computed."""
    match sheet:
        case ops.PartSheet(part=part):
            yield part, at
        case ops.RowSheet():
            return
        case ops.StackedSheet(sheets=sheets):
            for sheet_ in sheets:
                yield from _origins(sheet_, at)
        case ops.JoinedSheet(left=left, right=right):
            width = len(left.columns)
            yield from _origins(left, at) if at < width else _origins(right, at - width)
        case ops.WorkedSheet(source=source, operations=operations, outputs=outputs):
            names = {ops.column_name(place): place for place in range(len(source.columns))}
            output = outputs[at]
            gathered = any(isinstance(operation, ops.Gather) for operation in operations)
            bare = output.expression.name if len(output.names) == 1 and output.expression.key == "column" else None
            if bare in names and not gathered:
                yield from _origins(source, names[bare])
            elif output.names:
                yield None, 0


def combined_answer(combination: Combination, answers: Sequence[NoisyAnswer]) -> Answer:
    """Return what is made of the answers to the parts."""
    content = _Contents(tuple(answers), tuple(map(_choosing, combination.parts))).of(combination.sheet, 1)
    named = zip(combination.sheet.columns, content.columns, strict=True)
    columns = tuple(replace(column, name=sheet_column.name) for sheet_column, column in named)
    undeclared = tuple(int(at) for at in np.flatnonzero(content.undeclared))
    return Answer(columns, " ".join(combination.caps), undeclared)


def check_sheet(sheet: ops.Sheet) -> None:
    """Refuse, before a row is read, what could not be computed from answers."""
    match sheet:
        case ops.StackedSheet(sheets=sheets):
            for sheet_ in sheets:
                check_sheet(sheet_)
        case ops.JoinedSheet(left=left, right=right):
            check_sheet(left)
            check_sheet(right)
        case ops.WorkedSheet(source=source, operations=operations, outputs=outputs):
            check_sheet(source)
            check_worked(operations, outputs, frozenset(map(ops.column_name, range(len(source.columns)))))


Parts = frozenset[int]
"""Some of the queries, by their places: those whose noise is in a column, or decided which rows are there."""


@dataclass(frozen=True)
class _Content:
    """The columns of a sheet, and which rows are of groups that no declaration names.

    `noise` tells for each column whose noise is in it, `chosen` by whose noise the rows were chosen.
    """

    columns: tuple[AnswerColumn, ...]
    undeclared: np.ndarray[Any, np.dtype[np.bool_]]
    noise: tuple[Parts, ...]
    chosen: Parts

    @property
    def length(self) -> int:
        return int(self.undeclared.size)


@dataclass(frozen=True)
class _Contents:
    """What is on sheets, given the answers of their parts."""

    answers: tuple[NoisyAnswer, ...]
    choosing: tuple[bool, ...]
    cached: dict[tuple[int, int], _Content] = field(default_factory=dict)

    def of(self, sheet: ops.Sheet, together: int) -> _Content:
        """Return the content of a sheet, with intervals of which so many hold simultaneously; values depend on none."""
        key = (id(sheet), together)
        if key not in self.cached:
            content = self._made(sheet, together)
            if together > 1:
                plain = zip(content.columns, self.of(sheet, 1).columns, strict=True)
                content = replace(content, columns=tuple(replace(wide, values=column.values) for wide, column in plain))
            self.cached[key] = content
        return self.cached[key]

    def _made(self, sheet: ops.Sheet, together: int) -> _Content:
        match sheet:
            case ops.PartSheet(part=part):
                return _answered(self.answers[part](together), part, chosen=self.choosing[part])
            case ops.RowSheet():
                return _Content((), np.zeros(1, np.bool_), (), Parts())
            case ops.StackedSheet(sheets=sheets):
                return _stacked(sheet, [self.of(sheet_, together) for sheet_ in sheets])
            case ops.JoinedSheet(left=left, right=right):
                return _joined(sheet, self.of(left, together), self.of(right, together))
        return self._worked(sheet, together)

    def _worked(self, sheet: ops.WorkedSheet, together: int) -> _Content:
        """Return what a SELECT makes of a sheet; what it computes from several numbers has an interval of them all."""
        source = self.of(sheet.source, together)
        columns = {ops.column_name(at): column for at, column in enumerate(source.columns)}

        def bounds(names: frozenset[str]) -> dict[str, Interval]:
            number = held_together(together, len(names))
            if number is None:
                return {}
            wide = self.of(sheet.source, number).columns
            wide_columns = {name: wide[at] for at, name in enumerate(columns) if name in names}
            return {
                name: Interval(_numbers(column.low), _numbers(column.high))
                for name, column in wide_columns.items()
                if column.low is not None and column.high is not None
            }

        made, places = worked_columns(sheet.operations, sheet.outputs, Noisy(columns, source.length, bounds))
        noise = dict(zip(columns, source.noise, strict=True))
        after, chosen = _traced(sheet.operations, noise, source.chosen)
        own = tuple(_of(output.expression, after) for output in sheet.outputs)
        answer_columns = []
        for worked, output, parts in zip(made, sheet.outputs, own, strict=True):
            read = " ".join(columns[name].note for name in output.names & columns.keys())
            column = worked if worked.low is None else _noted(worked, *(note for note in (CHOSEN, MET) if note in read))
            several = parts and worked.low is None and not worked.note and not output.names <= columns.keys()
            answer_columns.append(_noted(column, SEVERAL) if several else _met(column, parts & chosen))
        length = len(answer_columns[0].values) if answer_columns else 0
        undeclared = np.zeros(length, np.bool_) if places is None else source.undeclared[list(places)]
        return _Content(tuple(answer_columns), undeclared, own, chosen)


def _choosing(query: Query) -> bool:
    """Return whether noise decides which groups of an answer are left: by a condition, or by their order and a cut."""
    noise = {aggregate.name: Parts({0}) for aggregate in query.aggregates}
    noise = {output.name: _of(output.expression, noise) for output in query.outputs} | noise  # ORDER BY knows both
    operations = query.operations or (
        *(() if query.having is None else (ops.Keep(query.having),)),
        ops.Sort(query.order),
        *(() if query.limit is None and not query.offset else (ops.Take(query.limit, query.offset),)),
    )
    return bool(_traced(operations, noise, Parts())[1])


def _of(tree: exp.Expr, noise: Mapping[str, Parts]) -> Parts:
    """Return whose noise an expression reads."""
    return Parts().union(*(noise.get(column.name, Parts()) for column in tree.find_all(exp.Column)))


def _traced(
    operations: Sequence[ops.Operation], noise: Mapping[str, Parts], chosen: Parts
) -> tuple[Mapping[str, Parts], Parts]:
    """Return whose noise is in each name after operations, and by whose noise the rows that are left were chosen."""
    order = Parts()
    for operation in operations:
        read = Parts().union(*(_of(tree, noise) for tree in operation.trees))
        match operation:
            case ops.Keep():
                chosen |= read
            case ops.Sort():
                order = read
            case ops.Take():
                chosen |= order
            case ops.WindowColumn(name=name):
                noise = {**noise, name: read | chosen}
            case ops.Gather(keys=keys, totals=totals):
                by = {key.name: _of(key.expression, noise) for key in keys}
                noise = by | {total.name: read | chosen for total in totals}
    return noise, chosen


def held_together(together: int, names: int) -> int | None:
    """Return how many intervals hold simultaneously where each is of several numbers; None where they are too many.

    Below an answer of answers it is the next power of two, so that few different numbers occur however deep it is.
    """
    number = together * max(1, names)
    number = number if together == 1 else 1 << (number - 1).bit_length()
    return number if number <= _MOST_TOGETHER else None


def _noted(column: AnswerColumn, *notes: str) -> AnswerColumn:
    """Return a column that says what is to be known of it, each once."""
    new = (note for note in notes if note not in column.note)
    return replace(column, note="; ".join(filter(None, (column.note, *new))))


def _met(column: AnswerColumn, by: Parts) -> AnswerColumn:
    """Return a column that says of which numbers its intervals are, where its own noise chose them."""
    return _noted(column, MET) if by and column.low is not None and CHOSEN not in column.note else column


def _numbers(ends: pa.Array) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([np.nan if end is None else end for end in ends.to_pylist()], np.float64)


def _answered(answer: Answer, part: int, *, chosen: bool) -> _Content:
    undeclared = np.zeros(answer.table.num_rows, np.bool_)
    undeclared[list(answer.undeclared)] = True
    noise = tuple(Parts({part} if column.low is not None or column.note else ()) for column in answer.columns)
    return _Content(answer.columns, undeclared, noise, Parts({part} if chosen else ()))


def _stacked(sheet: ops.StackedSheet, contents: list[_Content]) -> _Content:
    columns = []
    for at, column in enumerate(sheet.columns):
        parts = [content.columns[at] for content in contents]
        low, high = (_ends(parts, [part.low if at_low else part.high for part in parts]) for at_low in (True, False))
        note = "; ".join(dict.fromkeys(part.note for part in parts if part.note))
        columns.append(AnswerColumn(column.name, _below([part.values for part in parts], column.type), low, high, note))
    undeclared = np.concatenate([content.undeclared for content in contents])
    noise = tuple(Parts().union(*sources) for sources in zip(*(content.noise for content in contents), strict=True))
    return _Content(tuple(columns), undeclared, noise, Parts().union(*(content.chosen for content in contents)))


def _below(arrays: list[pa.Array], kind: Type | None) -> pa.Array:
    """Return values below each other, in the type that was planned for them; numbers are whole if all of them are."""
    values = [value for array in arrays for value in array.to_pylist()]
    expected = None if kind is None else _KINDS.get(kind)
    if kind is not None and expected is not None:
        return pa.array([value if isinstance(value, expected) else None for value in values], ARROW[kind])
    if arrays and all(array.type == pa.int64() for array in arrays):
        return pa.array(values, pa.int64())
    numbers = [float(value) if isinstance(value, int | float) else None for value in values]
    return pa.array(numbers, pa.float64())


def _ends(parts: list[AnswerColumn], ends: list[pa.Array | None]) -> pa.Array | None:
    """Return the ends of intervals below each other, None where there is none; nothing if there are none at all."""
    if all(end is None for end in ends):
        return None
    lists = [
        [None] * len(part.values) if end is None else end.to_pylist() for part, end in zip(parts, ends, strict=True)
    ]
    return pa.array([end for part in lists for end in part], pa.float64())


def _joined(sheet: ops.JoinedSheet, left: _Content, right: _Content) -> _Content:
    """Return rows beside each other that are equal where they must be; what is missing equals nothing."""
    places: dict[tuple[object, ...], list[int]] = {}
    for at, key in enumerate(_keys(right, [there for _, there in sheet.on])):
        if None not in key:
            places.setdefault(key, []).append(at)
    pairs: list[tuple[int, int | None]] = []
    for at, key in enumerate(_keys(left, [here for here, _ in sheet.on])):
        partners = places.get(key, [])
        pairs += [(at, partner) for partner in partners] or ([(at, None)] if sheet.padded else [])
    here, there = pa.array([one for one, _ in pairs], pa.int64()), pa.array([other for _, other in pairs], pa.int64())
    met = right.chosen.union(*(left.noise[one] | right.noise[other] for one, other in sheet.on))
    chosen = left.chosen | (Parts() if sheet.padded else met)
    beside = tuple(noise | met if sheet.padded and sheet.on else noise for noise in right.noise)
    columns = (
        *(_met(_at(column, here), of & chosen) for column, of in zip(left.columns, left.noise, strict=True)),
        *(_met(_at(column, there), of & (chosen | met)) for column, of in zip(right.columns, right.noise, strict=True)),
    )
    undeclared = [left.undeclared[one] or (other is not None and right.undeclared[other]) for one, other in pairs]
    return _Content(columns, np.array(undeclared, np.bool_), (*left.noise, *beside), chosen)


def _keys(content: _Content, at: list[int]) -> list[tuple[object, ...]]:
    if not at:
        return [()] * content.length
    return list(zip(*(content.columns[place].values.to_pylist() for place in at), strict=True))


def _at(column: AnswerColumn, places: pa.Array) -> AnswerColumn:
    low, high = (None if end is None else end.take(places) for end in (column.low, column.high))
    return replace(column, values=column.values.take(places), low=low, high=high)
