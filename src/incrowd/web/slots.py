"""Slots: locks on files, by which workers share the processors of a machine among the users whom they know."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from incrowd.store.disk import lock_at

ACTIVE = 1.0
"""Seconds for which threads stay free for a user whose last job has ended."""
_FORGOTTEN = 60.0
"""Seconds after which the file is removed by which a user was announced to other workers."""


@dataclass(frozen=True)
class Slots:
    """Locks on files, by which workers share the processors of a machine; the system frees those of a dead worker.

    Files beside them say which users were busy lately: a client whose connection stays open is known to one worker
    alone.  Nothing else depends on all these: where no file can be locked, every job has a slot.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     one, other = Slots(Path(folder)), Slots(Path(folder))
    ...     release = one.take("ann", 1)
    ...     other.take("ann", 1), release(), other.take("bob", 1)()
    (None, None, None)
    """

    folder: Path
    clock: Callable[[], float] = time.time

    def take(self, user: str, most: int) -> Callable[[], None] | None:
        """Hold one of a user's slots and return what releases it, or None if all are held."""
        from filelock import Timeout

        for number in range(most):
            lock = lock_at(self.folder / f"{_hashed(user)}-{number}.slot")
            try:
                lock.acquire(timeout=0)
            except Timeout:  # another process has this slot
                continue
            except OSError:
                return lambda: None
            return lock.release
        return None

    def others(self, here: Mapping[str, bool]) -> int:
        """Announce the users here who are due, and return how many others were busy lately at other workers."""
        own, now = {f"{_hashed(user)}.user": due for user, due in here.items()}, self.clock()
        other = 0
        try:
            for name, due in own.items():
                if due:
                    _touch(self.folder / name, now)
            with os.scandir(self.folder) as files:
                for file in files:
                    if file.name.endswith(".user") and file.name not in own:
                        age = now - file.stat().st_mtime
                        other += abs(age) < ACTIVE
                        if age > _FORGOTTEN:
                            Path(file).unlink(missing_ok=True)
        except OSError:  # without announcements workers share less evenly
            return 0
        return other


def _hashed(user: str) -> str:
    return hashlib.sha256(user.encode()).hexdigest()[:16]


def _touch(path: Path, moment: float) -> None:
    """Set the time of a file, and make it if need be; its owner alone may read it."""
    try:
        os.utime(path, (moment, moment))
    except FileNotFoundError:
        path.touch(0o600)
        os.utime(path, (moment, moment))


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
