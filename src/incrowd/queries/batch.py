"""Batch: several questions planned together, and paid for as one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from incrowd.accounting.noise.concentrated import largest_rho
from incrowd.core.steps.step import fold
from incrowd.core.unit import Unit
from incrowd.errors import InvalidParameter
from incrowd.queries.answer import AnswerTables
from incrowd.queries.measurement import NAME, Measurement, QuestionPlan, measurement, price_of
from incrowd.queries.question import Question, Terms
from incrowd.queries.steps.question import Questions

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.engines.sql.engine import Asked

_MISS = 0.05


@dataclass(frozen=True)
class Batch:
    """Questions on shares of one budget; what they promise, they promise together.

    `offered` is what was offered for all of them: a plan that costs more is refused.  None where it is made again.
    """

    measurements: tuple[Measurement, ...]
    unit: Unit
    delta: Fraction
    offered: Terms | None = None

    @cached_property
    def plan(self) -> QuestionPlan:
        """What will be done and what all answers promise together, folded from the steps of all questions."""
        steps = (Questions(tuple(each.steps for each in self.measurements)),)
        promise = fold(steps, self.unit, self.delta)
        return QuestionPlan(NAME, steps, promise, price_of(promise, self.offered), self.draw)

    def draw(self, rows: Asked, coins: Coins) -> AnswerTables:
        """Answer the questions one after the other."""
        return AnswerTables(tuple(answer for each in self.measurements for answer in each.draw(rows, coins).answers))

    @property
    def width(self) -> float:
        """How wide the noise is, as the mean logarithm over all questions; smaller is better."""
        found = [each.noise_choice.noise for each in self.measurements]
        widths = [math.log(noise.law.combined((0, 0), (1.0, 0.0), _MISS)) for noise in found if noise is not None]
        return sum(widths) / max(1, len(widths))


def batch(questions: Sequence[Question], unit: Unit, terms: Terms) -> Batch:
    """Plan questions together: each gets a share of ε (or ρ) in proportion to what it asks for.

    With a δ there are two ways, and the one with the narrower noise is taken: shares of ε, which add up; or shares of
    the ρ that this ε and δ are worth, with Gaussian noise, which is better for many questions.  Thresholds of groups
    that nobody listed take their part of δ first, and ρ is read at the rest.  A plan that costs more than was offered
    is refused.

    >>> from sqlglot import parse_one
    >>> from incrowd.queries.question import Aggregate, Contribution, AggregateKind, OutputColumn
    >>> rows, output = parse_one("SELECT 1 FROM t"), OutputColumn("n", parse_one("n"), "n")
    >>> number, reach = Aggregate("n", AggregateKind.ROWS), Contribution(1, 1)
    >>> count = Question("", rows, (), (number,), (output,), reach, ("t",), ("t",))
    >>> [each.terms.epsilon for each in batch([count, count], Unit(), Terms(epsilon=1)).measurements]
    [Fraction(1, 2), Fraction(1, 2)]
    """
    if not questions:
        raise InvalidParameter("a batch needs at least one question.")
    if terms.epsilon is None or terms.rate is not None:
        raise InvalidParameter("a batch reads all rows and is paid for by one epsilon for all: give epsilon, no rate.")
    shares = _shares(questions, unit)
    plans = [_pure(questions, unit, terms, shares)]
    if terms.delta:
        plans.append(_concentrated(questions, unit, terms, shares))
    chosen = min(plans, key=lambda plan: plan.width)
    _ = chosen.plan  # refused here, if it costs more than was offered
    return chosen


def _shares(questions: Sequence[Question], unit: Unit) -> list[Fraction]:
    """Return for each question its number of statistics and picks, as a share of all."""
    asked = [measurement(question, unit, _trial(question)) for question in questions]
    parts = [len(each.sums.all) + len(each.picks) for each in asked]
    return [Fraction(part, sum(parts)) for part in parts]


def _trial(question: Question) -> Terms:
    return Terms(epsilon=Fraction(1), delta=Fraction(0) if question.public_keys else Fraction(1, 10**6))


def _pure(questions: Sequence[Question], unit: Unit, terms: Terms, shares: Sequence[Fraction]) -> Batch:
    unknown = sum(not question.public_keys for question in questions)
    if unknown and not terms.delta:
        raise InvalidParameter("some groups are not known before rows are read, which needs a delta: give one.")
    made = [
        measurement(
            question,
            unit,
            Terms(
                epsilon=(terms.epsilon or Fraction(0)) * share,
                delta=Fraction(0) if question.public_keys else terms.delta / unknown,
            ),
        )
        for question, share in zip(questions, shares, strict=True)
    ]
    return Batch(tuple(made), unit, sum((each.noise_choice.delta for each in made), Fraction(0)), terms)


def _concentrated(questions: Sequence[Question], unit: Unit, terms: Terms, shares: Sequence[Fraction]) -> Batch:
    unknown = sum(not question.public_keys for question in questions)
    hidden = terms.delta / 2 if unknown else Fraction(0)
    rho = largest_rho(terms.epsilon or Fraction(0), terms.delta - hidden)
    made = [
        measurement(
            question, unit, Terms(rho=rho * share, delta=Fraction(0) if question.public_keys else hidden / unknown)
        )
        for question, share in zip(questions, shares, strict=True)
    ]
    return Batch(tuple(made), unit, terms.delta, terms)
