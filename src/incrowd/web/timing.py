"""Timing: work shows at fixed times only, so that how long it took tells little about rows."""

from __future__ import annotations

import asyncio
import math
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeVar

from incrowd.errors import QuestionRefused
from incrowd.web.logs import note
from incrowd.web.settings import Settings

T = TypeVar("T")

_WRITING = 10.0  # seconds for the books, after the last bucket is full


class NotStarted(Exception):
    """The work was still waiting for its turn when the time was over: nothing was done."""


class TimedOut(Exception):
    """The work was not done when the time was over; it goes on, and its answer is kept."""


def bucket(elapsed: float, pace: float) -> float:
    """Return when work shows, in seconds after the request came: the pace, or twice, four times, … of it.

    >>> bucket(0.1, 0.5), bucket(0.6, 0.5), bucket(1.7, 0.5), bucket(3.0, 0.0)
    (0.5, 1.0, 2.0, 3.0)
    """
    if elapsed <= pace or pace == 0.0:
        return max(elapsed, pace)
    return float(pace * 2.0 ** math.ceil(math.log2(elapsed / pace)))


def shown_after(steps: int, settings: Settings) -> float:
    """Return after how many seconds the outcome of so many steps of work shows.

    >>> shown_after(10, Settings(pace=0.5)), shown_after(700, Settings(pace=0.5, speed=1000))
    (0.5, 1.0)
    >>> shown_after(10**6, Settings(speed=1000))
    Traceback (most recent call last):
    incrowd.errors.QuestionRefused: what is asked can take longer than the 64 seconds that are waited here: ...
    """
    if steps > settings.longest * settings.speed:
        raise QuestionRefused(
            f"what is asked can take longer than the {settings.longest:g} seconds that are waited here: join fewer "
            "tables, shorten texts by LEFT(x, n), ask for less at once, or let the owner of the data declare how many "
            "rows there are."
        )
    return bucket(steps / settings.speed, settings.pace) if settings.pace else 0.0


@dataclass(frozen=True)
class ReplyTimer:
    """When a request came, and by which settings its outcome shows."""

    settings: Settings
    start: float = field(default_factory=time.monotonic)

    async def done(self, job: Future[T]) -> T:
        """Wait for the job of a thread and return its outcome; raise NotStarted or NotFinished if that takes too long.

        What was not begun by then never is.
        """
        waiting = asyncio.wrap_future(job)
        left = self.start + _patience(self.settings) - time.monotonic()
        done, _ = await asyncio.wait({waiting}, timeout=max(0.0, left))
        if done:
            return waiting.result()
        if job.cancel():
            raise NotStarted
        waiting.add_done_callback(lambda late: late.cancelled() or late.exception())  # nobody waits for it any more
        note("fault", fault=TimedOut.__name__)
        raise TimedOut

    async def pause(self, steps: int) -> None:
        """Wait until the outcome of so many steps of work shows, in the event loop: no thread waits along.

        The time hangs on the question and on what is declared.  Work that is not done by then, because the machine has
        more to do than it should, shows after twice that time, and so on.
        """
        elapsed = time.monotonic() - self.start
        await asyncio.sleep(max(0.0, bucket(elapsed, shown_after(steps, self.settings)) - elapsed))


def _patience(settings: Settings) -> float:
    return bucket(settings.longest, settings.pace) + _WRITING if settings.pace else settings.longest
