"""The survey playground: answers are randomized in the browser, and estimates come from reports alone."""

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
from incrowd.methods.local.estimates import QuestionEstimates, estimates_of
from incrowd.methods.local.survey.definition import LocalSurvey, script_hashes
from incrowd.methods.local.survey.questions import ChoiceQuestion
from incrowd.web.collect.pages import guarantee
from incrowd.web.studio.page import Page, PageContent, PageRequest, command
from incrowd.workflows.local.survey_file import load_survey, survey_of

_QUESTION = {"text": "Have you ever taken something that was not yours?", "categories": ["yes", "no"]}
_MOST = 20_000


def show(request: PageRequest) -> PageContent:
    """Show a survey of the folder, or randomized response."""
    return _page(request, _survey(request), ())


def _survey(request: PageRequest) -> LocalSurvey:
    """Return the survey that was named, or randomized response with odds of three, or with another ε."""
    if request.value("survey"):
        return load_survey(request.folder.file(request.value("survey"))).survey
    epsilon = request.value("epsilon")
    if epsilon and not 0 < exact(epsilon, "epsilon") <= 10:
        raise InvalidParameter("choose an epsilon above 0 and up to 10.")
    odds = {"epsilon": epsilon} if epsilon else {"odds": "3"}
    plain = {
        "survey": "1",
        "name": "playground",
        "title": "Randomized response",
        "questions": {"ever": _QUESTION},
        **odds,
    }
    return survey_of(plain, Path()).survey


def _page(request: PageRequest, survey: LocalSurvey, estimates: tuple[QuestionEstimates, ...]) -> PageContent:
    name = request.value("survey")
    content = {
        "surveys": request.folder.surveys(),
        "name": name or None,
        "survey": survey.public,
        "id": survey.id,
        "epsilon": request.value("epsilon"),
        "guarantee": guarantee(survey),
        "odds": [_odds(question) for question in survey.questions if isinstance(question, ChoiceQuestion)],
        "crowd": _choices(survey),
        "scripts": script_hashes(),
        "estimates": [_plain(estimate) for estimate in estimates],
    }
    return PageContent(content, {"picture": joined(map(_picture, estimates))}, _lines(name, survey))


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


def _plain(estimates: QuestionEstimates) -> dict[str, Any]:
    """Return estimates with their intervals in words too, which are not narrower than they are."""
    plain = estimates.to_json()
    for line in plain["estimates"]:
        low, high = math.floor(1000 * line["low"]) / 10, math.ceil(1000 * line["high"]) / 10
        line["interval"] = f"{low:.1f} % to {high:.1f} %"
    return plain


def _picture(estimates: QuestionEstimates) -> Markup:
    shares = [IntervalEstimate(value.value, value.estimate, value.low, value.high) for value in estimates.estimates]
    title = f"Estimated shares of {estimates.question}, with 95 % intervals"
    return tag("figure", error_bars(title, shares), tag("figcaption", title), data_question=estimates.question)


def estimate(request: PageRequest) -> PageContent:
    """Estimate from reports that a browser made; who answered what is not sent here, and nothing is kept."""
    survey = _survey(request)
    if not _choices(survey):
        raise InvalidParameter("simulations need questions with choices.")
    return _page(request, survey, estimates_of(survey, _reports(request.form, survey)))


def _reports(form: Mapping[str, str], survey: LocalSurvey) -> list[dict[str, Any]]:
    """Return the reports of a form: pairs of the number of a question and the report on it."""
    try:
        reports = json.loads(form.get("reports", ""))
        pairs = [(survey.names[int(place)], report) for place, report in reports]
    except (ValueError, TypeError, IndexError, RecursionError):
        raise InvalidParameter("reports are a list of pairs: the number of a question, and the report on it.") from None
    if not 0 < len(pairs) <= _MOST:
        raise InvalidParameter(f"a simulation has 1 to {_MOST:,} people.")
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
    "Answers are randomized in your browser, before they are sent. Shares can still be estimated from the reports.",
    show,
    {"estimate": estimate},
)
