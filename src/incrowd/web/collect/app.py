"""The application of a collector: a page that randomizes in the browser, and one route that takes reports."""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse
from starlette.concurrency import run_in_threadpool

from incrowd import __version__
from incrowd.errors import IncrowdError, InvalidParameter
from incrowd.methods.local.survey.definition import SCRIPTS, script
from incrowd.web import replies
from incrowd.web.collect.pages import POLICY, form, results
from incrowd.web.middleware import RequestMiddleware
from incrowd.web.settings import Settings
from incrowd.workflows.collect.collector import Collector, Receipt

SIZE = 2**23
"""The largest request in bytes."""


def collector_app(collector: Collector, settings: Settings) -> FastAPI:
    """Return the application of one survey; it runs in one process, which holds the reports that wait."""
    server = FastAPI(title="incrowd collector", version=__version__, docs_url=None, redoc_url=None, openapi_url=None)
    _publish(server, collector)
    _receive(server, collector)
    _tell(server, collector)
    server.add_exception_handler(IncrowdError, lambda _request, problem: replies.refusal(problem))
    server.add_middleware(RequestMiddleware, settings=settings)
    return server


def _publish(server: FastAPI, collector: Collector) -> None:
    survey = collector.survey
    page = HTMLResponse(form(survey), headers={"content-security-policy": POLICY})
    server.get("/")(_constant(page))
    for name in SCRIPTS:
        kind = "application/json" if name.endswith(".json") else "text/javascript"
        server.get(f"/{name}")(_constant(Response(script(name), media_type=kind)))
    server.get("/survey.json")(_constant(replies.as_json(survey.public)))
    server.get("/id.json")(_constant(replies.as_json({"id": survey.id})))
    text = collector.opened.certificate.to_text().encode()
    server.get("/certificate.json")(_constant(Response(text, media_type="application/json")))


def _receive(server: FastAPI, collector: Collector) -> None:
    tokens = collector.tokens

    @server.post("/reports")
    async def reports(request: Request) -> Response:
        new = _reports(await request.body())
        receipts = await run_in_threadpool(collector.receive, new, tokens)
        content = {"receipts": [str(receipt) for receipt in receipts]}
        if Receipt.REFUSED in receipts:
            return replies.as_json({"error": f"{Receipt.REFUSED}.", "kind": "Refused", **content}, 409)
        return replies.as_json(content)


def _tell(server: FastAPI, collector: Collector) -> None:
    @server.get("/estimates.json")
    def estimates() -> Response:
        questions = collector.estimates()
        content = [question.to_json() for question in questions]
        return replies.as_json({"reports": sum(question.people for question in questions), "questions": content})

    @server.get("/estimates")
    def page() -> HTMLResponse:
        questions = collector.estimates()
        return HTMLResponse(results(collector.survey, questions), headers={"content-security-policy": POLICY})

    @server.get("/healthz")
    def health() -> Response:
        collector.chain.head()
        return replies.as_json({"status": "ok"})


def _reports(body: bytes) -> list[Any]:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or set(content) != {"reports"} or not isinstance(content["reports"], list):
        raise InvalidParameter('a request is {"reports": [{"token": …, "report": …}]}: nothing was taken.')
    return content["reports"]


def _constant(reply: Response) -> Any:
    def same() -> Response:
        return reply

    return same
