"""Timing: work shows at fixed times only, so that how long it took tells little about rows."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from incrowd.errors import QuestionRefused
from incrowd.web.logs import note
from incrowd.web.settings import Settings
from incrowd.web.threads import ThreadPool

T = TypeVar("T")

_WRITING = 10.0  # seconds for the books, after the last bucket is full


class NotStarted(Exception):
    """The work was still waiting for its turn when the time was over: nothing was done."""


class NotFinished(Exception):
    """The work was not done when the time was over; it goes on, and its answer is kept."""


def bucket(elapsed: float, pace: float) -> float:
    """Return when work shows, in seconds after the request came: the pace, or twice, four times, … of it.

    >>> bucket(0.1, 0.5), bucket(0.6, 0.5), bucket(1.7, 0.5), bucket(3.0, 0.0)
    (0.5, 1.0, 2.0, 3.0)
    """
    if elapsed <= pace or pace == 0.0:
        return max(elapsed, pace)
    return float(pace * 2.0 ** math.ceil(math.log2(elapsed / pace)))


def pause(start: float, pace: float) -> Callable[[], None]:
    """Return a call that waits until the bucket is full into which this moment falls; called again, it does nothing.

    >>> wait = pause(time.monotonic(), 0.0)
    >>> wait(), wait()
    (None, None)
    """

    @cache
    def waiting() -> None:
        elapsed = time.monotonic() - start
        time.sleep(max(0.0, bucket(elapsed, pace) - elapsed))

    return waiting


@dataclass(frozen=True)
class Pacing:
    """When a request came, and by which settings its outcome shows."""

    start: float
    settings: Settings

    def after(self, steps: int) -> Callable[[], None]:
        """Return a call that waits until the outcome of so many steps of work shows; refuse what would take too long.

        The time hangs on the question and on what is declared.  Work that is not done by then, because the machine has
        more to do than it should, shows after twice that time, and so on.
        """
        return pause(self.start, shown_after(steps, self.settings))


def shown_after(steps: int, settings: Settings) -> float:
    """Return after how many seconds the outcome of so many steps of work shows.

    >>> shown_after(10, Settings(pace=0.5)), shown_after(700, Settings(pace=0.5, speed=1000))
    (0.5, 1.0)
    >>> shown_after(10**6, Settings(speed=1000))
    Traceback (most recent call last):
    incrowd.errors.QuestionRefused: this question can take longer than the 64 seconds that are waited here: ...
    """
    if steps > settings.longest * settings.speed:
        raise QuestionRefused(
            f"this question can take longer than the {settings.longest:g} seconds that are waited here: join fewer "
            "tables, shorten texts by LEFT(x, n), ask for less at once, or let the owner of the data declare how many "
            "rows there are."
        )
    return bucket(steps / settings.speed, settings.pace) if settings.pace else 0.0


async def pace_reply(work: Callable[[Pacing], T], pool: ThreadPool, settings: Settings) -> T | NotStarted | NotFinished:
    """Do the work in a thread and return its outcome, or that there is none.

    `work` gets what it waits by, and must wait when it knows what rows can tell, before anything of it can be seen:
    a log, a counter, a list of releases or the next question that gets its thread would betray the moment just as
    well as the reply.  It must not raise: whatever it finds is an outcome, and all outcomes wait alike.
    """
    pacing = Pacing(time.monotonic(), settings)
    job = pool.submit(lambda: work(pacing))
    waiting = asyncio.wrap_future(job)
    done, _ = await asyncio.wait({waiting}, timeout=_patience(settings))
    if done:
        return await waiting
    if job.cancel():
        return NotStarted()
    note("fault", fault=NotFinished.__name__)
    return NotFinished()


def _patience(settings: Settings) -> float:
    return bucket(settings.longest, settings.pace) + _WRITING if settings.pace else settings.longest
