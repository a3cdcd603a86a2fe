"""Pace: replies leave at fixed times only, so that how long the work took tells little about rows."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import TypeVar

from incrowd.web.crew import Crew
from incrowd.web.settings import Settings

T = TypeVar("T")


class NotStarted(Exception):
    """The work was still waiting for its turn when the time was over: nothing was done."""


class NotFinished(Exception):
    """The work was not done when the time was over; it goes on, and its answer is kept."""


def bucket(elapsed: float, pace: float) -> float:
    """Return when a reply leaves, in seconds after the request came: the pace, or twice, four times, … of it.

    >>> bucket(0.1, 0.5), bucket(0.6, 0.5), bucket(1.7, 0.5), bucket(3.0, 0.0)
    (0.5, 1.0, 2.0, 3.0)
    """
    if elapsed <= pace or pace == 0.0:
        return max(elapsed, pace)
    return float(pace * 2.0 ** math.ceil(math.log2(elapsed / pace)))


async def paced(work: Callable[[], T], crew: Crew, settings: Settings) -> T | NotStarted | NotFinished:
    """Do the work in a thread and return its outcome, or that there is none, when the next bucket is full.

    `work` must not raise: whatever it finds is an outcome, and all outcomes wait alike.
    """
    start = time.monotonic()
    job = crew.submit(work)
    waiting = asyncio.wrap_future(job)
    done, _ = await asyncio.wait({waiting}, timeout=settings.longest)
    outcome: T | NotStarted | NotFinished
    if done:
        outcome = await waiting
    else:
        outcome = NotStarted() if job.cancel() else NotFinished()
    await asyncio.sleep(bucket(time.monotonic() - start, settings.pace) - (time.monotonic() - start))
    return outcome
