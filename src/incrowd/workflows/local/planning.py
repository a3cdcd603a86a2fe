"""Planning: the best randomizer for a domain, an ε and a number of people; and what a survey file lets expect."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from incrowd.accounting.amplification import shuffled_epsilon
from incrowd.core.rounding import exact
from incrowd.errors import InvalidParameter
from incrowd.methods.local.choice import best, optimum, randomizers
from incrowd.methods.local.estimates import Support, everyone, mean_interval
from incrowd.methods.local.mechanisms.randomizer import Categorical, Family
from incrowd.methods.local.survey.definition import LocalSurvey
from incrowd.methods.local.survey.questions import NumberQuestion, SurveyQuestion, TreeQuestion, WordQuestion
from incrowd.workflows.local.survey_questions import SurveyOdds


@dataclass(frozen=True)
class ExpectedError:
    """The expected error of a randomizer: the mean squared error of one share, and of all shares together."""

    mechanism: str
    width: int | None
    bits: int
    total_error: float
    mean_error: float

    @classmethod
    def of(cls, randomizer: Categorical, people: int) -> ExpectedError:
        """Return the expected error for a number of people."""
        total = float(randomizer.error) / people
        randomness = randomizer.randomness
        return cls(str(randomizer.family), randomness.width, randomizer.bits, total, total / randomizer.size)


@dataclass(frozen=True)
class LocalPlan:
    """The best randomizer, the others, and the least error that any could have for people drawn at random."""

    domain: int
    epsilon: Fraction
    people: int
    choice: ExpectedError
    others: tuple[ExpectedError, ...]
    optimum: float
    sampled_error: float
    shuffled: tuple[float, float] | None = None

    @property
    def above_optimum(self) -> float:
        """By how much the choice's error exceeds the optimum, both for people drawn at random from even values."""
        return max(0.0, self.sampled_error / self.optimum - 1.0)

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        return {
            "domain": self.domain,
            "epsilon": str(self.epsilon),
            "people": self.people,
            **vars(self.choice),
            "sampled_error": self.sampled_error,
            "optimum": self.optimum,
            "above_optimum": self.above_optimum,
            "others": [vars(other) for other in self.others],
            "shuffled": None if self.shuffled is None else dict(zip(("epsilon", "delta"), self.shuffled, strict=True)),
        }


def plan_locally(domain: int, epsilon: str, people: int, delta: str | None = None) -> LocalPlan:
    """Choose a randomizer by public numbers alone; with δ, also compute the ε of all reports shuffled.

    >>> plan_locally(100, "1", 1_000_000).choice.mechanism
    'subset'
    """
    if people < 1 or domain < 2:
        raise InvalidParameter("a survey has two or more values and at least one person: write --domain and --people.")
    odds = SurveyOdds.of(exact(epsilon, "epsilon"))
    tried = list(randomizers(domain, odds.whole, odds.half))
    chosen = best(domain, odds.whole, odds.half)
    least = optimum(domain, float(odds.epsilon)) / people
    spread = (1.0 - 1.0 / domain) / people
    ranked = sorted((ExpectedError.of(error, people) for error in tried), key=lambda error: error.total_error)
    choice = ExpectedError.of(chosen, people)
    values = domain if chosen.family is Family.RESPONSE else None
    shuffled = None
    if delta is not None and people > 1:
        at = exact(delta, "delta")
        shuffled = shuffled_epsilon(chosen.ratio, people, at, values), float(at)
    others = tuple(error for error in ranked if error.mechanism != choice.mechanism)
    return LocalPlan(domain, odds.epsilon, people, choice, others, least, choice.total_error + spread, shuffled)


@dataclass(frozen=True)
class ExpectedEstimate:
    """What a question lets expect: how many reports are about it, and how wide an interval of 95 % will be.

    `half_width` is that of the interval of one share, where all are alike, of a range of the coarsest level, or of a
    mean; for words, it is the share from which on a word is found for sure, five standard deviations.
    """

    question: str
    mechanism: str
    reports: int
    about: str
    half_width: float


@dataclass(frozen=True)
class SurveyPlan:
    """What a survey lets expect from a number of people: ε of a report, estimates, and how many batches fill up."""

    people: int
    epsilon: Fraction
    questions: tuple[ExpectedEstimate, ...]
    batches: int | None = None
    shuffled: tuple[float, float] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        questions = [vars(question) for question in self.questions]
        return {**vars(self), "epsilon": str(self.epsilon), "questions": questions}


def plan_survey(survey: LocalSurvey, people: int) -> SurveyPlan:
    """Return what a survey lets expect, by public numbers alone; nothing is opened or charged."""
    if people < 1:
        raise InvalidParameter("a survey has at least one person: write --people.")
    counted, batches, shuffled = people, None, None
    if survey.batches is not None:
        batches = people // survey.batches.batch
        counted = batches * survey.batches.batch
        shuffled = float(survey.plan.numbers["shuffled epsilon"]), float(survey.batches.delta)
    reports = counted if everyone(survey) else counted // len(survey.questions)
    questions = tuple(_expected(question, reports, everyone(survey)) for question in survey.questions)
    return SurveyPlan(people, survey.epsilon, questions, batches, shuffled)


def _expected(question: SurveyQuestion, reports: int, alone: bool) -> ExpectedEstimate:
    if isinstance(question, NumberQuestion):
        about, made = "mean", question.randomizer
        half = float(question.high - question.low) / 2
        variance = float(made.fixed_variance if alone else made.sampled_variance)
        ends = mean_interval(0.0, max(1, reports), variance, float(made.largest_estimate))
        width = half * (ends[1] - ends[0]) / 2 if reports else half
        return ExpectedEstimate(question.name, str(made.family), reports, about, width)
    level: Any = question.randomizers[0]
    if isinstance(question, WordQuestion):
        level, part = question.randomizers[-1], reports // len(question.randomizers)
        spread = 5 * float(level.variance(Fraction(0))) ** 0.5 / max(1, part) ** 0.5
        return ExpectedEstimate(question.name, str(level.family), reports, "word", min(1.0, spread))
    tree = isinstance(question, TreeQuestion)
    part = reports // len(question.randomizers)
    about = "range" if tree else "share"
    return ExpectedEstimate(
        question.name, str(level.family), reports, about, _half_width(level, part, alone and not tree)
    )


def _half_width(level: Categorical, reports: int, alone: bool) -> float:
    """Return half of the interval of a share, at the count that is likeliest where all values are alike."""
    if not reports:
        return 0.5
    support = Support(reports, level.p, level.q)
    share = Fraction(1, level.values if level.family is not Family.OPTIONS else 2)
    count = np.array([round(reports * float(level.q + share * (level.p - level.q)))])
    low, high = support.intervals(count) if alone else support.rates(count)
    return float(high[0] - low[0]) / 2
