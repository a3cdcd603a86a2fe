"""Replies: every outcome as JSON, and every error as one constant shape that depends on no row."""

from __future__ import annotations

import math
from typing import Any

from fastapi import Response

from incrowd.core.codec import public_text
from incrowd.errors import (
    AccessDenied,
    BudgetExceeded,
    IncrowdError,
    InvalidParameter,
    LedgerUnavailable,
    MixedUnits,
    QueryStopped,
    Refused,
    SourceUnavailable,
    UnknownColumn,
)

_BAD_INPUT = (InvalidParameter, UnknownColumn, MixedUnits)
_FAULT = "the server could not do this. Its operator finds the reason in the log, under the request's number."


NOT_AVAILABLE = "the data is not available now; nothing was charged. Its holder finds the reason in the log."

_STOPPED = "the answer took too long and was stopped. Its cost is not refunded; the operator finds it in the log."


class RateLimited(Exception):
    """A user sent too many requests within a minute."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = max(1, math.ceil(seconds))


class TooManyAtOnce(Exception):
    """A user reached the concurrency limit: nothing was asked and nothing charged."""


class ServerBusy(Exception):
    """All users together reached the concurrency limit: nothing was asked and nothing charged."""


class NotFound(InvalidParameter):
    """There is no such thing, or it is somebody else's: both are told in one text."""

    def __init__(self) -> None:
        super().__init__("there is no such release, or it is not yours to see.")


def as_json(content: Any, status: int = 200) -> Response:
    """Return a reply in JSON; what is infinite is null, because JSON has no infinity.

    >>> as_json({"high": [math.inf, 1.5]}).body
    b'{"high":[null,1.5]}'
    """
    return written(public_text(content), status)


def written(text: str, status: int = 200) -> Response:
    """Return a reply in JSON whose text is known."""
    return Response(text.encode(), status, media_type="application/json")


def error(status: int, kind: str, text: str) -> Response:
    """Return an error: what kind, and what to do."""
    return as_json({"error": text, "kind": kind}, status)


def refusal(problem: Exception) -> Response:
    """Return what whoever asked may know of a problem.

    Refusals and bad input are about the query, the catalog and the budget: their text is shown.  Everything else, an
    unreadable source or a fault, could depend on rows: it has one text.

    >>> refusal(ValueError("age 42 of row 7")).body
    b'{"error":"the server could not do this. Its operator finds ...","kind":"ServerUnavailable"}'
    """
    match problem:
        case RateLimited():
            return _later(429, f"too many requests: try again in {problem.seconds} seconds.", problem.seconds)
        case TooManyAtOnce():
            return _later(429, "concurrency limit reached; nothing was charged. Wait for one of your answers.", 1)
        case ServerBusy():
            return _later(503, "the server is busy; nothing was charged. Try again later.", 1)
        case NotFound():
            return error(404, InvalidParameter.__name__, str(problem))
        case AccessDenied():
            return error(403, type(problem).__name__, str(problem))
        case BudgetExceeded() | Refused():
            return error(422, type(problem).__name__, str(problem))
        case QueryStopped():
            return error(504, "ServerUnavailable", _STOPPED)
        case SourceUnavailable():
            return error(503, "ServerUnavailable", NOT_AVAILABLE)
        case LedgerUnavailable():
            return error(503, "ServerUnavailable", _FAULT)
        case IncrowdError() if isinstance(problem, _BAD_INPUT):
            return error(400, type(problem).__name__, str(problem))
    return error(500, "ServerUnavailable", _FAULT)


def _later(status: int, text: str, seconds: int) -> Response:
    reply = error(status, "ServerUnavailable", text)
    reply.headers["Retry-After"] = str(seconds)
    return reply
