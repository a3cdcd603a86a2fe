"""Estimating: frequencies and means among respondents, from a file of reports; nothing is charged."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

from incrowd.errors import InvalidParameter
from incrowd.methods.local.estimates import QuestionEstimates, estimates_of, range_estimate
from incrowd.methods.local.survey.definition import LocalSurvey
from incrowd.methods.local.survey.questions import OrderedQuestion

_RANGE = re.compile(r"(\w+)=(-?[0-9]+):(-?[0-9]+)")


def estimate_reports(
    survey: LocalSurvey, sent: list[Any], ranges: list[str], confidence: Fraction
) -> tuple[QuestionEstimates, ...]:
    """Return the estimates of every question, and of further ranges of ordered questions."""
    if not 0 < confidence < 1:
        raise InvalidParameter("an interval holds with a confidence strictly between 0 and 1, such as 0.95.")
    estimates = list(estimates_of(survey, sent, 1 - confidence))
    for text in ranges:
        match = _RANGE.fullmatch(text)
        question = None if match is None else survey.question(match[1])
        if match is None or not isinstance(question, OrderedQuestion):
            raise InvalidParameter("a range is written NAME=FIRST:LAST, of a question that has first and last.")
        part = survey.read(sent)[question.name][1]
        one = range_estimate(question, part, int(match[2]), int(match[3]), 1 - confidence)
        place = next(at for at, estimate in enumerate(estimates) if estimate.question == question.name)
        estimates[place] = replace(estimates[place], estimates=(*estimates[place].estimates, one))
    return tuple(estimates)
