"""Crosses: how often two answers go together, from reports that hold both; each was randomized by itself."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter
from incrowd.methods.local.estimates import ALPHA, THESE, LocalEstimate, QuestionEstimates, Support, mean_interval
from incrowd.methods.local.mechanisms.randomizer import CHUNK, Categorical
from incrowd.methods.local.survey.definition import LocalSurvey
from incrowd.methods.local.survey.questions import ChoiceQuestion, SeveralQuestion
from incrowd.methods.local.survey.steps import WhichAnswers

MOST_CELLS = 4096
_FOR_MARGINS = Fraction(1, 10)
"""The part of α with which the two shares that bound a variance may be too small."""


@dataclass(frozen=True)
class _CrossedQuestion:
    """One question of a cross: how often its values are supported, by those who have them and by others."""

    question: ChoiceQuestion | SeveralQuestion
    p: float
    q: float

    @classmethod
    def of(cls, question: ChoiceQuestion | SeveralQuestion) -> _CrossedQuestion:
        return cls(question, float(question.randomizer.p), float(question.randomizer.q))

    @property
    def reach(self) -> float:
        """The largest absolute estimate that one report gives."""
        return max(self.q, 1 - self.q) / (self.p - self.q)

    def square(self, having: bool) -> float:
        """Return the mean square of an estimate, of somebody who has the value or does not."""
        chance = self.p if having else self.q
        return (chance * (1 - self.q) ** 2 + (1 - chance) * self.q**2) / (self.p - self.q) ** 2


def cross_estimates(
    survey: LocalSurvey, reports: list[Any], names: tuple[str, str], alpha: Fraction = ALPHA
) -> QuestionEstimates:
    """Return the shares of all pairs of answers to two questions, each with an interval about these people.

    A report supports a value v of the first question with chance p if its person has it, else with q.  So
    (1[v] − q) / (p − q) has mean 1 or 0, and the product of two such terms, which are independent given both answers,
    is unbiased for "has both".  The interval is Bernstein's.
    """
    one, other = (_CrossedQuestion.of(_categories(survey, name)) for name in names)
    cells = len(one.question.labels) * len(other.question.labels)
    if names[0] == names[1] or cells > MOST_CELLS:
        raise InvalidParameter(f"a cross is of two different questions, with at most {MOST_CELLS:,} pairs of answers.")
    if not reports:
        raise InvalidParameter("there is no report yet, so there is nothing to estimate. Wait for one.")
    parts = survey.read(reports)
    both, firsts, seconds = _supports(
        one.question.randomizer, parts[names[0]][1], other.question.randomizer, parts[names[1]][1]
    )
    people = len(reports)
    shares = (
        both / people - other.q * firsts[:, None] / people - one.q * seconds[None, :] / people + one.q * other.q
    ) / ((one.p - one.q) * (other.p - other.q))
    largest = [_largest(side, counts, people, alpha) for side, counts in ((one, firsts), (other, seconds))]
    estimates = []
    for row, first in enumerate(one.question.labels):
        for column, second in enumerate(other.question.labels):
            variance = _variance(one, other, largest[0][row], largest[1][column])
            reach = one.reach * other.reach
            share = float(shares[row, column])
            low, high = mean_interval(share, people, variance, reach, (1 - _FOR_MARGINS) * alpha)
            estimates.append(LocalEstimate(f"{first}, {second}", share, max(low, 0.0), max(high, 0.0)))
    return QuestionEstimates(" × ".join(names), people, THESE, tuple(estimates), 1 - alpha)


def _categories(survey: LocalSurvey, name: str) -> ChoiceQuestion | SeveralQuestion:
    question = survey.question(name)
    if survey.answers is not WhichAnswers.ALL:
        raise InvalidParameter(
            "a report of this survey is about one question, so two cannot be crossed. Open a survey with `answers: "
            "all`, or ask for the combination in one question."
        )
    if not isinstance(question, ChoiceQuestion | SeveralQuestion):
        raise InvalidParameter(f"{name!r} cannot be crossed: questions with categories, ranges or options can.")
    return question


def _supports(
    one: Categorical, ones: Any, other: Categorical, others: Any
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Return how many reports support each pair of values, and each value of both questions."""
    both = np.zeros((one.size, other.size))
    for at in range(0, len(ones), CHUNK):
        left, right = one.members(ones[at : at + CHUNK]), other.members(others[at : at + CHUNK])
        both += left.T.astype(np.float64) @ right.astype(np.float64)
    return both, one.support(ones), other.support(others)


def _largest(side: _CrossedQuestion, counts: NDArray[np.int64], people: int, alpha: Fraction) -> NDArray[np.float64]:
    """Return how large the share of each value can be, one of two bounds that may fail with a part of α together."""
    support = Support(people, side.question.randomizer.p, side.question.randomizer.q)
    return support.intervals(counts, _FOR_MARGINS * alpha)[1]


def _variance(one: _CrossedQuestion, other: _CrossedQuestion, first: float, second: float) -> float:
    """Return a bound on the mean variance of products, where at most these shares of people have the two values.

    The mean square of a product is the product of mean squares: linear in the shares of people who have both, the first
    alone, the second alone, or neither.
    """
    squares = {(a, b): one.square(a) * other.square(b) for a in (True, False) for b in (True, False)}
    neither = squares[False, False]
    more, less = squares[True, False] - neither, squares[False, True] - neither
    together = squares[True, True] - squares[True, False] - squares[False, True] + neither
    return neither + first * max(more, 0.0) + second * max(less, 0.0) + min(first, second) * max(together, 0.0)
