from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from incrowd.client import Client
from incrowd.governance.grant import AccessRole
from incrowd.web.logs import LOGGING, NAME, AsJson, logging_config
from incrowd.web.settings import Settings
from incrowd.workflows.events import VARIABLE
from incrowd.workflows.tracing import Span
from tests.web.serving import SECRET, Server, listening, server

ASK = {"sql": "SELECT COUNT(*) FROM births", "epsilon": 1}


@pytest.fixture(scope="module")
def unused(tmp_path_factory: pytest.TempPathFactory) -> Server:
    return server(tmp_path_factory.mktemp("unused"))


@pytest.fixture
def here(tmp_path: Path) -> Server:
    return server(tmp_path)


def test_a_request_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    here = server(tmp_path, Settings(pace=0.0, size=1000))
    reply = here.client.post("/v1/query", json=ASK | {"sql": "x" * 2000}, headers=here.bearer(AccessRole.ANALYST))
    assert reply.status_code == 413


def test_a_request_without_a_stated_length_is_counted(tmp_path: Path) -> None:
    here = server(tmp_path, Settings(pace=0.0, size=1000))

    async def parts() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 100

    assert here.client.post("/v1/query", content=parts(), headers=here.bearer(AccessRole.ANALYST)).status_code == 413


@pytest.mark.parametrize("path", ["/healthz", "/metrics", "/docs", "/openapi.json", "/v1/schema", "/nowhere"])
def test_every_reply_has_the_headers_that_browsers_need(unused: Server, path: str) -> None:
    headers = unused.client.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-request-id"]


def test_an_unknown_place_and_a_wrong_verb_are_told_as_json(here: Server) -> None:
    assert here.client.get("/nowhere").json()["kind"] == "InvalidParameter"
    assert here.client.get("/v1/query").status_code == 405


def test_the_page_of_the_description_loads_nothing_from_elsewhere(here: Server) -> None:
    page = here.client.get("/docs").text
    assert "/v1/query" in page
    assert "<script" not in page
    assert "src=" not in page
    assert "http" not in page.replace("/v1/", "")


def test_health_says_when_a_book_is_gone(here: Server, tmp_path: Path) -> None:
    assert here.client.get("/healthz").json() == {"status": "ok"}
    (tmp_path / "ledger.access.sqlite").unlink()
    assert here.client.get("/healthz").status_code == 503


def test_metrics_count_outcomes_and_prometheus_can_read_them(here: Server) -> None:
    headers = here.bearer(AccessRole.ANALYST)
    for sql in ("births", "births", "births over budget"):
        here.client.post("/v1/query", json=ASK | {"sql": sql}, headers=headers)
    text = here.client.get("/metrics").text
    found = {
        (sample.labels["action"], sample.labels["outcome"]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "incrowd_events_total"
    }
    assert found == {("query", "answered"): 2.0, ("query", "refused"): 1.0}


def test_logs_are_json_and_hold_neither_questions_nor_data_nor_tokens(
    here: Server, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(NAME), "propagate", True)
    caplog.set_level(logging.INFO, NAME)
    headers = here.bearer(AccessRole.ANALYST)
    for sql in ("births", "births crash", "births source"):
        here.client.post("/v1/query", json=ASK | {"sql": sql}, headers=headers)
    here.client.get("/v1/certificates/secret-path", headers=headers)
    lines = [AsJson().format(record) for record in caplog.records if record.name == NAME]
    requests = [line for line in map(json.loads, lines) if line["event"] == "request"]
    assert [line["status"] for line in requests] == [200, 500, 500, 404]
    assert [line["route"] for line in requests] == ["/v1/query"] * 3 + ["/v1/certificates/{number}"]
    assert {line["holder"] for line in requests} == {"ann"}
    whole = "".join(lines)
    for hidden in ("births", SECRET, "secret-path", headers["Authorization"].split()[1]):
        assert hidden not in whole


def test_spans_hold_the_paced_time_of_a_reply_and_nothing_of_its_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "otlp:http://collector.invalid")
    spans: list[Span] = []
    monkeypatch.setattr("incrowd.web.logs.exporter_to", lambda _address: spans.extend)
    here = server(tmp_path, Settings(pace=0.25, threads=2))
    headers = here.bearer(AccessRole.ANALYST)
    for sql in ("births", "births crash"):
        here.client.post("/v1/query", json=ASK | {"sql": sql}, headers=headers)
    here.client.get("/v1/certificates/secret-path", headers=headers)
    here.client.application.state.close()
    seconds = [(span.end - span.start) / 1e9 for span in spans]
    assert [span.name for span in spans] == ["POST /v1/query"] * 2 + ["GET /v1/certificates/{number}"]
    assert all(round(length % 0.25, 6) in (0.0, 0.25) for length in seconds)
    assert min(seconds[:2]) >= 0.25
    assert {name for span in spans for name in span.facts} == {
        "http.request.method",
        "http.response.status_code",
        "http.route",
    }
    assert not any(span.parent for span in spans)


def test_a_server_logs_into_a_file_if_one_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "server.log"))
    assert logging_config()["handlers"]["stderr"]["filename"] == str(tmp_path / "server.log")
    assert (tmp_path / "server.log").stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv(VARIABLE, "json")
    assert logging_config() == LOGGING


def test_an_exception_is_logged_by_its_class_alone() -> None:
    told = (ValueError, ValueError(SECRET), None)
    record = logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, "failed", None, told)
    line = AsJson().format(record)
    assert json.loads(line)["exception"] == "ValueError"
    assert SECRET not in line


def test_what_was_begun_is_answered_before_the_server_stops(here: Server) -> None:
    token = here.token(AccessRole.ANALYST).token
    with ThreadPoolExecutor(1) as pool, listening(here.client.application) as address:
        waiting = pool.submit(Client(address, token).query, "SELECT slow FROM births", 1)
        while not here.queries.asked:
            time.sleep(0.01)
        threading.Timer(0.3, here.queries.go.set).start()
    assert waiting.result().columns[1].values == (42, 7, 0)
    assert here.events() == [("query", "answered")]


@pytest.mark.parametrize("coding", ["utf-8", "utf-16"])
def test_a_body_with_a_key_twice_is_refused(here: Server, coding: str) -> None:
    body = '{"sql": "SELECT COUNT(*) FROM births", "epsilon": 1, "epsilon": 9}'.encode(coding)
    headers = here.bearer(AccessRole.ANALYST) | {"content-type": "application/json"}
    reply = here.client.post("/v1/query", content=body, headers=headers)
    assert reply.status_code == 400
    assert "a key stands twice" in reply.json()["error"]
