"""Estimating: frequencies and means among respondents, from their reports; nothing is charged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from incrowd.errors import InvalidParameter
from incrowd.methods.local.changes import round_estimates
from incrowd.methods.local.crosses import cross_estimates
from incrowd.methods.local.estimates import LocalEstimate, QuestionEstimates, estimates_from, range_estimate
from incrowd.methods.local.likelihood import likeliest
from incrowd.methods.local.survey.definition import LocalSurvey
from incrowd.methods.local.survey.questions import ChoiceQuestion, OrderedQuestion
from incrowd.methods.local.tallies import Tallies, tallies_by_round, tallies_of


@dataclass(frozen=True)
class EstimateQuery:
    """What is estimated besides every question: ranges (NAME=FIRST:LAST), crosses (NAME:NAME), likeliest shares."""

    ranges: Sequence[str] = ()
    crosses: Sequence[str] = ()
    confidence: Fraction = Fraction(19, 20)
    likelihood: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise InvalidParameter("an interval holds with a confidence strictly between 0 and 1, such as 0.95.")

    @property
    def alpha(self) -> Fraction:
        """How often an interval may miss."""
        return 1 - self.confidence


def estimate_reports(survey: LocalSurvey, sent: list[Any], query: EstimateQuery) -> tuple[QuestionEstimates, ...]:
    """Return the estimates of every question, of further ranges of ordered questions, and of crosses."""
    if not sent:
        raise InvalidParameter("there is no report yet, so there is nothing to estimate. Wait for one.")
    if survey.rounds is not None:
        if query.ranges or query.crosses or query.likelihood:
            raise InvalidParameter(
                "a survey with rounds is estimated round by round: leave --range, --cross and --likelihood out."
            )
        return round_estimates(survey, tallies_by_round(survey, sent), query.alpha)
    tallies = tallies_of(survey, sent)
    estimates = {one.question: one for one in estimates_from(survey, tallies, query.alpha)}
    for text in query.ranges:
        name, one = _range(survey, tallies, text, query.alpha)
        estimates[name] = replace(estimates[name], estimates=(*estimates[name].estimates, one))
    if query.likelihood:
        estimates = {name: _with_likelihood(survey, sent, one) for name, one in estimates.items()}
    pairs = [_pair(text) for text in query.crosses]
    return (*estimates.values(), *(cross_estimates(survey, sent, pair, query.alpha) for pair in pairs))


def _with_likelihood(survey: LocalSurvey, sent: list[Any], one: QuestionEstimates) -> QuestionEstimates:
    """Return the estimates of a choice with the shares of largest likelihood; those of other questions as they are."""
    question = survey.question(one.question)
    if not isinstance(question, ChoiceQuestion):
        return one
    shares = likeliest(question.randomizer, survey.read(sent)[question.name][1]).tolist()
    columns = zip(one.estimates, shares, strict=True)
    return replace(one, estimates=tuple(replace(estimate, likeliest=share) for estimate, share in columns))


def _range(survey: LocalSurvey, tallies: Tallies, text: str, alpha: Fraction) -> tuple[str, LocalEstimate]:
    name, _, ends = text.partition("=")
    question = survey.question(name) if ends.count(":") == 1 else None
    if not isinstance(question, OrderedQuestion):
        raise InvalidParameter(
            "a range is written NAME=FIRST:LAST, of a question that has first and last, or from and to."
        )
    first, last = (question.number(end) for end in ends.split(":"))
    return name, range_estimate(question, tallies[name], first, last, alpha)


def _pair(text: str) -> tuple[str, str]:
    one, _, other = text.partition(":")
    if not one or not other:
        raise InvalidParameter("a cross is written NAME:NAME, with the names of two questions.")
    return one, other
