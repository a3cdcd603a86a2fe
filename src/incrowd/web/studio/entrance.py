"""Entrance: the wall around a studio: this machine, this browser, this page, and bounded requests."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from threading import Lock
from urllib.parse import parse_qs, urlencode

from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from incrowd.governance.access.credentials import forgery_mark, is_mark, new_token

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""What a page of the studio may load and do: its own files, nothing inline, nothing from elsewhere."""
DOCUMENT = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
"""What a report that was written before may do, when it is shown: nothing but look like itself."""
_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "same-origin",  # with no-referrer browsers would send forms without their origin
    "x-content-type-options": "nosniff",
}
FORM = 2**20
"""The largest form, in bytes."""
UPLOAD = 2**31
"""The largest file that can be dropped, in bytes; larger ones are put into the folder by hand."""
MARK = "x-incrowd-mark"
_SAFE = ("GET", "HEAD")


@dataclass
class Keys:
    """The one-time token of the address that was opened, and the session that it was exchanged for."""

    port: int
    token: str = field(default_factory=new_token)
    session: str = field(default_factory=new_token)
    used: bool = False
    lock: Lock = field(default_factory=Lock)

    @property
    def cookie(self) -> str:
        """The name of the cookie; browsers send cookies to all ports of a host, so that it names its own."""
        return f"incrowd-studio-{self.port}"

    @property
    def mark(self) -> str:
        """What every form of the session holds: no other site can know it."""
        return forgery_mark(self.session)

    @property
    def address(self) -> str:
        """The address that opens the studio, once."""
        return f"http://127.0.0.1:{self.port}/?{urlencode({'token': self.token})}"

    def exchange(self, given: str) -> bool:
        """Whether this is the token, and nobody used it before."""
        with self.lock:
            right = hmac.compare_digest(given.encode(), self.token.encode()) and not self.used
            self.used = self.used or right
            return right

    def knows(self, cookies: str) -> bool:
        """Whether a browser sent the cookie of the session."""
        try:
            sent = SimpleCookie(cookies).get(self.cookie)
        except CookieError:
            return False
        return sent is not None and hmac.compare_digest(sent.value.encode(), self.session.encode())


class Entrance:
    """Wraps the application: who did not come through the door sees nothing, and every reply has its headers."""

    def __init__(self, app: ASGIApp, keys: Keys) -> None:
        self.app = app
        self.keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        reply = self._refusal(scope, headers)
        await (self.app if reply is None else reply)(scope, receive, _sending(send))

    def _refusal(self, scope: Scope, headers: Mapping[str, str]) -> Response | None:
        port = self.keys.port
        if headers.get("host") not in (f"127.0.0.1:{port}", f"localhost:{port}"):  # a name that was bound to this host
            return _no(421, "This studio answers at 127.0.0.1 alone.")
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return _no(403, "This request comes from a page of another site.")
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        if scope["path"] == "/" and given and scope["method"] == "GET":
            return self._enter(given[0], headers)
        if not self.keys.knows(headers.get("cookie", "")):
            return _no(401, "Open the studio by the address that `incrowd studio` printed; it works once.")
        if scope["method"] in _SAFE:
            return None
        if headers.get("origin") not in (None, f"http://{headers['host']}"):
            return _no(403, "This request comes from a page of another site.")
        if MARK in headers and not is_mark(headers[MARK], self.keys.session):
            return _no(403, "This page is not of this session: load it again.")
        return _too_large(scope, headers)

    def _enter(self, given: str, headers: Mapping[str, str]) -> Response:
        known = self.keys.knows(headers.get("cookie", ""))
        if not self.keys.exchange(given):
            text = "This address was used already: it opens the studio once. Start `incrowd studio` again for another."
            return RedirectResponse("/", 303) if known else _no(401, text)
        reply = RedirectResponse("/", 303)
        reply.set_cookie(self.keys.cookie, self.keys.session, httponly=True, samesite="strict", path="/")
        return reply


def _too_large(scope: Scope, headers: Mapping[str, str]) -> Response | None:
    """Refuse a request that says it is too large; who reads a body counts besides."""
    length = headers.get("content-length", "0")
    most = UPLOAD if scope["path"] == "/upload" else FORM
    if not length.isdigit() or len(length) > 12 or int(length) > most:
        return _no(413, f"A request has at most {most:,} bytes.")
    return None


def _no(status: int, text: str) -> Response:
    return PlainTextResponse(f"{text}\n", status)


def _sending(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = {name.lower() for name, _ in message["headers"]}
            missing = [(name.encode(), text.encode()) for name, text in _HEADERS.items() if name.encode() not in given]
            message = {**message, "headers": [*message["headers"], *missing]}
        await send(message)

    return sending
