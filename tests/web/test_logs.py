"""Replies are written down together, and one that cannot be written down keeps no other from being given."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from fastapi import Response

from incrowd.governance.audit import Audit, Event
from incrowd.governance.grant import AccessRole
from incrowd.web.logs import AuditLogWriter, Outcome
from incrowd.web.settings import Settings
from tests.web.serving import Begun, FakeQueries, Waiting, server

PATIENCE = 60


def outcome(name: str, about: Any = None) -> Outcome:
    return Response(name), Event("query", "answered", name, None, {} if about is None else {"about": about})


@pytest.fixture
def audit(tmp_path: Path) -> Audit:
    return Audit.create(f"sqlite:///{tmp_path}/ledger.sqlite")


def test_what_waits_is_written_in_one_transaction_in_its_order(audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go, write = threading.Event(), threading.Event(), Audit.write
    many = list[int]()

    def counted(self: Audit, *events: Event) -> None:
        begun.set()
        go.wait(PATIENCE)
        many.append(len(events))
        write(self, *events)

    monkeypatch.setattr(Audit, "write", counted)
    writer = AuditLogWriter(audit)
    first = writer.submit(lambda: outcome("one"))
    begun.wait(PATIENCE)
    others = [writer.submit(lambda name=name: outcome(name)) for name in ("two", "three")]  # type: ignore[misc]
    go.set()
    assert [each.result(PATIENCE).body for each in (first, *others)] == [b"one", b"two", b"three"]
    assert many == [1, 2]
    assert [event["holder"] for event in audit.read(0, 10)] == ["one", "two", "three"]
    assert writer.stop(PATIENCE)


def test_what_cannot_be_written_down_gets_no_answer_and_the_others_get_theirs(audit: Audit) -> None:
    writer, go = AuditLogWriter(audit), threading.Event()

    def failing() -> Outcome:
        raise ZeroDivisionError

    first = writer.submit(lambda: (go.wait(PATIENCE), outcome("one"))[1])
    bad = writer.submit(lambda: outcome("bad", about=0.5))  # a number that has no unique text
    faulty, good = writer.submit(failing), writer.submit(lambda: outcome("two"))
    go.set()
    assert (first.result(PATIENCE).status_code, good.result(PATIENCE).status_code) == (200, 200)
    assert bad.result(PATIENCE).status_code >= 400
    with pytest.raises(ZeroDivisionError):
        faulty.result(PATIENCE)
    assert [event["holder"] for event in audit.read(0, 10)] == ["one", "two"]
    assert writer.stop(PATIENCE)


class Knowing(FakeQueries):
    """A query service that has planned and answered one question before."""

    def recall(self, request: Any) -> Any:
        return Answered(self, request) if "again" in request.sql else None


class Answered(Waiting):
    def again(self) -> Any:
        return Begun(self.queries)


def test_what_is_known_and_can_take_too_long_is_refused_and_written_down(tmp_path: Path) -> None:
    here = server(tmp_path, Settings(pace=0.0), Knowing())
    asked = {"sql": "SELECT again, endless FROM births", "epsilon": 1}
    reply = here.client.post("/v1/query", json=asked, headers=here.bearer(AccessRole.ANALYST))
    assert (reply.status_code, reply.json()["kind"], here.events()) == (422, "QueryRefused", [("query", "refused")])


def test_what_is_known_is_told_although_all_threads_are_busy(tmp_path: Path) -> None:
    here = server(tmp_path, Settings(pace=0.0, threads=1), Knowing())
    ann, bob = here.bearer(AccessRole.ANALYST, "ann"), here.bearer(AccessRole.ANALYST, "bob")
    slow = {"sql": "SELECT slow FROM births", "epsilon": 1}
    waiting = threading.Thread(target=here.client.post, args=("/v1/query",), kwargs={"json": slow, "headers": ann})
    waiting.start()
    try:
        while not here.queries.asked:
            time.sleep(0.001)
        told = here.client.post("/v1/query", json={"sql": "SELECT again FROM births", "epsilon": 1}, headers=bob)
        assert told.status_code == 200
        assert here.events() == [("query", "answered")]
    finally:
        here.queries.go.set()
        waiting.join()
