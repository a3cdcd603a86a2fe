"""Settings: the limits of a server, and when answers show."""

from __future__ import annotations

import math
from dataclasses import dataclass

from incrowd.errors import InvalidParameter


@dataclass(frozen=True)
class Settings:
    """What the operator of a server may choose; limits are per worker.

    - `pace`: seconds after which the outcome of a query shows.  A query that can be more work shows after twice that
      time, four times, and so on, until `longest`.  The most work follows from the query and what is declared.
    - `speed`: steps of work that a worker surely does in a second.
    - `size`: bytes of the largest request.
    - `rate`: requests a minute of one user; `logins`: attempts a minute of one name or address to log in.
    - `threads`: queries that are worked on at once.
    - `per_user`, `queue`: concurrency limit of one user and of all, queries that wait included.
    - `session`: hours after which a page must log in again.
    - `https`: whether browsers reach the server by HTTPS.
    - `reload`: whether policies are watched for new versions of the data.
    - `sso`: the file that says which proxy signs users on.
    """

    pace: float = 0.5
    longest: float = 64.0
    speed: int = 500_000_000
    size: int = 65_536
    rate: int = 120
    logins: int = 10
    threads: int = 16
    per_user: int = 8
    queue: int = 64
    session: int = 8
    https: bool = False
    show_queries: bool = False
    reload: bool = False
    sso: str | None = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.pace <= self.longest or not math.isfinite(self.longest):
            raise InvalidParameter("the pace of a server lies between 0 and the longest time, in seconds.")
        counts = (self.speed, self.size, self.rate, self.logins, self.threads, self.per_user, self.queue, self.session)
        if min(counts) < 1:
            raise InvalidParameter(
                "speed, size, rate, logins, threads, each, queue and session of a server are whole numbers above 0."
            )

    @property
    def cookie(self) -> str:
        """The name of the session cookie; browsers hold one with this prefix to HTTPS and to this host alone."""
        return "__Host-incrowd" if self.https else "incrowd"
