"""The collector takes one report for each token, on disk before it says so, and links none of a shuffled survey."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from incrowd.errors import AccessDenied, InvalidParameter, LedgerCorrupted, Refused
from incrowd.methods.local.estimates import estimates_of
from incrowd.methods.local.survey.definition import report_text
from incrowd.noise.system import SystemCoins
from incrowd.store.report_store import ReportStore
from incrowd.workflows.collect.collector import Collector, Receipt
from incrowd.workflows.collect.participant import Participant
from incrowd.workflows.local.opening import open_survey
from tests.surveys import SHUFFLED, TRAVEL, survey_file


def collector(folder: Path, told: dict[str, Any] = TRAVEL) -> Collector:
    return Collector.beside(open_survey(survey_file(told, folder)))


def sent(at: Collector, number: int = 1) -> list[dict[str, Any]]:
    reports = at.survey.randomize({"travel": ["car"] * number}, SystemCoins())
    return [{"token": at.tokens.issue(), "report": report} for report in reports]


def stored(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_a_report_is_counted_once_and_acknowledged_again(tmp_path: Path) -> None:
    at = collector(tmp_path)
    given = sent(at, 3)
    assert at.receive(given) == [Receipt.COUNTED] * 3
    assert at.receive(given[:1]) == [Receipt.AGAIN]
    other = {
        "token": given[0]["token"],
        "report": {**given[0]["report"], "report": (given[0]["report"]["report"] + 1) % 4},
    }
    assert at.receive([other]) == [Receipt.REFUSED]
    assert (at.count, len(at.reports())) == (3, 3)
    again = collector(tmp_path)
    assert again.receive(given) == [Receipt.AGAIN] * 3
    (found,) = again.estimates()
    assert found.people == 3


def test_one_wrong_report_or_token_and_none_is_taken(tmp_path: Path) -> None:
    at = collector(tmp_path)
    good = sent(at, 2)
    for wrong in ({"token": "x", "report": good[1]["report"]}, {"token": good[0]["token"][::-1], "report": {}}):
        with pytest.raises(AccessDenied, match="not one of this survey"):
            at.receive([good[0], wrong])
    for report in ({}, {**good[1]["report"], "report": 4}, {**good[1]["report"], "report": "car"}, "car"):
        with pytest.raises(InvalidParameter):
            at.receive([good[0], {"token": good[1]["token"], "report": report}])
    for shape in ([], ["x"], [{"token": good[0]["token"]}], [{**good[0], "more": 1}]):
        with pytest.raises(InvalidParameter):
            at.receive(shape)
    assert at.count == 0


def test_a_token_is_used_once_within_a_request(tmp_path: Path) -> None:
    at = collector(tmp_path)
    (one,) = sent(at)
    assert at.receive([one, one]) == [Receipt.COUNTED, Receipt.AGAIN]
    assert at.count == 1


def test_changed_reports_are_found_out(tmp_path: Path) -> None:
    at = collector(tmp_path)
    at.receive(sent(at, 5))
    (path,) = tmp_path.rglob("*.reports-*.sqlite")
    with sqlite3.connect(path) as base:
        base.execute(f"UPDATE {at.chain.database.tables.name}_contents SET content = content || ' '")
    with pytest.raises(LedgerCorrupted, match="not those that their entry names"):
        at.reports()


def test_shuffled_reports_wait_in_memory_and_appear_as_one_entry(tmp_path: Path) -> None:
    at = collector(tmp_path, SHUFFLED)
    given = sent(at, 20)
    before = at.chain.head().sequence
    assert at.receive(given[:19]) == [Receipt.RECEIVED] * 19
    assert (at.count, len(at.waiting), at.chain.head().sequence) == (0, 19, before)
    kept = stored(tmp_path)
    for each in given[:19]:
        assert each["token"][:32].encode() in kept
    assert b'"question":"travel"' not in kept
    changed = {"token": given[0]["token"], "report": {**given[0]["report"], "report": 0}}
    assert at.receive([changed]) == [Receipt.RECEIVED_AGAIN]
    at.receive(given[19:])
    assert (at.count, at.waiting, at.chain.head().sequence) == (20, [], before + 1)
    texts = sorted(report_text(each["report"]) for each in given)
    assert sorted(map(report_text, at.reports())) == texts
    with sqlite3.connect(next(tmp_path.rglob("*.reports-*.sqlite"))) as base:
        table = f"{at.chain.database.tables.name}_tokens"
        marks = base.execute(f"SELECT mark FROM {table}").fetchall()
        (kind,) = base.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    assert set(marks) == {(None,)}
    assert "WITHOUT ROWID" in kind


def test_a_crash_loses_shuffled_reports_that_wait(tmp_path: Path) -> None:
    at = collector(tmp_path, SHUFFLED)
    given = sent(at, 5)
    at.receive(given)
    again = collector(tmp_path, SHUFFLED)
    assert again.waiting == []
    assert again.receive(given) == [Receipt.RECEIVED_AGAIN] * 5
    assert again.waiting == []


def test_a_participant_randomizes_once_for_each_token_and_keeps_its_own_bound(tmp_path: Path) -> None:
    person = Participant(tmp_path / "me", Fraction(3, 2))
    first = survey_file(TRAVEL).survey
    text = person.report(first, {"travel": "car"}, "a token")
    assert all(person.report(first, {"travel": "walk"}, "a token") == text for _ in range(20))
    with pytest.raises(Refused, match="above your bound"):
        person.report(survey_file(TRAVEL | {"name": "second"}).survey, {"travel": "car"}, "another")
    bounded = survey_file(TRAVEL | {"name": "third", "per_person": "1"}).survey
    with pytest.raises(Refused, match="Nothing was randomized"):
        Participant(tmp_path / "me").report(bounded, {"travel": "car"}, "another")
    assert (tmp_path / "me" / "spent.json").stat().st_mode & 0o077 == 0


def test_a_participants_folder_tells_neither_answer_report_survey_nor_token(tmp_path: Path) -> None:
    asked, token = survey_file(TRAVEL).survey, "0123456789abcdef" * 4
    Participant(tmp_path / "me").report(asked, {"travel": "car"}, token)
    (file,) = (tmp_path / "me").iterdir()
    place = sha256(f"incrowd used token 1\n{asked.id}\n{token}".encode()).hexdigest()
    assert json.loads(file.read_text()) == {place: "1"}


def test_a_token_that_was_used_is_never_randomized_for_again(tmp_path: Path) -> None:
    """A collector that sends no reply gets no second report from a participant that was started again."""
    asked = survey_file(TRAVEL).survey
    Participant(tmp_path / "me").report(asked, {"travel": "car"}, "mine")
    with pytest.raises(Refused, match="used before"):
        Participant(tmp_path / "me").report(asked, {"travel": "car"}, "mine")


def test_a_second_token_has_a_report_of_its_own(tmp_path: Path) -> None:
    """At epsilon 20 a report is the answer, but for a chance below 1e-8."""
    asked, person = survey_file(TRAVEL | {"epsilon": "20"}).survey, Participant(tmp_path / "shared")
    reports = [json.loads(person.report(asked, {"travel": each}, each))["report"] for each in ("car", "walk")]
    assert reports == [3, 0]


def test_reports_of_an_earlier_version_are_removed_and_stay_counted(tmp_path: Path) -> None:
    folder, old = tmp_path / "me", "ab" * 32
    folder.mkdir()
    (folder / f"{old}.json").write_text('{"question":"travel","report":1}')
    (folder / "spent.json").write_text(json.dumps({old: "3"}))
    with pytest.raises(Refused, match="to epsilon 4, above your bound of 3"):
        Participant(folder, Fraction(3)).report(survey_file(TRAVEL).survey, {"travel": "car"}, "new")
    assert [each.name for each in folder.iterdir()] == ["spent.json"]


def test_reports_of_two_surveys_lie_apart_in_either_database(address: str, tmp_path: Path) -> None:
    one = collector(tmp_path, TRAVEL | {"ledger": address})
    other = collector(tmp_path, SHUFFLED | {"ledger": address})
    given, more = sent(one, 4), sent(other, 20)
    assert one.receive(given) == [Receipt.COUNTED] * 4
    assert one.receive(given) == [Receipt.AGAIN] * 4
    assert other.receive(more) == [Receipt.RECEIVED] * 20
    assert (one.count, other.count) == (4, 20)
    assert len(one.reports()) == 4
    with pytest.raises(AccessDenied):
        one.receive(more[:1])


def test_estimates_read_new_entries_only_and_are_those_of_all_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, places = collector(tmp_path), list[int]()
    whole = ReportStore.batches

    def noted(self: ReportStore, after: int = 0) -> Iterator[tuple[int, str]]:
        places.append(after)
        return whole(self, after)

    monkeypatch.setattr(ReportStore, "batches", noted)
    assert at.estimates() == ()
    for number in (5, 1, 30):
        at.receive(sent(at, number))
        assert at.estimates() == estimates_of(at.survey, collector(tmp_path).reports())
    first, before = at.estimates(), at.chain.head().sequence
    places.clear()
    assert at.estimates() is first
    assert places == []
    at.receive(sent(at, 2))
    assert sum(question.people for question in at.estimates()) == 38
    assert places == [before]


def test_a_report_that_was_changed_is_not_estimated_from(tmp_path: Path) -> None:
    at = collector(tmp_path)
    at.receive(sent(at, 2))
    at.estimates()
    at.receive(sent(at, 3))
    with sqlite3.connect(next(tmp_path.rglob("*.reports-*.sqlite"))) as base:
        base.execute(f"UPDATE {at.chain.database.tables.name}_contents SET content = content || ' '")
    with pytest.raises(LedgerCorrupted, match="not those that their entry names"):
        at.estimates()


def test_exported_reports_are_all_of_them_in_a_random_order(tmp_path: Path) -> None:
    at = collector(tmp_path)
    at.receive(sent(at, 400))
    stored_texts, exported = (list(map(report_text, reports)) for reports in (at.reports(), at.shuffled()))
    assert sorted(stored_texts) == sorted(exported)
    assert stored_texts != exported


def test_what_waits_in_a_shuffled_survey_is_neither_counted_estimated_nor_exported(tmp_path: Path) -> None:
    at = collector(tmp_path, SHUFFLED)
    at.receive(sent(at, 39))
    assert (at.count, len(at.shuffled()), at.estimates()[0].people, len(at.waiting)) == (20, 20, 20, 19)
