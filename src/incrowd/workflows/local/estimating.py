"""Estimating: frequencies and means among respondents, from a file of reports; nothing is charged."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from incrowd.errors import InvalidParameter
from incrowd.methods.local.estimates import QuestionEstimates, estimates_of, range_estimate
from incrowd.methods.local.survey.questions import OrderedQuestion
from incrowd.workflows.local.randomize import read_reports
from incrowd.workflows.local.survey_file import load_survey

_RANGE = re.compile(r"(\w+)=(-?[0-9]+):(-?[0-9]+)")


def estimate_reports(
    survey: Path, reports: Path, ranges: list[str], confidence: Fraction
) -> tuple[QuestionEstimates, ...]:
    """Return the estimates of every question, and of further ranges of ordered questions."""
    if not 0 < confidence < 1:
        raise InvalidParameter("an interval holds with a confidence strictly between 0 and 1, such as 0.95.")
    definition, sent = load_survey(survey).survey, read_reports(reports)
    estimates = list(estimates_of(definition, sent, 1 - confidence))
    for text in ranges:
        match = _RANGE.fullmatch(text)
        question = None if match is None else definition.question(match[1])
        if match is None or not isinstance(question, OrderedQuestion):
            raise InvalidParameter("a range is written NAME=FIRST:LAST, of a question that has first and last.")
        part = definition.read(sent)[question.name][1]
        one = range_estimate(question, part, int(match[2]), int(match[3]), 1 - confidence)
        place = next(at for at, estimate in enumerate(estimates) if estimate.question == question.name)
        estimates[place] = replace(estimates[place], estimates=(*estimates[place].estimates, one))
    return tuple(estimates)
