"""`/v1/audit`: auditors read what was asked and what came of it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from incrowd.errors import AccessDenied
from incrowd.web.caller import Auditor
from incrowd.web.routes.failures import failures
from incrowd.web.services import Here
from incrowd.web.shapes import LogShape

router = APIRouter(tags=["audit"])


@router.get("/v1/audit", summary="Audit log", responses=failures())
def audit(
    caller: Auditor,
    services: Here,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> LogShape:
    """Return a page of the log; reading it is written down, too."""
    if caller.holder.datasets is not None:
        services.books.audit.write(caller.event("audit", "denied"))
        raise AccessDenied("the log is about all datasets: it needs a token for all of them.")
    events = services.books.audit.read(after, limit)
    services.books.audit.write(caller.event("audit", "read", after=str(after)))
    return LogShape.model_validate({"events": events})
