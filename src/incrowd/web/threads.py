"""ThreadPool: the threads that answer questions; work that never ends does not keep the process from ending."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition, Thread
from typing import Any, TypeVar

T = TypeVar("T")

_Job = tuple["Future[Any]", Callable[[], Any]]


@dataclass(frozen=True, eq=False)
class Jobs:
    """The jobs that wait, in a line for each holder; the lines take turns.

    So whoever has many jobs waiting delays another by one of them, not by all.

    >>> jobs = Jobs()
    >>> for holder in ("ann", "ann", "ann", "bob"):
    ...     jobs.put((Future(), lambda: None), holder)
    >>> list(jobs.lines), jobs.take() is None, list(jobs.lines), jobs.take() is None, list(jobs.lines)
    (['ann', 'bob'], False, ['bob', 'ann'], False, ['ann'])
    """

    lines: OrderedDict[str, deque[_Job]] = field(default_factory=OrderedDict)
    more: Condition = field(default_factory=Condition)
    ended: list[bool] = field(default_factory=list)

    def put(self, job: _Job, holder: str) -> None:
        """Let a job wait in the line of its holder; after the end it is cancelled."""
        with self.more:
            if self.ended:
                job[0].cancel()
                return
            self.lines.setdefault(holder, deque()).append(job)
            self.more.notify()

    def take(self) -> _Job | None:
        """Wait for the next job and return it; None at the end."""
        with self.more:
            while not self.lines:
                if self.ended:
                    return None
                self.more.wait()
            holder, line = self.lines.popitem(last=False)
            job = line.popleft()
            if line:
                self.lines[holder] = line
            return job

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

    jobs: Jobs
    threads: tuple[Thread, ...]

    @classmethod
    def of(cls, size: int) -> ThreadPool:
        """Start so many threads.

        >>> pool = ThreadPool.of(2)
        >>> pool.submit(lambda: 6 * 7).result(), pool.stop(10)
        (42, True)
        """
        jobs = Jobs()
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


def _work(jobs: Jobs) -> None:
    while (waiting := jobs.take()) is not None:
        job, work = waiting
        if job.set_running_or_notify_cancel():
            try:
                job.set_result(work())
            except BaseException as problem:  # noqa: BLE001 (whoever waits for the job is told)
                job.set_exception(problem)
