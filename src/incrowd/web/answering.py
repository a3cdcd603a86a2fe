"""Answering: a thread plans, charges and reads a query; its outcome shows at a time that no row decides.

The outcome is written into the audit log before it shows, and a request that cannot be logged gets no answer.
"""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

from fastapi import Response

from incrowd.core.codec import public_text
from incrowd.errors import IncrowdError, QueryRefused, Refused, SourceUnavailable
from incrowd.web import replies
from incrowd.web.caller import Caller
from incrowd.web.concurrency import InFlightQuery, ThreadPool
from incrowd.web.logs import Outcome, logged_reply, note
from incrowd.web.services import Services
from incrowd.web.settings import Settings
from incrowd.workflows.query.open_charges import QueryInFlight
from incrowd.workflows.query.request import BatchAnswer
from incrowd.workflows.query.service import RETRY, PendingAnswer, PreparedQuery

T = TypeVar("T")

_FAULT = 500
_WRITING = 10.0
"""Seconds for the stores, after the longest time that a query may take."""
_BUSY = "the server is busy; nothing was charged. Try again later."
_LATE = "the answer took too long. Its cost is not refunded. It is stored when it is ready: ask the same again later."


class NotStarted(Exception):
    """The work was still waiting for a thread when the time was over: nothing was done."""


class TimedOut(Exception):
    """The work was not done when the time was over; it goes on, and its answer is stored."""


def bucket(elapsed: float, pace: float) -> float:
    """Return when an outcome shows, in seconds after the request: the pace, or twice, four times, … the pace.

    >>> bucket(0.1, 0.5), bucket(0.6, 0.5), bucket(1.7, 0.5), bucket(3.0, 0.0)
    (0.5, 1.0, 2.0, 3.0)
    """
    if elapsed <= pace or pace == 0.0:
        return max(elapsed, pace)
    return float(pace * 2.0 ** math.ceil(math.log2(elapsed / pace)))


def shown_after(steps: int, settings: Settings) -> float:
    """Return after how many seconds the outcome of this much work shows.

    >>> shown_after(10, Settings(pace=0.5)), shown_after(700, Settings(pace=0.5, speed=1000))
    (0.5, 1.0)
    >>> shown_after(10**6, Settings(speed=1000))
    Traceback (most recent call last):
    incrowd.errors.QueryRefused: this can take longer than the query timeout of 64 seconds: ...
    """
    if steps > settings.longest * settings.speed:
        raise QueryRefused(
            f"this can take longer than the query timeout of {settings.longest:g} seconds: join fewer "
            "tables, shorten texts by LEFT(x, n), ask for less at once, or let the owner of the data declare how many "
            "rows there are."
        )
    return bucket(steps / settings.speed, settings.pace) if settings.pace else 0.0


@dataclass(frozen=True)
class ReplyTimer:
    """The time of one request: when it came, and when its outcome may show."""

    settings: Settings
    start: float = field(default_factory=time.monotonic)

    async def done(self, job: Future[T]) -> T:
        """Wait for the job of a thread and return its result, or raise NotStarted or TimedOut.

        A job that has not started by then never does.
        """
        waiting = asyncio.wrap_future(job)
        remaining = self.start + _deadline(self.settings) - time.monotonic()
        done, _ = await asyncio.wait({waiting}, timeout=max(0.0, remaining))
        if done:
            return waiting.result()
        if job.cancel():
            raise NotStarted
        # Nobody waits for it any more: look at its error, or asyncio reports it as lost.
        waiting.add_done_callback(lambda late: late.cancelled() or late.exception())
        note("fault", fault=TimedOut.__name__)
        raise TimedOut

    async def pause(self, steps: int) -> None:
        """Wait in the event loop, without a thread, until the outcome of this much work shows.

        The time depends on the query and on what is declared.  Work that is late, because the machine has too much to
        do, shows after twice that time, and so on.
        """
        elapsed = time.monotonic() - self.start
        await asyncio.sleep(max(0.0, bucket(elapsed, shown_after(steps, self.settings)) - elapsed))


def _deadline(settings: Settings) -> float:
    return bucket(settings.longest, settings.pace) + _WRITING if settings.pace else settings.longest


class JsonDocument(Protocol):
    """What a reply holds, such as an answer, a cost estimate or a history."""

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""


Finish = Callable[[], JsonDocument]
"""Stores an answer and returns it, or raises the reason why there is none."""


@dataclass(frozen=True)
class ReadyDocument:
    """A document for which no row is read, such as a cost estimate, in the place of a prepared query and its answer."""

    finish: Finish
    query_id: str = field(default_factory=lambda: secrets.token_hex(8))
    steps: int = 0
    unread: bool = True

    def again(self) -> ReadyDocument:
        """Return itself: there is nothing to begin."""
        return self

    begin = again


Prepared = PreparedQuery[Any] | ReadyDocument
Pending = PendingAnswer[Any] | ReadyDocument


@dataclass(frozen=True)
class QueryTask:
    """A caller's request, how it is planned, and the threads that work on it."""

    action: str
    caller: Caller
    services: Services
    pool: ThreadPool
    prepare: Callable[[], Prepared]
    about: Mapping[str, Any]
    """What the audit log holds about it."""
    recall: Callable[[], Prepared | None] = lambda: None
    """Finds its plan in memory, with no work at all."""


async def reply_to(task: QueryTask) -> Response:
    """Return the reply in its time, whatever happens."""
    timer = ReplyTimer(task.services.settings)
    try:
        return await _reply(task, timer)
    except NotStarted:
        return replies.error(503, "ServerUnavailable", _BUSY)
    except TimedOut:
        return replies.error(504, "ServerUnavailable", _LATE)


@dataclass(frozen=True)
class ThreadResult:
    """The work of a thread on a query: an answer that nobody can see yet, a problem, or an equal query to wait for."""

    steps: int = 0
    """How much work the query is at most."""
    prepared: Prepared | None = None
    answer: Pending | None = None
    problem: Exception | None = None
    leader: Future[None] | None = None
    """Done when an equal query of this worker has shown its answer; then that answer is found."""
    reply: Response | None = None
    """The outcome, where it need not wait until it shows."""

    def finish(self) -> JsonDocument:
        """Store the answer and return it, or raise the reason why there is none."""
        if self.answer is None:
            raise self.problem or QueryInFlight
        document: JsonDocument = self.answer.finish()
        return document


async def _reply(task: QueryTask, timer: ReplyTimer) -> Response:
    """Return the reply after a wait that depends on the plan alone, so that it is the same for answers and failures.

    While it waits it counts against the concurrency limit and holds no thread.  Where an equal query is being answered,
    it waits until that one has shown, and finds its answer.
    """
    recalled = _recalled(task)
    stored = None if recalled is None else recalled.again()
    if recalled is not None and stored is not None:
        await timer.pause(recalled.steps)
        return await timer.done(task.services.audit_writer.submit(lambda: _outcome(task, stored.finish)))
    with task.services.in_flight.track() as query:
        result = await _begun(task, recalled, query, timer)
        if result.leader is None:
            return result.reply or await _reply_when_due(task, result, timer)
        await timer.pause(result.steps)
        await asyncio.wait({asyncio.wrap_future(result.leader)})
    result = await _begun(task, result.prepared, query, timer)
    return result.reply or await _reply_when_due(task, result, timer)


def _recalled(task: QueryTask) -> Prepared | None:
    try:
        recalled = task.recall()
        if recalled is not None:
            shown_after(recalled.steps, task.services.settings)
    except Exception:  # noqa: BLE001 (it is raised again where the query is planned, as an outcome)
        return None
    return recalled


async def _begun(task: QueryTask, prepared: Prepared | None, query: InFlightQuery, timer: ReplyTimer) -> ThreadResult:
    """Let a thread plan, charge and read; an answer that is late is stored when it is ready."""
    while True:
        job = task.pool.submit(partial(_begin, task, prepared, query), task.caller.user.name)
        try:
            result = await timer.done(job)
        except (TimedOut, asyncio.CancelledError):
            job.add_done_callback(partial(_store_late, task))
            raise
        if not isinstance(result.problem, QueryInFlight):
            return result
        prepared = result.prepared
        await asyncio.sleep(RETRY)  # another worker is answering it


def _begin(task: QueryTask, prepared: Prepared | None, query: InFlightQuery) -> ThreadResult:
    """Plan a query, unless it is planned, then charge and read, unless an equal one is being answered.

    The outcome is logged and replied at once where no time is kept.  The same holds for what no row was read for, after
    the wait for an equal query: else a second wait would show that somebody else asked the same.
    """
    steps = 0
    try:
        prepared = prepared or task.prepare()
        shown_after(prepared.steps, task.services.settings)
        steps, answer, leader = prepared.steps, prepared.again(), None
        if answer is None:
            leader = query.lead(prepared.query_id)
            answer = prepared.begin() if leader is None else None
    except Exception as problem:  # noqa: BLE001 (whatever it is, it is an outcome)
        result, unread = ThreadResult(steps, prepared, problem=problem), isinstance(problem, Refused)
    else:
        result, unread = ThreadResult(steps, prepared, answer, leader=leader), answer is not None and answer.unread
    if (unread and query.over.done()) or (result.answer is not None and not task.services.settings.pace):
        return ThreadResult(steps, prepared, reply=_logged(task, result.finish))
    return result


async def _reply_when_due(task: QueryTask, result: ThreadResult, timer: ReplyTimer) -> Response:
    """Wait until the outcome shows, and reply; if the server ends meanwhile, the answer is stored at once."""
    quick = task.services.quick
    try:
        await timer.pause(result.steps)
    except asyncio.CancelledError:
        quick.submit(result.finish)
        raise
    return await timer.done(quick.submit(lambda: _logged(task, result.finish), task.caller.user.name))


def _store_late(task: QueryTask, job: Future[ThreadResult]) -> None:
    """Store and log an outcome for which nobody waits any more, in the thread that made it."""
    result = None if job.cancelled() or job.exception() is not None else job.result()
    if result is not None and (result.answer or not isinstance(result.problem, QueryInFlight | None)):
        _logged(task, result.finish)


def _logged(task: QueryTask, finish: Finish) -> Response:
    return logged_reply(task.services.stores.audit, *_outcome(task, finish))


def _outcome(task: QueryTask, finish: Finish) -> Outcome:
    """Store the answer, and return the reply with its line in the audit log."""
    about, outcome = dict(task.about), "answered"
    try:
        document = finish()
        text = document.to_text() if isinstance(document, BatchAnswer) else public_text(document.to_json())
        reply = replies.written(text)
    except Exception as problem:  # noqa: BLE001 (the text of a foreign exception may hold data: only its class is kept)
        reply = replies.refusal(problem)
        about["kind"] = type(problem).__name__
        outcome = "refused" if isinstance(problem, IncrowdError) and reply.status_code < _FAULT else "failed"
        if isinstance(problem, SourceUnavailable):
            note("not available", why=str(problem))
        elif not isinstance(problem, IncrowdError):
            note("fault", fault=type(problem).__name__, action=task.action)
    return reply, task.caller.event(task.action, outcome, **about)
