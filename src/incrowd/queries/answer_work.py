"""Answer work: how much is done with the rows of a noisy answer, from the query and the declarations alone.

What is computed there is free of privacy, and not of time: it is Python, one value after the other.  A step is what a
step of an engine is, so that both can be added up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.core.schema import MAX_LENGTH
from incrowd.errors import QueryRefused
from incrowd.queries import operations as ops
from incrowd.queries.batch import Batch
from incrowd.queries.combined_measurement import Measured, held_together
from incrowd.queries.language.expressions.function import TextWork, Width
from incrowd.queries.language.expressions.table import function_of
from incrowd.queries.measurement import Measurement
from incrowd.queries.query import Key, Query

MOST_ANSWER_STEPS = 2_000_000_000
"""The most steps that are done with an answer: some seconds."""

_AGGREGATE, _EVALUATION, _CHARACTER, _NEIGHBOR = 2_000_000, 1000, 100, 50
"""What an aggregate costs, and in each row each part of an expression, character of a long text, and neighbor."""
_SHORT = 40
"""Characters that cost nothing by themselves: those of a number, or of a short text."""
_MOST_ROWS = 100_000
"""How many groups are shown at most where nobody knows them beforehand, for all that is done with them here."""


def answer_steps(measured: Measured | Batch, units: int) -> int:
    """Return how many steps are done at most with the answers to queries about so many units, or refuse them."""
    steps = _steps(measured, units)
    if steps > MOST_ANSWER_STEPS:
        raise QueryRefused(f"this answer takes {steps:,} steps; {MOST_ANSWER_STEPS:,} are allowed: ask for less.")
    return steps


def _steps(measured: Measured | Batch, units: int) -> int:
    match measured:
        case Measurement(question=query):
            return _of_query(query, _rows(measured, units)).steps
        case Batch():
            counted = (query.question for shared in measured.workloads for query in shared.questions)
            free = sum(_of_query(query, _known_rows(query)).steps for query in counted)
            return free + sum(_steps(one, units) for one in measured.measurements)
    parts = [_of_query(one.question, _rows(one, units)) for one in measured.measurements]
    return sum(part.steps for part in parts) + _of_sheet(measured.question.sheet, parts).steps


@dataclass(frozen=True)
class _Work:
    """What is done for some rows: the steps, how many rows there are at most, how long the texts of each column are."""

    steps: int
    rows: int
    widths: tuple[int, ...] = ()


def _rows(measured: Measurement, units: int) -> int:
    """Return how many rows an answer has at most: groups that are known, or as many as so many units can fill."""
    query, threshold = measured.question, measured.noise_choice.threshold
    if query.public_keys:
        return _known_rows(query)
    least = 1 if threshold is None else max(1, threshold.least)
    groups = min(_MOST_ROWS, math.ceil(units * query.contribution.groups / least))
    return groups * (1 + len(query.totals))


def _known_rows(query: Query) -> int:
    return query.declared_groups * (1 + len(query.totals))


def _of_query(query: Query, rows: int) -> _Work:
    steps, widths = _of_operations(query.operations, rows, {key.name: _key_width(key) for key in query.keys})
    trees: Iterable[exp.Expr | None] = (query.having, *(term.this for term in query.order))
    steps += sum(_cost(tree, widths) for tree in trees if tree is not None)
    outputs = [output.expression for output in query.outputs]
    steps += sum(_cost(tree, widths) for tree in outputs)
    lengths = tuple(_width(tree, widths) for tree in outputs)
    return _Work(_AGGREGATE * len(query.aggregates) + rows * steps, rows, lengths)


def _of_sheet(sheet: ops.Sheet, parts: Sequence[_Work], together: frozenset[int] = frozenset({1})) -> _Work:
    """Return what is done with the answers to several queries; the work for these themselves is left out.

    A sheet is computed once for each number of intervals that must hold simultaneously in what is made of it.
    """
    times = len(together)
    match sheet:
        case ops.PartSheet(part=part):
            return replace(parts[part], steps=parts[part].steps * (times - 1))
        case ops.RowSheet():
            return _Work(0, 1)
        case ops.StackedSheet(sheets=sheets):
            stacked = [_of_sheet(sheet_, parts, together) for sheet_ in sheets]
            steps, rows = sum(work.steps for work in stacked), sum(work.rows for work in stacked)
            widths = tuple(map(max, zip(*(work.widths for work in stacked), strict=True)))
            return _Work(steps + times * rows * _EVALUATION * len(widths), rows, widths)
        case ops.JoinedSheet(left=left, right=right, on=on):
            one, other = (_of_sheet(side, parts, together) for side in (left, right))
            rows, widths = one.rows + other.rows, one.widths + other.widths
            own = times * rows * _EVALUATION * (len(on) + len(widths))
            return _Work(one.steps + other.steps + own, rows, widths)
    below = {held_together(number, len(output.names)) for number in together for output in sheet.outputs}
    source = _of_sheet(sheet.source, parts, together | {number for number in below if number is not None})
    widths_by_name = {ops.column_name(at): width for at, width in enumerate(source.widths)}
    steps, named = _of_operations(sheet.operations, source.rows, widths_by_name)
    outputs = [output.expression for output in sheet.outputs]
    steps += sum(_cost(tree, named) for tree in outputs)
    lengths = tuple(_width(tree, named) for tree in outputs)
    return _Work(source.steps + times * source.rows * steps, source.rows, lengths)


def _of_operations(
    operations: Sequence[ops.Operation], rows: int, widths: Mapping[str, int]
) -> tuple[int, Mapping[str, int]]:
    """Return what operations cost in each row, and how long texts are behind them."""
    steps = 0
    for operation in operations:
        times = 2 if isinstance(operation, ops.WindowColumn) else 1  # what orders rows also tells which are equal
        steps += times * sum(_cost(tree, widths) for tree in operation.trees) + _frame(operation, rows)
        widths = _widths_after(operation, widths)
    return steps, widths


def _key_width(key: Key) -> int:
    if key.type is not Type.TEXT:
        return 0
    return max((len(str(value)) for value in key.values), default=0) if key.values is not None else MAX_LENGTH


def _frame(operation: ops.Operation, rows: int) -> int:
    """Return what the rows of a window cost that are counted from each row."""
    if not isinstance(operation, ops.WindowColumn) or operation.before is None or operation.behind is None:
        return 0
    return _NEIGHBOR * min(rows, abs(operation.before) + abs(operation.behind) + 1)


def _widths_after(operation: ops.Operation, widths: Mapping[str, int]) -> dict[str, int]:
    if isinstance(operation, ops.WindowColumn):
        longest = max((_width(tree, widths) for tree in operation.arguments), default=0)
        return {**widths, operation.name: longest}
    if not isinstance(operation, ops.Gather):
        return dict(widths)
    keys = {key.name: _width(key.expression, widths) for key in operation.keys}
    return keys | {
        total.name: 0 if total.argument is None else _width(total.argument, widths) for total in operation.totals
    }


def _cost(tree: exp.Expr, widths: Mapping[str, int]) -> int:
    """Return what an expression costs in one row: each of its parts, and the long texts that these are."""
    return _measured(tree, widths)[0]


def _width(tree: exp.Expr, widths: Mapping[str, int]) -> int:
    """Return how long the value of an expression can be, as a text; numbers are short."""
    return _measured(tree, widths)[1]


def _measured(node: exp.Expr, widths: Mapping[str, int]) -> tuple[int, int]:
    parts = [_measured(part, widths) for part in node.iter_expressions()]
    match node:
        case exp.Column():
            return _EVALUATION, widths.get(node.name, 0)  # it is there already, however long
        case exp.Literal():
            width = len(node.name)
        case _:
            function = function_of(node)
            work = TextWork() if function is None else function.work
            if work.width is Width.SUM:
                width = sum(max(_SHORT, length) for _, length in parts)
            else:
                width = max((length for _, length in parts), default=0)
                width *= work.growth if isinstance(work.growth, int) else 1
    own = _EVALUATION + _CHARACTER * max(0, width - _SHORT)
    return own + sum(cost for cost, _ in parts), width
