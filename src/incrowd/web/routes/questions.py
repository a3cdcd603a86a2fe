"""`/v1/query` and `/v1/price`: what is asked, and what it costs."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from fastapi import APIRouter, Response

from incrowd.errors import IncrowdError
from incrowd.queries.language.reading import is_explain
from incrowd.queries.question import Terms
from incrowd.web import replies
from incrowd.web.caller import Asker, Caller, Reader
from incrowd.web.desk import JsonDocument
from incrowd.web.logs import note
from incrowd.web.routes.failures import failures
from incrowd.web.services import Here, Services
from incrowd.web.shapes import AskedShape
from incrowd.web.timing import NotFinished, NotStarted, paced
from incrowd.workflows.ask.asking import Asking

router = APIRouter(tags=["questions"])
_FAULT = 500


@router.post("/v1/query", summary="Ask", responses={200: {"model": dict[str, Any]}, **failures(422, 504)})
async def query(asked: AskedShape, caller: Asker, services: Here) -> Response:
    """Charge a question, then answer it with noise; a refusal takes as long as an answer, and a repetition too."""
    return await _handled("query", asked, caller, services)


@router.post("/v1/price", summary="Price", responses={200: {"model": dict[str, Any]}, **failures(422, 504)})
async def price(asked: AskedShape, caller: Reader, services: Here) -> Response:
    """Say what a question would cost and how exact its answer would be; no row is read and nothing is charged."""
    return await _handled("price", asked, caller, services)


async def _handled(action: str, asked: AskedShape, caller: Caller, services: Services) -> Response:
    def work(wait: Callable[[], None]) -> Response:
        return _reply(action, asked, caller, services, wait)

    outcome = await paced(work, services.pool, services.settings)
    match outcome:
        case NotStarted():
            return replies.error(503, "ServerUnavailable", "the server is busy; nothing was charged. Try again later.")
        case NotFinished():
            return replies.error(
                504,
                "ServerUnavailable",
                "the answer took too long. It stays charged, and is kept when it is ready: ask the same again later.",
            )
    return outcome


def _reply(action: str, asked: AskedShape, caller: Caller, services: Services, wait: Callable[[], None]) -> Response:
    """Return the reply to a question, whatever happens; it is written into the audit log first, after the wait."""
    about = _about(asked, services)
    try:
        told = _told(action, asked, caller, services, wait)
        outcome, reply = "answered", replies.as_json(told.to_json())
    except IncrowdError as problem:
        reply = replies.refusal(problem)
        outcome = "refused" if reply.status_code < _FAULT else "failed"
        about["kind"] = type(problem).__name__
    except Exception as problem:  # noqa: BLE001 (the text of a foreign exception may hold data: only its class is kept)
        outcome, reply = "failed", replies.refusal(problem)
        about["kind"] = type(problem).__name__
        note("fault", fault=type(problem).__name__, action=action)
    wait()
    try:
        services.books.audit.write(caller.event(action, outcome, **about))
    except IncrowdError as problem:
        note("fault", fault=type(problem).__name__, action="audit")
        return replies.refusal(problem)
    return reply


def _told(action: str, asked: AskedShape, caller: Caller, services: Services, wait: Callable[[], None]) -> JsonDocument:
    delta = Fraction(0) if asked.delta is None else asked.delta
    terms = Terms(asked.epsilon, delta, asked.error, asked.rate, asked.rho)
    only_price, sql = is_explain(asked.sql)
    asking = Asking(sql, terms, caller.analyst, asked.account)
    desk = caller.desk(services)
    return desk.price(asking) if only_price or action == "price" else desk.ask(asking, wait)


def _about(asked: AskedShape, services: Services) -> dict[str, Any]:
    """Return what the audit log keeps of a question: what was offered for it, and a mark instead of its text."""
    offered = {name: getattr(asked, name) for name in ("epsilon", "delta", "error", "rate", "rho")}
    about: dict[str, Any] = {name: str(value) for name, value in offered.items() if value is not None}
    about["question"] = asked.sql if services.settings.show_questions else services.books.audit.mark(asked.sql)
    return about
