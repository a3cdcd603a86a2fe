"""What a killed desk charged and did not conclude is concluded by the next one, and never by one beside it."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.errors import LedgerUnavailable
from incrowd.store.postgres import postgres_at
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.query.open_charges import SameQuestion
from incrowd.workflows.query.prepared import PendingAnswer, PreparedQuestion
from incrowd.workflows.query.request import Answered
from incrowd.workflows.query.service import QueryService, open_desk
from tests.postgres_tables import ask
from tests.workflows.query.test_service import ROWS, asking, desk_of, told


def open_names(folder: Path) -> list[str]:
    return [line for path in (folder / ".desks").glob("*.open") for line in path.read_text().split()]


def killed(folder: Path, left: list[PendingAnswer[Answered]], *, kept: bool) -> str:
    """Leave what a process leaves that was killed after its charge, or after its answer was kept."""
    with desk_of(folder) as desk:
        prepared = desk.prepare(asking())
        assert isinstance(prepared, PreparedQuestion)
        begun = prepared.begin()
        left.append(begun)  # a process that is killed tidies nothing up
        (release,) = open_names(folder)
        if kept:
            conclude_all = Ledger.conclude_all
            try:
                Ledger.conclude_all = lambda *_: None  # type: ignore[method-assign]
                begun.finish()
            finally:
                Ledger.conclude_all = conclude_all  # type: ignore[method-assign]
            (folder / ".desks" / "dead.open").write_text(f"{release}\n")
    return release


def test_a_charge_is_named_from_before_it_until_it_is_concluded(tmp_path: Path) -> None:
    with desk_of(tmp_path) as desk:
        begun = desk.prepare(asking()).begin()
        (release,) = open_names(tmp_path)
        assert not desk.ledger.conclusions(release)
        with desk_of(tmp_path) as other:
            assert isinstance(other, QueryService)
            assert not desk.ledger.conclusions(release), "the other desk is at work"
        begun.finish()
        desk.open.settle()
        assert open_names(tmp_path) == []
        assert len(desk.ledger.conclusions(release)) == 1
    assert not list((tmp_path / ".desks").glob("*.open"))


def test_what_the_ledger_cannot_be_told_stays_named_until_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise LedgerUnavailable("the disk is full.")

    with desk_of(tmp_path) as desk:
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "conclude_all", broken)
            first = desk.ask(asking())
            assert open_names(tmp_path) == [first.certificate.id]
        second = desk.prepare(asking("SELECT COUNT(*) AS n FROM people")).ask()
        for each in (first, second):
            assert desk.ledger.conclusions(each.certificate.id) == (each.certificate.digest(),)
        assert open_names(tmp_path) == []


def test_the_same_question_at_two_desks_is_paid_for_once(tmp_path: Path) -> None:
    with desk_of(tmp_path) as desk, desk_of(tmp_path) as other:
        begun = desk.prepare(asking()).begin()
        with pytest.raises(SameQuestion):
            other.prepare(asking()).begin()
        first = begun.finish()
        second = other.ask(asking())
        assert (second.repeated, second.certificate.id) == (True, first.certificate.id)
        assert sum(entry.kind == "charge" for entry in desk.ledger.entries()) == 1
    assert not list((tmp_path / ".desks").glob("*.flight"))


def test_nothing_came_of_what_a_killed_desk_charged(tmp_path: Path) -> None:
    left = list[PendingAnswer[Answered]]()
    release = killed(tmp_path, left, kept=False)
    with desk_of(tmp_path) as desk:
        assert desk.ledger.conclusions(release) == (None,)
        assert [each.state for each in desk.ledger.unfinished()] == ["no release"]


def test_an_answer_that_a_killed_desk_kept_came_of_its_charge(tmp_path: Path) -> None:
    release = killed(tmp_path, [], kept=True)
    with desk_of(tmp_path) as desk:
        again = desk.ask(asking())
        assert again.repeated
        assert desk.ledger.conclusions(release) == (again.certificate.digest(),)


@pytest.mark.postgres
def test_the_same_question_on_two_machines_with_one_ledger_is_paid_for_once(tmp_path: Path, postgres: str) -> None:
    """Desks that share no folder know each other by their ledger alone."""
    pq.write_table(ROWS, tmp_path / "people.parquet")
    policies = []
    for machine in ("here", "there"):
        (tmp_path / machine).mkdir()
        file = tmp_path / machine / "policy.yaml"
        file.write_text(json.dumps(told(tmp_path, ledger=postgres, source=str(tmp_path / "people.parquet"))))
        policies.append(load_policy(file))
    with open_desk(policies[:1]) as desk, open_desk(policies[1:]) as other:
        assert desk.open.folder != other.open.folder
        begun = desk.prepare(asking()).begin()
        for _ in range(2):
            with pytest.raises(SameQuestion):
                other.prepare(asking()).begin()
        assert not other.ask(asking("SELECT COUNT(*) AS n FROM people WHERE age > 50")).repeated
        first, second = begun.finish(), other.ask(asking())
        assert (second.repeated, second.certificate.id) == (True, first.certificate.id)
        assert sum(entry.kind == "charge" for entry in desk.ledger.entries()) == 2


@pytest.mark.postgres
def test_a_dead_machine_blocks_no_question(postgres: str) -> None:
    gone, other = (postgres_at(postgres, "ledger").holds("a ledger") for _ in range(2))
    with closing(gone), closing(other), gone.alone("a question") as first:
        with other.alone("a question") as second:
            assert (first, second) == (True, False)
        ask(postgres, f"SELECT pg_terminate_backend({gone.sessions[0].scalar(text('SELECT pg_backend_pid()'))})")
        free = False
        while not free:  # the server ends a session when it comes to it
            with other.alone("a question") as free:
                pass
        with gone.alone("another question") as fourth:
            assert fourth, "a new session is opened"


@pytest.mark.postgres
def test_threads_of_one_process_hold_a_name_one_after_the_other(postgres: str) -> None:
    holds = postgres_at(postgres, "ledger").holds("a ledger")
    with closing(holds), holds.alone("a question") as first:
        with holds.alone("a question") as second:
            assert (first, second) == (True, False)
        with holds.alone("a question") as third:
            assert not third, "who did not get it lets nothing go"
