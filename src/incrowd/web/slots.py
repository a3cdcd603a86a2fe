"""Slots: how many jobs of one holder are at work on a machine at once, whichever worker of its servers does them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from incrowd.store.disk import lock_at

_SLOT = ".slot"


@dataclass(frozen=True)
class Slots:
    """Locks on files in a folder: the system frees those of a worker that ends, however it ends.

    They share the machine out, and nothing else hangs on them: where no file can be locked, everybody has a slot.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     here, there = Slots(Path(folder)), Slots(Path(folder))
    ...     leave = here.take("ann", 1)
    ...     there.take("ann", 1), [each() for each in (leave, there.take("bob", 1))]
    (None, [None, None])
    """

    folder: Path

    def take(self, holder: str, most: int) -> Callable[[], None] | None:
        """Hold one of so many slots of a holder and return what leaves it, or None if all are held."""
        from filelock import Timeout

        name = hashlib.sha256(holder.encode()).hexdigest()[:16]
        for number in range(most):
            lock = lock_at(self.folder / f"{name}-{number}{_SLOT}")
            try:
                lock.acquire(timeout=0)
            except Timeout:
                continue
            except OSError:
                return lambda: None
            return lock.release
        return None


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
