"""Limiter: how often somebody may knock, counted by one worker for itself."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

_MOST_KEYS = 10_000


@dataclass(frozen=True)
class Limiter:
    """A bucket of so many knocks for each key, refilled evenly within a minute; the longest unused are forgotten.

    >>> limiter = Limiter(2, clock=lambda: 0.0)
    >>> limiter.wait("ann"), limiter.wait("ann"), limiter.wait("ann"), limiter.wait("bob")
    (0.0, 0.0, 30.0, 0.0)
    """

    per_minute: int
    clock: Callable[[], float] = time.monotonic
    lock: Lock = field(default_factory=Lock)
    seen: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def wait(self, key: str) -> float:
        """Count a knock and return 0, or return how many seconds to wait and count nothing."""
        with self.lock:
            now = self.clock()
            left, at = self.seen.pop(key, (float(self.per_minute), now))
            left = min(float(self.per_minute), left + (now - at) * self.per_minute / 60.0)
            allowed = left >= 1.0
            self.seen[key] = (left - 1.0 if allowed else left, now)
            while len(self.seen) > _MOST_KEYS:
                self.seen.popitem(last=False)
            return 0.0 if allowed else (1.0 - left) * 60.0 / self.per_minute
