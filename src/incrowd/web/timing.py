"""Timing: work shows at fixed times only, so that how long it took tells little about rows."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from functools import cache
from typing import TypeVar

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


async def pace_reply(
    work: Callable[[Callable[[], None]], T], pool: ThreadPool, settings: Settings
) -> T | NotStarted | NotFinished:
    """Do the work in a thread and return its outcome, or that there is none.

    `work` gets a call that waits, and must make it when it knows what rows can tell, before anything of it can be seen:
    a log, a counter, a list of releases or the next question that gets its thread would betray the moment just as
    well as the reply.  It must not raise: whatever it finds is an outcome, and all outcomes wait alike.
    """
    start = time.monotonic()
    job = pool.submit(lambda: work(pause(start, settings.pace)))
    waiting = asyncio.wrap_future(job)
    done, _ = await asyncio.wait({waiting}, timeout=_patience(settings))
    if done:
        return await waiting
    return NotStarted() if job.cancel() else NotFinished()


def _patience(settings: Settings) -> float:
    return bucket(settings.longest, settings.pace) + _WRITING if settings.pace else settings.longest
