"""ThreadPool: the threads that answer questions; work that never ends does not keep the process from ending."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")

_Job = tuple["Future[Any]", Callable[[], Any]]


@dataclass(frozen=True)
class ThreadPool:
    """A fixed number of threads and the jobs that wait for them.

    The threads of the standard library's pool are waited for when a process ends, however long that takes.  These are
    not: what was charged stays charged, so it is safe to leave a job that was not done in time.
    """

    jobs: SimpleQueue[_Job | None]
    threads: tuple[Thread, ...]

    @classmethod
    def of(cls, size: int) -> ThreadPool:
        """Start so many threads.

        >>> pool = ThreadPool.of(2)
        >>> pool.submit(lambda: 6 * 7).result(), pool.stop(10)
        (42, True)
        """
        jobs: SimpleQueue[_Job | None] = SimpleQueue()
        threads = tuple(Thread(target=_work, args=(jobs,), name="question", daemon=True) for _ in range(size))
        for thread in threads:
            thread.start()
        return cls(jobs, threads)

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Let a thread do the work as soon as one is free."""
        job: Future[T] = Future()
        self.jobs.put((job, work))
        return job

    def stop(self, seconds: float) -> bool:
        """Begin nothing new, wait so long for what was begun, and return whether all of it was done."""
        with suppress(Empty):
            while True:
                waiting = self.jobs.get_nowait()
                if waiting is not None:
                    waiting[0].cancel()
        for _ in self.threads:
            self.jobs.put(None)
        end = time.monotonic() + seconds
        for thread in self.threads:
            thread.join(max(0.0, end - time.monotonic()))
        return not any(thread.is_alive() for thread in self.threads)


def _work(jobs: SimpleQueue[_Job | None]) -> None:
    while (waiting := jobs.get()) is not None:
        job, work = waiting
        if job.set_running_or_notify_cancel():
            try:
                job.set_result(work())
            except BaseException as problem:  # noqa: BLE001 (whoever waits for the job is told)
                job.set_exception(problem)
