"""What a killed query service charged and did not conclude is concluded by the next one, and never by one beside it."""

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
from incrowd.workflows.query.open_charges import QueryInFlight
from incrowd.workflows.query.request import QueryAnswer
from incrowd.workflows.query.service import PendingAnswer, PreparedQuery, QueryService, open_queries
from tests.postgres_tables import ask
from tests.workflows.query.test_service import ROWS, asking, service_of, told


def open_names(folder: Path) -> list[str]:
    return [line for path in (folder / ".charges").glob("*.open") for line in path.read_text().split()]


def killed(folder: Path, left: list[PendingAnswer[QueryAnswer]], *, kept: bool) -> str:
    """Leave what a process leaves that was killed after its charge, or after its answer was kept."""
    with service_of(folder) as service:
        prepared = service.prepare(asking())
        assert isinstance(prepared, PreparedQuery)
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
            (folder / ".charges" / "dead.open").write_text(f"{release}\n")
    return release


def test_a_charge_is_named_from_before_it_until_it_is_concluded(tmp_path: Path) -> None:
    with service_of(tmp_path) as service:
        begun = service.prepare(asking()).begin()
        (release,) = open_names(tmp_path)
        assert not service.budgets.ledger.conclusions(release)
        with service_of(tmp_path) as other:
            assert isinstance(other, QueryService)
            assert not service.budgets.ledger.conclusions(release), "the other query service is at work"
        begun.finish()
        service.charges.settle()
        assert open_names(tmp_path) == []
        assert len(service.budgets.ledger.conclusions(release)) == 1
    assert not list((tmp_path / ".charges").glob("*.open"))


def test_what_the_ledger_cannot_be_told_stays_named_until_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise LedgerUnavailable("the disk is full.")

    with service_of(tmp_path) as service:
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "conclude_all", broken)
            first = service.ask(asking())
            assert open_names(tmp_path) == [first.certificate.id]
        second = service.prepare(asking("SELECT COUNT(*) AS n FROM people")).ask()
        for each in (first, second):
            assert service.budgets.ledger.conclusions(each.certificate.id) == (each.certificate.digest(),)
        assert open_names(tmp_path) == []


def test_the_same_question_at_two_desks_is_paid_for_once(tmp_path: Path) -> None:
    with service_of(tmp_path) as service, service_of(tmp_path) as other:
        begun = service.prepare(asking()).begin()
        with pytest.raises(QueryInFlight):
            other.prepare(asking()).begin()
        first = begun.finish()
        second = other.ask(asking())
        assert (second.repeated, second.certificate.id) == (True, first.certificate.id)
        assert sum(entry.kind == "charge" for entry in service.budgets.ledger.entries()) == 1
    assert not list((tmp_path / ".charges").glob("*.query"))


def test_nothing_came_of_what_a_killed_desk_charged(tmp_path: Path) -> None:
    left = list[PendingAnswer[QueryAnswer]]()
    release = killed(tmp_path, left, kept=False)
    with service_of(tmp_path) as service:
        assert service.budgets.ledger.conclusions(release) == (None,)
        assert [each.state for each in service.budgets.ledger.unfinished()] == ["no release"]


def test_an_answer_that_a_killed_desk_kept_came_of_its_charge(tmp_path: Path) -> None:
    release = killed(tmp_path, [], kept=True)
    with service_of(tmp_path) as service:
        again = service.ask(asking())
        assert again.repeated
        assert service.budgets.ledger.conclusions(release) == (again.certificate.digest(),)


@pytest.mark.postgres
def test_the_same_question_on_two_machines_with_one_ledger_is_paid_for_once(tmp_path: Path, postgres: str) -> None:
    """Query services that share no folder know each other by their ledger alone."""
    pq.write_table(ROWS, tmp_path / "people.parquet")
    policies = []
    for machine in ("here", "there"):
        (tmp_path / machine).mkdir()
        file = tmp_path / machine / "policy.yaml"
        file.write_text(json.dumps(told(tmp_path, ledger=postgres, source=str(tmp_path / "people.parquet"))))
        policies.append(load_policy(file))
    with open_queries(policies[:1]) as service, open_queries(policies[1:]) as other:
        assert service.charges.folder != other.charges.folder
        begun = service.prepare(asking()).begin()
        for _ in range(2):
            with pytest.raises(QueryInFlight):
                other.prepare(asking()).begin()
        assert not other.ask(asking("SELECT COUNT(*) AS n FROM people WHERE age > 50")).repeated
        first, second = begun.finish(), other.ask(asking())
        assert (second.repeated, second.certificate.id) == (True, first.certificate.id)
        assert sum(entry.kind == "charge" for entry in service.budgets.ledger.entries()) == 2


@pytest.mark.postgres
def test_a_dead_machine_blocks_no_question(postgres: str) -> None:
    gone, other = (postgres_at(postgres, "ledger").locks("a ledger") for _ in range(2))
    with closing(gone), closing(other), gone.alone("a question") as first:
        with other.alone("a question") as second:
            assert (first, second) == (True, False)
        assert gone.session is not None
        ask(postgres, f"SELECT pg_terminate_backend({gone.session.scalar(text('SELECT pg_backend_pid()'))})")
        free = False
        while not free:  # the server ends a session when it comes to it
            with other.alone("a question") as free:
                pass
        with gone.alone("another question") as fourth:
            assert fourth, "a new session is opened"


@pytest.mark.postgres
def test_threads_of_one_process_hold_a_name_one_after_the_other(postgres: str) -> None:
    holds = postgres_at(postgres, "ledger").locks("a ledger")
    with closing(holds), holds.alone("a question") as first:
        with holds.alone("a question") as second:
            assert (first, second) == (True, False)
        with holds.alone("a question") as third:
            assert not third, "who did not get it lets nothing go"
