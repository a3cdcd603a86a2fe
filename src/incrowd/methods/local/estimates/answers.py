"""Answers: what the reports to each question of a survey say, with intervals; projections stand apart from them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter
from incrowd.methods.local.estimates.intervals import ALPHA, Support, mean_interval
from incrowd.methods.local.estimates.projection import projected
from incrowd.methods.local.mechanisms.hashed import LocalHashing
from incrowd.methods.local.mechanisms.randomizer import Categorical
from incrowd.methods.local.survey.definition import LocalSurvey
from incrowd.methods.local.survey.questions import (
    ChoiceQuestion,
    NumberQuestion,
    OrderedQuestion,
    SurveyQuestion,
    WordQuestion,
)

THESE = "these people"
POPULATION = "the population that these people are a random sample of"
KEPT = 16
"""So many prefixes of words are followed."""


@dataclass(frozen=True)
class LocalEstimate:
    """An unbiased estimate with an interval; `projected` is biased, nearer on average, and has none."""

    value: str
    estimate: float
    low: float
    high: float
    projected: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        return {name: part for name, part in vars(self).items() if part is not None}


@dataclass(frozen=True)
class QuestionEstimates:
    """The estimates of one question, of how many reports, and about whom the intervals speak."""

    question: str
    people: int
    about: str
    estimates: tuple[LocalEstimate, ...]
    confidence: Fraction = 1 - ALPHA

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        told = [estimate.to_json() for estimate in self.estimates]
        return {**vars(self), "confidence": float(self.confidence), "estimates": told}


def estimates_of(survey: LocalSurvey, reports: list[Any], alpha: Fraction = ALPHA) -> tuple[QuestionEstimates, ...]:
    """Return what reports say about every question that some of them answer.

    Each interval by itself covers with 1 − α; `alpha` divided by their number makes all of them hold at once.
    """
    if not reports:
        raise InvalidParameter("there is no report yet, so there is nothing to estimate. Wait for one.")
    alone = len(survey.questions) == 1
    found = []
    for name, (rows, part) in survey.read(reports).items():
        if len(rows):
            found.append(_estimates(survey.question(name), part, len(rows), alone, alpha))
    return tuple(found)


def _estimates(question: SurveyQuestion, part: Any, people: int, alone: bool, alpha: Fraction) -> QuestionEstimates:
    match question:
        case ChoiceQuestion():
            about, found = (THESE if alone else POPULATION), _shares(question, part, alone, alpha)
        case NumberQuestion():
            about, found = (THESE if alone else POPULATION), (_mean(question, part, alone, alpha),)
        case OrderedQuestion():
            about, found = POPULATION, _ranges(question, part, alpha)
        case WordQuestion():
            about, found = POPULATION, common_words(question, part, alpha)
        case _:
            raise InvalidParameter("a question of this kind has no estimates.")
    return QuestionEstimates(question.name, people, about, found, 1 - alpha)


def _shares(question: ChoiceQuestion, reports: Any, alone: bool, alpha: Fraction) -> tuple[LocalEstimate, ...]:
    randomizer: Categorical = question.randomizer
    support = Support(len(reports), randomizer.p, randomizer.q)
    counts = randomizer.support(reports)
    low, high = support.intervals(counts, alpha) if alone else support.rates(counts, alpha)
    shares = support.estimates(counts)
    near = projected(shares)
    columns = (question.labels, shares, low, high, near)
    return tuple(LocalEstimate(label, *map(float, rest)) for label, *rest in zip(*columns, strict=True))


def _mean(question: NumberQuestion, reports: NDArray[np.int64], alone: bool, alpha: Fraction) -> LocalEstimate:
    """Return the mean, on the scale of the question, with an interval about these people, or about their population.

    Where a person answers one of several questions, those who answer this one are a random sample: the variance of an
    estimate then holds the differences between people, too (`Numeric.sampled_variance`).
    """
    randomizer = question.randomizer
    variance = float(randomizer.fixed_variance if alone else randomizer.sampled_variance)
    largest = float(randomizer.largest_estimate)
    found = mean_interval(randomizer.estimates(reports), variance, largest, alpha)
    middle, half = float(question.high + question.low) / 2, float(question.high - question.low) / 2
    low, mean, high = (middle + half * each for each in found)
    return LocalEstimate("mean", mean, low, high)


def range_estimate(
    question: OrderedQuestion, reports: Any, first: int, last: int, alpha: Fraction = ALPHA
) -> LocalEstimate:
    """Return the share of answers from `first` to `last`: the sum over the fewest nodes, whose intervals share α."""
    nodes = question.randomizer.nodes(first - question.first, last - question.first)
    estimate, low, high = 0.0, 0.0, 0.0
    for place, node in nodes:
        level, part = question.randomizer.levels[place], reports[1][place]
        support = Support(len(part), level.p, level.q)
        count = level.support(part)[node : node + 1]
        ends = support.rates(count, alpha / len(nodes))
        estimate += float(support.estimates(count)[0])
        low, high = low + float(ends[0][0]), high + float(ends[1][0])
    return LocalEstimate(f"{first} to {last}", estimate, min(low, 1.0), min(high, 1.0))


def _ranges(question: OrderedQuestion, reports: Any, alpha: Fraction) -> tuple[LocalEstimate, ...]:
    """Return the ranges of the coarsest level."""
    step, size = question.randomizer.steps[0], question.randomizer.size
    starts = range(0, size, step)
    ends = [(question.first + at, question.first + min(at + step, size) - 1) for at in starts]
    return tuple(range_estimate(question, reports, *end, alpha) for end in ends)


def common_words(
    question: WordQuestion, reports: Any, alpha: Fraction = ALPHA, kept: int = KEPT
) -> tuple[LocalEstimate, ...]:
    """Return words found from prefix to prefix, the most common first: at each length the best are kept.

    Groups of people are disjoint, so earlier choices do not touch the last length's intervals; these share α over all
    words that are compared there, and a word is told only if zero is not in its interval.
    """
    tree = question.randomizer
    candidates, step = np.zeros(1, np.int64), tree.size
    shares, low, high = (np.zeros(1) for _ in range(3))
    for place, level in enumerate(tree.levels):
        branches = -(-step // tree.steps[place])
        candidates = (candidates[:, None] * branches + np.arange(branches)[None, :]).reshape(-1)
        step, part = tree.steps[place], reports[1][place]
        support = Support(len(part), level.p, level.q)
        counts = _supported(level, part, candidates)
        shares, (low, high) = support.estimates(counts), support.rates(counts, alpha / len(candidates))
        best = np.argsort(-shares, kind="stable")[:kept]
        candidates, shares, low, high = candidates[best], shares[best], low[best], high[best]
    words = [question.word(int(candidate), question.length) for candidate in candidates]
    told = zip(words, shares, low, high, strict=True)
    return tuple(LocalEstimate(word, *map(float, rest)) for word, *rest in told if rest[1] > 0.0)


def _supported(level: Categorical, reports: Any, candidates: NDArray[np.int64]) -> NDArray[np.int64]:
    if isinstance(level, LocalHashing):
        return level.support_of(reports, candidates)
    return level.support(reports)[candidates]
