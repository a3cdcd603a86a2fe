"""What surrounds every request: its size, headers and log line, and one constant reply for every fault."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Mapping
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from incrowd.core.codec import RepeatedKey, unrepeated
from incrowd.web import replies
from incrowd.web.logs import note, paced
from incrowd.web.settings import Settings
from incrowd.workflows.tracing import RequestSpans

_PATIENCE = 20.0  # seconds for a request's body to arrive
_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_HTTPS = {"strict-transport-security": "max-age=31536000"}


class _TooLarge(Exception):
    """A request's body is larger than allowed."""


class _Ambiguous(Exception):
    """A request gives its length twice: another reader could take it for two requests."""


class _TooSlow(Exception):
    """A request's body did not arrive in time."""


class RequestMiddleware:
    """Wraps the application: an exception becomes a constant reply, and each request one line in the log."""

    def __init__(self, app: ASGIApp, settings: Settings, spans: RequestSpans | None = None) -> None:
        self.app = app
        self.settings = settings
        self.spans = spans

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, number = time.monotonic(), secrets.token_hex(8)
        fields: dict[str, Any] = {"request": number, "method": scope["method"], "status": 0}
        send = self._sending(send, fields)
        try:
            body = await _body(scope, receive, self.settings.size)
            _check_keys(body)
            await self.app(scope, _replayed(body, receive), send)
        except _TooLarge:
            text = f"a request has at most {self.settings.size} bytes."
            await replies.error(413, "InvalidParameter", text)(scope, receive, send)
        except RepeatedKey:
            text = "an object in a request has one value for a key, and here a key stands twice: nothing was done."
            await replies.error(400, "InvalidParameter", text)(scope, receive, send)
        except _Ambiguous:
            text = "a request says its length once, by Content-Length or by Transfer-Encoding: chunked."
            reply = replies.error(400, "InvalidParameter", text)
            reply.headers["Connection"] = "close"
            await reply(scope, receive, send)
        except _TooSlow:
            await replies.error(408, "InvalidParameter", "the request did not arrive in time.")(scope, receive, send)
        except Exception as problem:  # noqa: BLE001 (the last resort; an exception's own text may hold data)
            fields["fault"] = type(problem).__name__
            if not fields["status"]:
                await replies.refusal(problem)(scope, receive, send)
        finally:
            fields["route"] = getattr(scope.get("route"), "path", None)
            seconds = paced(time.monotonic() - start, self.settings.pace)
            self._trace(fields, seconds)
            fields |= scope.get("state", {}).get("logged", {})
            note("request", **fields, seconds=seconds)

    def _trace(self, fields: Mapping[str, Any], seconds: float) -> None:
        """Send a span with the paced time of the reply and nothing below it: no name, text or amount of a user."""
        if self.spans is not None:
            facts = {"http.request.method": fields["method"], "http.response.status_code": fields["status"]}
            route = fields["route"] or "no route"
            self.spans.add(f"{fields['method']} {route}", seconds, facts | {"http.route": route}, fields.get("fault"))

    def _sending(self, send: Send, fields: dict[str, Any]) -> Send:
        added = _HEADERS | (_HTTPS if self.settings.https else {}) | {"x-request-id": fields["request"]}

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                fields["status"] = message["status"]
                present = {name.lower() for name, _ in message["headers"]}
                missing = [
                    (name.encode(), text.encode()) for name, text in added.items() if name.encode() not in present
                ]
                message = {**message, "headers": [*message["headers"], *missing]}
            await send(message)

        return sending


async def _body(scope: Scope, receive: Receive, most: int) -> bytes:
    lengths = [name for name, _ in scope["headers"] if name in (b"content-length", b"transfer-encoding")]
    if len(lengths) > 1:
        raise _Ambiguous
    length = dict(scope["headers"]).get(b"content-length", b"0")
    if not length.isdigit() or len(length) > 12 or int(length) > most:
        raise _TooLarge
    parts, size = [], 0
    try:
        async with asyncio.timeout(_PATIENCE):
            while True:
                message = await receive()
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > most:
                    raise _TooLarge
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise _TooSlow from None


def _check_keys(body: bytes) -> None:
    """Refuse a JSON text with a key twice; what is no JSON is refused, or read, where it is used."""
    try:
        json.loads(body or b"{}", object_pairs_hook=unrepeated)
    except RepeatedKey:
        raise
    except (ValueError, RecursionError):
        return


def _replayed(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def receiving() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receiving
