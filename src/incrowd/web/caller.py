"""Caller: who speaks, by a token in a header or by a session cookie, and whether he may do this."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from incrowd.errors import AccessDenied
from incrowd.governance.audit import Event
from incrowd.governance.grant import Grant, Permission, User, is_csrf_token
from incrowd.web.replies import RateLimited
from incrowd.web.services import QueryBackend, Services

MARK = "x-incrowd-mark"
_BEARER = HTTPBearer(auto_error=False, description="A token from `incrowd access grant`.")
_SAFE = ("GET", "HEAD", "OPTIONS")


class NotAuthenticated(AccessDenied):
    """No token, no session, or one that does not work."""


@dataclass(frozen=True)
class Caller:
    """Somebody who was recognized."""

    grant: Grant
    token: str

    @property
    def holder(self) -> User:
        """Who it is, in which role."""
        return self.grant.holder

    @property
    def analyst(self) -> str | None:
        """Whose allowance pays: his own, unless he asks for everyone."""
        return None if self.holder.may(Permission.PUBLISH) else self.holder.name

    @property
    def reader(self) -> str | None:
        """Who reads what was asked: an analyst under his name; whoever publishes or audits (None) reads all."""
        return None if self.holder.may(Permission.AUDIT) else self.analyst

    def desk(self, services: Services) -> QueryBackend:
        """Return the desk as he may see it: what is outside his datasets does not exist there."""
        return services.desk if self.holder.datasets is None else services.desk.within(self.holder.datasets)

    def event(self, action: str, outcome: str, **about: object) -> Event:
        """Return the line of the audit log about something that he did."""
        return Event(action, outcome, self.holder.name, self.grant.id, about)


Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]


async def recognize(request: Request, bearer: Bearer) -> Caller:
    """Return who sent a request, or deny; all tokens and sessions of one holder are held to one rate.

    What is known without waiting needs no thread.
    """
    services: Services = request.app.state.services
    cookie = request.cookies.get(services.settings.cookie)
    token = bearer.credentials if bearer is not None else cookie
    if token is None:
        raise NotAuthenticated("send a token: 'Authorization: Bearer TOKEN', or log in.")
    grant = services.books.access.at_hand(token)
    if grant is None:
        grant = await run_in_threadpool(_looked_up, services, token, origin(request))
    _knock(services, f"holder {grant.holder.name}")
    caller = Caller(grant, token)
    request.state.told = {"holder": caller.holder.name, "grant": grant.id}
    try:
        _check_way(request, caller, by_page=bearer is None)
    except AccessDenied:
        await run_in_threadpool(services.books.audit.write, caller.event("access", "denied"))
        raise
    return caller


def _looked_up(services: Services, token: str, place: str) -> Grant:
    try:
        return services.books.access.grant_of(token)
    except AccessDenied as denied:
        _knock(services, f"from {place}")
        services.books.audit.write(Event("access", "unknown"))
        raise NotAuthenticated(str(denied)) from None


def needs(right: Permission) -> Callable[..., Awaitable[Caller]]:
    """Return a dependency that lets nobody through without a right."""

    async def permitted(request: Request, bearer: Bearer) -> Caller:
        caller = await recognize(request, bearer)
        if not caller.holder.may(right):
            services: Services = request.app.state.services
            denied = caller.event("access", "denied", right=str(right))
            await run_in_threadpool(services.books.audit.write, denied)
            raise AccessDenied(f"a token of the role {caller.holder.role} has no right to {right}.")
        return caller

    return permitted


def origin(request: Request) -> str:
    """Return where a request comes from, as far as this worker can tell."""
    return request.client.host if request.client is not None else "nowhere"


def check_page(request: Request) -> None:
    """Deny what a browser sent on behalf of a page of another site."""
    if request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        raise AccessDenied("this request comes from a page of another site.")


def _check_way(request: Request, caller: Caller, *, by_page: bool) -> None:
    """Deny a session outside its page, and a page that is not the session's own."""
    if not by_page:
        if caller.grant.session:
            raise NotAuthenticated("a session is for the browser that logged in: use a token of your own.")
        return
    check_page(request)
    if request.method not in _SAFE and not is_csrf_token(request.headers.get(MARK), caller.token):
        raise AccessDenied(f"a page must send the mark of its session as {MARK}: log in again.")


def _knock(services: Services, key: str) -> None:
    if seconds := services.knocks.wait(key):
        raise RateLimited(seconds)


def count_more(services: Services, caller: Caller, requests: int) -> None:
    """Count a request that was let in as so many more, which the next one waits for."""
    services.knocks.owe(f"holder {caller.holder.name}", requests)


Reader = Annotated[Caller, Depends(needs(Permission.READ))]
Asker = Annotated[Caller, Depends(needs(Permission.ASK))]
Auditor = Annotated[Caller, Depends(needs(Permission.AUDIT))]
Admitter = Annotated[Caller, Depends(needs(Permission.ADMIT))]
Anybody = Annotated[Caller, Depends(recognize)]
