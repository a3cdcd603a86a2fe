"""Services: what the routes of one worker share, handed to each request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from incrowd.governance.audit import ServerStores
from incrowd.web.concurrency import ConcurrencyLimit, InFlightQueries, RateLimiter, ThreadPool
from incrowd.web.logs import AuditLogWriter
from incrowd.web.settings import Settings
from incrowd.web.sso import SingleSignOn
from incrowd.workflows.consent.subject import DataSubjectService
from incrowd.workflows.query.service import QueryService


@dataclass(frozen=True)
class Services:
    """The query service, the stores and the limits of one worker; what correctness needs is in the stores, on disk."""

    current: Callable[[], QueryService]
    stores: ServerStores
    settings: Settings
    pool: ThreadPool
    quick: ThreadPool
    """For short work: cost estimates, and storing an answer when it is time to show it."""
    public: ThreadPool
    """For statements about public tables and declarations, one of a user at a time."""
    audit_writer: AuditLogWriter
    """For next to no work: giving a stored answer again."""
    limit: ConcurrencyLimit
    in_flight: InFlightQueries
    requests: RateLimiter
    logins: RateLimiter
    subjects: DataSubjectService | None = None
    sso: SingleSignOn | None = None

    @property
    def queries(self) -> QueryService:
        """The query service of the latest version of the data."""
        return self.current()


async def _services(request: Request) -> Services:  # async: no thread is needed for it
    services: Services = request.app.state.services
    return services


Here = Annotated[Services, Depends(_services)]
