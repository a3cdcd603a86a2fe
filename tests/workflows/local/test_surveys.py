"""A survey is charged once, certified, verified, and answered once by each person."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from incrowd.errors import BudgetExceeded, IncrowdError, InvalidParameter, LedgerUnavailable, Refused
from incrowd.methods.local.estimates import estimates_of
from incrowd.methods.local.survey.definition import script_hashes
from incrowd.methods.local.survey.output import CHECK
from incrowd.methods.local.survey.published import survey_from
from incrowd.methods.local.survey.steps import CollectReports, LocalPrivacy, ShuffledPrivacy
from incrowd.noise.system import SystemCoins
from incrowd.verifier.judge import statement_of
from incrowd.workflows.local.estimating import EstimateQuery, estimate_reports
from incrowd.workflows.local.opening import open_survey, publish_survey
from incrowd.workflows.local.planning import plan_locally, plan_survey
from incrowd.workflows.local.randomize import AnswersFile, randomize_answers, read_reports
from incrowd.workflows.local.survey_file import load_survey
from incrowd.workflows.policy.ledger import find_book
from incrowd.workflows.report.page import public_report
from incrowd.workflows.verify.verify import verify
from tests.contract.forging import caught, forgeries
from tests.surveys import ANSWERS, LAY, MANY, SHUFFLED, TOGETHER, TRAVEL, survey_file

YAML = """\
survey: 1
name: travel
title: How do you come to work?
epsilon: 1
per_person: 2
questions:
  travel: {text: How did you come today?, categories: [walk, bike, bus, car]}
budget: {epsilon: 1}
"""


def written(folder: Path, text: str = YAML) -> Path:
    path = folder / "survey.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_opening_charges_once_what_a_report_loses(tmp_path: Path) -> None:
    file = load_survey(written(tmp_path))
    first, again = open_survey(file), open_survey(load_survey(tmp_path / "survey.yaml"))
    assert first.certificate.id == again.certificate.id
    ledger = find_book(file)
    assert ledger is not None
    standing = ledger.standing("travel")
    assert (float(standing.epsilon), standing.totals.charges) == (1.0, 1)
    assert str(standing.terms.unit) == "one report of one person, replaced"
    changed = written(tmp_path, YAML.replace("bus, ", ""))
    with pytest.raises(BudgetExceeded, match="; 0 of the budget"):
        open_survey(load_survey(changed))


def test_the_certificate_claims_local_privacy_and_verifies(tmp_path: Path) -> None:
    opened = open_survey(load_survey(written(tmp_path)))
    (claim,) = opened.certificate.claims
    assert isinstance(claim, LocalPrivacy)
    assert float(claim.epsilon) == 1.0
    assert any("took part" in each for each in map(str, claim.not_protected))
    assert any("scripts" in text for text in claim.assumed)
    (step,) = opened.certificate.steps
    assert isinstance(step, CollectReports)
    assert dict(step.scripts) == script_hashes()
    publish_survey(opened, tmp_path / "out")
    found = verify(tmp_path / "out", ledger=find_book(opened.file))
    assert found.verdict == "verified", found.findings
    assert public_report(opened.certificate).startswith("<!doctype html>")


def test_a_shuffled_survey_also_claims_what_its_batches_hide(tmp_path: Path) -> None:
    opened = open_survey(survey_file(SHUFFLED, tmp_path))
    local, shuffled = opened.certificate.claims
    assert isinstance(local, LocalPrivacy)
    assert isinstance(shuffled, ShuffledPrivacy)
    assert 0 < shuffled.epsilon < local.epsilon
    assert (shuffled.people, shuffled.values) == (10, 4)
    assert "honest-people-in-batch" in [condition.term.key for condition in shuffled.preconditions]
    assert verify(opened.folder, ledger=find_book(opened.file)).verdict == "verified"


@pytest.mark.parametrize("told", [TRAVEL, SHUFFLED, MANY], ids=["local", "shuffled", "many"])
def test_no_leaf_of_its_certificate_can_be_forged(told: dict[str, Any], tmp_path: Path) -> None:
    opened = open_survey(survey_file(told, tmp_path))
    plain = json.loads(opened.certificate.to_text())
    assert caught(plain) is None
    said = ("guarantee", "claims", "limits")
    missed = [each.name for each in forgeries(plain) if each.top in said and not caught(each.plain)]
    assert not missed


def test_weights_above_the_stated_epsilon_are_refused(tmp_path: Path) -> None:
    (step,) = open_survey(survey_file(TRAVEL, tmp_path)).certificate.steps
    assert isinstance(step, CollectReports)
    with pytest.raises(InvalidParameter, match="more than e"):
        CollectReports(step.survey, step.scripts, step.questions, Fraction(999, 1000))


def test_a_certificate_that_was_changed_is_not_opened_again(tmp_path: Path) -> None:
    opened = open_survey(survey_file(TRAVEL, tmp_path))
    file = opened.folder / "data.csv"
    file.chmod(0o600)
    file.write_text(file.read_text().replace("response", "hadamard"))
    with pytest.raises(LedgerUnavailable, match="does not verify"):
        open_survey(survey_file(TRAVEL, tmp_path))


def test_another_definition_beside_the_certificate_is_found_out(tmp_path: Path) -> None:
    opened = open_survey(survey_file(TRAVEL, tmp_path))
    file = opened.folder / "survey.json"
    assert json.loads(file.read_text()) == opened.file.survey.public
    statement = statement_of(opened.certificate)
    outcomes = list(CHECK.inspect(statement, (opened.folder / "data.csv", file)))
    assert [outcome.problem for outcome in outcomes] == [None, None]
    file.chmod(0o600)
    file.write_text(file.read_text().replace("bike", "hike"))
    assert any(outcome.problem for outcome in CHECK.inspect(statement, (opened.folder / "data.csv", file)))
    assert not verify(opened.folder).passed


def test_a_client_reads_the_published_survey_and_nothing_else() -> None:
    for told in (TRAVEL, SHUFFLED, MANY):
        own = survey_file(told).survey
        public = json.loads(json.dumps(own.public))
        assert survey_from(public).id == own.id
        for changed in (
            public | {"epsilon": "1/10"},
            public | {"more": 1},
            public | {"questions": []},
            {},
            {"survey": 1},
        ):
            with pytest.raises(InvalidParameter):
                survey_from(changed)


def test_people_send_one_report_and_the_same_one_again_from_the_memo(tmp_path: Path) -> None:
    opened = open_survey(load_survey(written(tmp_path)))
    answers, memo = tmp_path / "answers.csv", tmp_path / "memo.jsonl"
    answers.write_text("id,travel\n" + "".join(f"p{number},car\n" for number in range(40)))
    given = AnswersFile(answers, memo, "id")
    first = randomize_answers(opened, given, tmp_path / "one.jsonl")
    assert (first.reports, first.new) == (40, 40)
    answers.write_text(answers.read_text().replace("p0,car", "p0,walk") + "p40,bike\n")
    second = randomize_answers(opened, given, tmp_path / "two.jsonl")
    assert (second.reports, second.new) == (41, 1)
    assert read_reports(tmp_path / "two.jsonl")[:40] == read_reports(tmp_path / "one.jsonl")
    with pytest.raises(Refused, match="randomized before"):
        randomize_answers(opened, AnswersFile(answers), tmp_path / "three.jsonl")
    with pytest.raises(IncrowdError, match="nothing is overwritten"):
        randomize_answers(opened, given, tmp_path / "two.jsonl")
    (found,) = estimate_reports(opened.file.survey, read_reports(tmp_path / "two.jsonl"), EstimateQuery())
    assert found.people == 41


def test_reports_of_a_shuffled_survey_lie_in_a_random_order(tmp_path: Path) -> None:
    """At epsilon 20 a report is the answer but for a chance below 1e-8 each; 60 answers stay in order once in 10^17."""
    opened = open_survey(survey_file(SHUFFLED | {"epsilon": "20"}, tmp_path))
    answers, out = tmp_path / "answers.csv", tmp_path / "reports.jsonl"
    answers.write_text("travel\n" + "walk\n" * 30 + "car\n" * 30)
    assert randomize_answers(opened, AnswersFile(answers), out).reports == 60
    reports = read_reports(out)
    assert [each["report"] for each in reports] != [0] * 30 + [3] * 30
    assert {tuple(sorted(each)) for each in reports} == {("question", "report", "survey")}
    assert sorted({each["survey"] for each in reports}) == [opened.file.survey.id]


def test_no_file_of_a_shuffled_survey_shows_the_reports_of_fewer_people_than_a_batch(tmp_path: Path) -> None:
    opened = open_survey(survey_file(SHUFFLED, tmp_path))  # batches of 20
    answers, memo = tmp_path / "answers.csv", tmp_path / "memo.jsonl"

    def run(first: int, last: int, out: str) -> tuple[int, int]:
        answers.write_text("id,travel\n" + "".join(f"p{number},car\n" for number in range(first, last)))
        done = randomize_answers(opened, AnswersFile(answers, memo, "id"), tmp_path / out)
        return done.reports, done.new

    with pytest.raises(Refused, match="among 20 people or more"):
        run(0, 19, "few")
    assert not memo.exists()
    assert run(0, 25, "first") == (25, 25)
    with pytest.raises(Refused, match="1 new ones"):
        run(0, 26, "one more")
    with pytest.raises(Refused, match="lacks some people"):
        run(1, 25, "one less")
    assert run(0, 25, "again") == (25, 0)
    assert run(25, 50, "others") == (25, 25)
    assert run(0, 80, "all") == (80, 30)
    assert not any((tmp_path / name).exists() for name in ("few", "one more", "one less"))
    lines = [sorted((tmp_path / name).read_text().splitlines()) for name in ("first", "again")]
    assert lines[0] == lines[1]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("id,travel\na,tram\n", "outside of what the survey asks"),
        ("id,other\na,car\n", "no column 'travel'"),
        ("id,travel\na,car\na,bus\n", "twice"),
    ],
)
def test_bad_answers_are_refused_and_nothing_is_written(rows: str, said: str, tmp_path: Path) -> None:
    opened = open_survey(load_survey(written(tmp_path)))
    answers, memo, out = (tmp_path / name for name in ("answers.csv", "memo", "out.jsonl"))
    answers.write_text(rows)
    with pytest.raises(InvalidParameter, match=said) as refused:
        randomize_answers(opened, AnswersFile(answers, memo, "id"), out)
    assert "tram" not in str(refused.value)
    assert not out.exists()
    assert not memo.exists()
    with pytest.raises(InvalidParameter, match="both"):
        AnswersFile(answers, memo)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"survey": "2"}, "survey: 1"),
        ({"colour": "red"}, "'colour' is not known"),
        ({"epsilon": None}, "one of both"),
        ({"odds": "3"}, "one of both"),
        ({"epsilon": "0"}, "above 0"),
        ({"epsilon": "40"}, "above 28"),
        ({"questions": {}}, "at least one question"),
        ({"questions": {"a b": {"categories": ["x", "y"]}}}, "letters, digits"),
        ({"questions": {"a": {"categories": ["x"]}}}, "two or more"),
        ({"questions": {"a": {"categories": ["x", "x"]}}}, "each once"),
        ({"questions": {"a": {"categories": ["x", "y"], "mechanism": "magic"}}}, "one of response"),
        ({"questions": {"a": {"categories": ["x", "y"], "low": "1"}}}, "one of: categories"),
        ({"questions": {"a": {"low": "5", "high": "1"}}}, "larger high"),
        ({"questions": {"a": {"low": "0", "high": "1", "cells": "3"}}}, "even number"),
        ({"questions": {"a": {"first": "5", "last": "5"}}}, "larger last"),
        ({"questions": {"a": {"alphabet": "aa", "length": "3"}}}, "each of its letters once"),
        ({"questions": {"a": {"alphabet": "abcdefghijklmnopqrstuvwxyz", "length": "30"}}}, "too long"),
        ({"shuffled": {"batch": "1", "delta": "1e-6"}}, "two honest people"),
        ({"shuffled": {"batch": "100", "delta": "0"}}, "strictly between"),
        ({"per_person": "1/2"}, "at least epsilon"),
    ],
)
def test_a_survey_that_cannot_be_is_refused_with_the_way_out(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        survey_file(TRAVEL | changes)


def test_a_plan_chooses_by_public_numbers_alone() -> None:
    found = plan_locally(100, "1", 1_000_000, "1e-6")
    assert found.choice.mechanism == "subset"
    assert 0 <= found.above_optimum < 0.02
    assert found.shuffled is not None
    assert found.shuffled[0] < 0.004
    assert plan_locally(4, "1", 1000).choice.mechanism == "response"
    assert plan_locally(1000, "1", 1000).choice.mechanism == "local-hashing"
    with pytest.raises(InvalidParameter, match="two or more values"):
        plan_locally(1, "1", 1000)


def test_reports_of_another_version_are_refused(tmp_path: Path) -> None:
    asked = survey_file(MANY).survey
    (report,) = asked.randomize({name: [answer] for name, answer in ANSWERS.items()}, SystemCoins())
    asked.read([report])
    for wrong in ({**report, "survey": "0" * 64}, {**report, "question": "other"}, {**report, "time": 1}, "x"):
        with pytest.raises(InvalidParameter, match="refused"):
            asked.read([wrong])


def test_texts_units_and_translations_are_published_and_read_again() -> None:
    asked = survey_file(LAY).survey
    assert asked.texts["en"] == {
        "introduction": "We ask how well pupils sleep.",
        "organizer": "School board",
        "contact": "board@example.org",
        "aim": "To decide about a later start",
        "minutes": "2",
        "unit.sleep": "hours",
    }
    assert asked.texts["de"]["label.smoke.1"] == "nein"
    assert survey_from(asked.public).id == asked.id
    assert survey_file(LAY | {"organizer": "Another"}).survey.id != asked.id


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"translations": {"de": {"titel": "x"}}}, "the key 'titel' is not known"),
        ({"translations": {"Deutsch": {}}}, "two or three small letters"),
        ({"translations": {"en": {}}}, "the survey's own language"),
        ({"translations": {"de": {"questions": {"smoke": {"categories": ["ja"]}}}}}, "as many categories"),
        ({"translations": {"de": {"questions": {"sleep": {"categories": ["ja"]}}}}}, "as many categories"),
        ({"translations": {"de": {"questions": {"smokes": {}}}}}, "the key 'smokes' is not known"),
        ({"introduction": " "}, "introduction is a text"),
        ({"introduction": ["x"]}, "introduction is a text"),
    ],
)
def test_a_text_that_a_page_could_not_show_is_refused_by_name(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        survey_file(LAY | changed)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"categories": ["yes", "no"], "skip": "maybe"}, "one of its categories"),
        ({"low": "0", "high": "1", "skip": "0.5"}, "is `random`"),
        ({"first": "0", "last": "9", "skip": "none"}, "is `random`"),
    ],
)
def test_a_skip_says_what_is_sent_in_place_of_silence(question: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        survey_file(TRAVEL | {"questions": {"a": question}})


def test_an_empty_answer_is_refused_unless_the_question_can_be_skipped() -> None:
    for question in ({"categories": ["yes", "no"]}, {"low": "0", "high": "1"}, {"first": "0", "last": "9"}):
        with pytest.raises(InvalidParameter, match="outside of what the survey asks"):
            survey_file(TRAVEL | {"questions": {"a": question}}).survey.randomize({"a": [""]}, SystemCoins())


@pytest.mark.parametrize("people", [0, 1, 40, 2000, 10**6])
def test_a_survey_file_is_planned_for_every_kind_of_question(people: int) -> None:
    for told in (MANY, SHUFFLED, TOGETHER, LAY):
        made = survey_file(told).survey
        if not people:
            with pytest.raises(InvalidParameter, match="at least one person"):
                plan_survey(made, people)
            continue
        plan = plan_survey(made, people)
        assert [item.question for item in plan.questions] == list(made.names)
        largest = {"mean": 60.0}
        assert all(0.0 < item.half_width <= largest.get(item.about, 1.0) for item in plan.questions)
        assert plan.batches == (people // 20 if told is SHUFFLED else None)


def test_the_width_that_is_planned_is_the_width_that_comes() -> None:
    """A tenth of the width is eight standard deviations of a count of 1,000 among 4,000: a chance below 1e-14."""
    made = survey_file(TRAVEL).survey
    (expected,) = plan_survey(made, 4000).questions
    answers = ["walk", "bike", "bus", "car"] * 1000
    (found,) = estimates_of(made, made.randomize({"travel": answers}, SystemCoins()))
    for one in found.estimates:
        assert (one.high - one.low) / 2 == pytest.approx(expected.half_width, rel=0.1)


def test_no_plan_has_an_error_below_the_least_one() -> None:
    for domain in (2, 3, 5, 20, 100, 1000):
        for epsilon in ("0.1", "1", "3", "8"):
            plan = plan_locally(domain, epsilon, 1000)
            assert plan.sampled_error >= plan.optimum * (1 - 1e-9)
            assert plan.above_optimum >= 0.0
