"""`/v1/sessions`: pages log in by name and password, and hold a cookie that scripts cannot read."""

from __future__ import annotations

from datetime import timedelta

from fastapi import APIRouter, Request, Response

from incrowd.errors import AccessDenied
from incrowd.governance.access.credentials import forgery_mark
from incrowd.governance.access.grant import Decision, Grant
from incrowd.governance.audit import Event
from incrowd.web.caller import Anybody, NobodyKnown, check_page, origin
from incrowd.web.replies import TooOften
from incrowd.web.routes.failures import failures
from incrowd.web.services import Here
from incrowd.web.shapes import LoginShape, SessionShape

router = APIRouter(tags=["access"])


@router.post("/v1/sessions", summary="Log in", status_code=201, responses=failures())
def login(given: LoginShape, request: Request, response: Response, services: Here) -> SessionShape:
    """Open a session: the cookie proves it, and the mark must be sent as `X-Incrowd-Mark` with every change."""
    check_page(request)
    for key in (f"from {origin(request)}", f"name {given.name}"):  # so one place cannot use up names
        if seconds := services.logins.wait(key):
            raise TooOften(seconds)
    books, settings = services.books, services.settings
    until = books.access.now() + timedelta(hours=settings.session)
    try:
        issued = books.access.login(given.name, given.password, until)
    except AccessDenied as denied:
        books.audit.write(Event("login", "denied"))
        raise NobodyKnown(str(denied)) from None
    books.audit.write(Event("login", "done", issued.grant.holder.name, issued.grant.id))
    response.set_cookie(
        settings.cookie,
        issued.token,
        max_age=settings.session * 3600,
        path="/",
        secure=settings.https,
        httponly=True,
        samesite="strict",
    )
    return _shape(issued.grant, forgery_mark(issued.token))


@router.get("/v1/sessions", summary="Who am I", responses=failures())
def who(caller: Anybody) -> SessionShape:
    """Return who speaks; a page finds the mark of its session here after it was loaded anew."""
    return _shape(caller.grant, forgery_mark(caller.token) if caller.grant.session else None)


@router.delete("/v1/sessions", summary="Log out", status_code=204, responses=failures())
def logout(caller: Anybody, services: Here) -> Response:
    """End the session everywhere, not in this browser alone."""
    if caller.grant.session:
        services.books.access.revoke(caller.grant.id, Decision(caller.holder.name, "logged out"))
        services.books.audit.write(caller.event("logout", "done"))
    ended = Response(status_code=204)
    ended.delete_cookie(services.settings.cookie, path="/", secure=services.settings.https, httponly=True)
    return ended


def _shape(grant: Grant, mark: str | None) -> SessionShape:
    plain = grant.holder.to_json()
    return SessionShape(**plain, mark=mark)
