"""Turns: how many questions are in hand at once, of one holder and in all; whoever is too many is told at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock


class TooManyAtOnce(Exception):
    """A holder has as many questions in hand as he may: nothing was asked and nothing charged."""


class ServerBusy(Exception):
    """The server has as many questions in hand as it can: nothing was asked and nothing charged."""


@dataclass(frozen=True)
class ConcurrencyLimit:
    """So many questions of one holder, and so many in all, are in hand at one worker, those that wait included.

    >>> turns = ConcurrencyLimit(each=1, all=5)
    >>> with turns.of("ann"), turns.of("bob"), turns.of("ann"):
    ...     pass
    Traceback (most recent call last):
    incrowd.web.turns.TooManyAtOnce
    """

    each: int
    all: int
    lock: Lock = field(default_factory=Lock)
    inside: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def of(self, holder: str) -> Iterator[None]:
        """Take a turn until the end of the block, or raise at once."""
        with self.lock:
            if self.inside[holder] >= self.each:
                raise TooManyAtOnce
            if self.inside.total() >= self.all:
                raise ServerBusy
            self.inside[holder] += 1
        try:
            yield
        finally:
            with self.lock:
                self.inside[holder] -= 1
                if not self.inside[holder]:
                    del self.inside[holder]
