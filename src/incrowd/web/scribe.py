"""Scribe: a thread that writes into the audit log what came of questions, all that wait in one transaction."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

from fastapi import Response

from incrowd.governance.audit import Audit, Event
from incrowd.store.clerk import BatchWriter
from incrowd.web import replies
from incrowd.web.logs import note

Outcome = tuple[Response, Event]
"""A reply, and what the log keeps of it."""
_Job = tuple["Future[Response]", Callable[[], Outcome]]


@dataclass(frozen=True, eq=False)
class AuditLogWriter:
    """Replies that take next to no work, each given when it is written down.

    A commit takes longer than such a reply, so those that come while one is under way are committed together after it,
    by one thread: no other has to wake up for them.
    """

    audit: Audit
    clerk: BatchWriter[_Job] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "clerk", BatchWriter(self._write))

    def submit(self, work: Callable[[], Outcome]) -> Future[Response]:
        """Let a reply be made, written down and given."""
        job: Future[Response] = Future()
        self.clerk.hand((job, work))
        return job

    def stop(self, seconds: float) -> bool:
        """Write what waits, and return whether that was done within so many seconds."""
        return self.clerk.stop(seconds)

    def _write(self, jobs: list[_Job]) -> None:
        wanted = [(job, work) for job, work in jobs if job.set_running_or_notify_cancel()]
        made = [(job, outcome) for job, work in wanted if (outcome := _made(job, work)) is not None]
        try:
            self.audit.write(*(event for _, (_, event) in made))
            written = [reply for _, (reply, _) in made]
        except Exception:  # noqa: BLE001 (each is tried for itself, and told what is wrong)
            written = [written_down(self.audit, *outcome) for _, outcome in made]
        for (job, _), reply in zip(made, written, strict=True):
            job.set_result(reply)


def _made(job: Future[Response], work: Callable[[], Outcome]) -> Outcome | None:
    try:
        return work()
    except BaseException as problem:  # noqa: BLE001 (whoever waits for the job is told)
        job.set_exception(problem)
        return None


def written_down(audit: Audit, reply: Response, event: Event) -> Response:
    """Write one event down and return its reply, or what whoever asked is told where that cannot be done."""
    try:
        audit.write(event)
    except Exception as problem:  # noqa: BLE001 (who cannot be written down gets no answer)
        note("fault", fault=type(problem).__name__, action="audit")
        return replies.refusal(problem)
    return reply
