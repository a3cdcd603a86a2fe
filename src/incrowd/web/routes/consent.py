"""`/consent`: the page of a person who decides, under a token that works once; no script, nothing from elsewhere."""

from __future__ import annotations

import base64
from collections.abc import Callable
from hashlib import sha256
from html import escape
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from incrowd.errors import AccessDenied
from incrowd.governance.audit import Event
from incrowd.web.caller import check_page, origin
from incrowd.web.services import Here, Services
from incrowd.workflows.consent.subject import DataSubjectService, SubjectView

router = APIRouter()
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a; }
th, td { text-align: left; vertical-align: top; padding: 0.2rem 1rem 0.2rem 0; }
label, input, button { font: inherit; }
"""
_HASH = base64.b64encode(sha256(_STYLE.encode()).digest()).decode()
_POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
_COLUMNS = ("at", "dataset", "epsilon", "delta", "guarantee")


@router.get("/consent", include_in_schema=False)
def start() -> HTMLResponse:
    """Ask for a token; nothing is looked up."""
    return _page(_form("/consent", "Show what was released"))


async def given_token(request: Request, services: Here) -> str:
    """Return the token that a form sent; one address may send few of them in a minute."""
    check_page(request)
    services.logins.require(f"from {origin(request)}")
    body = (await request.body()).decode("utf-8", "replace")
    try:
        return parse_qs(body, max_num_fields=4).get("token", [""])[0]
    except ValueError:  # too many fields
        return ""


Token = Annotated[str, Depends(given_token)]


@router.post("/consent", include_in_schema=False)
def view(token: Token, services: Here) -> HTMLResponse:
    """Show the releases for which a person was eligible; this uses up the token."""
    return _replied(services, token, DataSubjectService.view)


@router.post("/consent/withdraw", include_in_schema=False)
def withdraw(token: Token, services: Here) -> HTMLResponse:
    """Record a withdrawal; this uses up the token."""
    return _replied(services, token, DataSubjectService.withdraw)


def _replied(services: Services, token: str, work: Callable[[DataSubjectService, str], SubjectView]) -> HTMLResponse:
    """Return a page; a visit is recorded in the registry alone, because the counts of the audit log are public."""
    try:
        view = work(services.subjects or DataSubjectService(()), token)
    except AccessDenied as denied:
        services.stores.audit.write(Event("access", "unknown"))
        return _page(f"<p>{escape(str(denied))}</p>", 403)
    return _page(_report(view))


def _report(view: SubjectView) -> str:
    report = view.report
    state = "You consent" if report.consents else "You do not consent"
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(getattr(release, name))}</td>" for name in _COLUMNS) + "</tr>"
        for release in report.releases
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in _COLUMNS)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>" if rows else "<p>None so far.</p>"
    ask = _form("/consent/withdraw", "Withdraw", view.token)  # whether or not anybody of this id consents
    return (
        f"<p>{state} to “{escape(report.purpose)}”.</p><h2>Releases for which you were eligible</h2>{table}"
        f"<p>In total: epsilon at most {escape(report.epsilon)}, delta at most {escape(report.delta)}.</p>"
        f"<p>{escape(report.basis)}</p>{ask}"
    )


def _form(action: str, verb: str, token: str | None = None) -> str:
    field = (
        '<label>Token <input name="token" type="password" autocomplete="off" required></label> '
        if token is None
        else f'<input name="token" type="hidden" value="{escape(token)}">'
    )
    return f'<form method="post" action="{action}">{field}<button>{verb}</button></form>'


def _page(body: str, status: int = 200) -> HTMLResponse:
    whole = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Your consent</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body><main><h1>Your consent</h1>{body}</main></body></html>"
    )
    return HTMLResponse(whole, status, headers={"content-security-policy": _POLICY})
