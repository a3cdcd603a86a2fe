"""Questions and their prices; tables, budgets, releases and certificates: all that askers and readers reach."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

from fastapi import APIRouter, Response
from fastapi.concurrency import run_in_threadpool

from incrowd.core.codec import public_text
from incrowd.errors import IncrowdError, InvalidParameter, Refused, SourceUnavailable
from incrowd.queries.declarations import declaration_answer, may_be_declaration
from incrowd.queries.language.reading import Parameter, bind_parameters, is_explain
from incrowd.queries.question import QueryTerms
from incrowd.web import replies
from incrowd.web.caller import Asker, Caller, Reader
from incrowd.web.flights import InFlightQuery
from incrowd.web.logs import note
from incrowd.web.scribe import Outcome, written_down
from incrowd.web.services import BegunQuestion, Here, JsonDocument, PlannedQuestion, Services
from incrowd.web.shapes import (
    AskedShape,
    BudgetShape,
    DateShape,
    NumberShape,
    ParameterShape,
    ReleasesShape,
    Shape,
    StatementShape,
    failures,
)
from incrowd.web.threads import ThreadPool
from incrowd.web.timing import NotStarted, ReplyTimer, TimedOut, shown_after
from incrowd.workflows.query.open_charges import SameQuestion
from incrowd.workflows.query.prepared import AGAIN
from incrowd.workflows.query.request import Answered, QueryRequest

router = APIRouter()
_FAULT = 500
_LATE = "the answer took too long. It stays charged, and is kept when it is ready: ask the same again later."

Finish = Callable[[], JsonDocument]
"""Keeps an answer and returns it, or raises what came of the question instead."""
T = TypeVar("T")


@router.post(
    "/v1/query", tags=["questions"], summary="Ask", responses={200: {"model": dict[str, Any]}, **failures(422, 504)}
)
async def query(asked: AskedShape, caller: Asker, services: Here) -> Response:
    """Charge a question, then answer it with noise; a repetition takes as long as an answer."""
    if may_be_declaration(asked.sql):
        declared = await run_in_threadpool(_declared, asked, caller, services)
        if declared is not None:
            return declared
    with services.turns.of(caller.holder.name):
        return await handled(_request("query", asked, caller, services))


@router.post(
    "/v1/price", tags=["questions"], summary="Price", responses={200: {"model": dict[str, Any]}, **failures(422, 504)}
)
async def price(asked: AskedShape, caller: Reader, services: Here) -> Response:
    """Say what a question would cost and how exact its answer would be; no row is read and nothing is charged."""
    if may_be_declaration(asked.sql):
        declared = await run_in_threadpool(_declared, asked, caller, services)
        if declared is not None:
            return declared
    return await handled(_request("price", asked, caller, services))


def _declared(asked: AskedShape, caller: Caller, services: Services) -> Response | None:
    """Return the reply to SHOW TABLES and the like, which are about declarations; None to a question about rows."""
    try:
        found = declaration_answer(bound(asked), caller.desk(services).schema())
    except IncrowdError as problem:
        return replies.refusal(problem)
    return None if found is None else replies.as_json(found.to_json())


@dataclass(frozen=True)
class QuestionRequest:
    """Something that somebody asks or has priced, how it is planned, and the threads that work on it."""

    action: str
    caller: Caller
    services: Services
    pool: ThreadPool
    prepare: Callable[[], PlannedQuestion]
    about: Mapping[str, Any]
    """What the audit log keeps of it."""
    recall: Callable[[], PlannedQuestion | None] = lambda: None
    """Finds how it was planned before, with no work at all."""

    async def run(self, work: Callable[[], T], pacing: ReplyTimer) -> T:
        """Let a thread do something for the caller, in his turn."""
        return await pacing.done(self.pool.submit(work, self.caller.holder.name))


async def handled(request: QuestionRequest) -> Response:
    """Return the reply in its time, whatever happens."""
    pacing = ReplyTimer(request.services.settings)
    try:
        return await _outcome(request, pacing)
    except NotStarted:
        return replies.error(503, "ServerUnavailable", "the server is busy; nothing was charged. Try again later.")
    except TimedOut:
        return replies.error(504, "ServerUnavailable", _LATE)


@dataclass(frozen=True)
class Begun:
    """What a thread made of a question: an answer that nobody can see yet, a problem, or nothing so far."""

    steps: int = 0
    """How much work the question is at most."""
    prepared: PlannedQuestion | None = None
    """The question as it was planned."""
    answer: BegunQuestion | None = None
    problem: Exception | None = None
    same: Future[None] | None = None
    """Done when whoever is answering the same question here has shown it; then it is asked, and found."""
    reply: Response | None = None
    """The outcome, where it need not wait until it shows."""

    def finish(self) -> JsonDocument:
        """Keep the answer and return it, or raise what came of the question instead."""
        if self.answer is None:
            raise self.problem or SameQuestion
        return self.answer.finish()


async def _outcome(request: QuestionRequest, pacing: ReplyTimer) -> Response:
    """Return the reply to a question, whatever happens; it is written into the audit log first, after the wait.

    How long that is hangs on the question as it was planned, so that it is the same for an answer and for a failure.
    While it waits, it keeps its place among those in hand and no thread.  Where somebody is answering the same
    question, it is asked when theirs has shown, and found.
    """
    recalled = _recalled(request)
    known = None if recalled is None else recalled.again()
    if recalled is not None and known is not None:
        return await _told_again(request, known.finish, pacing, recalled.steps)
    with request.services.flights.boarding() as flight:
        begun = await _begun(request, recalled, flight, pacing)
        if begun.same is None:
            return begun.reply or await _shown(request, begun.finish, pacing, begun.steps)
        await pacing.pause(begun.steps)
        await asyncio.wait({asyncio.wrap_future(begun.same)})
    begun = await _begun(request, begun.prepared, flight, pacing)
    return begun.reply or await _shown(request, begun.finish, pacing, begun.steps)


def _recalled(request: QuestionRequest) -> PlannedQuestion | None:
    try:
        recalled = request.recall()
        if recalled is not None:
            shown_after(recalled.steps, request.services.settings)
    except Exception:  # noqa: BLE001 (it is raised again where it is planned, as an outcome)
        return None
    return recalled


async def _begun(
    request: QuestionRequest, prepared: PlannedQuestion | None, flight: InFlightQuery, pacing: ReplyTimer
) -> Begun:
    """Let a thread plan, charge and read; what is not there in time is kept when it is."""
    while True:
        job = request.pool.submit(partial(_begin, request, prepared, flight), request.caller.holder.name)
        try:
            begun = await pacing.done(job)
        except (TimedOut, asyncio.CancelledError):
            job.add_done_callback(partial(_kept_late, request))
            raise
        if not isinstance(begun.problem, SameQuestion):
            return begun
        prepared = begun.prepared
        await asyncio.sleep(AGAIN)  # another worker is answering it


def _begin(request: QuestionRequest, prepared: PlannedQuestion | None, flight: InFlightQuery) -> Begun:
    """Plan a question, unless it was planned, and charge and read, unless somebody is answering the same.

    What need not wait is kept and replied at once: where no time is kept, and after the wait for the same question
    whatever no row was read for, so that nobody waits once more because somebody else asked the same.
    """
    steps = 0
    try:
        prepared = prepared or request.prepare()
        shown_after(prepared.steps, request.services.settings)
        steps, answer, same = prepared.steps, prepared.again(), None
        if answer is None:
            same = flight.lead(prepared.mark)
            answer = prepared.begin() if same is None else None
    except Exception as problem:  # noqa: BLE001 (whatever it is, it is an outcome)
        begun, unread = Begun(steps, prepared, problem=problem), isinstance(problem, Refused)
    else:
        begun, unread = Begun(steps, prepared, answer, same=same), answer is not None and answer.known
    if (unread and flight.over.done()) or (begun.answer is not None and not request.services.settings.pace):
        return Begun(steps, prepared, reply=_closed(request, begun.finish))
    return begun


async def _shown(request: QuestionRequest, finish: Finish, pacing: ReplyTimer, steps: int) -> Response:
    """Wait until the outcome shows, and let it show; if the server ends meanwhile, it is kept at once."""
    quick = request.services.quick
    try:
        await pacing.pause(steps)
    except asyncio.CancelledError:
        quick.submit(finish)
        raise
    return await pacing.done(quick.submit(lambda: _closed(request, finish), request.caller.holder.name))


async def _told_again(request: QuestionRequest, finish: Finish, pacing: ReplyTimer, steps: int) -> Response:
    """Wait until an answer that was given before shows, and give it again: next to nothing is done for it."""
    await pacing.pause(steps)
    return await pacing.done(request.services.scribe.submit(lambda: _told(request, finish)))


def _kept_late(request: QuestionRequest, job: Future[Begun]) -> None:
    """Keep and write down an outcome for which nobody waits any more, in the thread that made it."""
    begun = None if job.cancelled() or job.exception() is not None else job.result()
    if begun is not None and (begun.answer or not isinstance(begun.problem, SameQuestion | None)):
        _closed(request, begun.finish)


def _closed(request: QuestionRequest, finish: Finish) -> Response:
    """Keep the answer, write what came of the question into the audit log, and return the reply."""
    return written_down(request.services.books.audit, *_told(request, finish))


def _told(request: QuestionRequest, finish: Finish) -> Outcome:
    """Keep the answer, and return the reply with what the audit log keeps of it."""
    about, outcome = dict(request.about), "answered"
    try:
        reply = replies.written(_text(finish()))
    except Exception as problem:  # noqa: BLE001 (the text of a foreign exception may hold data: only its class is kept)
        reply = replies.refusal(problem)
        about["kind"] = type(problem).__name__
        outcome = "refused" if isinstance(problem, IncrowdError) and reply.status_code < _FAULT else "failed"
        if isinstance(problem, SourceUnavailable):
            note("not available", why=str(problem))
        elif not isinstance(problem, IncrowdError):
            note("fault", fault=type(problem).__name__, action=request.action)
    return reply, request.caller.event(request.action, outcome, **about)


def _text(found: JsonDocument) -> str:
    return found.to_text() if isinstance(found, Answered) else public_text(found.to_json())


@dataclass(frozen=True)
class Known:
    """What is known without reading a row, such as a price: next to no work."""

    finish: Finish
    """Says it."""
    mark: str = field(default_factory=lambda: secrets.token_hex(8))
    steps: int = 0
    known: bool = True

    def again(self) -> Known:
        """Return itself: there is nothing to begin."""
        return self

    def begin(self) -> Known:
        """Do nothing: no row is read."""
        return self


def _request(action: str, asked: AskedShape, caller: Caller, services: Services) -> QuestionRequest:
    only_price, sql = is_explain(asked.sql)
    only_price, desk = only_price or action == "price", caller.desk(services)

    def asking() -> QueryRequest:
        delta = Fraction(0) if asked.delta is None else asked.delta
        terms = QueryTerms(asked.epsilon, delta, asked.error, asked.rate, asked.rho)
        return QueryRequest(bound(asked, sql), terms, caller.analyst, asked.account)

    def prepare() -> PlannedQuestion:
        question = asking()
        return Known(lambda: desk.price(question)) if only_price else desk.prepare(question)

    def recall() -> PlannedQuestion | None:
        return None if only_price or asked.parameters or "?" in sql else desk.recall(asking())

    about = offered(asked, "epsilon", "delta", "error", "rate", "rho")
    pool = services.quick if action == "price" else services.pool
    return QuestionRequest(action, caller, services, pool, prepare, about | logged(written(asked), services), recall)


def bound(asked: StatementShape, sql: str | None = None) -> str:
    """Return a statement with its parameters in place, as literals of the parsed tree."""
    return bind_parameters(asked.sql if sql is None else sql, [_value(each) for each in asked.parameters or ()])


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


def offered(asked: Shape, *names: str) -> dict[str, Any]:
    """Return what the audit log keeps of what was offered."""
    given = {name: getattr(asked, name) for name in names}
    return {name: str(value) for name, value in given.items() if value is not None}


def written(asked: StatementShape) -> str:
    """Return a statement and its parameters as one text."""
    return asked.sql + ("" if not asked.parameters else f" -- {asked.model_dump_json(include={'parameters'})}")


def logged(text: str, services: Services) -> dict[str, Any]:
    """Return what the audit log keeps of what was asked: a mark instead of the text, unless the operator says so."""
    return {"question": text if services.settings.show_questions else services.books.audit.mark(text)}


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
        return replies.refusal(replies.NotFound())
    return replies.as_json(told)


def _datasets(first: str, told: Mapping[str, Any]) -> list[str]:
    return [first, *told.get("together with", ())]


def _visible(caller: Caller, services: Services) -> list[dict[str, Any]]:
    found = services.desk.releases(caller.reader)
    return [dict(each) for each in found if caller.holder.may_use(_datasets(each["dataset"], each))]
