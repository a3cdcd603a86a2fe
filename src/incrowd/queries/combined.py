"""Combined measurement: how the parts of a combination are answered, paid for as one, and what is made of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from incrowd.core.steps.step import fold
from incrowd.errors import InvalidParameter
from incrowd.queries.answer import Answer, AnswerTables, check_names
from incrowd.queries.batch import Batch, batch
from incrowd.queries.combination import (
    Combination,
    Interpreted,
    JoinedSheet,
    PartSheet,
    RowSheet,
    Sheet,
    StackedSheet,
    WorkedSheet,
    column_name,
)
from incrowd.queries.measurement import NAME, Measurement, QuestionPlan, measurement, price_of
from incrowd.queries.measuring.columns import COMPUTED, Expected
from incrowd.queries.measuring.combined import check_sheet, combined_answer
from incrowd.queries.operations import Gather
from incrowd.queries.question import Question, Terms
from incrowd.queries.steps.question import Combine, Questions

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp

    from incrowd.core.coins import Coins
    from incrowd.core.unit import Unit
    from incrowd.engines.sql.engine import Asked


def measure(asked: Interpreted, unit: Unit, terms: Terms) -> Measured:
    """Return how a question is answered on these terms, alone or as a combination of several; no row is read."""
    check_names(each.name for each in (asked.outputs if isinstance(asked, Question) else asked.sheet.columns))
    if isinstance(asked, Question):
        return measurement(asked, unit, terms)
    if terms.epsilon is None or terms.rate is not None:
        raise InvalidParameter(
            "this question is made of several answers, which are paid for by one epsilon for all: give epsilon, and no "
            "rate, or ask for each of them alone."
        )
    check_sheet(asked.sheet)
    return CombinedMeasurement(asked, batch(asked.parts, unit, terms), terms)


@dataclass(frozen=True)
class CombinedMeasurement:
    """A combination on terms: its parts are planned together as a batch is, each on its share."""

    question: Combination
    parts: Batch
    terms: Terms | None = None

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """How the parts are answered."""
        return self.parts.measurements

    @cached_property
    def plan(self) -> QuestionPlan:
        """What will be done and what the answer promises, folded from the steps of all parts."""
        shown = Combine(self.question.text, tuple(each.name for each in self.question.sheet.columns))
        steps = (Questions(tuple(each.steps for each in self.measurements)), shown)
        promise = fold(steps, self.parts.unit, self.parts.delta)
        return QuestionPlan(NAME, steps, promise, price_of(promise, self.terms), self.draw)

    @property
    def statistics(self) -> tuple[exp.Query, ...]:
        """The queries whose results all parts need."""
        return tuple(query for each in self.measurements for query in each.statistics)

    def draw(self, rows: Asked, coins: Coins) -> AnswerTables:
        """Collect the statistics of all parts from one state of the tables, and make one answer of theirs."""
        return AnswerTables((self.answer(rows.collect_together(self.statistics), coins),))

    def answer(self, collected: tuple[pa.Table, ...], coins: Coins) -> Answer:
        """Return the answer that is made of those to what the engine collected for `statistics`."""
        tables = iter(collected)
        answers = [each.noisy_answer(tuple(next(tables) for _ in each.statistics), coins) for each in self.measurements]
        return combined_answer(self.question, answers)

    @cached_property
    def expected(self) -> tuple[Expected, ...]:
        """How exact each column of the answer will be; of one with numbers of several answers, each is told."""
        told: list[Expected] = []
        for at, column in enumerate(self.question.sheet.columns):
            for part, place in dict.fromkeys(_origins(self.question.sheet, at)):
                told += self._expected(column.name, part, place)
        return tuple(dict.fromkeys(told))

    def _expected(self, name: str, part: int | None, place: int) -> Iterator[Expected]:
        if part is None:
            yield Expected(name, note=COMPUTED)
            return
        asked = self.measurements[part]
        output = asked.question.outputs[place].name
        yield from (replace(each, output=name) for each in asked.expected if each.output == output)


Measured = Measurement | CombinedMeasurement
"""How a question is answered, alone or made of several."""


def _origins(sheet: Sheet, at: int) -> Iterator[tuple[int | None, int]]:
    """Yield the parts and places of the columns that a column shows as they are, None for what is computed."""
    match sheet:
        case PartSheet(part=part):
            yield part, at
        case RowSheet():
            return
        case StackedSheet(sheets=sheets):
            for each in sheets:
                yield from _origins(each, at)
        case JoinedSheet(left=left, right=right):
            width = len(left.columns)
            yield from _origins(left, at) if at < width else _origins(right, at - width)
        case WorkedSheet(source=source, operations=operations, outputs=outputs):
            names = {column_name(place): place for place in range(len(source.columns))}
            told = outputs[at]
            gathered = any(isinstance(each, Gather) for each in operations)
            bare = told.expression.name if len(told.names) == 1 and told.expression.key == "column" else None
            if bare in names and not gathered:
                yield from _origins(source, names[bare])
            elif told.names:
                yield None, 0
