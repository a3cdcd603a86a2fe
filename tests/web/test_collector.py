"""The collector over HTTP: its page and scripts, reports in and estimates out, and what is refused."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from incrowd.methods.local.survey.published import survey_from
from incrowd.noise.system import SystemCoins
from incrowd.web.collect.app import SIZE, collector_app
from incrowd.web.settings import Settings
from incrowd.workflows.collect.collector import Collector
from incrowd.workflows.local.opening import open_survey
from tests.surveys import TRAVEL, survey_file


@dataclass(frozen=True)
class Visitor:
    """Somebody who sends requests to an application."""

    application: FastAPI

    def get(self, path: str) -> httpx.Response:
        return asyncio.run(self._send("GET", path))

    def post(self, path: str, **more: Any) -> httpx.Response:
        return asyncio.run(self._send("POST", path, **more))

    async def _send(self, method: str, path: str, **more: Any) -> httpx.Response:
        transport = httpx.ASGITransport(self.application)
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
            return await client.request(method, path, **more)


@pytest.fixture
def collector(tmp_path: Path) -> Collector:
    return Collector.beside(open_survey(survey_file(TRAVEL | {"title": "<Travel>"}, tmp_path)))


@pytest.fixture
def client(collector: Collector) -> Visitor:
    return Visitor(collector_app(collector, Settings(size=SIZE)))


def sent(at: Collector, number: int) -> dict[str, Any]:
    reports = at.survey.randomize({"travel": ["car"] * number}, SystemCoins())
    return {"reports": [{"token": at.tokens.issue(), "report": report} for report in reports]}


def test_the_page_and_its_scripts_are_the_certified_ones(client: Visitor, collector: Collector) -> None:
    page = client.get("/")
    assert "&lt;Travel&gt;" in page.text
    assert "script-src 'self'" in page.headers["content-security-policy"]
    for name, mark in collector.survey.scripts.items():
        assert sha256(client.get(f"/{name}").content).hexdigest() == mark
        assert mark in page.text
    assert survey_from(client.get("/survey.json").json()).id == client.get("/id.json").json()["id"]
    assert client.get("/certificate.json").json()["id"] == collector.opened.certificate.id
    assert client.get("/healthz").json() == {"status": "ok"}


def test_reports_come_in_and_estimates_go_out(client: Visitor, collector: Collector) -> None:
    assert client.get("/estimates.json").json() == {"reports": 0, "questions": []}
    assert "No report was counted yet" in client.get("/estimates").text
    given = sent(collector, 30)
    assert client.post("/reports", json=given).json()["receipts"] == ["counted"] * 30
    assert client.post("/reports", json=given).json()["receipts"] == ["already counted"] * 30
    told = client.get("/estimates.json").json()
    assert told["reports"] == 30
    assert [each["value"] for each in told["questions"][0]["estimates"]] == ["walk", "bike", "bus", "car"]
    assert set(told["questions"][0]["estimates"][0]) == {"value", "estimate", "low", "high", "projected"}
    assert "95 % interval" in client.get("/estimates").text


def test_what_is_no_report_is_refused_by_name(client: Visitor, collector: Collector) -> None:
    given = sent(collector, 1)["reports"][0]
    for body in (b"", b"x", b"[]", b'{"reports": 1}', b'{"reports": []}'):
        reply = client.post("/reports", content=body)
        assert (reply.status_code, reply.json()["kind"]) == (400, "InvalidParameter")
    strange = client.post("/reports", json={"reports": [given | {"token": "0" * 64}]})
    assert (strange.status_code, strange.json()["kind"]) == (403, "AccessDenied")
    raw = client.post("/reports", json={"reports": [given | {"report": {"travel": "car"}}]})
    assert raw.status_code == 400
    assert client.post("/reports", json={"reports": [given]}).status_code == 200
    report = {**given["report"], "report": (given["report"]["report"] + 1) % 4}
    other = client.post("/reports", json={"reports": [given | {"report": report}]})
    assert (other.status_code, other.json()["kind"]) == (409, "Refused")
    assert client.post("/reports", content=b" " * (SIZE + 1)).status_code == 413
    assert collector.count == 1
