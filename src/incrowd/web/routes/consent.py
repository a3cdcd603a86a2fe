"""`/consent`: the page of a person who decides, under a token that works once; no script, nothing from elsewhere."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from incrowd.errors import AccessDenied
from incrowd.governance.audit import Event
from incrowd.governance.consent.phrases import LANGUAGES, accepted_language, known_language, phrase
from incrowd.governance.consent.record import STYLE
from incrowd.web.caller import check_page, origin
from incrowd.web.services import Here, Services
from incrowd.workflows.consent.page import report_body
from incrowd.workflows.consent.subject import DataSubjectService, SubjectView

router = APIRouter()
_STYLE = STYLE
_HASH = base64.b64encode(sha256(_STYLE.encode()).digest()).decode()
_POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"


@router.get("/consent", include_in_schema=False)
def start(request: Request) -> HTMLResponse:
    """Ask for a token; nothing is looked up."""
    language = _language(request)
    return _page(language, _paragraphs([phrase(language, "intro")]) + _form(language, "/consent", "ask"))


def _language(request: Request, form: Mapping[str, list[str]] | None = None) -> str:
    """Return the language that a person chose, or else the browser's."""
    chosen = (form or {}).get("lang", [""])[0] or request.query_params.get("lang", "")
    return known_language(chosen) if chosen else accepted_language(request.headers.get("accept-language", ""))


@dataclass(frozen=True)
class Visit:
    """What a form of a data subject sent: a token, and the language of the page."""

    token: str
    language: str


async def visit_of(request: Request, services: Here) -> Visit:
    """Return what a form sent; one address may send few forms in a minute."""
    check_page(request)
    services.logins.require(f"from {origin(request)}")
    body = (await request.body()).decode("utf-8", "replace")
    try:
        form = parse_qs(body, max_num_fields=4)
    except ValueError:  # too many fields
        form = {}
    return Visit(form.get("token", [""])[0], _language(request, form))


Sent = Annotated[Visit, Depends(visit_of)]


@router.post("/consent", include_in_schema=False)
def view(visit: Sent, services: Here) -> HTMLResponse:
    """Show the releases for which a person was eligible; this uses up the token."""
    return _replied(services, visit, DataSubjectService.view)


@router.post("/consent/withdraw", include_in_schema=False)
def withdraw(visit: Sent, services: Here) -> HTMLResponse:
    """Record a withdrawal; this uses up the token."""
    return _replied(services, visit, DataSubjectService.withdraw)


def _replied(services: Services, visit: Visit, work: Callable[[DataSubjectService, str], SubjectView]) -> HTMLResponse:
    """Return a page; a visit is recorded in the registry alone, because the counts of the audit log are public."""
    try:
        view = work(services.subjects or DataSubjectService(()), visit.token)
    except AccessDenied:
        services.stores.audit.write(Event("access", "unknown"))
        return _page(visit.language, f"<p>{escape(phrase(visit.language, 'refused'))}</p>", 403)
    return _page(visit.language, _report(visit.language, view))


def _report(language: str, view: SubjectView) -> str:
    """Return what a person reads, with a form to withdraw, whether or not they consent."""
    recorded = _paragraphs([phrase(language, "withdrawn")] if view.withdrawn else [])
    ask = _form(language, "/consent/withdraw", "withdraw_button", view.token)
    return f"{recorded}{report_body(language, view.report, 'how_here')}{ask}"


def _paragraphs(texts: Iterable[str]) -> str:
    return "".join(f"<p>{escape(text)}</p>" for text in texts)


def _form(language: str, action: str, verb: str, token: str | None = None) -> str:
    label = escape(phrase(language, "code"))
    field = (
        f'<p><label>{label} <input name="token" type="password" autocomplete="off" required></label></p>'
        if token is None
        else f'<input name="token" type="hidden" value="{escape(token)}">'
    )
    own = f'<input name="lang" type="hidden" value="{language}">'
    return f'<form method="post" action="{action}">{field}{own}<button>{escape(phrase(language, verb))}</button></form>'


def _page(language: str, body: str, status: int = 200) -> HTMLResponse:
    title, note = escape(phrase(language, "title")), escape(phrase(language, "unreviewed"))
    links = "".join(f'<a href="/consent?lang={code}" lang="{code}">{name}</a>' for code, name in LANGUAGES.items())
    whole = (
        f'<!doctype html><html lang="{language}"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body><nav>{links}</nav><main><h1>{title}</h1>{body}</main><p><small>{note}</small></p></body></html>"
    )
    return HTMLResponse(whole, status, headers={"content-security-policy": _POLICY, "vary": "accept-language"})
