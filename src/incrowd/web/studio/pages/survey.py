"""The survey playground: coins are tossed in the visitor's own browser, and the estimate comes from reports alone."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup

from incrowd.core.rounding import exact
from incrowd.core.words import percent_up
from incrowd.drawing.charts import IntervalEstimate, error_bars
from incrowd.drawing.markup import joined, tag
from incrowd.errors import InvalidParameter
from incrowd.methods.local.estimates.answers import QuestionEstimates, estimates_of
from incrowd.methods.local.survey.definition import LocalSurvey, script_hashes
from incrowd.methods.local.survey.questions import ChoiceQuestion
from incrowd.web.collect.pages import guarantee
from incrowd.web.studio.page import Page, PageContent, PageRequest, command
from incrowd.workflows.local.survey_file import load_survey, survey_of

_QUESTION = {"text": "Have you ever taken something that was not yours?", "categories": ["yes", "no"]}
_MOST = 20_000


def show(asked: PageRequest) -> PageContent:
    """Show a survey of the folder, or the one with two coins."""
    return _shown(asked, _survey(asked), ())


def _survey(asked: PageRequest) -> LocalSurvey:
    """Return the survey that was named, or that of two coins with odds of three, or with another ε."""
    if asked.value("survey"):
        return load_survey(asked.folder.file(asked.value("survey"))).survey
    told = asked.value("epsilon")
    if told and not 0 < exact(told, "epsilon") <= 10:
        raise InvalidParameter("try an epsilon above 0 and up to 10.")
    odds = {"epsilon": told} if told else {"odds": "3"}
    plain = {"survey": "1", "name": "playground", "title": "Two coins", "questions": {"ever": _QUESTION}, **odds}
    return survey_of(plain, Path()).survey


def _shown(asked: PageRequest, survey: LocalSurvey, found: tuple[QuestionEstimates, ...]) -> PageContent:
    name = asked.value("survey")
    content = {
        "surveys": asked.folder.surveys(),
        "name": name or None,
        "survey": survey.public,
        "id": survey.id,
        "epsilon": asked.value("epsilon"),
        "guarantee": guarantee(survey),
        "odds": [_odds(question) for question in survey.questions if isinstance(question, ChoiceQuestion)],
        "crowd": _choices(survey),
        "scripts": script_hashes(),
        "estimates": [_plain(each) for each in found],
    }
    return PageContent(content, {"picture": joined(map(_picture, found))}, _lines(name, survey))


def _choices(survey: LocalSurvey) -> bool:
    return all(isinstance(question, ChoiceQuestion) for question in survey.questions)


def _odds(question: ChoiceQuestion) -> dict[str, Any]:
    """Return how often a report speaks for the true answer, and for each other one."""
    randomizer: Any = question.randomizer
    return {
        "question": question.name,
        "text": question.text,
        "mechanism": str(randomizer.family),
        "true": str(randomizer.p),
        "other": str(randomizer.q),
        "true_share": percent_up(randomizer.p),
        "other_share": percent_up(randomizer.q),
    }


def _plain(found: QuestionEstimates) -> dict[str, Any]:
    """Return estimates with their intervals in words too, which are not narrower than they are."""
    told = found.to_json()
    for each in told["estimates"]:
        low, high = math.floor(1000 * each["low"]) / 10, math.ceil(1000 * each["high"]) / 10
        each["interval"] = f"{low:.1f} % to {high:.1f} %"
    return told


def _picture(found: QuestionEstimates) -> Markup:
    shown = [IntervalEstimate(each.value, each.estimate, each.low, each.high) for each in found.estimates]
    title = f"Estimated shares of {found.question}, with 95 % intervals"
    return tag("figure", error_bars(title, shown), tag("figcaption", title), data_question=found.question)


def estimate(asked: PageRequest) -> PageContent:
    """Estimate from reports that a browser made; who answered what is not sent here, and nothing is kept."""
    survey = _survey(asked)
    if not _choices(survey):
        raise InvalidParameter("crowds are invented for questions with choices alone.")
    return _shown(asked, survey, estimates_of(survey, _reports(asked.form, survey)))


def _reports(form: Mapping[str, str], survey: LocalSurvey) -> list[dict[str, Any]]:
    """Return the reports of a form: pairs of the number of a question and the report on it."""
    try:
        given = json.loads(form.get("reports", ""))
        pairs = [(survey.names[int(place)], report) for place, report in given]
    except (ValueError, TypeError, IndexError, RecursionError):
        raise InvalidParameter("reports are a list of pairs: the number of a question, and the report on it.") from None
    if not 0 < len(pairs) <= _MOST:
        raise InvalidParameter(f"a crowd has from 1 to {_MOST:,} people here.")
    return [{"survey": survey.id, "question": name, "report": report} for name, report in pairs]


def _lines(name: str, survey: LocalSurvey) -> tuple[str, ...]:
    if name:
        serve = command("incrowd", "collect", "serve", "--survey", name)
        return serve, command("incrowd", "local", "estimate", "reports.jsonl", "--survey", name)
    epsilon = f"{float(survey.epsilon):.6g}"
    return (command("incrowd", "local", "plan", "--domain", "2", "--epsilon", epsilon, "--people", "1000"),)


PAGE = Page(
    "survey",
    "Survey playground",
    "Answers are randomized where they are given: here, in your browser. The truth stays there, and the crowd is "
    "still counted.",
    show,
    {"estimate": estimate},
)
