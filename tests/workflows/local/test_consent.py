"""Surveys with a purpose: people are invited who consent to it, and answers of nobody else are randomized."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from incrowd.core.codec import canonical
from incrowd.errors import IncrowdError, InvalidParameter, Refused
from incrowd.governance.consent.event import Decided
from incrowd.methods.local.survey.published import survey_from
from incrowd.methods.local.survey.steps import INVITED, SENT
from incrowd.web.collect.pages import form
from incrowd.workflows.local.invitations import invited_people, require_no_purpose
from incrowd.workflows.local.opening import open_survey
from incrowd.workflows.local.randomize import AnswersFile, randomize_answers
from incrowd.workflows.local.survey_file import SurveyFile, survey_of
from incrowd.workflows.policy.ledger import find_book
from incrowd.workflows.verify.verify import verify
from tests.consents import GATED, PURPOSE, Consented, consented
from tests.surveys import TRAVEL

PLACES = {"registry": "../registry/consent.sqlite", "key": "../key/consent.key"}


def asking(folder: Path, **more: Any) -> SurveyFile:
    (folder / "survey").mkdir(exist_ok=True)
    return survey_of(TRAVEL | {"purpose": PURPOSE, "consent": PLACES, **more}, folder / "survey")


def three(folder: Path) -> Consented:
    """Return a registry in which ann and bob consent and cat refuses; and their answers, and a list of them."""
    made = consented(GATED, folder, ["ann", "bob"])
    made.decide(Decided.REFUSE, ["cat"])
    (folder / "answers.csv").write_text("person,travel\nann,bus\ncat,car\nbob,walk\n", encoding="utf-8")
    (folder / "people.txt").write_text("cat\nbob\nann\n", encoding="utf-8")
    return made


def test_people_are_invited_who_consent_at_that_moment(tmp_path: Path) -> None:
    made = three(tmp_path)
    file = asking(tmp_path)
    assert invited_people(file, tmp_path / "people.txt") == ["bob", "ann"]
    made.decide(Decided.WITHDRAW, ["bob"])
    assert invited_people(file, tmp_path / "people.txt") == ["ann"]
    with pytest.raises(Refused, match="name them with --for"):
        require_no_purpose(file)


def test_answers_of_people_who_consent_are_randomized_and_no_others(tmp_path: Path) -> None:
    made = three(tmp_path)
    opened = open_survey(asking(tmp_path))
    answers = AnswersFile(tmp_path / "answers.csv", tmp_path / "memo", "person")
    with pytest.raises(InvalidParameter, match="people must be known"):
        randomize_answers(opened, AnswersFile(tmp_path / "answers.csv"), tmp_path / "third")
    assert randomize_answers(opened, answers, tmp_path / "first").reports == 2
    assert {json.loads(line)[0] for line in (tmp_path / "memo").read_text().splitlines()} == {"ann", "bob"}
    made.decide(Decided.WITHDRAW, ["bob"])
    assert randomize_answers(opened, answers, tmp_path / "second").new == 0
    assert len((tmp_path / "second").read_text().splitlines()) == 1


def test_the_certificate_and_the_page_tell_the_purpose_and_what_stays_open(tmp_path: Path) -> None:
    three(tmp_path)
    opened = open_survey(asking(tmp_path))
    assert f"whose consent to “{PURPOSE}” stands at that moment" in opened.certificate.steps[0].sentence
    assert {INVITED, SENT} <= set(opened.certificate.claims[0].not_protected)
    assert verify(opened.folder).passed
    assert PURPOSE in form(opened.file.survey)
    assert survey_from(json.loads(canonical(opened.file.survey.public))) == opened.file.survey
    file = opened.folder / "certificate.json"
    file.write_text(file.read_text().replace(PURPOSE, "sales"), encoding="utf-8")
    assert not verify(opened.folder).passed


def test_a_survey_without_a_purpose_is_published_as_before(tmp_path: Path) -> None:
    bare = survey_of(TRAVEL, tmp_path).survey
    assert "purpose" not in bare.public
    assert "purpose" not in bare.plan.steps[0].to_json()


def test_nothing_is_charged_where_consent_could_not_be_read(tmp_path: Path) -> None:
    three(tmp_path)
    (tmp_path / "key" / "consent.key").unlink()
    file = asking(tmp_path)
    with pytest.raises(IncrowdError, match="key of the consent registry"):
        open_survey(file)
    assert find_book(file) is None
    with pytest.raises(InvalidParameter, match="write purpose: and consent:"):
        asking(tmp_path, consent=None)
