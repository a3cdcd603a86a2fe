"""`/v1/tokens` and `/v1/sessions`: owners make, rotate and revoke tokens; pages log in and hold a cookie."""

from __future__ import annotations

from datetime import timedelta

from fastapi import APIRouter, Request, Response

from incrowd.errors import AccessDenied, InvalidParameter
from incrowd.governance.access_list import NewToken
from incrowd.governance.audit import Event
from incrowd.governance.grant import AccessDecision, Grant, User, csrf_token
from incrowd.web.caller import Admitter, Anybody, Caller, NotAuthenticated, check_page, origin
from incrowd.web.services import Here, Services
from incrowd.web.shapes import AdmittedShape, IssuedShape, LoginShape, RotatedShape, SessionShape, TokenShape, failures

router = APIRouter(tags=["access"])


@router.get("/v1/tokens", summary="Tokens", responses=failures())
def tokens(caller: Admitter, services: Here) -> list[TokenShape]:
    """Return all tokens that were ever given out, within the caller's datasets, without the tokens themselves."""
    return [_token_shape(grant) for grant in services.stores.access.grants() if caller.user.covers(grant.holder)]


@router.post("/v1/tokens", summary="Grant", status_code=201, responses=failures())
def grant(admitted: AdmittedShape, caller: Admitter, services: Here) -> IssuedShape:
    """Make a token; it is shown in this reply and never again."""
    datasets = None if admitted.datasets is None else tuple(admitted.datasets)
    holder = User(admitted.holder, admitted.role, datasets)
    if not caller.user.may_admit(holder):
        services.stores.audit.write(caller.event("grant", "denied"))
        raise AccessDenied(
            "this token is not yours to give: name datasets of your own; auditors are admitted by incrowd access grant."
        )
    access = services.stores.access
    issued = access.grant(holder, access.now() + timedelta(days=admitted.days), _signed(caller, admitted.why))
    return _issued(issued, "grant", caller, services)


@router.post("/v1/tokens/{number}/rotate", summary="Rotate", responses=failures(404))
def rotate(number: str, rotated: RotatedShape, caller: Admitter, services: Here) -> IssuedShape:
    """Replace a token by a new one; the old one stops working at once."""
    access = services.stores.access
    _check_own(number, caller, services)
    issued = access.rotate(number, access.now() + timedelta(days=rotated.days), _signed(caller, rotated.why))
    return _issued(issued, "rotate", caller, services)


@router.delete("/v1/tokens/{number}", summary="Revoke", responses=failures(404))
def revoke(number: str, caller: Admitter, services: Here) -> TokenShape:
    """End a token for good."""
    _check_own(number, caller, services)
    ended = services.stores.access.revoke(number, _signed(caller, "revoked by HTTP"))
    services.stores.audit.write(caller.event("revoke", "done", id=ended.id))
    return _token_shape(ended)


def _check_own(number: str, caller: Caller, services: Services) -> None:
    grants = services.stores.access.grants()
    if any(grant.id == number and caller.user.may_admit(grant.holder) for grant in grants):
        return
    services.stores.audit.write(caller.event("access", "denied"))
    raise InvalidParameter("there is no token with this id, or it is not yours to change.")


def _issued(issued: NewToken, action: str, caller: Caller, services: Services) -> IssuedShape:
    services.stores.audit.write(caller.event(action, "done", id=issued.grant.id, to=issued.grant.holder.name))
    return IssuedShape(token=issued.token, grant=_token_shape(issued.grant))


def _signed(caller: Caller, why: str) -> AccessDecision:
    return AccessDecision(caller.user.name, why)


def _token_shape(grant: Grant) -> TokenShape:
    return TokenShape(**grant.public())


@router.post("/v1/sessions", summary="Log in", status_code=201, responses=failures())
def login(credentials: LoginShape, request: Request, response: Response, services: Here) -> SessionShape:
    """Open a session: the cookie proves it, and pages send the CSRF token as `X-Incrowd-Mark` with every change."""
    check_page(request)
    for key in (f"from {origin(request)}", f"name {credentials.name}"):  # so one place cannot use up names
        services.logins.require(key)
    stores, settings = services.stores, services.settings
    until = stores.access.now() + timedelta(hours=settings.session)
    try:
        issued = stores.access.login(credentials.name, credentials.password, until)
    except AccessDenied as denied:
        stores.audit.write(Event("login", "denied"))
        raise NotAuthenticated(str(denied)) from None
    stores.audit.write(Event("login", "done", issued.grant.holder.name, issued.grant.id))
    response.set_cookie(
        settings.cookie,
        issued.token,
        max_age=settings.session * 3600,
        path="/",
        secure=settings.https,
        httponly=True,
        samesite="strict",
    )
    return _session_shape(issued.grant, csrf_token(issued.token))


@router.get("/v1/sessions", summary="Who am I", responses=failures())
def who(caller: Anybody) -> SessionShape:
    """Return the user; a page that was loaded again finds its CSRF token here."""
    return _session_shape(caller.grant, csrf_token(caller.token) if caller.grant.session else None)


@router.delete("/v1/sessions", summary="Log out", status_code=204, responses=failures())
def logout(caller: Anybody, services: Here) -> Response:
    """End the session everywhere, not in this browser alone."""
    if caller.grant.session:
        services.stores.access.revoke(caller.grant.id, AccessDecision(caller.user.name, "logged out"))
        services.stores.audit.write(caller.event("logout", "done"))
    ended = Response(status_code=204)
    ended.delete_cookie(services.settings.cookie, path="/", secure=services.settings.https, httponly=True)
    return ended


def _session_shape(grant: Grant, mark: str | None) -> SessionShape:
    plain = grant.holder.to_json()
    return SessionShape(**plain, mark=mark)
