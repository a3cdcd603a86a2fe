"""Reports of all answers: what they lose in all, several options, months, and how often two answers go together."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from incrowd.errors import InvalidParameter
from incrowd.methods.local.choice import options, randomizers
from incrowd.methods.local.crosses import cross_estimates
from incrowd.methods.local.estimates import THESE, estimates_of
from incrowd.methods.local.mechanisms.ratio import Weights, exponential_below
from incrowd.methods.local.survey.definition import LocalSurvey
from incrowd.methods.local.survey.output import _options_fit
from incrowd.methods.local.survey.published import survey_from
from incrowd.methods.local.survey.questions import SurveyQuestion, month_number, month_text
from incrowd.methods.local.tallies import joined, tallies_of
from incrowd.workflows.local.opening import open_survey
from incrowd.workflows.verify.verify import verify
from tests.coins import SeededCoins
from tests.surveys import TOGETHER, TOGETHER_ANSWERS, survey, survey_file

PARTS = {
    "ill": {"categories": ["yes", "no", "maybe"], "skip": "maybe"},
    "pain": {"options": ["back", "head", "knee"], "at_most": "1"},
    "age": {"first": "3", "last": "6", "fanout": "2", "skip": "random"},
}
ANSWERS = {"ill": ["yes", "no", ""], "pain": ["", "back", "head", "knee"], "age": ["3", "5", "6", ""]}


def small(epsilon: str = "3/2") -> LocalSurvey:
    return survey_file(TOGETHER | {"epsilon": epsilon, "questions": PARTS}).survey


def law(question: SurveyQuestion, answer: str) -> dict[Any, Fraction]:
    """Return the chance of every report about one question, a skipped answer drawn evenly, a level drawn first."""
    code = int(question.codes([answer])[0])
    codes = range(question.values) if code == -1 else [code]
    steps = getattr(question.randomizer, "steps", (1,))
    chances: dict[Any, Fraction] = {}
    for level, (step, randomizer) in enumerate(zip(steps, question.randomizers, strict=True)):
        for one in codes:
            for report, chance in randomizer.law(one // step).items():
                key = (level, report)
                chances[key] = chances.get(key, Fraction(0)) + Fraction(chance, len(steps) * len(codes))
    return chances


def test_a_whole_report_loses_at_most_the_sum_whatever_was_answered_or_skipped() -> None:
    """All reports of all pairs of answer sheets; questions are independent, so the worst of each multiply."""
    made = small()
    worst = []
    for question in made.questions:
        laws = [law(question, answer) for answer in ANSWERS[question.name]]
        assert all(sum(one.values()) == 1 and one.keys() == laws[0].keys() for one in laws)
        ratio = max(one[report] / other[report] for one, other in itertools.permutations(laws, 2) for report in one)
        assert question.epsilon is not None
        assert ratio <= exponential_below(question.epsilon)
        worst.append(ratio)
    product = worst[0] * worst[1] * worst[2]
    assert product <= exponential_below(made.epsilon)
    assert product > exponential_below(made.epsilon * Fraction(9999, 10_000))
    assert sum(question.epsilon or 0 for question in made.questions) == made.epsilon


@pytest.mark.parametrize(("most", "width"), [(1, 2), (2, 4), (3, 5), (5, 5)])
def test_options_share_epsilon_among_those_in_which_two_answers_can_differ(most: int, width: int) -> None:
    made = options(5, most, Fraction(2))
    sets = [number for number in range(32) if number.bit_count() <= most]
    laws: list[Mapping[Any, Fraction]] = [made.law(number) for number in sets]
    ratio = max(one[report] / other[report] for one, other in itertools.permutations(laws, 2) for report in one)
    assert made.width == width
    assert ratio == made.ratio <= exponential_below(Fraction(2))


def test_an_answer_has_no_more_options_than_the_survey_allows() -> None:
    question = small().question("pain")
    assert question.codes(["", " back", "knee"]).tolist() == [0, 1, 4]
    for answer in ("back;head", "back;back", "arm", ";", "back;"):
        with pytest.raises(InvalidParameter, match="outside of what the survey asks for"):
            question.codes([answer])


def test_weights_for_fewer_options_than_may_differ_are_refused() -> None:
    public = json.loads(json.dumps(small().public))
    assert survey_from(public).id == small().id
    public["questions"][1]["most"] = "3"
    assert not _options_fit(public["questions"][1])
    with pytest.raises(InvalidParameter, match="not a survey as a collector publishes it"):
        survey_from(public)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": None}, "each question has one"),
        ({"odds": "3"}, "each question has one"),
        ({"answers": "some"}, "is `one`"),
        ({"answers": "one", "questions": {"a": {"categories": ["x", "y"], "epsilon": "1"}}}, "key 'epsilon'"),
        ({"questions": {"a": {"options": ["x", "y;z"]}}}, "without ';'"),
        ({"questions": {"a": {"options": ["x", "y"], "skip": "x"}}}, "choosing none is an answer"),
        ({"questions": {"a": {"options": ["x", "y"], "at_most": "3"}}}, "at_most"),
        ({"questions": {"a": {"from": "2024-13", "to": "2025-01"}}}, "written as 2024-01"),
        ({"questions": {"a": {"ranges": ["5", "5"]}}}, "rising"),
    ],
)
def test_a_survey_of_all_answers_says_what_is_wrong_with_it(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        survey_file(TOGETHER | change)


def test_questions_may_have_parts_of_their_own_and_the_persons_epsilon_is_their_sum(tmp_path: Any) -> None:
    parts = {"a": {"categories": ["x", "y"], "epsilon": "1/3"}, "b": {"options": ["x", "y"], "epsilon": "2/3"}}
    file = survey_file(TOGETHER | {"epsilon": None, "questions": parts}, tmp_path)
    opened = open_survey(file)
    assert file.survey.epsilon == 1
    assert "add up to epsilon" in opened.certificate.steps[0].sentence
    assert verify(opened.folder).passed


def test_months_are_read_from_dates() -> None:
    question = survey_file(TOGETHER).survey.question("since")
    assert question.codes(["2015-01-31", "2026-11", ""]).tolist() == [0, 142, -1]
    assert month_text(month_number("0999-12") or 0) == "0999-12"
    for answer in ("2014-12", "2026-12", "2020-00", "20-01", "2020"):
        with pytest.raises(InvalidParameter, match="outside"):
            question.codes([answer])


def test_reports_that_lack_an_answer_are_refused() -> None:
    made = survey_file(TOGETHER).survey
    (report,) = made.randomize({name: [answer] for name, answer in TOGETHER_ANSWERS.items()}, SeededCoins(1))
    made.read([report])
    short = {**report, "reports": {name: part for name, part in report["reports"].items() if name != "ill"}}
    for wrong in (short, {"survey": made.id, "question": "ill", "report": 1}, {**report, "more": 1}):
        with pytest.raises(InvalidParameter, match="refused"):
            made.read([wrong])


@pytest.mark.parametrize("family", [one.family for one in randomizers(5, Weights(5, 2), Weights(3, 2))], ids=str)
def test_the_products_of_a_cross_are_unbiased_for_every_pair_of_families(family: Any) -> None:
    """The mean over all reports, by their exact chances, of a product of two terms is 1 for the own pair and else 0."""
    one, other = (
        next(made for made in randomizers(size, Weights(5, 2), Weights(3, 2)) if made.family is family)
        for size in (3, 4)
    )
    for made in (one, other):
        for value in range(made.size):
            mean = np.zeros(made.size)
            for report, chance in made.law(value).items():
                mean += float(chance) * made.members(_array(made, report))[0]
            expected = [float(made.p if place == value else made.q) for place in range(made.size)]
            assert mean == pytest.approx(expected, abs=1e-12)


def _array(made: Any, report: Any) -> Any:
    if isinstance(report, tuple):
        return np.packbits(np.isin(np.arange(made.size), report)[None, :], axis=1, bitorder="little")
    return np.array([report], np.int64)


def test_a_cross_finds_which_answers_go_together() -> None:
    """At a confidence of 1 − 1e-8 for each of 25 pairs, one misses with less than 1e-6."""
    asked = {"a": {"categories": ["x", "y", "z"]}, "b": {"options": ["p", "q"]}}
    made = survey_file(TOGETHER | {"epsilon": "6", "questions": asked}).survey
    rows = [("x", "p;q"), ("x", "p"), ("y", "q"), ("z", ""), ("x", "p")] * 4000
    reports = made.randomize({"a": [row[0] for row in rows], "b": [row[1] for row in rows]}, SeededCoins(3))
    cross = cross_estimates(made, reports, ("a", "b"), Fraction(1, 10**8))
    truth = {"x, p": 0.6, "x, q": 0.2, "y, p": 0.0, "y, q": 0.2, "z, p": 0.0, "z, q": 0.0}
    assert {one.value for one in cross.estimates} == set(truth)
    assert all(one.low <= truth[one.value] <= one.high for one in cross.estimates)
    assert next(one for one in cross.estimates if one.value == "x, p").low > 0.4
    assert (cross.about, cross.question, cross.people) == (THESE, "a × b", 20_000)


def test_questions_of_which_a_report_has_one_cannot_be_crossed() -> None:
    asked = {"categories": ["x", "y"]}
    with pytest.raises(InvalidParameter, match="about one question"):
        cross_estimates(survey({"a": asked, "b": asked}), [{}], ("a", "b"))
    made = survey_file(TOGETHER).survey
    for names, message in ((("ill", "hours"), "cannot be crossed"), (("ill", "ill"), "two different questions")):
        with pytest.raises(InvalidParameter, match=message):
            cross_estimates(made, [{}], names)


def test_tallies_of_parts_add_up_to_that_of_all_reports() -> None:
    made = survey_file(TOGETHER).survey
    reports = made.randomize({name: [answer] * 60 for name, answer in TOGETHER_ANSWERS.items()}, SeededCoins(2))
    parts = joined(tallies_of(made, reports[:7]), tallies_of(made, reports[7:]))
    whole = tallies_of(made, reports)
    for name, tally in parts.items():
        assert tally.people == whole[name].people == 60
        assert tally.total == pytest.approx(whole[name].total)
        for one, other in zip(tally.levels, whole[name].levels, strict=True):
            assert np.array_equal(np.asarray(one.support), np.asarray(other.support))
    assert [one.question for one in estimates_of(made, reports)] == list(made.names)
