"""Estimates: what reports say of the people who sent them: unbiased estimates, exact intervals, and projections."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter
from incrowd.methods.local.mechanisms.randomizer import Categorical
from incrowd.methods.local.survey.definition import LocalSurvey
from incrowd.methods.local.survey.questions import (
    ChoiceQuestion,
    NumberQuestion,
    OrderedQuestion,
    SeveralQuestion,
    SurveyQuestion,
    WordQuestion,
)
from incrowd.methods.local.survey.steps import WhichAnswers
from incrowd.methods.local.tallies import QuestionTally, Tallies, tallies_of

EXACT = 5_000
"""Up to so many people both binomial numbers are written out; beyond, the sum is bounded by one of them."""
ALPHA = Fraction(1, 20)  # intervals of 95 %, as everywhere

Counts = NDArray[np.int64]
Shares = NDArray[np.float64]


@dataclass(frozen=True)
class Support:
    """Reports of n people, each of which supports a value with chance p if its person has it, else with chance q."""

    people: int
    p: Fraction
    q: Fraction

    def __post_init__(self) -> None:
        if self.people < 1:
            raise InvalidParameter(
                "there is no report yet, so there is no interval. Wait for one, or check the survey."
            )
        if not 0 <= self.q < self.p <= 1:
            raise InvalidParameter("a value must be likelier supported by those who have it than by others.")

    def estimates(self, counts: Counts) -> Shares:
        """Return the unbiased estimates of shares; a rare value can come out below zero.

        >>> Support(100, Fraction(3, 4), Fraction(1, 4)).estimates(np.array([60])).tolist()
        [0.7]
        """
        p, q = float(self.p), float(self.q)
        return np.asarray((counts / self.people - q) / (p - q), np.float64)

    def intervals(self, counts: Counts, alpha: Fraction = ALPHA) -> tuple[Shares, Shares]:
        """Return for each count which shares of these people fit it, both tails at α / 2.

        Up to 5,000 people both tails of Bin(m, p) + Bin(n − m, q), which grow with m, are inverted exactly.  Beyond,
        the tails of the one binomial number with the same mean bound them (Hoeffding 1956, Theorem 4), which is a
        little wider.

        >>> low, high = Support(60, Fraction(1, 2), Fraction(252, 937)).intervals(np.array([20]))
        >>> (low * 60).round(6).tolist(), (high * 60).round(6).tolist()
        ([0.0], [50.0])
        """
        distinct, places = np.unique(counts, return_inverse=True)
        if self.people > EXACT and self.people * float(self.q * (1 - self.q)) > 16.0:
            low, high = self.rates(distinct, alpha)
        else:
            ends = [self._ends(int(count), float(alpha) / 2) for count in distinct]
            low, high = (np.array([end[side] for end in ends]) / self.people for side in (0, 1))
        return low[places], high[places]

    def rates(self, counts: Counts, alpha: Fraction = ALPHA) -> tuple[Shares, Shares]:
        """Return which rates of a population, of which these people are a random sample, fit each count.

        Source: Clopper & Pearson 1934 for the rate of support, mapped to the rate of the value.
        """
        from scipy.special import betaincinv

        n, half = self.people, float(alpha) / 2
        with np.errstate(invalid="ignore"):
            low = np.where(counts > 0, betaincinv(np.maximum(counts, 1), n - counts + 1, half), 0.0)
            high = np.where(counts < n, betaincinv(counts + 1, np.maximum(n - counts, 1), 1 - half), 1.0)
        p, q = float(self.p), float(self.q)
        return np.clip((low - q) / (p - q), 0.0, 1.0), np.clip((high - q) / (p - q), 0.0, 1.0)

    def _ends(self, count: int, half: float) -> tuple[int, int]:
        """Return the least and the greatest m that fit a count; where none does, the end that is nearest."""
        low = _first(lambda m: self._tails(m, count)[1] > half, self.people)
        high = self.people - _first(lambda m: self._tails(self.people - m, count)[0] > half, self.people)
        return (low, high) if low <= high else (min(low, self.people), max(high, 0))

    def _tails(self, having: int, count: int) -> tuple[float, float]:
        """Return the chances of at most, and of at least, so many supports if `having` people have the value."""
        from scipy.special import bdtr, bdtrc

        p, q, rest = float(self.p), float(self.q), self.people - having
        ones = np.arange(having + 1)
        mass = _masses(having, p)
        left = np.where(count - ones < 0, 0.0, bdtr(np.clip(count - ones, 0, rest), rest, q))
        right = np.where(count - ones <= 0, 1.0, bdtrc(np.clip(count - ones - 1, 0, rest), rest, q))
        right = np.where(count - ones > rest, 0.0, right)
        return float(mass @ left), float(mass @ right)


def mean_interval(
    mean: float, number: int, variance: float, reach: float, alpha: Fraction = ALPHA
) -> tuple[float, float]:
    """Return an interval for the mean behind independent unbiased estimates within ±reach, by their own mean.

    `variance` bounds that of each estimate around its mean: for a population, with the differences between people.
    The width does not depend on the reports: it is the smaller of Bernstein's, by that variance, and Hoeffding's.

    >>> low, high = mean_interval(0.0, 1000, 1.0, 2.0)
    >>> round(high, 3)
    0.09
    """
    if not number:
        raise InvalidParameter("there is no report yet, so there is no interval. Wait for one, or check the survey.")
    log = math.log(2 / float(alpha))
    wide = (reach + 1) / 3
    bernstein = (wide * log + math.sqrt((wide * log) ** 2 + 2 * number * variance * log)) / number
    hoeffding = 2 * reach * math.sqrt(log / (2 * number))
    width = min(bernstein, hoeffding)
    return max(-1.0, mean - width), min(1.0, mean + width)


def _first(holds: Callable[[int], bool], most: int) -> int:
    """Return the least number from 0 to `most` at which a condition holds that then goes on to hold, or most + 1."""
    low, high = 0, most + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _masses(number: int, chance: float) -> Shares:
    from scipy.special import gammaln, xlog1py, xlogy

    ones = np.arange(number + 1)
    log = gammaln(number + 1) - gammaln(ones + 1) - gammaln(number - ones + 1)
    return np.asarray(np.exp(log + xlogy(ones, chance) + xlog1py(number - ones, -chance)), np.float64)


def projected(shares: Shares) -> Shares:
    """Return the point of the simplex that is nearest to some estimates: max(share + t, 0) for one t.

    It is never further from the truth than the estimates are, and it is biased: common values come out too small, all
    rare ones together too large.  No interval holds around it.

    Source: Wang et al. 2020 (Norm-Sub), which is this projection (Michelot 1986).

    >>> projected(np.array([0.5, 0.4, 0.3, -0.2])).round(6).tolist()
    [0.433333, 0.333333, 0.233333, 0.0]
    """
    ranked = np.sort(shares)[::-1]
    moves = (1.0 - np.cumsum(ranked)) / np.arange(1, len(shares) + 1)
    last = int(np.flatnonzero(ranked + moves > 0)[-1])
    return np.asarray(np.maximum(shares + moves[last], 0.0), np.float64)


THESE = "these people"
POPULATION = "the population that these people are a random sample of"
KEPT = 16
"""So many prefixes of words are followed."""


@dataclass(frozen=True)
class LocalEstimate:
    """An unbiased estimate with an interval of the true value.

    `projected` and `likeliest` are biased and nearer on average: the nearest shares, or those of largest likelihood,
    that are not below zero and add up to one.  The interval was not made around them, and holds the truth all the same.
    """

    value: str
    estimate: float
    low: float
    high: float
    projected: float | None = None
    likeliest: float | None = None

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
    round: int | None = None
    since: int | None = None
    """The earlier round, where these are changes."""

    @property
    def title(self) -> str:
        """The question, with the round or the two rounds that the estimates are about."""
        if self.round is None:
            return self.question
        return f"{self.question}, " + (
            f"round {self.round}" if self.since is None else f"change from round {self.since} to {self.round}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        estimates = [estimate.to_json() for estimate in self.estimates]
        plain = {name: part for name, part in vars(self).items() if part is not None}
        return {**plain, "confidence": float(self.confidence), "estimates": estimates}


def estimates_of(survey: LocalSurvey, reports: list[Any], alpha: Fraction = ALPHA) -> tuple[QuestionEstimates, ...]:
    """Return what reports say about every question that some of them answer."""
    if not reports:
        raise InvalidParameter("there is no report yet, so there is nothing to estimate. Wait for one.")
    return estimates_from(survey, tallies_of(survey, reports), alpha)


def estimates_from(
    survey: LocalSurvey, tallies: Tallies, alpha: Fraction = ALPHA, *, population: bool = False
) -> tuple[QuestionEstimates, ...]:
    """Return what tallies say about every question that has reports: of these people, or of their population.

    Each interval by itself covers with 1 − α; `alpha` divided by their number makes all of them hold at once.
    """
    questions = [question for question in survey.questions if tallies[question.name].people]
    alone = everyone(survey) and not population
    return tuple(_estimates(question, tallies[question.name], alone, alpha) for question in questions)


def everyone(survey: LocalSurvey) -> bool:
    """Whether everyone who reports answers every question, so that nobody stands for others."""
    return len(survey.questions) == 1 or survey.answers is WhichAnswers.ALL


def _estimates(question: SurveyQuestion, tally: QuestionTally, alone: bool, alpha: Fraction) -> QuestionEstimates:
    about = THESE if alone else POPULATION
    match question:
        case ChoiceQuestion() | SeveralQuestion():
            estimates = _shares(question, tally, alone, alpha)
        case NumberQuestion():
            estimates = (_mean(question, tally, alone, alpha),)
        case OrderedQuestion():
            about, estimates = POPULATION, _ranges(question, tally, alpha)
        case WordQuestion():
            about, estimates = POPULATION, common_words(question, tally, alpha)
        case _:
            raise InvalidParameter("a question of this kind has no estimates.")
    return QuestionEstimates(question.name, tally.people, about, estimates, 1 - alpha)


def _shares(
    question: ChoiceQuestion | SeveralQuestion, tally: QuestionTally, alone: bool, alpha: Fraction
) -> tuple[LocalEstimate, ...]:
    """Return the share of each category, or of each option; shares of options need not add up to one."""
    randomizer: Categorical = question.randomizer
    support = Support(tally.people, randomizer.p, randomizer.q)
    counts = tally.levels[0].supporting(randomizer, np.arange(randomizer.size))
    low, high = support.intervals(counts, alpha) if alone else support.rates(counts, alpha)
    shares = support.estimates(counts)
    near = projected(shares).tolist() if isinstance(question, ChoiceQuestion) else [None] * len(shares)
    columns = (question.labels, shares.tolist(), low.tolist(), high.tolist(), near)
    return tuple(LocalEstimate(*row) for row in zip(*columns, strict=True))


def _mean(question: NumberQuestion, tally: QuestionTally, alone: bool, alpha: Fraction) -> LocalEstimate:
    """Return the mean, on the scale of the question, with an interval about these people, or about their population.

    Where a person answers one of several questions, those who answer this one are a random sample: the variance of an
    estimate then holds the differences between people, too (`Numeric.sampled_variance`).
    """
    randomizer, mean = question.randomizer, tally.total / tally.people
    variance = float(randomizer.fixed_variance if alone else randomizer.sampled_variance)
    ends = mean_interval(mean, tally.people, variance, float(randomizer.largest_estimate), alpha)
    middle, half = float(question.high + question.low) / 2, float(question.high - question.low) / 2
    return LocalEstimate("mean", *(middle + half * end for end in (mean, *ends)))


def range_estimate(
    question: OrderedQuestion, tally: QuestionTally, first: int, last: int, alpha: Fraction = ALPHA
) -> LocalEstimate:
    """Return the share of answers from `first` to `last`: the sum over the fewest nodes, whose intervals share α."""
    nodes = question.randomizer.nodes(first - question.first, last - question.first)
    estimate, low, high = 0.0, 0.0, 0.0
    for place, node in nodes:
        level, part = question.randomizer.levels[place], tally.levels[place]
        support = Support(part.people, level.p, level.q)
        count = part.supporting(level, np.array([node]))
        ends = support.rates(count, alpha / len(nodes))
        estimate += float(support.estimates(count)[0])
        low, high = low + float(ends[0][0]), high + float(ends[1][0])
    label = f"{question.label(first)} to {question.label(last)}"
    return LocalEstimate(label, estimate, min(low, 1.0), min(high, 1.0))


def _ranges(question: OrderedQuestion, tally: QuestionTally, alpha: Fraction) -> tuple[LocalEstimate, ...]:
    """Return the ranges of the coarsest level, or none while no report is about it."""
    if not tally.levels[0].people:
        return ()
    step, size = question.randomizer.steps[0], question.randomizer.size
    starts = range(0, size, step)
    ends = [(question.first + at, question.first + min(at + step, size) - 1) for at in starts]
    return tuple(range_estimate(question, tally, *end, alpha) for end in ends)


def common_words(
    question: WordQuestion, tally: QuestionTally, alpha: Fraction = ALPHA, beam: int = KEPT
) -> tuple[LocalEstimate, ...]:
    """Return words found from prefix to prefix, the most common first: at each length the best are kept.

    Groups of people are disjoint, so earlier choices do not touch the last length's intervals; these share α over all
    words that are compared there, and a word is told only if zero is not in its interval.
    """
    tree = question.randomizer
    if not all(level.people for level in tally.levels):
        return ()
    candidates, step = np.zeros(1, np.int64), tree.size
    shares, low, high = (np.zeros(1) for _ in range(3))
    for place, level in enumerate(tree.levels):
        branches = -(-step // tree.steps[place])
        candidates = (candidates[:, None] * branches + np.arange(branches)[None, :]).reshape(-1)
        step, part = tree.steps[place], tally.levels[place]
        support = Support(part.people, level.p, level.q)
        counts = part.supporting(level, candidates)
        shares, (low, high) = support.estimates(counts), support.rates(counts, alpha / len(candidates))
        best = np.argsort(-shares, kind="stable")[:beam]
        candidates, shares, low, high = candidates[best], shares[best], low[best], high[best]
    words = [question.word(int(candidate), question.length) for candidate in candidates]
    columns = zip(words, shares, low, high, strict=True)
    return tuple(LocalEstimate(word, *map(float, rest)) for word, *rest in columns if rest[1] > 0.0)
