"""The application: routes, stores and limits around a query service."""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from incrowd import __version__
from incrowd.engines.sql.engine import Limits
from incrowd.errors import IncrowdError, SourceUnavailable
from incrowd.governance.audit import ServerStores, open_stores
from incrowd.web import replies
from incrowd.web.caller import NotAuthenticated
from incrowd.web.concurrency import ConcurrencyLimit, InFlightQueries, RateLimiter, ThreadPool
from incrowd.web.logs import AuditLogWriter, note, request_spans
from incrowd.web.middleware import RequestMiddleware
from incrowd.web.postgres.server import PostgresSettings, listening
from incrowd.web.reload import ReloadingQueries
from incrowd.web.routes import access, consent, operation, queries
from incrowd.web.services import Services
from incrowd.web.settings import Settings
from incrowd.web.slots import Slots
from incrowd.web.sso import SingleSignOn
from incrowd.workflows.consent.subject import DataSubjectService
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.query.service import QueryService, open_queries

_ABOUT = (
    "Aggregate queries about protected tables, answered with noise and within privacy budgets. Every reply to a query "
    "takes one of a few durations, whatever the rows hold; no error shows data."
)
_ROUTES = (queries, access, operation, consent)
_QUICK = 8
"""Threads for cost estimates and for storing answers, however many queries are being answered.

Answers that are stored at the same time are committed together.
"""
_CLOSING = 2
"""How many of them one user may have."""
_PUBLIC = 4
"""Threads for statements about public tables and declarations, of which a user has one: a long one delays no other."""
_TURN = 0.001
"""Seconds after which Python lets another thread go on: few, so that short work is done soon beside long work."""
_GARBAGE = (50_000, 20, 20)
"""Thresholds of the garbage collector: a query makes and drops many small trees, so it runs seldom."""
_LINGER = 60.0
"""Seconds that a query of an earlier version may still need to be stored."""
VARIABLE = "INCROWD_SERVE"


def app(
    current: Callable[[], QueryService],
    stores: ServerStores,
    settings: Settings,
    close: Callable[[], None] | None = None,
    subjects: DataSubjectService | None = None,
) -> FastAPI:
    """Return the server's application; any number of workers may run it beside one ledger.

    Charges, answers, tokens, sessions and the audit log are on disk and shared by all workers.  Each worker counts its
    own limits.  At its end, when all running work is done, it calls `close`.
    """
    folder = current().charges.folder
    slots = None if folder is None else Slots(folder)
    pool, quick = ThreadPool(settings.threads, slots=slots), ThreadPool(_QUICK, _CLOSING)
    public = ThreadPool(_PUBLIC, 1)
    server = FastAPI(
        title="incrowd",
        version=__version__,
        description=_ABOUT,
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
    )
    writer = AuditLogWriter(stores.audit)
    spans = request_spans()
    server.state.close = _closing(
        (pool, quick, public, writer), settings.longest, _both(close, None if spans is None else spans.close)
    )
    limit = ConcurrencyLimit(settings.per_user, settings.queue)
    sso = None if settings.sso is None else SingleSignOn.read(Path(settings.sso))
    rates = RateLimiter(settings.rate), RateLimiter(settings.logins)
    server.state.services = Services(
        current, stores, settings, pool, quick, public, writer, limit, InFlightQueries(), *rates, subjects, sso
    )
    for group in _ROUTES:
        server.include_router(group.router)
    server.add_exception_handler(NotAuthenticated, _nobody)
    for too_many in (replies.RateLimited, replies.TooManyAtOnce, replies.ServerBusy):
        server.add_exception_handler(too_many, _refused)
    server.add_exception_handler(IncrowdError, _refused)
    server.add_exception_handler(RequestValidationError, _unreadable)
    server.add_exception_handler(HTTPException, _elsewhere)
    server.add_middleware(RequestMiddleware, settings=settings, spans=spans)
    return server


@asynccontextmanager
async def _lifespan(server: FastAPI) -> AsyncIterator[None]:
    """Read the rows before the first query; where that fails, every query is refused."""
    try:
        server.state.services.queries.load()
    except SourceUnavailable as problem:
        note("not available", why=str(problem))
    gc.collect()
    gc.freeze()  # what exists now stays: the collector need not look at it again
    usual = gc.get_threshold()
    gc.set_threshold(*_GARBAGE)
    turn = sys.getswitchinterval()
    sys.setswitchinterval(_TURN)
    where: PostgresSettings | None = getattr(server.state, "postgres", None)
    async with nullcontext() if where is None else listening(server.state.services, where):
        yield
    server.state.close()
    sys.setswitchinterval(turn)
    gc.set_threshold(*usual)
    gc.unfreeze()  # else libraries write warnings at the end into a log that holds JSON alone


def _closing(
    pools: tuple[ThreadPool | AuditLogWriter, ...], longest: float, close: Callable[[], None] | None
) -> Callable[[], None]:
    def closing() -> None:
        done = [pool.stop(longest) for pool in pools]  # running queries are answered and stored, unless they do not end
        if not all(done):
            note("left undone")
        elif close is not None:
            close()

    return closing


def _both(*calls: Callable[[], None] | None) -> Callable[[], None]:
    def call() -> None:
        for one in filter(None, calls):
            one()

    return call


def _nobody(_request: Request, problem: Exception) -> Response:
    reply = replies.error(401, "AccessDenied", str(problem))
    reply.headers["WWW-Authenticate"] = "Bearer"
    return reply


def _refused(_request: Request, problem: Exception) -> Response:
    return replies.refusal(problem)


def _unreadable(_request: Request, problem: Exception) -> Response:
    """Say which part of a request does not fit its shape, without repeating it."""
    errors = problem.errors() if isinstance(problem, RequestValidationError) else []
    texts = [f"{_place(part['loc'])}: {part['msg'].removeprefix('Value error, ').rstrip('.')}" for part in errors[:5]]
    return replies.error(400, "InvalidParameter", "; ".join(texts) + ".")


def _place(parts: tuple[str | int, ...]) -> str:
    match parts[1:]:
        case ("questions", int(at), *inner):
            return ": ".join([f"query {at + 1}", *_names(inner)[:1]])
    return ".".join(_names(parts[1:])[:1]) or "the request"


def _names(parts: Sequence[str | int]) -> list[str]:
    return [part for part in parts if isinstance(part, str) and part.isidentifier()]


def _elsewhere(request: Request, problem: Exception) -> Response:
    status = problem.status_code if isinstance(problem, HTTPException) else 500
    words = {404: "there is nothing here; /docs lists the routes.", 405: "this cannot be done here; see /docs."}
    reply = replies.error(status, "InvalidParameter", words.get(status, "the request cannot be read."))
    reply.headers.update((isinstance(problem, HTTPException) and problem.headers) or {})
    if status == 405:
        routes = [route for group in _ROUTES for route in group.router.routes]
        here = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
        methods = {method for route in here for method in getattr(route, "methods", None) or ()}
        if methods:  # of all routes of this path, not of the first alone
            reply.headers["allow"] = ", ".join(sorted(methods))
    return reply


@dataclass(frozen=True)
class ServeOrder:
    """What a worker serves: policies that share a ledger, the limits, and the PostgreSQL door, if there is one.

    >>> order = ServeOrder(("policy.yaml",), None, Settings(pace=1.0))
    >>> ServeOrder.read(order.written()) == order
    True
    """

    policies: tuple[str, ...]
    data: str | None
    settings: Settings
    postgres: PostgresSettings | None = None

    def written(self) -> str:
        """Return the text for the environment; it holds no secret."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str) -> ServeOrder:
        """Read what `written` wrote."""
        plain = json.loads(text)
        postgres = plain["postgres"] and PostgresSettings(**plain["postgres"])
        return cls(tuple(plain["policies"]), plain["data"], Settings(**plain["settings"]), postgres)


def application() -> FastAPI:
    """Return the application of this worker from the environment; pandas is not imported."""
    from incrowd.engines.hidden_pandas import hide_pandas

    hide_pandas()
    return open_server(ServeOrder.read(os.environ[VARIABLE]))


def open_server(order: ServeOrder) -> FastAPI:
    """Open the tables and stores of an order and return their application, which closes them at its end."""
    policies = [load_policy(path) for path in order.policies]
    stores = open_stores(policies[0].ledger_address)
    gated = tuple(policy for policy in policies if policy.gate is not None)
    with ExitStack() as stack:
        current = _current(order, policies, stack)
        subjects = DataSubjectService(gated) if gated else None
        server = app(current, stores, order.settings, stack.pop_all().close, subjects)
        server.state.postgres = order.postgres
        return server


def _current(order: ServeOrder, policies: Sequence[Policy], stack: ExitStack) -> Callable[[], QueryService]:
    """Open the query service of an order and return what gives the latest one; the stack closes it."""

    def opening(policies: Sequence[Policy]) -> AbstractContextManager[QueryService]:
        return open_queries(policies, order.data, Limits(seconds=order.settings.longest, timed=True))

    if not order.settings.reload:
        queries = stack.enter_context(opening(policies))
        return lambda: queries
    reloading = ReloadingQueries(order.policies, opening, order.settings.longest + _LINGER)
    stack.callback(reloading.close)
    return lambda: reloading.current.queries
