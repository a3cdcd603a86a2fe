"""ThreadPool: the threads that answer questions; work that never ends does not keep the process from ending."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition, Thread
from typing import Any, TypeVar

from incrowd.web.slots import Slots, cores

T = TypeVar("T")

_LATELY = 1.0
"""Seconds for which threads are kept free for somebody who had something to do."""

_LOOK, _REST = 0.005, 0.01
"""Seconds after which is looked again for a slot, and for which one is left to others."""

_Job = tuple["Future[Any]", Callable[[], Any]]


@dataclass(frozen=True, eq=False)
class ThreadJobs:
    """The jobs that wait, in a line for each holder; the lines take turns, and none has more than its part at work.

    Whoever is alone has `most` jobs at work.  Those who had some lately share them, so that whoever has many jobs
    waiting, or long ones, leaves threads, and what threads of one process have to share, to others.  With `slots` they
    share the processors of the machine as well, whichever workers have their jobs.

    >>> jobs = ThreadJobs(most=1)
    >>> for holder in ("ann", "ann", "bob"):
    ...     jobs.put((Future(), lambda: None), holder)
    >>> taken = [jobs.take(), jobs.take()]
    >>> [holder for holder, _ in taken], list(jobs.lines)
    (['ann', 'bob'], ['ann'])
    """

    most: int
    slots: Slots | None = None
    clock: Callable[[], float] = time.monotonic
    lines: OrderedDict[str, deque[_Job]] = field(default_factory=OrderedDict)
    working: Counter[str] = field(default_factory=Counter)
    seen: dict[str, float] = field(default_factory=dict)
    """When each holder had a job last."""
    held: dict[str, list[Callable[[], None]]] = field(default_factory=dict)
    """What leaves the slots of jobs at work."""
    rests: dict[str, float] = field(default_factory=dict)
    """Until when somebody with more jobs here leaves slots to the same one's jobs at other workers."""
    looking: list[bool] = field(default_factory=list)
    """Whether a thread looks again and again for a slot."""
    more: Condition = field(default_factory=Condition)
    ended: list[bool] = field(default_factory=list)

    def put(self, job: _Job, holder: str) -> None:
        """Let a job wait in the line of its holder; after the end it is cancelled."""
        with self.more:
            if self.ended:
                job[0].cancel()
                return
            self.lines.setdefault(holder, deque()).append(job)
            self.seen[holder] = self.clock()
            self.more.notify()

    def take(self) -> tuple[str, _Job] | None:
        """Wait for the next job and return it with its holder; it is at work until `done`.  None at the end."""
        with self.more:
            while (holder := self._next()) is None:
                if self.ended:
                    return None
                self._wait()
            line = self.lines.pop(holder)
            job = line.popleft()
            if line:
                self.lines[holder] = line
            self.working[holder] += 1
            return holder, job

    def done(self, holder: str) -> None:
        """Say that a job of a holder was done."""
        with self.more:
            self.working[holder] -= 1
            self.seen[holder] = self.clock()
            if not self.working[holder]:
                del self.working[holder]
            if self.held.get(holder):
                self.held[holder].pop()()
                self.rests[holder] = self.clock() + _REST if holder in self.lines else 0.0
            self.more.notify()

    def _next(self) -> str | None:
        if not self.lines:
            return None
        part = self._part()
        return next((holder for holder in self.lines if self.working[holder] < part and self._slot(holder)), None)

    def _slot(self, holder: str) -> bool:
        """Whether a holder may have one more job at work on this machine; whoever is alone may."""
        if self.slots is None or len(self.seen) == 1:
            return True
        if self.clock() < self.rests.get(holder, 0.0):
            return False
        slot = self.slots.take(holder, max(1, cores() // len(self.seen)))
        if slot is not None:
            self.held.setdefault(holder, []).append(slot)
        return slot is not None

    def _wait(self) -> None:
        """Wait for another job; where jobs wait for a slot, one thread looks again soon."""
        if self.slots is None or not self.lines or self.looking:
            self.more.wait()
            return
        self.looking.append(True)
        self.more.wait(_LOOK)
        self.looking.clear()

    def _part(self) -> int:
        """How many jobs of one holder may be at work: one at least, whoever else is there."""
        lately = self.clock() - _LATELY
        for holder in [holder for holder, at in self.seen.items() if at < lately and not self.working[holder]]:
            del self.seen[holder]
        return max(1, self.most // max(1, len(self.seen)))

    def end(self) -> None:
        """Let nobody take another job, and cancel those that wait."""
        with self.more:
            self.ended.append(True)
            for line in self.lines.values():
                for job, _ in line:
                    job.cancel()
            self.lines.clear()
            self.more.notify_all()


@dataclass(frozen=True)
class ThreadPool:
    """A fixed number of threads and the jobs that wait for them.

    The threads of the standard library's pool are waited for when a process ends, however long that takes.  These are
    not: what was charged stays charged, so it is safe to leave a job that was not done in time.
    """

    jobs: ThreadJobs
    threads: tuple[Thread, ...]

    @classmethod
    def of(cls, size: int, most: int | None = None, slots: Slots | None = None) -> ThreadPool:
        """Start so many threads; one holder has half of them at work, or at most so many.

        >>> pool = ThreadPool.of(2)
        >>> pool.submit(lambda: 6 * 7).result(), pool.stop(10)
        (42, True)
        """
        jobs = ThreadJobs(most or max(1, size // 2), slots)
        threads = tuple(Thread(target=_work, args=(jobs,), name="question", daemon=True) for _ in range(size))
        for thread in threads:
            thread.start()
        return cls(jobs, threads)

    def submit(self, work: Callable[[], T], holder: str = "") -> Future[T]:
        """Let a thread do the work of a holder as soon as one is free and it is that holder's turn."""
        job: Future[T] = Future()
        self.jobs.put((job, work), holder)
        return job

    def stop(self, seconds: float) -> bool:
        """Begin nothing new, wait so long for what was begun, and return whether all of it was done."""
        self.jobs.end()
        end = time.monotonic() + seconds
        for thread in self.threads:
            thread.join(max(0.0, end - time.monotonic()))
        return not any(thread.is_alive() for thread in self.threads)


def _work(jobs: ThreadJobs) -> None:
    while (waiting := jobs.take()) is not None:
        holder, (job, work) = waiting
        try:
            if job.set_running_or_notify_cancel():
                job.set_result(work())
        except BaseException as problem:  # noqa: BLE001 (whoever waits for the job is told)
            job.set_exception(problem)
        finally:
            jobs.done(holder)
