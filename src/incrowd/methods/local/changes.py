"""Changes: estimates of each round of a survey, and of what changed from one round to the next, with intervals."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from incrowd.methods.local.estimates import ALPHA, LocalEstimate, QuestionEstimates, estimates_from
from incrowd.methods.local.survey.definition import LocalSurvey
from incrowd.methods.local.survey.questions import ChoiceQuestion, NumberQuestion, SeveralQuestion
from incrowd.methods.local.tallies import RoundTallies, Tallies


def round_estimates(
    survey: LocalSurvey, rounds: RoundTallies, alpha: Fraction = ALPHA
) -> tuple[QuestionEstimates, ...]:
    """Return the estimates of each round, then for shares and means the change since the round before that has reports.

    Where each person answers in one round, the people of a round stand for a population.  Where people answer in every
    round, estimates are about those who did.
    """
    if None in rounds:
        return estimates_from(survey, rounds[None], alpha)
    estimates = [
        replace(one, round=turn) for turn, tallies in rounds.items() for one in _of_round(survey, tallies, alpha)
    ]
    changes = []
    for question in survey.questions:
        if isinstance(question, ChoiceQuestion | SeveralQuestion | NumberQuestion):
            own = [one for one in estimates if one.question == question.name]
            changes += [change(*pair) for pair in pairwise(own)]
    return (*estimates, *changes)


def _of_round(survey: LocalSurvey, tallies: Tallies, alpha: Fraction) -> tuple[QuestionEstimates, ...]:
    return estimates_from(survey, tallies, alpha, population=not survey.memoized)


def change(before: QuestionEstimates, after: QuestionEstimates) -> QuestionEstimates:
    """Return what changed from one round to another, with an interval from those of both rounds.

    Each end is as far from the difference as the root of the sum of the squared distances of the ends of both
    intervals.  People of one round each are independent.  Reports that one person sends in two rounds share permanent
    answers at most, so the errors of both estimates are never negatively correlated: their difference varies no more
    than that of independent ones.

    Source: Newcombe 1998, method 10; Zou & Donner 2008 for intervals that are not symmetric.
    """
    pairs = zip(before.estimates, after.estimates, strict=True)
    return QuestionEstimates(
        after.question,
        min(before.people, after.people),
        after.about,
        tuple(_difference(*pair) for pair in pairs),
        after.confidence,
        after.round,
        before.round,
    )


def _difference(before: LocalEstimate, after: LocalEstimate) -> LocalEstimate:
    difference = after.estimate - before.estimate
    down = math.hypot(after.estimate - after.low, before.high - before.estimate)
    up = math.hypot(after.high - after.estimate, before.estimate - before.low)
    return LocalEstimate(after.value, difference, difference - down, difference + up)
