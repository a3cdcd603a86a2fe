"""Surveys with rounds: one report for each token and round, permanent answers that stay with people, and changes."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from incrowd.cli.main import main
from incrowd.errors import AccessDenied, InvalidParameter, MixedUnits, Refused
from incrowd.methods.local.changes import round_estimates
from incrowd.methods.local.survey.published import survey_from
from incrowd.methods.local.tallies import joined_rounds, tallies_by_round
from incrowd.noise.system import SystemCoins
from incrowd.workflows.collect.collector import Collector, turns_for
from incrowd.workflows.collect.participant import Participant
from incrowd.workflows.local.opening import open_survey
from incrowd.workflows.local.randomize import AnswersFile, randomize_answers
from incrowd.workflows.policy.ledger import find_book
from incrowd.workflows.verify.verify import verify
from tests.statistics.alarm import FALSE_ALARM
from tests.surveys import MEMOIZED, RAPPOR, ROUNDS, TRAVEL, survey_file

PANEL = {"people": "panel", "budget": {"epsilon": "10"}}


def collector(folder: Path, told: dict[str, Any]) -> Collector:
    return Collector.beside(open_survey(survey_file(told, folder)))


def send(at: Collector, person: Participant, turn: int, **answers: str) -> str:
    token = at.tokens.issue(turn)
    report = json.loads(person.report(at.survey, answers, token))
    return str(at.receive([{"token": token, "report": report}])[0])


@pytest.mark.parametrize("told", [ROUNDS, MEMOIZED, RAPPOR], ids=["one round", "memoized", "RAPPOR"])
def test_a_survey_with_rounds_is_published_opened_and_verified(told: dict[str, Any], tmp_path: Path) -> None:
    file = survey_file(told, tmp_path)
    assert survey_from(file.survey.public) == file.survey
    opened = open_survey(file)
    assert open_survey(file).certificate == opened.certificate
    assert verify(opened.folder, ledger=find_book(file)).passed
    assert str(opened.certificate.guarantee.unit) == "one person's reports of all rounds, replaced"


def test_a_certificate_says_that_the_pattern_is_not_hidden_and_what_holds_without_it(tmp_path: Path) -> None:
    opened = open_survey(survey_file(MEMOIZED, tmp_path))
    (claim,) = opened.certificate.claims
    assert "Which rounds had the same answer, a return to an earlier one included, is not hidden" in claim.sentence
    assert "equality-pattern" in [exposure.key for exposure in claim.not_protected]
    assert claim.epsilon == 4  # type: ignore[attr-defined]
    made = opened.file.survey.questions[0].randomizer
    any_two = 12 * math.log(float(made.again.weights.value))
    assert float(claim.any_histories) == pytest.approx(any_two, rel=1e-9)  # type: ignore[attr-defined]
    assert any_two <= 24


def test_one_total_counts_all_surveys_and_rounds_of_the_same_people(tmp_path: Path) -> None:
    for told in (TRAVEL | PANEL, ROUNDS | PANEL, MEMOIZED | PANEL):
        open_survey(survey_file(told, tmp_path))
    ledger = find_book(survey_file(TRAVEL | PANEL, tmp_path))
    assert ledger is not None
    assert ledger.standing("panel").totals.spent.epsilon == 1 + 1 + 4
    with pytest.raises(Refused):
        open_survey(survey_file(MEMOIZED | PANEL | {"name": "again", "epsilon": "5"}, tmp_path))
    open_survey(survey_file(TRAVEL | {"budget": {"epsilon": "1"}}, tmp_path))
    with pytest.raises(MixedUnits):  # a survey of one report under the name of these people
        open_survey(survey_file(TRAVEL | {"name": "panel", "budget": {"epsilon": "10"}}, tmp_path))


def test_a_token_counts_in_its_own_round_alone(tmp_path: Path) -> None:
    at = collector(tmp_path, ROUNDS)
    turns = turns_for(at.survey, 600, None)
    assert set(turns) == set(range(1, 13))  # a round is left out with a chance below 12 * (11/12)^600 < 1e-21
    (report,) = at.survey.randomize({"travel": ["car"]}, SystemCoins(), 3)
    with pytest.raises(AccessDenied, match="another round"):
        at.receive([{"token": at.tokens.issue(4), "report": report}])
    for wrong in (
        {**report, "round": 13},
        {**report, "round": True},
        {k: v for k, v in report.items() if k != "round"},
    ):
        with pytest.raises(InvalidParameter):
            at.receive([{"token": at.tokens.issue(3), "report": wrong}])
    assert str(at.receive([{"token": at.tokens.issue(3), "report": report}])[0]) == "counted"
    with pytest.raises(InvalidParameter, match="leave --round out"):
        turns_for(at.survey, 1, 3)
    memoized = collector(tmp_path, MEMOIZED).survey
    assert turns_for(memoized, 2, 5) == [5, 5]
    with pytest.raises(InvalidParameter, match="name one with --round"):
        turns_for(memoized, 2, None)


def test_permanent_answers_are_drawn_once_for_all_values_and_counted_once(tmp_path: Path) -> None:
    at, folder = collector(tmp_path, MEMOIZED), tmp_path / "person"
    person = Participant(folder, Fraction(4))
    assert send(at, person, 1, travel="walk") == "counted"
    stored = json.loads((folder / "permanent.json").read_text())
    ((place, first),) = stored.items()
    assert len(first["memos"]["travel"]) == 4
    assert first["used"] == {"travel": [0]}
    for turn, answer in ((2, "car"), (3, "bus"), (4, "walk")):  # the third answer repeats the last permanent one
        send(at, Participant(folder, Fraction(4)), turn, travel=answer)
    later = json.loads((folder / "permanent.json").read_text())[place]
    assert later["memos"] == first["memos"]
    assert later["used"] == {"travel": [3, 0]}
    spent = json.loads((folder / "spent.json").read_text())
    assert sum(map(Fraction, spent.values())) == 4
    other = {**TRAVEL, "name": "other"}
    with pytest.raises(Refused, match="above your bound"):
        Participant(folder, Fraction(4)).report(survey_file(other).survey, {"travel": "car"}, "0" * 64)


def test_lost_permanent_answers_are_not_drawn_again(tmp_path: Path) -> None:
    at, folder = collector(tmp_path, MEMOIZED), tmp_path / "person"
    send(at, Participant(folder), 1, travel="walk")
    (folder / "permanent.json").unlink()
    with pytest.raises(Refused, match="new ones would reveal more"):
        send(at, Participant(folder), 2, travel="walk")


def test_answers_of_a_table_are_not_randomized_for_rounds(tmp_path: Path) -> None:
    opened = open_survey(survey_file(ROUNDS, tmp_path))
    (tmp_path / "answers.csv").write_text("travel\ncar\n", encoding="utf-8")
    with pytest.raises(Refused, match="belongs to the person"):
        randomize_answers(opened, AnswersFile(tmp_path / "answers.csv"), tmp_path / "out.jsonl")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rounds": {"count": "1"}}, "2 to 4,000 rounds"),
        ({"rounds": {"count": "12", "distinct": "2"}}, "leave them out"),
        ({"rounds": {"count": "12", "form": "often"}}, "form: of rounds"),
        ({"rounds": {"count": "2", "form": "memoized", "distinct": "3"}}, "from 1 to the number of rounds"),
        ({"shuffled": {"batch": "20", "delta": "1/100"}}, "leave shuffled: out"),
        ({"questions": {"hours": {"low": "0", "high": "9", "cells": "8"}}}, "categories or ranges"),
        ({"questions": {"a": {"categories": ["x", "y"], "mechanism": "hadamard"}}}, "response or rappor"),
        ({"questions": {"a": {"categories": ["x", "y"]}, "b": {"categories": ["x", "y"]}}}, "answers: all"),
        ({"questions": {"a": {"categories": [f"c{n}" for n in range(65)]}}}, "at most 64 categories"),
    ],
)
def test_rounds_that_cannot_be_are_refused_with_the_way_out(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        survey_file(MEMOIZED | changes)


@pytest.mark.parametrize("told", [ROUNDS, MEMOIZED], ids=["one round", "memoized"])
def test_intervals_of_rounds_and_of_changes_hold_the_truth(told: dict[str, Any]) -> None:
    """Of 40 surveys with 2 rounds and 4 values, few intervals miss: each misses with a chance of 5 % at most."""
    asked, coins = survey_file(told).survey, SystemCoins()
    before, after = np.array([0.5, 0.3, 0.15, 0.05]), np.array([0.3, 0.3, 0.15, 0.25])
    chance = np.random.default_rng(5)
    missed = total = 0
    for _ in range(40):
        reports = []
        for turn, shares in ((1, before), (4, after)):
            drawn = chance.choice(["walk", "bike", "bus", "car"], 6000, p=shares)
            if asked.memoized:  # exactly these shares: the intervals are about these people
                drawn = np.repeat(["walk", "bike", "bus", "car"], (6000 * shares + 0.5).astype(int))
            reports += asked.randomize({"travel": drawn.tolist()}, coins, turn)
        half = [tallies_by_round(asked, reports[:5000]), tallies_by_round(asked, reports[5000:])]
        estimates = round_estimates(asked, joined_rounds(*half))
        assert [(one.round, one.since) for one in estimates] == [(1, None), (4, None), (4, 1)]
        for one, truth in zip(estimates, (before, after, after - before), strict=True):
            missed += sum(not row.low <= true <= row.high for row, true in zip(one.estimates, truth, strict=True))
            total += len(one.estimates)
    # rows of one survey can miss together, twelve of them: 40 independent surveys with a mean of 5 % (Hoeffding)
    assert missed / total <= 0.05 + math.sqrt(math.log(1 / FALSE_ALARM) / (2 * 40))


def test_the_command_line_makes_tokens_and_estimates_rounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "survey.yaml").write_text(json.dumps(MEMOIZED), encoding="utf-8")
    survey = ["--survey", str(tmp_path / "survey.yaml")]
    assert main(["collect", "tokens", *survey, "--count", "2", "--round", "3"]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == ["3", "3"]
    assert main(["collect", "tokens", *survey, "--round", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rounds"] == [3]
    at = collector(tmp_path, MEMOIZED)
    for number, answer in enumerate(["car", "bus", "walk"]):
        for turn in (1, 2):
            send(at, Participant(tmp_path / f"p{number}"), turn, travel=answer)
    assert main(["local", "estimate", *survey]) == 0
    text = capsys.readouterr().out
    assert "travel, round 2: 3 reports" in text
    assert "travel, change from round 1 to 2" in text
    assert main(["local", "estimate", *survey, "--json"]) == 0
    questions = json.loads(capsys.readouterr().out)["questions"]
    assert [(one["round"], one.get("since")) for one in questions] == [(1, None), (2, None), (2, 1)]
    assert [one.title for one in at.estimates()][-1] == "travel, change from round 1 to 2"
