"""Rows that are gone cost nothing and have one text; one question at once is asked once; new versions are taken."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incrowd.errors import InvalidParameter, QueryStopped, SourceInvalid, SourceUnavailable
from incrowd.governance.access_list import AccessList
from incrowd.governance.grant import AccessRole
from incrowd.queries.query import QueryTerms
from incrowd.web import reload
from incrowd.web.answering import ReplyTimer
from incrowd.web.app import ServeOrder, open_server
from incrowd.web.reload import ReloadingQueries
from incrowd.web.replies import NOT_AVAILABLE
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.query.open_charges import QueryInFlight
from incrowd.workflows.query.request import QueryRequest
from incrowd.workflows.query.service import PreparedQuery, QueryService, open_queries
from tests.postgres_tables import load
from tests.web.processes import serving
from tests.web.serving import FAST, SECRET, server
from tests.web.test_service import BIRTHS, Office, policy

ALL = QueryTerms(epsilon=Fraction(1))
NEW = {"dataset": {"name": "births", "separate": "other people", "version": "2025-03"}}


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    found = Office(tmp_path)
    yield found
    found.application.state.close()


def charges(office: Office, dataset: str = "births") -> str:
    return office.spent(dataset)


def damage(path: Path) -> None:
    path.write_text(path.read_text() + "m,50\n")


@pytest.mark.parametrize("change", [damage, Path.unlink], ids=["changed", "deleted"])
def test_a_source_that_changed_or_is_gone_is_refused_before_the_charge(
    office: Office, change: Any, caplog: pytest.LogCaptureFixture
) -> None:
    ann = office.headers("ann", AccessRole.ANALYST)
    status, first = office.ask(ann, BIRTHS)
    assert (status, charges(office), office.browser.get("/healthz").status_code) == (200, "1", 200)
    change(office.folder / "births.csv")
    with caplog.at_level(logging.INFO, "incrowd.web"):
        status, refused = office.ask(ann, f"{BIRTHS} WHERE age < 50")
    assert (status, refused, charges(office)) == (503, {"error": NOT_AVAILABLE, "kind": "ServerUnavailable"}, "1")
    (noted,) = [record for record in caplog.records if record.getMessage() == "not available"]
    assert "births.csv changed" in vars(noted)["fields"]["why"]
    health = office.browser.get("/healthz")
    assert (health.status_code, health.json()["error"]) == (503, "the data is not available.")
    assert office.ask(ann, BIRTHS)[1]["answer"] == first["answer"], "what was answered is kept"
    assert office.ask(ann, BIRTHS.replace("births", "deaths"))[0] == 200


def test_whatever_keeps_rows_away_has_one_text(tmp_path: Path) -> None:
    here = server(tmp_path)
    here.queries.gone = True
    reply = here.client.post(
        "/v1/query", json={"sql": "SELECT 1 FROM births", "epsilon": 1}, headers=here.bearer(AccessRole.ANALYST)
    )
    assert (reply.status_code, reply.json()["error"]) == (503, NOT_AVAILABLE)
    assert SECRET not in here.client.get("/healthz").text


def test_the_same_question_at_once_is_paid_for_once(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    ann, bob = (office.headers(name, AccessRole.ANALYST) for name in ("ann", "bob"))
    services, begin, tries = office.application.state.services, QueryService.begin, count()

    def slow(self: QueryService, prepared: PreparedQuery[Any]) -> Any:
        if next(tries) == 0:
            waiting.result(300)
        return begin(self, prepared)

    monkeypatch.setattr(QueryService, "begin", slow)
    with ThreadPoolExecutor(3) as pool:
        waiting = pool.submit(seen, services)
        first = pool.submit(office.ask, ann, BIRTHS)
        second = pool.submit(office.ask, bob, BIRTHS)
        replies = [first.result(), second.result()]
    assert [status for status, _ in replies] == [200, 200]
    assert replies[0][1]["answer"] == replies[1][1]["answer"]
    assert charges(office) == "1"
    budgets = [office.browser.get("/v1/budget", headers=each).json()["datasets"]["births"] for each in (ann, bob)]
    assert [each["spent"]["epsilon"] for each in budgets] == ["1", "1"], "each allowance pays"


def test_who_asks_the_same_at_once_waits_once(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    ann, bob = (office.headers(name, AccessRole.ANALYST) for name in ("ann", "bob"))
    services, begin, tries = office.application.state.services, QueryService.begin, count()
    pause, paused = ReplyTimer.pause, list[int]()

    async def counted(self: ReplyTimer, steps: int) -> None:
        paused.append(steps)
        await pause(self, steps)

    def slow(self: QueryService, prepared: PreparedQuery[Any]) -> Any:
        if next(tries) == 0:
            waiting.result(300)
        return begin(self, prepared)

    monkeypatch.setattr(QueryService, "begin", slow)
    monkeypatch.setattr(ReplyTimer, "pause", counted)
    paced = replace(services, settings=replace(services.settings, pace=0.05))
    monkeypatch.setattr(office.application.state, "services", paced)
    with ThreadPoolExecutor(3) as pool:
        waiting = pool.submit(seen, services)
        replies = [asked.result(300) for asked in [pool.submit(office.ask, each, BIRTHS) for each in (ann, bob)]]
    assert [status for status, _ in replies] == [200, 200]
    assert len(paused) == 2, "a second wait would tell that somebody else asked the same"


def test_who_waits_for_another_worker_keeps_nobody_waiting_for_good(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = office.headers("ann", AccessRole.ANALYST)
    services, begin, tries = office.application.state.services, QueryService.begin, count()

    def busy(self: QueryService, prepared: PreparedQuery[Any]) -> Any:
        if next(tries) < 3:
            waiting.result(300)
            raise QueryInFlight
        return begin(self, prepared)

    monkeypatch.setattr(QueryService, "begin", busy)
    with ThreadPoolExecutor(3) as pool:
        waiting = pool.submit(seen, services)
        replies = [asked.result(300) for asked in [pool.submit(office.ask, ann, BIRTHS) for _ in range(2)]]
    assert [status for status, _ in replies] == [200, 200]
    assert (charges(office), services.in_flight.leading) == ("1", {})


def seen(services: Any) -> None:
    """Wait until both questions are in hand, and one of them leads."""
    while services.limit.held.total() < 2 or not services.in_flight.leading:
        time.sleep(0.001)


def test_a_price_does_not_tell_what_others_asked(office: Office) -> None:
    ann, bob = (office.headers(name, AccessRole.ANALYST) for name in ("ann", "bob"))
    carl = office.headers("carl", AccessRole.CURATOR)
    office.ask(ann, BIRTHS)
    prices = [
        office.browser.post("/v1/price", json={"sql": BIRTHS, "epsilon": 1}, headers=each).json()
        for each in (ann, bob, carl)
    ]
    assert [(each["repeated"], each["cost"]["epsilon"]) for each in prices] == [(True, "0"), (False, "1"), (True, "0")]


def test_a_question_that_is_stopped_stays_charged_and_says_so(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise QueryStopped("the query exceeded its time limit.")

    tables = office.application.state.services.queries.planner.tables
    monkeypatch.setattr(type(tables), "collect_together", stop)
    status, told = office.ask(office.headers("ann", AccessRole.ANALYST), BIRTHS)
    assert (status, charges(office)) == (504, "1")
    assert "not refunded" in told["error"]


def raised(problem: Exception) -> None:
    raise problem


def test_a_new_version_takes_the_place_of_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload, "_INTERVAL", 3600.0)
    path = Path(policy(tmp_path, "births"))
    told = json.loads(path.read_text())

    def write(version: str, rows: int) -> None:
        (tmp_path / "births.csv").write_text("sex,age\n" + "f,30\n" * rows)
        os.utime(tmp_path / "births.csv", ns=(rows, rows))
        path.write_text(json.dumps(told | {"dataset": told["dataset"] | {"version": version}}))

    write("2025-01", 100)
    reloading = ReloadingQueries([str(path)], open_queries, 0.0)
    try:
        before = reloading.current
        first = reloading.current.queries.prepare(QueryRequest(BIRTHS, ALL)).begin().finish()
        assert not reloading.look(), "nothing changed"
        write("2025-01", 300)
        path.write_text(path.read_text() + "\n")
        assert not reloading.look(), "other rows under the same version are not taken"
        write("2025-02", 300)
        assert reloading.look()
        assert reloading.current is not before
        second = reloading.current.queries.prepare(QueryRequest(BIRTHS, ALL)).begin().finish()
        assert not second.to_json()["repeated"]
        counts = [each.to_json()["answer"]["columns"][0]["values"][0] for each in (first, second)]
        assert counts[0] < 200 < counts[1]  # noise of 100 or more has a chance below e^-99
        for content in (
            b"incrowd: 7",
            b"\xff\xfe",
            json.dumps(told | NEW | {"ledger": "sqlite:///other.sqlite"}).encode(),
        ):
            path.write_bytes(content)
            assert not reloading.look(), "what cannot be read, or has other books, leaves the query service as it is"
        path.write_text(json.dumps(told | NEW))
        monkeypatch.setattr(QueryService, "load", lambda _: raised(SourceUnavailable("it is gone")))
        opened = sorted((tmp_path / ".incrowd" / ".charges").glob("*.open"))
        assert not reloading.look()
        assert sorted((tmp_path / ".incrowd" / ".charges").glob("*.open")) == opened, "what was not taken is closed"
        assert reloading.current.versions == {"births": "2025-02"}
    finally:
        reloading.close()


def test_a_server_of_one_process_logs_json_to_its_end(tmp_path: Path) -> None:
    """Libraries that complain when a process ends would write into the same log: `serving` reads all of it."""
    path = Path(policy(tmp_path, "births"))
    AccessList.create(f"sqlite:///{tmp_path}/.incrowd/ledger.sqlite")
    with serving(path, "--reply-interval", "0"):
        assert (tmp_path / ".incrowd" / ".charges").is_dir()


@pytest.mark.postgres
@pytest.mark.parametrize("rows", [2, 3])
def test_a_person_with_too_many_rows_in_a_database_makes_no_question_longer(
    rows: int, tmp_path: Path, postgres: str
) -> None:
    """PostgreSQL would number them all for each question; who asks himself, without a server, may let it.

    Whether somebody has so many decides nothing, unless the policy says that such a source is refused.
    """
    people = pa.table({"id": pa.array([1] * rows + list(range(2, 50)), pa.int64())})
    file, unit = tmp_path / "policy.yaml", {"column": "id", "max_rows": 2}
    content = {
        "incrowd": 1,
        "dataset": {"name": "people", "unit": unit},
        "source": load(postgres, "people", people),
        "columns": {"id": {"role": "identifier", "type": "integer"}},
        "queries": {"open": True, "pushdown": True},
        "budget": {"epsilon": 5},
    }
    file.write_text(json.dumps(content))
    AccessList.create(f"sqlite:///{tmp_path}/.incrowd/ledger.sqlite")
    with pytest.raises(InvalidParameter, match="write more: refuse into the unit"):
        open_server(ServeOrder((str(file),), None, FAST))
    with open_queries([load_policy(file)]) as service:
        assert service.ask(QueryRequest("SELECT COUNT(*) AS n FROM people", ALL)).answer.rows()
    file.write_text(json.dumps(content | {"dataset": {"name": "people", "unit": unit | {"more": "refuse"}}}))
    with nullcontext() if rows == 2 else pytest.raises(SourceInvalid, match="1 person has more than 2 rows"):
        open_server(ServeOrder((str(file),), None, FAST)).state.close()
