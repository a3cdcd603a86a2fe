"""Concurrency in one worker: how often and how much users may ask at once, equal queries, and the threads.

Nothing here is needed for correctness between workers: charges, answers and the audit log are on disk.
"""

from __future__ import annotations

import math
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition, Lock, Thread
from typing import Any, TypeVar

from incrowd.web.replies import RateLimited, ServerBusy, TooManyAtOnce
from incrowd.web.slots import ACTIVE, Slots, cores

T = TypeVar("T")
Job = tuple["Future[Any]", Callable[[], Any]]

_MOST_KEYS = 10_000
"""Keys of a rate limiter; the longest unused are forgotten first, so that nobody can fill the memory."""
_SLOT_RETRY, _SLOT_REST = 0.005, 0.01
"""Seconds after which a thread tries again to get a slot, and for which a user leaves a slot to other workers."""


class RateLimiter:
    """A bucket of requests for each key, refilled evenly within a minute.

    >>> limiter = RateLimiter(2, clock=lambda: 0.0)
    >>> limiter.wait("ann"), limiter.wait("ann"), limiter.wait("ann"), limiter.wait("bob")
    (0.0, 0.0, 30.0, 0.0)
    >>> limiter.owe("bob", 4), limiter.wait("bob")
    (None, 120.0)
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = float(per_minute)
        self._clock = clock
        self._lock = Lock()  # guards the buckets: a bucket is read and written in one step
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # requests that are left, and since when

    def require(self, key: str) -> None:
        """Count a request, or raise RateLimited and count nothing."""
        if seconds := self.wait(key):
            raise RateLimited(seconds)

    def wait(self, key: str) -> float:
        """Count a request and return 0, or return how many seconds to wait and count nothing."""
        with self._lock:
            now = self._clock()
            left, since = self._buckets.pop(key, (self._per_minute, now))
            left = min(self._per_minute, left + (now - since) * self._per_minute / 60.0)
            allowed = left >= 1.0
            self._buckets[key] = (left - 1.0 if allowed else left, now)
            while len(self._buckets) > _MOST_KEYS:
                self._buckets.popitem(last=False)
            return 0.0 if allowed else (1.0 - left) * 60.0 / self._per_minute

    def owe(self, key: str, requests: int) -> None:
        """Count an accepted request as more than one: the next request waits until all of them could have come."""
        with self._lock:
            left, since = self._buckets.get(key, (self._per_minute, self._clock()))
            self._buckets[key] = (left - requests, since)


class ConcurrencyLimit:
    """How many queries one user, and all users, have at one worker at the same time, waiting ones included.

    >>> limit = ConcurrencyLimit(per_user=1, total=5)
    >>> with limit.hold("ann"), limit.hold("bob"), limit.hold("ann"):
    ...     pass
    Traceback (most recent call last):
    incrowd.web.replies.TooManyAtOnce
    """

    def __init__(self, per_user: int, total: int) -> None:
        self._per_user = per_user
        self._total = total
        self._lock = Lock()  # the limit is checked and the query counted in one step
        self.held: Counter[str] = Counter()

    @contextmanager
    def hold(self, user: str) -> Iterator[None]:
        """Count a query of a user until the end of the block, or raise at once."""
        with self._lock:
            if self.held[user] >= self._per_user:
                raise TooManyAtOnce
            if self.held.total() >= self._total:
                raise ServerBusy
            self.held[user] += 1
        try:
            yield
        finally:
            with self._lock:
                self.held[user] -= 1
                if not self.held[user]:
                    del self.held[user]


class InFlightQueries:
    """The queries that one worker is answering, by their ids; an equal query waits for the first one's answer.

    >>> queries = InFlightQueries()
    >>> with queries.track() as first, queries.track() as second:
    ...     first.lead("a query"), first.lead("a query"), second.lead("a query").done()
    (None, None, False)
    >>> first.over.done(), queries.leading
    (True, {})
    """

    def __init__(self) -> None:
        self.lock = Lock()  # guards `leading`, and that a query which is over leads no more
        self.leading: dict[str, Future[None]] = {}

    @contextmanager
    def track(self) -> Iterator[InFlightQuery]:
        """Return a query whose id may be known later; it is over at the end of the block."""
        query = InFlightQuery(self)
        try:
            yield query
        finally:
            query.end()


class InFlightQuery:
    """One caller's query: it leads, waits for an equal one that does, or is over."""

    def __init__(self, queries: InFlightQueries) -> None:
        self.over: Future[None] = Future()
        self._queries = queries
        self._led: set[str] = set()

    def lead(self, query_id: str) -> Future[None] | None:
        """Lead all equal queries and return None, or return what to wait for; any thread may call it.

        A query that is over leads nothing: nobody would end it a second time.
        """
        with self._queries.lock:
            if self.over.done():
                return None
            leader = self._queries.leading.setdefault(query_id, self.over)
            if leader is not self.over:
                return leader
            self._led.add(query_id)
            return None

    def end(self) -> None:
        """Let all go on who wait for this query."""
        with self._queries.lock:
            for query_id in self._led:
                del self._queries.leading[query_id]
            self.over.set_result(None)


@dataclass(eq=False)
class UserJobs:
    """The jobs of one user."""

    waiting: deque[Job] = field(default_factory=deque)
    running: int = 0
    active: float = 0.0
    """When the last job came or ended."""
    slots: list[Callable[[], None]] = field(default_factory=list)
    """What releases the slots of running jobs."""
    rest: float = 0.0
    """Until when slots are left to this user's jobs at other workers."""
    announced: float = -math.inf
    """When other workers were last told that this user is busy."""

    def due(self, now: float) -> bool:
        """Return whether other workers are to be told now that this user is busy."""
        if not (self.waiting or self.running) or now < self.announced + ACTIVE / 4:
            return False
        self.announced = now
        return True


class ThreadJobs:
    """The jobs that wait for a thread.  Users take turns, and none has more than their share of jobs running.

    A user who is alone has `most` jobs running.  Users who were active within the last second share them, so that many
    jobs, or long ones, leave threads to others.  With `slots` they also share the processors of the machine.

    >>> jobs = ThreadJobs(most=1)
    >>> for user in ("ann", "ann", "bob"):
    ...     jobs.put((Future(), lambda: None), user)
    >>> [jobs.take()[0], jobs.take()[0]]
    ['ann', 'bob']
    """

    def __init__(self, most: int, slots: Slots | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._slots = slots
        self._clock = clock
        # Guards all below, and is notified when a job came or ended.  One waiting thread is woken for each: a job needs
        # one thread, and the end of a job makes room for one more.
        self._changed = Condition()
        self._users: dict[str, UserJobs] = {}  # in the order of their turns
        self._polling = False  # whether a thread tries again and again to get a slot: one is enough
        self.ended = False

    def put(self, job: Job, user: str) -> None:
        """Let a job wait for its user's turn; after the end, cancel it."""
        with self._changed:
            if self.ended:
                job[0].cancel()
                return
            jobs = self._users.setdefault(user, UserJobs())
            jobs.waiting.append(job)
            jobs.active = self._clock()
            self._changed.notify()

    def take(self) -> tuple[str, Job] | None:
        """Wait for the next job and return it with its user; it is running until `done`.  Return None at the end."""
        with self._changed:
            while (user := self._next()) is None:
                if self.ended:
                    return None
                self._wait()
            jobs = self._users[user] = self._users.pop(user)  # the last to have a turn again
            jobs.running += 1
            if self._slots is not None:
                self._changed.notify()  # if this thread tried to get slots, another goes on with that
            return user, jobs.waiting.popleft()

    def done(self, user: str) -> None:
        """Say that a job of a user ended."""
        with self._changed:
            jobs = self._users[user]
            jobs.running -= 1
            jobs.active = self._clock()
            if jobs.slots:
                jobs.slots.pop()()
                jobs.rest = self._clock() + _SLOT_REST if jobs.waiting else 0.0
            self._changed.notify()

    def end(self) -> None:
        """Let no thread take another job, and cancel those that wait."""
        with self._changed:
            self.ended = True
            for jobs in self._users.values():
                while jobs.waiting:
                    jobs.waiting.popleft()[0].cancel()
            self._changed.notify_all()

    def _next(self) -> str | None:
        """Return the user whose turn it is, if a job of theirs may run."""
        self._forget_inactive()
        users = max(1, len(self._users) + self._users_elsewhere())
        share = max(1, self._most // users)
        for user, jobs in self._users.items():
            if jobs.waiting and jobs.running < share and self._has_slot(user, jobs, users):
                return user
        return None

    def _users_elsewhere(self) -> int:
        """Return how many users of other workers share the machine."""
        if self._slots is None or not self._users:
            return 0
        now = self._clock()
        return self._slots.others({user: jobs.due(now) for user, jobs in self._users.items()})

    def _forget_inactive(self) -> None:
        since = self._clock() - ACTIVE
        for user, jobs in list(self._users.items()):
            if not jobs.waiting and not jobs.running and jobs.active < since:
                del self._users[user]

    def _has_slot(self, user: str, jobs: UserJobs, users: int) -> bool:
        """Take a slot for one more job of a user; a user who is alone needs none."""
        if self._slots is None or users == 1:
            return True
        if self._clock() < jobs.rest:
            return False
        release = self._slots.take(user, max(1, cores() // users))
        if release is not None:
            jobs.slots.append(release)
        return release is not None

    def _wait(self) -> None:
        """Wait for a change.  Where jobs wait for a slot, one thread tries again soon: nobody tells when it is free.

        While jobs run, it announces their users again and again.
        """
        if self._slots is None or self._polling or not self._users:
            self._changed.wait()
            return
        waiting = any(jobs.waiting for jobs in self._users.values())
        self._polling = True
        self._changed.wait(_SLOT_RETRY if waiting else ACTIVE / 4)
        self._polling = False


class ThreadPool:
    """A fixed number of threads that do jobs.

    The standard library waits for the threads of its pool when a process ends, however long that takes.  These are
    daemons: a charge is never refunded, so it is safe to leave a job undone.

    >>> pool = ThreadPool(2)
    >>> pool.submit(lambda: 6 * 7).result(), pool.stop(10)
    (42, True)
    """

    def __init__(self, size: int, per_user: int | None = None, slots: Slots | None = None) -> None:
        self._jobs = ThreadJobs(per_user or max(1, size // 2), slots)
        self._threads = [Thread(target=self._work, name="query", daemon=True) for _ in range(size)]
        for thread in self._threads:
            thread.start()

    def submit(self, work: Callable[[], T], user: str = "") -> Future[T]:
        """Let a thread do some work of a user when it is that user's turn."""
        job: Future[T] = Future()
        self._jobs.put((job, work), user)
        return job

    def stop(self, seconds: float) -> bool:
        """Begin nothing new, wait for running jobs, and return whether all of them ended in time."""
        self._jobs.end()
        end = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _work(self) -> None:
        while (taken := self._jobs.take()) is not None:
            user, (job, work) = taken
            try:
                if job.set_running_or_notify_cancel():
                    job.set_result(work())
            except BaseException as problem:  # noqa: BLE001 (the job's caller receives it)
                job.set_exception(problem)
            finally:
                self._jobs.done(user)
