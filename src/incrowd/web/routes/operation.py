"""`/healthz`, `/metrics`, `/docs`: for those who run the server, without data."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse

from incrowd.errors import IncrowdError
from incrowd.web import replies
from incrowd.web.description import STYLE_HASH, page
from incrowd.web.metrics import exposition
from incrowd.web.services import Here
from incrowd.web.shapes import ErrorShape, HealthShape

router = APIRouter(tags=["operation"])


@router.get("/healthz", summary="Health", responses={200: {"model": HealthShape}, 503: {"model": ErrorShape}})
def health(services: Here) -> Response:
    """Say whether this worker can open its books."""
    try:
        services.books.access.chain.head()
        services.books.audit.chain.head()
    except IncrowdError:
        return replies.error(503, "ServerUnavailable", "a book of the server cannot be opened.")
    return replies.as_json({"status": "ok"})


@router.get("/metrics", summary="Metrics", response_class=PlainTextResponse)
def metrics(services: Here) -> PlainTextResponse:
    """Return how often each action had each outcome, for Prometheus; all workers return the same numbers."""
    text = exposition(services.books.audit.counts())
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/docs", include_in_schema=False)
def docs(request: Request) -> HTMLResponse:
    """Return this description as a page that loads nothing from elsewhere."""
    policy = f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; frame-ancestors 'none'; base-uri 'none'"
    return HTMLResponse(page(request.app.openapi()), headers={"content-security-policy": policy})
