"""Services: what the routes of one server share, handed to each request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from incrowd.governance.books import Books
from incrowd.web.desk import Desk
from incrowd.web.limiter import Limiter
from incrowd.web.settings import Settings
from incrowd.web.threads import ThreadPool


@dataclass(frozen=True)
class Services:
    """The desk, the books and the limits of one worker; what correctness needs is in the books, on disk."""

    desk: Desk
    books: Books
    settings: Settings
    pool: ThreadPool
    knocks: Limiter
    logins: Limiter


def _services(request: Request) -> Services:
    found: Services = request.app.state.services
    return found


Here = Annotated[Services, Depends(_services)]
