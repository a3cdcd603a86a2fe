"""The two logs of a server: its own, one JSON object a line, and the audit log.

The server's log holds names of routes and kinds of errors, and nothing that a user wrote.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any

from fastapi import Response
from pythonjsonlogger.json import JsonFormatter

from incrowd.governance.audit import Audit, Event
from incrowd.store.group_commit import BatchWriter
from incrowd.web import replies
from incrowd.workflows import events
from incrowd.workflows.tracing import RequestSpans, exporter_to

NAME = "incrowd.web"
Outcome = tuple[Response, Event]
"""A reply, and its line in the audit log."""


class AsJson(JsonFormatter):
    """Writes a record as one JSON object; an exception is named by its class alone, because its text may hold data.

    >>> record = logging.LogRecord(NAME, logging.INFO, "", 0, "request", None, None)
    >>> record.fields = {"status": 200}
    >>> import json
    >>> json.loads(AsJson().format(record))["status"]
    200
    """

    def add_fields(self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]) -> None:
        """Take the fields of a line, and nothing else of a record."""
        del message_dict
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {"at": at, "level": record.levelname.lower(), "from": record.name, "event": record.getMessage()}
        log_data.update(line | getattr(record, "fields", {}))
        if record.exc_info and record.exc_info[0] is not None:
            log_data["exception"] = record.exc_info[0].__name__


LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "incrowd.web.logs.AsJson"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json", "stream": "ext://sys.stderr"}},
    "loggers": {name: {"handlers": ["stderr"], "level": "INFO", "propagate": False} for name in (NAME, "uvicorn")},
}
"""The configuration of a log on standard error, for `logging.config`."""


def logging_config() -> dict[str, Any]:
    """Return the configuration of the log: in a file if INCROWD_LOG names one, else on standard error."""
    place = os.environ.get(events.VARIABLE, "")
    if not place or not events.is_file(place):
        return LOGGING
    events.log_file(place).close()  # a new one can be read by its owner alone
    handler = {"class": "logging.FileHandler", "formatter": "json", "filename": place, "encoding": "utf-8"}
    return {**LOGGING, "handlers": {"stderr": handler}}


def request_spans() -> RequestSpans | None:
    """Return what sends a span for each request, if INCROWD_LOG names a collector."""
    place = os.environ.get(events.VARIABLE, "")
    return RequestSpans(exporter_to(place.removeprefix(events.OTLP))) if place.startswith(events.OTLP) else None


def paced(elapsed: float, pace: float) -> float:
    """Return a time for logs: in whole paces, and so nothing finer than what a reply's time shows anyway.

    >>> paced(0.5173, 0.5), paced(1.02, 0.5), paced(0.004, 0.5), paced(0.1234, 0.0)
    (0.5, 1.0, 0.0, 0.12)
    """
    return pace * (elapsed // pace) if pace else round(elapsed, 2)


def note(event: str, **fields: Any) -> None:
    """Log an event; fields are numbers, routes, kinds, users and sources, never a query or an answer."""
    logging.getLogger(NAME).info(event, extra={"fields": fields})


class AuditLogWriter:
    """Gives replies that take next to no work, each after it is in the audit log.

    A commit takes longer than such a reply, so one thread commits all that wait together.
    """

    def __init__(self, audit: Audit) -> None:
        self._audit = audit
        self._writer = BatchWriter(self._write)

    def submit(self, work: Callable[[], Outcome]) -> Future[Response]:
        """Let a reply be made, logged and given."""
        job: Future[Response] = Future()
        self._writer.submit((job, work))
        return job

    def stop(self, seconds: float) -> bool:
        """Write what is pending, and return whether that was done in time."""
        return self._writer.stop(seconds)

    def _write(self, jobs: list[tuple[Future[Response], Callable[[], Outcome]]]) -> None:
        outcomes = list[tuple[Future[Response], Outcome]]()
        for job, work in jobs:
            try:
                if job.set_running_or_notify_cancel():
                    outcomes.append((job, work()))
            except BaseException as problem:  # noqa: BLE001 (the job's caller receives it)
                job.set_exception(problem)
        try:
            self._audit.write(*(event for _, (_, event) in outcomes))
        except Exception:  # noqa: BLE001 (each is tried alone, so that one bad event holds up no other reply)
            for job, outcome in outcomes:
                job.set_result(logged_reply(self._audit, *outcome))
        else:
            for job, (reply, _) in outcomes:
                job.set_result(reply)


def logged_reply(audit: Audit, reply: Response, event: Event) -> Response:
    """Log an event and return its reply; a request that cannot be logged gets no answer."""
    try:
        audit.write(event)
    except Exception as problem:  # noqa: BLE001 (whatever it is, the caller is refused)
        note("fault", fault=type(problem).__name__, action="audit")
        return replies.refusal(problem)
    return reply
