"""Services: what the routes of one server share, handed to each request."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, Protocol

from fastapi import Depends, Request

from incrowd.governance.audit import ServerStores
from incrowd.web.flights import InFlightQueries
from incrowd.web.scribe import AuditLogWriter
from incrowd.web.settings import Settings
from incrowd.web.threads import ThreadPool
from incrowd.web.turns import ConcurrencyLimit
from incrowd.workflows.consent.data_subjects import DataSubjectService
from incrowd.workflows.query.history import PageOfHistory
from incrowd.workflows.query.request import AskingTogether, QueryRequest

_MOST_KEYS = 10_000


@dataclass(frozen=True)
class Services:
    """The desk, the books and the limits of one worker; what correctness needs is in the books, on disk."""

    desk: QueryBackend
    books: ServerStores
    settings: Settings
    pool: ThreadPool
    quick: ThreadPool
    """For what takes little time: prices, and keeping what came of a question when its time has come."""
    scribe: AuditLogWriter
    """For what takes next to none: telling again what is known."""
    turns: ConcurrencyLimit
    flights: InFlightQueries
    knocks: Limiter
    logins: Limiter
    subjects: DataSubjectService | None = None


async def _services(request: Request) -> Services:  # async: no thread is needed for it
    found: Services = request.app.state.services
    return found


Here = Annotated[Services, Depends(_services)]


class JsonDocument(Protocol):
    """A price, an answer or a certificate."""

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""


class PlannedQuestion(Protocol):
    """A question that was planned."""

    @property
    def steps(self) -> int:
        """How much work it is at most, from the question and what is declared alone."""

    @property
    def mark(self) -> str:
        """What all askings of the same question share."""

    def again(self) -> BegunQuestion | None:
        """Return the answer that was given before, if it is at hand and paid for; nothing is read or written."""

    def begin(self) -> BegunQuestion:
        """Charge it and read the rows, or refuse; nobody can see yet what came of it."""


class BegunQuestion(Protocol):
    """A question that was charged and answered, and of which nothing shows yet."""

    @property
    def finish(self) -> Callable[[], JsonDocument]:
        """Keep the answer and return it: called once, when its time has come."""

    @property
    def known(self) -> bool:
        """Whether no row was read for it."""


class QueryBackend(Protocol):
    """Where questions are answered; safe for many threads."""

    @property
    def locks(self) -> Path | None:
        """The folder where all who answer at one ledger on this machine hold locks, if there is one."""

    def price(self, asking: QueryRequest) -> JsonDocument:
        """Say what a question would cost and how exact its answer would be; reads no row and writes nothing."""

    def prepare(self, asking: QueryRequest) -> PlannedQuestion:
        """Plan a question, or refuse it; reads no row and writes nothing."""

    def recall(self, asking: QueryRequest) -> PlannedQuestion | None:
        """Return a question that was planned lately, with no work at all; None tells nothing."""

    def price_batch(self, asking: AskingTogether) -> JsonDocument:
        """Say what several questions would cost together; reads no row and writes nothing."""

    def prepare_batch(self, asking: AskingTogether) -> PlannedQuestion:
        """Plan several questions together, or refuse them; reads no row and writes nothing."""

    def schema(self) -> Mapping[str, Any]:
        """Return the public description of the tables."""

    def budget(self, analyst: str | None) -> Mapping[str, Any]:
        """Return what is left of each dataset, and what an analyst has spent of it."""

    def releases(self, analyst: str | None = None) -> Sequence[Mapping[str, Any]]:
        """Return what was released so far and an analyst may read (None: all), each with its id and dataset."""

    def certificate(self, id_: str, analyst: str | None = None) -> JsonDocument | None:
        """Return the certificate of a release, if the analyst may read it."""

    def history(self, analyst: str | None, page: PageOfHistory, *, reads_all: bool = False) -> JsonDocument:
        """Return a page of what an analyst asked, and of what others asked that may be read."""

    def answer(self, id_: str, analyst: str | None = None) -> JsonDocument | None:
        """Return an answer that was given to the analyst before."""

    def within(self, datasets: Collection[str]) -> QueryBackend:
        """Return a desk that knows these datasets and the public tables alone."""

    def load(self) -> None:
        """Read what questions will read, or raise SourceUnavailable."""

    def check(self) -> None:
        """Raise SourceUnavailable unless the rows can be asked about now."""


@dataclass(frozen=True)
class Limiter:
    """A bucket of so many knocks for each key, refilled evenly within a minute; the longest unused are forgotten.

    >>> limiter = Limiter(2, clock=lambda: 0.0)
    >>> limiter.wait("ann"), limiter.wait("ann"), limiter.wait("ann"), limiter.wait("bob")
    (0.0, 0.0, 30.0, 0.0)
    """

    per_minute: int
    clock: Callable[[], float] = time.monotonic
    lock: Lock = field(default_factory=Lock)
    seen: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def wait(self, key: str) -> float:
        """Count a knock and return 0, or return how many seconds to wait and count nothing."""
        with self.lock:
            now = self.clock()
            left, at = self.seen.pop(key, (float(self.per_minute), now))
            left = min(float(self.per_minute), left + (now - at) * self.per_minute / 60.0)
            allowed = left >= 1.0
            self.seen[key] = (left - 1.0 if allowed else left, now)
            while len(self.seen) > _MOST_KEYS:
                self.seen.popitem(last=False)
            return 0.0 if allowed else (1.0 - left) * 60.0 / self.per_minute

    def owe(self, key: str, knocks: int) -> None:
        """Count knocks more for one that was let in: the next one waits until they, too, could have come.

        >>> limiter = Limiter(2, clock=lambda: 0.0)
        >>> limiter.wait("ann"), limiter.owe("ann", 4), limiter.wait("ann")
        (0.0, None, 120.0)
        """
        with self.lock:
            left, at = self.seen.get(key, (float(self.per_minute), self.clock()))
            self.seen[key] = (left - knocks, at)
