"""Logs of commands: every step in JSON or as spans of OpenTelemetry, and nothing of the rows in them."""

from __future__ import annotations

import io
import json
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from incrowd.errors import InvalidParameter
from incrowd.workflows.events import VARIABLE, recorded, recorder_at, step
from incrowd.workflows.tracing import HEADERS
from tests.cli.running import Runner

STEPS = ["open", "charge", "release", "stage", "conclude", "publish", "incrowd release"]
POLICY = {
    "incrowd": 1,
    "dataset": {"name": "kişiler"},
    "columns": {"şehir": {"categories": ["Şırnak", "Muş"]}},
    "release": {"method": "safe", "rate": "1/2", "epsilon": 1, "delta": "1e-4"},
    "budget": {"epsilon": 1, "delta": "1/10"},
}
RELEASE = "release people.csv --policy policy.yaml --out"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    rows(Path("people.csv"), 300)
    Path("policy.yaml").write_text(json.dumps(POLICY))
    return tmp_path


def rows(path: Path, many: int) -> None:
    path.write_text("şehir\n" + "Şırnak\nMuş\n" * many)


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith('{"at"')]


class Collector(BaseHTTPRequestHandler):
    taken: list[tuple[str, Any, dict[str, Any]]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.taken.append((self.path, self.headers, json.loads(body)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def collector() -> Iterator[tuple[str, list[tuple[str, Any, dict[str, Any]]]]]:
    taken: list[tuple[str, Any, dict[str, Any]]] = []
    with HTTPServer(("127.0.0.1", 0), type("Handler", (Collector,), {"taken": taken})) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", taken
        finally:
            server.shutdown()


def test_every_step_of_a_release_is_one_line_of_json_on_standard_error(place: Path, run: Runner) -> None:
    outcome = run(f"{RELEASE} out --log json --json")
    logged = lines(outcome.err)
    assert [line["event"] for line in logged] == STEPS
    assert {line["outcome"] for line in logged} == {"done"}
    assert outcome.json["certificate"]["id"] == logged[1]["release"]
    assert outcome.json["certificate"]["ledger"]["sequence"] == logged[1]["entry"]


def test_the_variable_names_a_file_that_its_owner_alone_can_read(
    place: Path, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "steps.log")
    assert run(f"{RELEASE} out --json").code == 0
    assert run(f"{RELEASE} other --json").code == 1
    logged = lines(Path("steps.log").read_text())
    assert [line["event"] for line in logged[:7]] == STEPS
    refused = [line for line in logged[7:] if line["outcome"] == "failed"]
    assert [(line["event"], line["error"]) for line in refused][-1] == ("incrowd release", "BudgetExceeded")
    assert refused[-1]["exit"] == 1
    assert stat.S_IMODE(Path("steps.log").stat().st_mode) == 0o600


def test_a_check_that_fails_is_logged_with_its_exit_code(place: Path, run: Runner) -> None:
    outcome = run("check people.csv --policy policy.yaml --log json")
    (line,) = [line for line in lines(outcome.err) if line["event"] == "incrowd check"]
    assert (line["outcome"], line.get("exit", 0)) == ("done", outcome.code)


def test_no_field_depends_on_rows(place: Path, run: Runner) -> None:
    fields = []
    for many, name in ((300, "viele"), (301, "mehr")):
        rows(Path("people.csv"), many)
        logged = lines(run(f"{RELEASE} {name} --state {name} --log json --json").err)
        changing = {"at", "release", "certificate"}
        fields.append([{key: value for key, value in line.items() if key not in changing} for line in logged])
    assert fields[0] == fields[1]
    assert "Muş" not in str(fields)


def test_without_a_log_nothing_is_recorded(place: Path, run: Runner) -> None:
    assert lines(run(f"{RELEASE} out --json").err) == []


def test_a_collector_gets_one_trace_with_a_span_for_each_step(
    place: Path, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HEADERS, "authorization=Bearer%20geheim")
    with collector() as (address, taken):
        assert run(f"{RELEASE} out --log otlp:{address} --json").code == 0
    ((path, headers, body),) = taken
    assert (path, headers["authorization"]) == ("/v1/traces", "Bearer geheim")
    spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert [span["name"] for span in spans] == STEPS
    root = spans[-1]
    assert {span["traceId"] for span in spans} == {root["traceId"]}
    assert {span["parentSpanId"] for span in spans[:-1]} == {root["spanId"]}
    assert "parentSpanId" not in root
    assert all(int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]) for span in spans)
    assert {span["status"]["code"] for span in spans} == {1}


def test_a_collector_that_is_not_there_stops_no_release(place: Path, run: Runner) -> None:
    with collector() as (address, _):
        pass  # its port is closed now
    assert run(f"{RELEASE} out --log otlp:{address} --json").code == 0


@pytest.mark.parametrize("log", ["otlp:localhost:4318", "otlp:http://u:p@host", "otlp:ftp://host", " "])
def test_a_place_that_is_none_is_refused_before_anything_is_done(place: Path, run: Runner, log: str) -> None:
    outcome = run(f"{RELEASE} out --log '{log}' --json")
    assert (outcome.code, json.loads(outcome.err)["kind"]) == (2, "InvalidParameter")
    assert not Path("out").exists()
    assert not Path(".incrowd").exists()


def test_a_log_that_cannot_be_written_is_refused(place: Path, run: Runner) -> None:
    assert json.loads(run(f"{RELEASE} out --log missing/steps.log --json").err)["kind"] == "OutputUnavailable"


def test_the_class_of_an_error_is_recorded_and_its_text_is_not(place: Path) -> None:
    with collector() as (address, taken):
        recorder = recorder_at(f"otlp:{address}", io.StringIO())
        with pytest.raises(InvalidParameter), recorded(recorder), step("outer"), step("inner"):
            raise InvalidParameter("Ayşe lives in Muş")
    (body,) = (body for _, _, body in taken)
    assert "Ay" not in json.dumps(body)
    spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert [(span["name"], span["status"]["message"]) for span in spans] == [
        ("inner", "InvalidParameter"),
        ("outer", "InvalidParameter"),
    ]
