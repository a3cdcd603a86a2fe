"""Sessions: a studio answers this machine, this browser and its own pages only, with bounded requests."""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from urllib.parse import parse_qs, urlencode, urlsplit

from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from incrowd.errors import AccessDenied, InvalidParameter
from incrowd.governance.access_list import AccessList
from incrowd.governance.grant import AccessRole, csrf_token, is_csrf_token, new_token
from incrowd.web.sso import SingleSignOn

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
    # Nobody else hears the name of the host; with no-referrer, browsers would send forms without their origin.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
}
FORM = 2**20
"""The largest form, in bytes."""
UPLOAD = 2**31
"""The largest file that can be dropped, in bytes; larger ones are put into the folder by hand."""
LIFETIME = 300.0
"""How many seconds the one-time token of the address works."""
COOKIE = "incrowd-studio"
MARK = "x-incrowd-mark"
_SAFE = ("GET", "HEAD")
_NOT_HERE = "Open the studio at the address that `incrowd studio` opened or printed."
_NOT_VALID = (
    f"This address was used or has expired: it works once, within {LIFETIME / 60:.0f} minutes. "
    "Start `incrowd studio` again for a new one."
)
_ENTER = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>incrowd studio</title><link rel="icon" href="data:,">'
    '<meta http-equiv="refresh" content="0;url=/"><p><a href="/">Open the studio</a></p></html>'
)
"""Leads on to the first page: a browser sends a strict cookie only where a page of the studio itself leads."""


@dataclass
class Keys:
    """The name under which a studio answers, the one-time token of its address, and the session behind it.

    A browser sends the cookie of a host to every port of that host, and so to servers of other users of the machine.
    The host of a studio is therefore a new name that nobody can guess: `<128 random bits>.localhost`.
    """

    port: int
    name: str = field(default_factory=lambda: secrets.token_hex(16))
    token: str = field(default_factory=new_token)
    session: str = field(default_factory=new_token)
    clock: Callable[[], float] = time.monotonic
    used: bool = False
    lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        """Begin the lifetime of the token."""
        self.end = self.clock() + LIFETIME
        self.on_entry: Callable[[], None] = _nothing

    @property
    def host(self) -> str:
        """The only host, with its port, under which the studio answers."""
        return f"{self.name}.localhost:{self.port}"

    @property
    def origin(self) -> str:
        """Where the pages of the studio are."""
        return f"http://{self.host}"

    @property
    def mark(self) -> str:
        """The CSRF token of the session, which every form contains."""
        return csrf_token(self.session)

    @property
    def address(self) -> str:
        """The address that opens the studio, once."""
        return f"{self.origin}/?{urlencode({'token': self.token})}"

    def exchange(self, token: str) -> bool:
        """Whether this is the token, in time, and nobody used it before."""
        with self.lock:
            right = hmac.compare_digest(token.encode(), self.token.encode())
            if self.used or not right or self.clock() >= self.end:
                return False
            self.used = True
        self.on_entry()
        return True

    def knows(self, cookies: str) -> bool:
        """Whether a browser sent the cookie of the session, whatever other programs put beside it.

        >>> keys = Keys(8321)
        >>> keys.knows(f'a=[1,2]; odd"; =; {COOKIE}={keys.session}; b'), keys.knows(f"{COOKIE}=guess")
        (True, False)
        """
        pairs = (pair.partition("=") for pair in cookies.split(";"))
        values = [value.strip() for name, _, value in pairs if name.strip() == COOKIE]
        return any(hmac.compare_digest(value.encode(), self.session.encode()) for value in values)


@dataclass(frozen=True)
class TrustedProxy:
    """A proxy that signs users on: the studio answers under its name, and only to owners of the access list."""

    origin: str
    sso: SingleSignOn
    access: AccessList

    def __post_init__(self) -> None:
        parts = urlsplit(self.origin)
        if parts.scheme not in ("https", "http") or self.origin != f"{parts.scheme}://{parts.netloc}":
            raise InvalidParameter("--address is the origin that the proxy serves, such as https://studio.example.org.")

    @property
    def host(self) -> str:
        """The host under which browsers know the studio."""
        return urlsplit(self.origin).netloc

    def refusal(self, scope: Scope) -> str | None:
        """Return why a request is not one of an owner whom the proxy signed on; None if it is."""
        try:
            identity = self.sso.identity((scope.get("client") or [None])[0], scope["headers"])
            if identity is None:
                return "Sign on at the proxy first."
            user = self.access.signed_on(identity.name, identity.groups).holder
        except (AccessDenied, InvalidParameter) as denied:
            return f"{str(denied)[:1].upper()}{str(denied)[1:]}"
        owner = user.role is AccessRole.OWNER and user.datasets is None
        return None if owner else "The studio is for owners of all datasets (incrowd access admit --role owner)."


def _nothing() -> None:
    """Do nothing on entry."""


class SessionMiddleware:
    """Wraps the application: requests without a session are refused, and every reply has its headers."""

    def __init__(self, app: ASGIApp, keys: Keys, proxy: TrustedProxy | None = None) -> None:
        self.app = app
        self.keys = keys
        self.proxy = proxy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = _texts(scope)
        refusal = self._refusal if self.proxy is None else partial(self._unsigned, self.proxy)
        reply = refusal(scope, headers)
        await (self.app if reply is None else reply)(scope, receive, _sending(send))

    def _refusal(self, scope: Scope, headers: Mapping[str, str]) -> Response | None:
        if headers.get("host") != self.keys.host:  # the text must not tell the name
            return _no(421, _NOT_HERE)
        tokens = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        document = headers.get("sec-fetch-dest", "document") == "document"
        if scope["path"] == "/" and tokens and scope["method"] == "GET" and document:  # a file may lead here
            return self._enter(tokens[0], headers)
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return _no(403, "This request comes from a page of another site.")
        if not self.keys.knows(headers.get("cookie", "")):
            return _no(401, f"{_NOT_HERE} It works once.")
        return self._foreign(scope, headers, self.keys.origin)

    def _unsigned(self, proxy: TrustedProxy, scope: Scope, headers: Mapping[str, str]) -> Response | None:
        """Refuse what the proxy did not sign on, and pages of other sites, for which it would sign on as well."""
        if headers.get("host") != proxy.host:
            return _no(421, "The studio answers under the name of its proxy alone.")
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return _no(403, "This request comes from a page of another site.")
        refusal = proxy.refusal(scope)
        return self._foreign(scope, headers, proxy.origin) if refusal is None else _no(401, refusal)

    def _foreign(self, scope: Scope, headers: Mapping[str, str], own: str) -> Response | None:
        """Refuse a change that a page of another origin or session asks for, and what is too large."""
        if scope["method"] in _SAFE:
            return None
        if headers.get("origin") not in (None, own):
            return _no(403, "This request comes from a page of another site.")
        if MARK in headers and not is_csrf_token(headers[MARK], self.keys.session):
            return _no(403, "This page belongs to another session: reload it.")
        return _too_large(scope, headers)

    def _enter(self, token: str, headers: Mapping[str, str]) -> Response:
        if self.keys.knows(headers.get("cookie", "")):
            return HTMLResponse(_ENTER)
        if not self.keys.exchange(token):
            return _no(401, _NOT_VALID)
        reply = HTMLResponse(_ENTER)
        reply.set_cookie(COOKIE, self.keys.session, httponly=True, samesite="strict", path="/")
        return reply


def _texts(scope: Scope) -> dict[str, str]:
    """Return the headers as text; cookies in several lines are one list."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}; {value}" if name == "cookie" and name in headers else value
    return headers


def _too_large(scope: Scope, headers: Mapping[str, str]) -> Response | None:
    """Refuse a request that says it is too large; who reads a body counts besides."""
    length = headers.get("content-length", "0")
    most = UPLOAD if scope["path"] == "/upload" else FORM
    if not length.isdigit() or len(length) > 12 or int(length) > most:
        return _no(413, f"A request can have at most {most:,} bytes.")
    return None


def _no(status: int, text: str) -> Response:
    return PlainTextResponse(f"{text}\n", status)


def _sending(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            present = {name.lower() for name, _ in message["headers"]}
            missing = [
                (name.encode(), text.encode()) for name, text in _HEADERS.items() if name.encode() not in present
            ]
            message = {**message, "headers": [*message["headers"], *missing]}
        await send(message)

    return sending
