"""What an attacker tries at a server, and does not get."""

from __future__ import annotations

import json
import logging
import socket
import stat
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from incrowd.governance.grant import AccessRole, User
from incrowd.web.answering import ReplyTimer
from incrowd.web.app import app
from incrowd.web.logs import AsJson
from incrowd.web.settings import Settings
from incrowd.web.strict_http import StrictProtocol
from tests.web.serving import FAST, OFFICER, PASSWORD, Browser, FakeHistory, Server, listening, server

ASK = {"sql": "SELECT COUNT(*) FROM births", "epsilon": "1/2"}
LOGIN = {"name": "ann", "password": PASSWORD}


@pytest.fixture
def here(tmp_path: Path) -> Server:
    return server(tmp_path)


@pytest.mark.parametrize("sql", ["births", "births crash", "births source"])
def test_nothing_shows_when_the_rows_were_read_before_the_time_of_the_reply(tmp_path: Path, sql: str) -> None:
    """A list of releases, a log or a counter that changes at once would tell the duration that the reply hides."""
    here, pace = server(tmp_path, Settings(pace=0.4)), 0.4
    headers, start, began = here.bearer(AccessRole.ANALYST), time.monotonic(), here.books.access.now()
    here.client.post("/v1/query", json=ASK | {"sql": sql}, headers=headers)
    assert all(moment >= start + pace for moment in here.queries.shown)
    (event,) = here.books.audit.read(0, 10)
    assert event["at"] >= (began + timedelta(seconds=pace)).isoformat(timespec="microseconds")


def test_a_question_that_waits_to_be_shown_holds_its_thread(tmp_path: Path) -> None:
    """So when the next one begins tells no more than when this one is shown."""
    here = server(tmp_path, Settings(pace=0.4, threads=1))
    headers = here.bearer(AccessRole.ANALYST)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: here.client.post("/v1/query", json=ASK, headers=headers), range(2)))
    assert here.queries.begun[1] >= here.queries.shown[0]


@pytest.mark.parametrize(
    ("sql", "status", "pauses"),
    [("births kept", 200, 1), ("births over budget", 422, 1), ("births", 200, 2), ("births crash", 500, 2)],
)
def test_who_waits_for_the_same_question_waits_again_only_where_rows_were_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str, status: int, pauses: int
) -> None:
    """Else somebody who needs no row would see by the time of his reply that somebody else is asking the same."""
    here, pause, paused = server(tmp_path, Settings(pace=0.01)), ReplyTimer.pause, list[int]()

    async def counted(self: ReplyTimer, steps: int) -> None:
        paused.append(steps)
        await pause(self, steps)

    monkeypatch.setattr(ReplyTimer, "pause", counted)
    headers = here.bearer(AccessRole.ANALYST)
    with ThreadPoolExecutor(1) as pool:
        with here.client.application.state.services.in_flight.track() as leader:
            leader.lead(sql)
            follower = pool.submit(here.client.post, "/v1/query", json=ASK | {"sql": sql}, headers=headers)
            while not paused:
                time.sleep(0.001)
        assert follower.result(300).status_code == status
    assert len(paused) == pauses


def test_a_new_password_ends_the_sessions_of_the_old_one(here: Server) -> None:
    here.books.access.set_password(User("ann", AccessRole.OWNER), PASSWORD, OFFICER)
    here.client.post("/v1/sessions", json=LOGIN)
    assert here.client.get("/v1/sessions").status_code == 200
    here.books.access.set_password(User("ann", AccessRole.ANALYST), PASSWORD, OFFICER)
    assert here.client.get("/v1/sessions").status_code == 401
    assert here.books.access.check().ok


def test_a_new_password_leaves_tokens_and_other_people_alone(here: Server) -> None:
    token = here.bearer(AccessRole.ANALYST, "ann")
    here.books.access.set_password(User("bob", AccessRole.ANALYST), PASSWORD, OFFICER)
    here.client.post("/v1/sessions", json=LOGIN | {"name": "bob"})
    here.books.access.set_password(User("ann", AccessRole.ANALYST), PASSWORD, OFFICER)
    assert here.client.get("/v1/sessions").status_code == 200
    assert here.client.get("/v1/schema", headers=token).status_code == 200


@pytest.mark.usefixtures("still")
def test_new_sessions_bring_no_fresh_rate(tmp_path: Path) -> None:
    here = server(tmp_path, Settings(pace=0.0, rate=3))
    here.books.access.set_password(User("ann", AccessRole.ANALYST), PASSWORD, OFFICER)
    codes = []
    for _ in range(2):
        here.client.post("/v1/sessions", json=LOGIN)
        codes += [here.client.get("/v1/schema").status_code for _ in range(2)]
    assert codes == [200, 200, 200, 429]


@pytest.mark.usefixtures("still")
def test_one_place_that_guesses_does_not_use_up_the_attempts_of_a_name(tmp_path: Path) -> None:
    here = server(tmp_path, Settings(pace=0.0, logins=2))
    for name in ("x", "y", "ann", "ann", "ann"):
        here.client.post("/v1/sessions", json={"name": name, "password": "wrong"})
    logins = here.client.application.state.services.logins
    assert logins.wait("name ann") == 0.0


def denied(here: Server) -> Iterator[Any]:
    """Try what is not allowed, in each way that there is."""
    here.books.access.set_password(User("ann", AccessRole.OWNER), PASSWORD, OFFICER)
    here.client.post("/v1/sessions", json=LOGIN)
    stolen = {"Authorization": f"Bearer {here.client.cookies['incrowd']}"}
    admit = {"holder": "carl", "role": "analyst", "datasets": ["deaths"], "why": "mine"}
    yield here.client.get("/v1/schema", headers={"Sec-Fetch-Site": "cross-site"})
    yield here.client.post("/v1/query", json=ASK)
    here.client.cookies.clear()
    yield here.client.get("/v1/schema", headers=stolen)
    owner = here.bearer(AccessRole.OWNER, "olga", ("births",))
    yield here.client.post("/v1/tokens", json=admit, headers=owner)
    yield here.client.delete(f"/v1/tokens/{here.token(AccessRole.ANALYST, 'dan').grant.id}", headers=owner)
    yield here.client.get("/v1/certificates/deaths-1", headers=owner)
    yield here.client.get("/v1/audit", headers=here.bearer(AccessRole.AUDITOR, "eve", ("births",)))


def test_every_denial_is_in_the_log(here: Server) -> None:
    replies = list(denied(here))
    assert [reply.status_code for reply in replies] == [403, 403, 401, 403, 400, 404, 403]
    told = [event for event in here.books.audit.read(0, 100) if event["outcome"] == "denied"]
    assert [event["holder"] for event in told] == ["ann"] * 3 + ["olga"] * 3 + ["eve"]


def test_a_question_that_failed_is_not_logged_as_refused(here: Server) -> None:
    here.client.post("/v1/query", json=ASK | {"sql": "births source"}, headers=here.bearer(AccessRole.ANALYST))
    assert here.events() == [("query", "failed")]


def test_a_release_of_two_datasets_is_not_listed_for_a_token_of_one(here: Server, monkeypatch: Any) -> None:
    both = {"id": "both", "dataset": "births", "together with": ["deaths"]}
    monkeypatch.setattr(FakeHistory, "releases", lambda *_: [both])
    one, all_ = here.bearer(AccessRole.ANALYST, "ann", ("births",)), here.bearer(AccessRole.ANALYST, "bob")
    assert here.client.get("/v1/releases", headers=one).json()["releases"] == []
    assert here.client.get("/v1/releases", headers=all_).json()["releases"] == [both]


def test_an_owner_cannot_make_his_datasets_more_by_rotation(here: Server) -> None:
    owner = here.bearer(AccessRole.OWNER, "olga", ("births",))
    wider = here.token(AccessRole.OWNER, "otto").grant.id
    assert here.client.post(f"/v1/tokens/{wider}/rotate", json={"why": "mine"}, headers=owner).status_code == 400


def test_the_books_are_for_their_owner_alone(here: Server, tmp_path: Path) -> None:
    here.client.post("/v1/query", json=ASK, headers=here.bearer(AccessRole.ANALYST))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("*.sqlite")}
    assert modes == {"ledger.access.sqlite": 0o600, "ledger.audit.sqlite": 0o600}


def test_a_log_line_is_one_line_of_plain_characters() -> None:
    record = logging.LogRecord("uvicorn.error", logging.INFO, "", 0, "a\nb\u2028c\x9b31m", None, None)
    line = AsJson().format(record)
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["event"] == "a\nb\u2028c\x9b31m"


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Authorization", "Bearer ic_" + "a" * 43),
        ("Authorization", "Bearer " + "ic_" * 5000),
        ("Authorization", "bearer\tx"),
        ("Cookie", "incrowd=ic_" + "b" * 43),
        ("Cookie", "incrowd=" + "%00" * 100),
        ("Content-Length", "-1"),
        ("Content-Length", "1e3"),
        ("Content-Length", "9" * 30),
    ],
)
def test_strange_headers_get_a_plain_refusal(here: Server, header: str, value: str) -> None:
    reply = here.client.post("/v1/query", content=b"{}", headers={header: value})
    assert reply.status_code in (400, 401, 413)
    assert value not in reply.text


@pytest.mark.parametrize("number", ["9" * 5000, "1e400", "-1e400", "1" + "0" * 400, "0." + "0" * 400 + "1"])
def test_numbers_beyond_all_measure_are_bad_input(here: Server, number: str) -> None:
    content = f'{{"sql": "births", "epsilon": {number}}}'.encode()
    headers = here.bearer(AccessRole.ANALYST) | {"Content-Type": "application/json"}
    assert here.client.post("/v1/query", content=content, headers=headers).status_code == 400
    assert here.queries.asked == []


def test_a_token_that_was_rotated_or_revoked_works_at_no_worker(here: Server) -> None:
    other = Browser(app(here.queries.current, here.books, FAST))
    issued = here.token(AccessRole.ANALYST)
    old = {"Authorization": f"Bearer {issued.token}"}
    assert other.get("/v1/schema", headers=old).status_code == 200
    new = here.books.access.rotate(issued.grant.id, here.books.access.now() + timedelta(days=1), OFFICER)
    assert other.get("/v1/schema", headers=old).status_code == 401
    here.books.access.revoke(new.grant.id, OFFICER)
    assert other.get("/v1/schema", headers={"Authorization": f"Bearer {new.token}"}).status_code == 401


def test_a_token_past_its_end_works_no_more(here: Server) -> None:
    issued, now = here.token(AccessRole.ANALYST), here.books.access.now()
    late = replace(here.books.access.chain, clock=lambda: now + timedelta(days=2))
    books = replace(here.books, access=replace(here.books.access, chain=late))
    headers = {"Authorization": f"Bearer {issued.token}"}
    assert Browser(app(here.queries.current, books, FAST)).get("/v1/schema", headers=headers).status_code == 401


HIDDEN = b"0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: server\r\n\r\n"
HEAD = b"POST /v1/query HTTP/1.1\r\nHost: server\r\nConnection: close\r\n"


def replies_to(address: str, sent: bytes) -> bytes:
    """Send bytes as they are, and return all that comes back."""
    with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=300) as raw:
        raw.sendall(sent)
        return b"".join(iter(lambda: raw.recv(65536), b""))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with listening(server(tmp_path_factory.mktemp("wire")).client.application) as address:
        yield address


@pytest.mark.parametrize(
    "sent",
    [
        HEAD + b"Content-Length: 2\r\nContent-Length: 60\r\n\r\n" + HIDDEN,
        HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n" + HIDDEN,
        HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n" + HIDDEN,
        HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + HIDDEN,
        HEAD + b"Transfer-Encoding: xchunked\r\n\r\n" + HIDDEN,
        HEAD + b"Content-Length: +2\r\n\r\n" + HIDDEN,
        HEAD + b"X: 1\nContent-Length: 2\r\n\r\n" + HIDDEN,
        HEAD + b"Content-Length: 2\n\n" + HIDDEN,
        HEAD + b"Content-Length: 2\r\n\n" + HIDDEN,
        HEAD.replace(b"\r\n", b"\n") + b"Content-Length: 2\n\n" + HIDDEN,
        b"\n" + HEAD + b"Content-Length: 2\r\n\r\n" + HIDDEN,
        HEAD + b"X: 1\rContent-Length: 2\r\n\r\n" + HIDDEN,
        HEAD + b"X: 1\x002\r\nContent-Length: 2\r\n\r\n" + HIDDEN,
        HEAD + b"Transfer-Encoding:\r\n chunked\r\n\r\n" + HIDDEN,
        HEAD + b"X: 1\r\n\tContent-Length: 60\r\nContent-Length: 2\r\n\r\n" + HIDDEN,
        HEAD + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n" + HIDDEN,
        HEAD + b"Content-Length: 2, 2\r\n\r\n" + HIDDEN,
        HEAD.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n" + HIDDEN,
    ],
)
def test_no_second_request_is_smuggled_in_the_body_of_the_first(place: str, sent: bytes) -> None:
    """What two readers could take for one request or for two is refused, and nothing behind it is read."""
    told = replies_to(place, sent)
    assert told.count(b"HTTP/1.1 ") == 1
    assert told.startswith(b"HTTP/1.1 4")
    assert b"HTTP/1.1 401" not in told
    assert b'"status":"ok"' not in told


def test_requests_as_they_should_be_are_read_one_after_the_other(place: str) -> None:
    one = b"GET /healthz HTTP/1.1\r\nHost: server\r\n"
    told = replies_to(place, one + b"\r\n" + one + b"Connection: close\r\n\r\n")
    assert told.count(b'"status":"ok"') == 2


@pytest.mark.parametrize("begun", [b"", b"GET /healthz HTTP/1.1\r\nHost: ser"])
def test_who_does_not_say_what_he_wants_in_time_keeps_no_connection(
    place: str, monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(StrictProtocol, "patience", 0.1)
    assert replies_to(place, begun) == b""


def test_an_owner_does_not_choose_who_reads_the_log(here: Server) -> None:
    owner, auditor = here.bearer(AccessRole.OWNER, "olga"), here.token(AccessRole.AUDITOR, "eve")
    admit = {"holder": "olga", "role": "auditor", "why": "to see what they see"}
    assert here.client.post("/v1/tokens", json=admit, headers=owner).status_code == 403
    assert (
        here.client.post(f"/v1/tokens/{auditor.grant.id}/rotate", json={"why": "x"}, headers=owner).status_code == 400
    )
    assert here.client.delete(f"/v1/tokens/{auditor.grant.id}", headers=owner).status_code == 400
    headers = {"Authorization": f"Bearer {auditor.token}"}
    assert here.client.get("/v1/audit", headers=headers).status_code == 200
