"""The application: routes, books and limits around a desk that answers questions."""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import asdict, dataclass

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from incrowd import __version__
from incrowd.errors import IncrowdError, SourceUnavailable
from incrowd.governance.audit import ServerStores, open_stores
from incrowd.web import replies
from incrowd.web.caller import NotAuthenticated
from incrowd.web.flights import InFlightQueries
from incrowd.web.logs import note
from incrowd.web.middleware import RequestMiddleware
from incrowd.web.routes import access, batches, consent, history, operation, questions
from incrowd.web.scribe import AuditLogWriter
from incrowd.web.services import Limiter, QueryBackend, Services
from incrowd.web.settings import Settings
from incrowd.web.slots import Slots
from incrowd.web.threads import ThreadPool
from incrowd.web.turns import ConcurrencyLimit, ServerBusy, TooManyAtOnce
from incrowd.workflows.consent.data_subjects import DataSubjectService

_ABOUT = (
    "Aggregate questions about protected tables, answered with noise and within budgets. Every reply to a question "
    "takes one of a few durations, whatever the rows hold; no error shows data."
)
_ROUTES = (questions, batches, history, access, operation, consent)
_QUICK = 8
"""How many prices are told and outcomes kept at once, however many questions are being answered.

What is kept at once is written to the disk together.
"""
_CLOSING = 2
"""How many of them may be one holder's."""
_TURN = 0.001
"""Seconds after which a thread that computes lets another one of its worker go on: few, so that short work is done soon
beside long work."""
_GARBAGE = (50_000, 20, 20)
"""How seldom a worker looks for garbage: a question makes and drops many small trees."""
_LINGER = 60.0
"""Seconds that a question of an earlier version may still need for its books."""
VARIABLE = "INCROWD_SERVE"


def app(
    desk: QueryBackend,
    books: ServerStores,
    settings: Settings,
    close: Callable[[], None] | None = None,
    subjects: DataSubjectService | None = None,
) -> FastAPI:
    """Return the server's application; any number of workers may run it beside one ledger.

    Charges, answers, tokens, sessions and the audit log are on disk and shared by all workers.  Only the limits on the
    rate of requests are counted by each worker for itself.  At its end, when all that was begun is done, it calls
    `close`.
    """
    slots = None if desk.locks is None else Slots(desk.locks)
    pool, quick = ThreadPool.of(settings.threads, slots=slots), ThreadPool.of(_QUICK, _CLOSING)
    server = FastAPI(
        title="incrowd",
        version=__version__,
        description=_ABOUT,
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
    )
    scribe = AuditLogWriter(books.audit)
    server.state.close = _closing((pool, quick, scribe), settings.longest, close)
    limits = Limiter(settings.rate), Limiter(settings.logins)
    turns = ConcurrencyLimit(settings.each, settings.queue)
    server.state.services = Services(
        desk, books, settings, pool, quick, scribe, turns, InFlightQueries(), *limits, subjects
    )
    for group in _ROUTES:
        server.include_router(group.router)
    server.add_exception_handler(NotAuthenticated, _nobody)
    for too_many in (replies.RateLimited, TooManyAtOnce, ServerBusy):
        server.add_exception_handler(too_many, _refused)
    server.add_exception_handler(IncrowdError, _refused)
    server.add_exception_handler(RequestValidationError, _unreadable)
    server.add_exception_handler(HTTPException, _elsewhere)
    server.add_middleware(RequestMiddleware, settings=settings)
    return server


@asynccontextmanager
async def _lifespan(server: FastAPI) -> AsyncIterator[None]:
    """Let the rows be ready before the first question; where they are not, every question is told so."""
    desk: QueryBackend = server.state.services.desk
    try:
        desk.load()
    except SourceUnavailable as problem:
        note("not available", why=str(problem))
    gc.collect()
    gc.freeze()  # what is there now stays: it need not be looked through for garbage again and again
    usual = gc.get_threshold()
    gc.set_threshold(*_GARBAGE)
    turn = sys.getswitchinterval()
    sys.setswitchinterval(_TURN)
    yield
    server.state.close()
    sys.setswitchinterval(turn)
    gc.set_threshold(*usual)
    gc.unfreeze()  # else libraries complain at the end of what was not tidied up, in a log that holds JSON alone


def _closing(
    pools: tuple[ThreadPool | AuditLogWriter, ...], longest: float, close: Callable[[], None] | None
) -> Callable[[], None]:
    def closing() -> None:
        done = [pool.stop(longest) for pool in pools]  # whatever was begun is answered and kept, unless it does not end
        if not all(done):
            note("left undone")
        elif close is not None:
            close()

    return closing


def _nobody(_request: Request, problem: Exception) -> Response:
    reply = replies.error(401, "AccessDenied", str(problem))
    reply.headers["WWW-Authenticate"] = "Bearer"
    return reply


def _refused(_request: Request, problem: Exception) -> Response:
    return replies.refusal(problem)


def _unreadable(_request: Request, problem: Exception) -> Response:
    """Say which part of a request does not fit its shape, without repeating it."""
    found = problem.errors() if isinstance(problem, RequestValidationError) else []
    told = [f"{_place(each['loc'])}: {each['msg'].removeprefix('Value error, ').rstrip('.')}" for each in found[:5]]
    return replies.error(400, "InvalidParameter", "; ".join(told) + ".")


def _place(parts: tuple[str | int, ...]) -> str:
    match parts[1:]:
        case ("questions", int(at), *inner):
            return ": ".join([f"question {at + 1}", *_names(inner)[:1]])
    return ".".join(_names(parts[1:])[:1]) or "the request"


def _names(parts: Sequence[str | int]) -> list[str]:
    return [part for part in parts if isinstance(part, str) and part.isidentifier()]


def _elsewhere(_request: Request, problem: Exception) -> Response:
    status = problem.status_code if isinstance(problem, HTTPException) else 500
    words = {404: "there is nothing here; /docs tells what there is.", 405: "this cannot be done here; see /docs."}
    reply = replies.error(status, "InvalidParameter", words.get(status, "the request cannot be read."))
    reply.headers.update((isinstance(problem, HTTPException) and problem.headers) or {})
    return reply


@dataclass(frozen=True)
class ServeOrder:
    """What is served: policies that share a ledger, and within which limits.

    >>> order = ServeOrder(("policy.yaml",), None, Settings(pace=1.0))
    >>> ServeOrder.read(order.written()) == order
    True
    """

    policies: tuple[str, ...]
    data: str | None
    settings: Settings

    def written(self) -> str:
        """Return the text that the environment carries; it holds no secret."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str) -> ServeOrder:
        """Read what `written` wrote."""
        plain = json.loads(text)
        return cls(tuple(plain["policies"]), plain["data"], Settings(**plain["settings"]))


def application() -> FastAPI:
    """Return the application of this worker, as the environment orders it; pandas stays out, as of every command."""
    from incrowd.engines.readers.reader import hide_pandas

    hide_pandas()
    return open_server(ServeOrder.read(os.environ[VARIABLE]))


def open_server(order: ServeOrder) -> FastAPI:
    """Open the tables and books of an order and return the application around them, which closes them at its end."""
    from incrowd.workflows.policy.policy import load_policy

    policies = [load_policy(path) for path in order.policies]
    from incrowd.engines.sql.engine import Limits
    from incrowd.workflows.query.service import open_desk

    books = open_stores(policies[0].ledger_address)
    with ExitStack() as stack:
        limits = Limits(seconds=order.settings.longest, timed=True)
        desk: QueryBackend
        if order.settings.reload:
            from incrowd.web.reload import ReloadingDesk

            watched = ReloadingDesk.watching(
                order.policies, lambda found: open_desk(found, order.data, limits), order.settings.longest + _LINGER
            )
            stack.callback(watched.close)
            desk = watched
        else:
            desk = stack.enter_context(open_desk(policies, order.data, limits))
        gated = tuple(policy for policy in policies if policy.gate is not None)
        return app(desk, books, order.settings, stack.pop_all().close, DataSubjectService(gated) if gated else None)
