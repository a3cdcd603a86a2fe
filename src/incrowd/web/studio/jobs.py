"""Jobs: long work behind the pages, with progress and an end; a closed tab loses nothing."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from threading import Lock
from typing import Any

from incrowd.errors import IncrowdError, Interrupted, NotRefunded
from incrowd.web.concurrency import ThreadPool
from incrowd.web.logs import note

_THREADS = 3  # jobs at once; others wait
_STORED = 64  # finished jobs whose result can still be shown
_FAULT = "an unexpected error stopped this ({}). This is a bug in incrowd. Set INCROWD_TRACEBACK=1 to see the trace."


class State(StrEnum):
    """Where a job stands."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True)
class Job:
    """Work in progress or finished: rows done, its result, or why it failed."""

    id: str
    key: str
    title: str
    state: State = State.RUNNING
    done: int = 0
    total: int | None = None
    passes: int = 1
    stopping: bool = False
    started: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    result: Any = None
    problem: str | None = None

    @property
    def running(self) -> bool:
        """Whether it goes on."""
        return self.state is State.RUNNING

    def to_json(self) -> dict[str, Any]:
        """Return how far it is; nothing of what it found."""
        seconds = time.monotonic() - self.started if self.running else self.seconds
        return {
            "job": self.id,
            "title": self.title,
            "state": str(self.state),
            "done": self.done,
            "total": self.total,
            "pass": self.passes,
            "stopping": self.stopping,
            "seconds": round(seconds, 1),
            "problem": self.problem,
        }


Tell = Callable[[int, int | None], None]
Work = Callable[[Tell], Any]
"""Work is given a function to tell how far it is; that function stops the work by raising `Interrupted`."""


class Jobs:
    """The jobs of a studio, by a key that says what is done to what: the same key again is the same job.

    >>> jobs = Jobs()
    >>> job = jobs.begin("sum", "Adding", lambda tell: 6 * 7)
    >>> jobs.wait(job.id).result
    42
    """

    def __init__(self) -> None:
        self._pool = ThreadPool(_THREADS)
        self._lock = Lock()  # two clicks on one button find one job: look-up and start are one act
        self._jobs: dict[str, Job] = {}
        self._keys: dict[str, str] = {}

    def begin(self, key: str, title: str, work: Work) -> Job:
        """Start some work, unless the same is going on or done: then return that; what failed is started again."""
        with self._lock:
            before = self._jobs.get(self._keys.get(key, ""))
            if before is not None and before.state in (State.RUNNING, State.DONE):
                return before
            job = Job(secrets.token_hex(8), key, title)
            self._jobs[job.id], self._keys[key] = job, job.id
            for old in [job for job in self._jobs.values() if not job.running][: max(0, len(self._jobs) - _STORED)]:
                del self._jobs[old.id]
        self._pool.submit(lambda: self._run(job.id, work))
        return job

    def find(self, key: str) -> Job | None:
        """Return the job of a key, if there is one."""
        with self._lock:
            return self._jobs.get(self._keys.get(key, ""))

    def alias(self, key: str, job: Job) -> None:
        """Let a job be known by another key too."""
        with self._lock:
            self._keys[key] = job.id

    def get(self, id_: str) -> Job | None:
        """Return a job."""
        with self._lock:
            return self._jobs.get(id_)

    def forget(self, key: str) -> None:
        """Let the same work be done again, unless it is going on."""
        with self._lock:
            job = self._jobs.get(self._keys.get(key, ""))
            if job is not None and not job.running:
                del self._keys[key]

    def stop(self, id_: str) -> None:
        """Ask a job to stop at its next step."""
        self._update(id_, stopping=True)

    def wait(self, id_: str, seconds: float = 600.0) -> Job:
        """Return a job when it is over, or after so many seconds as it stands."""
        end = time.monotonic() + seconds
        while (job := self._jobs[id_]).running and time.monotonic() < end:
            time.sleep(0.01)
        return job

    def close(self) -> None:
        """Ask everything to stop, wait a little for it, and forget what was found."""
        for job in list(self._jobs.values()):
            if job.running:
                self.stop(job.id)
        self._pool.stop(10.0)
        with self._lock:
            self._jobs, self._keys = {id_: job for id_, job in self._jobs.items() if job.running}, {}

    def _run(self, id_: str, work: Work) -> None:
        def tell(done: int, total: int | None) -> None:
            with self._lock:
                job = self._jobs[id_]
                passes = job.passes + (done < job.done)
                self._jobs[id_] = replace(job, done=done, total=total, passes=passes)
            if job.stopping:
                raise Interrupted("stopped.")

        try:
            tell(0, None)
            self._update(id_, result=work(tell), state=State.DONE)
        except Interrupted as problem:
            self._update(id_, problem=str(problem), state=State.STOPPED)
        except IncrowdError as problem:
            self._update(id_, problem=str(problem), state=State.FAILED)
        except Exception as problem:  # noqa: BLE001 (the last resort; an exception's own text may hold data)
            spent = [words for words in getattr(problem, "__notes__", ()) if isinstance(words, NotRefunded)]
            note("job", fault=type(problem).__name__)
            text = " ".join([_FAULT.format(type(problem).__name__), *spent])
            self._update(id_, problem=text, state=State.FAILED)

    def _update(self, id_: str, **values: Any) -> None:
        with self._lock:
            job = self._jobs.get(id_)
            if job is not None and job.running:
                self._jobs[id_] = replace(job, seconds=time.monotonic() - job.started, **values)
