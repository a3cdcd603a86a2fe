"""Failures: the errors that every protected route can return, as the description lists them."""

from __future__ import annotations

from typing import Any

from incrowd.web.shapes import ErrorShape

_WORDS = {
    400: "The request cannot be read or names unknown things.",
    401: "No token, or one that does not work.",
    403: "The token does not allow this.",
    404: "There is no such thing.",
    408: "The request did not arrive in time.",
    413: "The request is too large.",
    422: "Understood and refused: not allowed, or beyond the budget.",
    429: "Too many requests.",
    500: "The server had a fault.",
    503: "The server cannot work now.",
    504: "The answer took too long; it stays charged, and is kept when it is ready.",
}


def failures(*more: int) -> dict[int | str, dict[str, Any]]:
    """Return the errors of a protected route, and more.

    >>> sorted(failures(404))
    [400, 401, 403, 404, 408, 413, 429, 500, 503]
    """
    usual = {400, 401, 403, 408, 413, 429, 500, 503}
    return {status: {"model": ErrorShape, "description": _WORDS[status]} for status in sorted(usual | set(more))}
