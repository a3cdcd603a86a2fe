"""Caller: the user of a request, by a token in a header or a session cookie, and what they may do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from incrowd.errors import AccessDenied, InvalidParameter
from incrowd.governance.audit import Event
from incrowd.governance.grant import Grant, Permission, User, is_csrf_token
from incrowd.web.services import Services
from incrowd.web.sso import SingleSignOn
from incrowd.workflows.query.service import QueryService

MARK = "x-incrowd-mark"
_BEARER = HTTPBearer(auto_error=False, description="A token from `incrowd access grant`.")
_SAFE = ("GET", "HEAD", "OPTIONS")


class NotAuthenticated(AccessDenied):
    """No token, no session, or one that does not work."""


@dataclass(frozen=True)
class Caller:
    """A user who was recognized."""

    grant: Grant
    token: str

    @property
    def user(self) -> User:
        """The user and their role."""
        return self.grant.holder

    @property
    def analyst(self) -> str | None:
        """The analyst whose allowance pays: the user, unless they ask for everyone."""
        return None if self.user.may(Permission.PUBLISH) else self.user.name

    @property
    def reader(self) -> str | None:
        """The analyst who reads the history: the user, unless they publish or audit (None), and read all."""
        return None if self.user.may(Permission.AUDIT) else self.analyst

    @property
    def rate_key(self) -> str:
        """What all tokens and sessions of one user share in a rate limit."""
        return f"holder {self.user.name}"

    def queries(self, services: Services) -> QueryService:
        """Return the query service as the user may see it: other datasets do not exist there."""
        datasets = self.user.datasets
        return services.queries if datasets is None else services.queries.within(datasets)

    def event(self, action: str, outcome: str, **about: object) -> Event:
        """Return a line of the audit log about an action of the user."""
        return Event(action, outcome, self.user.name, self.grant.id, about)


Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]


async def recognize(request: Request, bearer: Bearer) -> Caller:
    """Return the caller of a request, or deny; all tokens and sessions of one user share one rate.

    A token that is remembered needs no thread.
    """
    services: Services = request.app.state.services
    if services.sso is not None and bearer is None:
        signed = await _signed_on(request, services, services.sso)
        if signed is not None:
            return signed
    cookie = request.cookies.get(services.settings.cookie)
    token = bearer.credentials if bearer is not None else cookie
    if token is None:
        raise NotAuthenticated("send a token: 'Authorization: Bearer TOKEN', or log in.")
    grant = services.stores.access.at_hand(token)
    if grant is None:
        grant = await run_in_threadpool(_looked_up, services, token, origin(request))
    caller = Caller(grant, token)
    services.requests.require(caller.rate_key)
    request.state.logged = {"holder": caller.user.name, "grant": grant.id}
    try:
        _check_way(request, caller, by_page=bearer is None)
    except AccessDenied:
        await run_in_threadpool(services.stores.audit.write, caller.event("access", "denied"))
        raise
    return caller


async def _signed_on(request: Request, services: Services, sso: SingleSignOn) -> Caller | None:
    """Return the caller whom the proxy signed on; None where it says nothing.  A wrong assertion is never passed over.

    The proxy's cookie makes a browser send the assertion for every page, so pages of other sites are refused.
    """
    place = origin(request)
    try:
        identity = sso.identity(place, request.scope["headers"])
        if identity is None:
            return None
        grant = await run_in_threadpool(services.stores.access.signed_on, identity.name, identity.groups)
        check_page(request)  # the proxy signs on every browser that visits
    except (AccessDenied, InvalidParameter) as denied:
        services.requests.require(f"from {place}")
        await run_in_threadpool(services.stores.audit.write, Event("access", "unknown"))
        raise NotAuthenticated(str(denied)) from None
    caller = Caller(grant, "")
    services.requests.require(caller.rate_key)
    request.state.logged = {"holder": caller.user.name, "grant": grant.id}
    return caller


def _looked_up(services: Services, token: str, place: str) -> Grant:
    try:
        return services.stores.access.grant_of(token)
    except AccessDenied as denied:
        services.requests.require(f"from {place}")
        services.stores.audit.write(Event("access", "unknown"))
        raise NotAuthenticated(str(denied)) from None


def needs(right: Permission) -> Callable[..., Awaitable[Caller]]:
    """Return a dependency that requires a permission."""

    async def permitted(request: Request, bearer: Bearer) -> Caller:
        caller = await recognize(request, bearer)
        if not caller.user.may(right):
            services: Services = request.app.state.services
            denied = caller.event("access", "denied", right=str(right))
            await run_in_threadpool(services.stores.audit.write, denied)
            raise AccessDenied(f"a token of the role {caller.user.role} has no right to {right}.")
        return caller

    return permitted


def origin(request: Request) -> str:
    """Return the address of a request, as far as this worker knows it."""
    return request.client.host if request.client is not None else "nowhere"


def check_page(request: Request) -> None:
    """Deny a request that a browser sent for a page of another site."""
    if request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        raise AccessDenied("this request comes from a page of another site.")


def _check_way(request: Request, caller: Caller, *, by_page: bool) -> None:
    """Deny a session outside its browser, and a page without the session's CSRF token."""
    if not by_page:
        if caller.grant.session:
            raise NotAuthenticated("a session is for the browser that logged in: use a token of your own.")
        return
    check_page(request)
    if request.method not in _SAFE and not is_csrf_token(request.headers.get(MARK), caller.token):
        raise AccessDenied(f"a page must send its CSRF token as {MARK}: log in again.")


Reader = Annotated[Caller, Depends(needs(Permission.READ))]
Asker = Annotated[Caller, Depends(needs(Permission.ASK))]
Auditor = Annotated[Caller, Depends(needs(Permission.AUDIT))]
Admitter = Annotated[Caller, Depends(needs(Permission.ADMIT))]
Anybody = Annotated[Caller, Depends(recognize)]
