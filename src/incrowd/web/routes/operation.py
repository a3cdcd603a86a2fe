"""`/v1/audit`, `/healthz`, `/metrics`, `/docs`: for those who audit and run the server, without data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse

from incrowd import __version__
from incrowd.errors import AccessDenied, IncrowdError, SourceUnavailable
from incrowd.web import replies
from incrowd.web.caller import Auditor
from incrowd.web.description import STYLE_HASH, page
from incrowd.web.services import Here
from incrowd.web.shapes import PLAIN, ErrorShape, HealthShape, LogShape, failures

router = APIRouter()


@router.get("/v1/audit", tags=["audit"], summary="Audit log", responses=failures())
def audit(
    caller: Auditor,
    services: Here,
    after: Annotated[int, Query(ge=0, le=2**53), PLAIN] = 0,
    limit: Annotated[int, Query(ge=1, le=1000), PLAIN] = 100,
) -> LogShape:
    """Return a page of the audit log; reading it is logged, too."""
    if caller.user.datasets is not None:
        services.stores.audit.write(caller.event("audit", "denied"))
        raise AccessDenied("the log is about all datasets: it needs a token for all of them.")
    events = services.stores.audit.read(after, limit)
    services.stores.audit.write(caller.event("audit", "read", after=str(after)))
    return LogShape.model_validate({"events": events})


@router.get(
    "/healthz",
    tags=["operation"],
    summary="Health",
    responses={200: {"model": HealthShape}, 503: {"model": ErrorShape}},
)
def health(services: Here) -> Response:
    """Return whether this worker can open its stores and query the rows, never why not."""
    try:
        services.stores.access.chain.head()
        services.stores.audit.chain.head()
        services.queries.check()
    except SourceUnavailable:
        return replies.error(503, "ServerUnavailable", "the data is not available.")
    except IncrowdError:
        return replies.error(503, "ServerUnavailable", "a store of the server cannot be opened.")
    return replies.as_json({"status": "ok"})


@router.get("/metrics", tags=["operation"], summary="Metrics", response_class=PlainTextResponse)
def metrics(services: Here) -> PlainTextResponse:
    """Return how often each action had each outcome, for Prometheus; all workers return the same numbers."""
    text = exposition(services.stores.audit.counts())
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/docs", include_in_schema=False)
def docs(request: Request) -> HTMLResponse:
    """Return this description as a page that loads nothing from elsewhere."""
    policy = f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; frame-ancestors 'none'; base-uri 'none'"
    return HTMLResponse(page(request.app.openapi()), headers={"content-security-policy": policy})


def exposition(counts: Mapping[tuple[str, str], int]) -> str:
    """Return the counts as Prometheus reads them.

    >>> print(exposition({("query", "answered"): 3}))
    # HELP incrowd_info The version of the server.
    # TYPE incrowd_info gauge
    incrowd_info{version="..."} 1
    # HELP incrowd_events_total Events of the audit log.
    # TYPE incrowd_events_total counter
    incrowd_events_total{action="query",outcome="answered"} 3
    <BLANKLINE>
    """
    lines = [
        "# HELP incrowd_info The version of the server.",
        "# TYPE incrowd_info gauge",
        f'incrowd_info{{version="{__version__}"}} 1',
        "# HELP incrowd_events_total Events of the audit log.",
        "# TYPE incrowd_events_total counter",
    ]
    for (action, outcome), count in sorted(counts.items()):
        lines.append(f'incrowd_events_total{{action="{action}",outcome="{outcome}"}} {count}')
    return "\n".join(lines) + "\n"
