"""Interruption: work that is stopped at its time limit, and whether it was interrupted from outside."""

from __future__ import annotations

import heapq
import itertools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import TIMEOUT_MAX, Condition, Thread

_DUCKDB = "Query interrupted"
_AGAIN = 0.1
"""Seconds after which work that continues is stopped again."""


def is_interruption(error: BaseException) -> bool:
    """Whether an error is Ctrl-C or a signal; DuckDB raises a plain error with its own text instead.

    >>> is_interruption(KeyboardInterrupt()), is_interruption(RuntimeError("Query interrupted"))
    (True, True)
    >>> is_interruption(RuntimeError("no such thing"))
    False
    """
    return isinstance(error, KeyboardInterrupt) or (type(error) is RuntimeError and str(error) == _DUCKDB)


@dataclass(order=True)
class Deadline:
    """When `stop` is called, repeatedly, unless the work has ended."""

    end: float
    number: int
    stop: Callable[[], object] | None = field(compare=False)


@dataclass(eq=False)
class Deadlines:
    """Work with time limits, stopped by one thread, which the first deadline starts.

    >>> from threading import Event
    >>> late, early = Event(), Event()
    >>> with Deadlines().within(0.01, late.set):
    ...     late.wait(60)
    True
    >>> with Deadlines().within(60, early.set):
    ...     early.is_set()
    False
    """

    waiting: list[Deadline] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)
    more: Condition = field(default_factory=Condition)
    thread: Thread | None = None

    @contextmanager
    def within(self, seconds: float, stop: Callable[[], object]) -> Iterator[None]:
        """Call `stop` if the block takes longer than `seconds`, repeatedly until it ends."""
        own = Deadline(time.monotonic() + seconds, next(self.numbers), stop)
        with self.more:
            if self.thread is None:
                thread = Thread(target=self._watch, name="deadlines", daemon=True)
                thread.start()  # if this fails, the next deadline tries again
                self.thread = thread
            heapq.heappush(self.waiting, own)
            if self.waiting[0] is own:
                self.more.notify()
        try:
            yield
        finally:
            with self.more:
                own.stop = None  # after the block nothing is stopped

    def _watch(self) -> None:
        while True:
            with self.more:
                while self.waiting and (self.waiting[0].stop is None or self.waiting[0].end <= time.monotonic()):
                    late = heapq.heappop(self.waiting)
                    if late.stop is not None:
                        with suppress(Exception):  # one failure must not keep others from being stopped
                            late.stop()
                        late.end = time.monotonic() + _AGAIN  # the first call may have come before the work began
                        heapq.heappush(self.waiting, late)
                self.more.wait(min(self.waiting[0].end - time.monotonic(), TIMEOUT_MAX) if self.waiting else None)


_DEADLINES = [Deadlines()]
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _DEADLINES.__setitem__(0, Deadlines()))  # threads do not survive a fork


@contextmanager
def within(seconds: float, stop: Callable[[], object]) -> Iterator[None]:
    """Call `stop`, which must not block, if the block takes longer than `seconds`, repeatedly until it ends."""
    with _DEADLINES[0].within(seconds, stop):
        yield
