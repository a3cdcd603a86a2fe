"""Estimating: what a file of reports says about the people who sent them; reports are read, and nothing is charged."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from incrowd.errors import InvalidParameter
from incrowd.methods.local.estimates.answers import QuestionEstimates, estimates_of, range_estimate
from incrowd.methods.local.survey.questions import OrderedQuestion
from incrowd.workflows.local.randomize import read_reports
from incrowd.workflows.local.survey_file import load_survey

_RANGE = re.compile(r"(\w+)=(-?[0-9]+):(-?[0-9]+)")


def estimate_reports(
    survey: Path, reports: Path, ranges: list[str], confidence: Fraction
) -> tuple[QuestionEstimates, ...]:
    """Return the estimates of every question, and of the ranges that were asked for in place of a tree's own."""
    if not 0 < confidence < 1:
        raise InvalidParameter("an interval holds with a confidence strictly between 0 and 1, such as 0.95.")
    asked, given = load_survey(survey).survey, read_reports(reports)
    found = list(estimates_of(asked, given, 1 - confidence))
    for text in ranges:
        match = _RANGE.fullmatch(text)
        question = None if match is None else asked.question(match[1])
        if match is None or not isinstance(question, OrderedQuestion):
            raise InvalidParameter("a range is written NAME=FIRST:LAST, of a question that has first and last.")
        part = asked.read(given)[question.name][1]
        one = range_estimate(question, part, int(match[2]), int(match[3]), 1 - confidence)
        place = next(at for at, each in enumerate(found) if each.question == question.name)
        found[place] = replace(found[place], estimates=(*found[place].estimates, one))
    return tuple(found)
