"""Settings: the limits of a server, and how much time every answer takes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from incrowd.errors import InvalidParameter


@dataclass(frozen=True)
class Settings:
    """What the operator of a server may choose.

    `pace` is the time in seconds after which the outcome of a question shows; one that can be more work shows after
    twice that time, four times, and so on, until `longest`.  How much work it can be is known beforehand, from the
    question and what is declared; `speed` is how many steps of it a worker surely does in a second.  `size` is the
    largest request in bytes, `rate` how many requests a minute one holder may send to one worker, `logins` how many
    attempts to log in one name or address has there, and `threads` how many questions a worker works on at once; `each`
    is how many one holder, and `queue` how many all of them have in hand there, those that wait for a thread or for
    their time to be shown included.  `session` is the hours after which a page must log in again.  `https` says that
    browsers reach the server by HTTPS, `reload` that policies are watched for new versions of the data.
    """

    pace: float = 0.5
    longest: float = 64.0
    speed: int = 500_000_000
    size: int = 65_536
    rate: int = 120
    logins: int = 10
    threads: int = 16
    each: int = 8
    queue: int = 64
    session: int = 8
    https: bool = False
    show_questions: bool = False
    reload: bool = False

    def __post_init__(self) -> None:
        if not 0.0 <= self.pace <= self.longest or not math.isfinite(self.longest):
            raise InvalidParameter("the pace of a server lies between 0 and the longest time, in seconds.")
        counts = (self.speed, self.size, self.rate, self.logins, self.threads, self.each, self.queue, self.session)
        if min(counts) < 1:
            raise InvalidParameter(
                "speed, size, rate, logins, threads, each, queue and session of a server are whole numbers above 0."
            )

    @property
    def cookie(self) -> str:
        """The name of the session cookie; browsers hold one with this prefix to HTTPS and to this host alone."""
        return "__Host-incrowd" if self.https else "incrowd"
