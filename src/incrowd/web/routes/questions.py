"""Questions and their prices; tables, budgets, releases and certificates: all that askers and readers reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

from fastapi import APIRouter, Response
from fastapi.concurrency import run_in_threadpool

from incrowd.errors import IncrowdError, InvalidParameter
from incrowd.queries.declarations import declaration_answer, may_be_declaration
from incrowd.queries.language.parameters import Parameter, bind_parameters
from incrowd.queries.language.reading import is_explain
from incrowd.queries.question import Terms
from incrowd.web import replies
from incrowd.web.caller import Asker, Caller, Reader
from incrowd.web.logs import note
from incrowd.web.services import Here, JsonDocument, PlannedQuestion, QuestionDesk, Services
from incrowd.web.shapes import (
    AskedShape,
    BudgetShape,
    DateShape,
    NumberShape,
    ParameterShape,
    ReleasesShape,
    failures,
)
from incrowd.web.threads import ThreadPool
from incrowd.web.timing import NotFinished, NotStarted, Pacing, pace_reply
from incrowd.workflows.ask.asking import Asking

router = APIRouter()
_FAULT = 500


@router.post(
    "/v1/query", tags=["questions"], summary="Ask", responses={200: {"model": dict[str, Any]}, **failures(422, 504)}
)
async def query(asked: AskedShape, caller: Asker, services: Here) -> Response:
    """Charge a question, then answer it with noise; a repetition takes as long as an answer."""
    declared = await run_in_threadpool(_declared, asked, caller, services)
    if declared is not None:
        return declared
    with services.turns.of(caller.holder.name):
        return await _handled("query", asked, caller, services, services.pool)


@router.post(
    "/v1/price", tags=["questions"], summary="Price", responses={200: {"model": dict[str, Any]}, **failures(422, 504)}
)
async def price(asked: AskedShape, caller: Reader, services: Here) -> Response:
    """Say what a question would cost and how exact its answer would be; no row is read and nothing is charged."""
    declared = await run_in_threadpool(_declared, asked, caller, services)
    if declared is not None:
        return declared
    return await _handled("price", asked, caller, services, services.prices)


def _declared(asked: AskedShape, caller: Caller, services: Services) -> Response | None:
    """Return the reply to SHOW TABLES and the like, which are about declarations; None to a question about rows."""
    if not may_be_declaration(asked.sql):
        return None
    try:
        sql = bind_parameters(asked.sql, [_value(each) for each in asked.parameters or ()])
        found = declaration_answer(sql, caller.desk(services).schema())
    except IncrowdError as problem:
        return replies.refusal(problem)
    return None if found is None else replies.as_json(found.to_json())


async def _handled(action: str, asked: AskedShape, caller: Caller, services: Services, pool: ThreadPool) -> Response:
    def work(pacing: Pacing) -> Response:
        return _reply(action, asked, caller, services, pacing)

    outcome = await pace_reply(work, pool, services.settings)
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


def _reply(action: str, asked: AskedShape, caller: Caller, services: Services, pacing: Pacing) -> Response:
    """Return the reply to a question, whatever happens; it is written into the audit log first, after the wait.

    How long that is hangs on the question as it was planned, so that it is the same for an answer and for a failure.
    """
    about, wait = _about(asked, services), pacing.after(0)
    try:
        prepared = _prepared(action, asked, caller, services)
        wait = pacing.after(prepared.steps)
        told = prepared.answer(wait)
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


@dataclass(frozen=True)
class _Price:
    """A question of which the price alone is asked: next to no work."""

    desk: QuestionDesk
    asking: Asking
    steps: int = 0

    def answer(self, ready: Callable[[], None]) -> JsonDocument:  # noqa: ARG002 (no row is read)
        """Say what it costs."""
        return self.desk.price(self.asking)


def _prepared(action: str, asked: AskedShape, caller: Caller, services: Services) -> PlannedQuestion:
    delta = Fraction(0) if asked.delta is None else asked.delta
    terms = Terms(asked.epsilon, delta, asked.error, asked.rate, asked.rho)
    only_price, sql = is_explain(asked.sql)
    sql = bind_parameters(sql, [_value(each) for each in asked.parameters or ()])
    asking = Asking(sql, terms, caller.analyst, asked.account)
    desk = caller.desk(services)
    return _Price(desk, asking) if only_price or action == "price" else desk.prepare(asking)


def _value(given: ParameterShape) -> Parameter:
    """Return a parameter as the value that it is."""
    match given:
        case NumberShape():
            return Decimal(given.number) if "." in given.number else int(given.number)
        case DateShape():
            try:
                return date.fromisoformat(given.date)
            except ValueError:
                raise InvalidParameter("a parameter is a date that is not in the calendar: write 2020-12-31.") from None
    return given


def _about(asked: AskedShape, services: Services) -> dict[str, Any]:
    """Return what the audit log keeps of a question: what was offered for it, and a mark instead of its text."""
    offered = {name: getattr(asked, name) for name in ("epsilon", "delta", "error", "rate", "rho")}
    about: dict[str, Any] = {name: str(value) for name, value in offered.items() if value is not None}
    given = "" if not asked.parameters else f" -- {asked.model_dump_json(include={'parameters'})}"
    text = asked.sql + given
    about["question"] = text if services.settings.show_questions else services.books.audit.mark(text)
    return about


@router.get("/v1/schema", tags=["what is known"], summary="Tables", responses=failures())
def schema(caller: Reader, services: Here) -> dict[str, Any]:
    """Return the tables that may be asked about, as they are declared; no row was read for it."""
    return dict(caller.desk(services).schema())


@router.get("/v1/budget", tags=["what is known"], summary="Budget", responses=failures())
def budget(caller: Reader, services: Here) -> BudgetShape:
    """Return what is left of each dataset, and what the caller has spent of it and may spend."""
    return BudgetShape(datasets=dict(caller.desk(services).budget(caller.analyst)))


@router.get("/v1/releases", tags=["what is known"], summary="Releases", responses=failures())
def releases(caller: Reader, services: Here) -> ReleasesShape:
    """Return what was released of the caller's datasets; an analyst sees what he asked himself, or may read."""
    return ReleasesShape(releases=_visible(caller, services))


@router.get("/v1/certificates/{number}", tags=["what is known"], summary="Certificate", responses=failures(404))
def certificate(number: str, caller: Reader, services: Here) -> Response:
    """Return the certificate of a release, as `incrowd verify` reads it."""
    found = services.desk.certificate(number, caller.reader)
    told = {} if found is None else found.to_json()
    if told and not caller.holder.may_use(_datasets(told["dataset"]["name"], told["dataset"])):
        services.books.audit.write(caller.event("certificate", "denied"))
        told = {}
    if not told:
        return replies.error(404, "InvalidParameter", "there is no such release, or it is not yours to see.")
    return replies.as_json(told)


def _datasets(first: str, told: Mapping[str, Any]) -> list[str]:
    return [first, *told.get("together with", ())]


def _visible(caller: Caller, services: Services) -> list[dict[str, Any]]:
    found = services.desk.releases(caller.reader)
    return [dict(each) for each in found if caller.holder.may_use(_datasets(each["dataset"], each))]
