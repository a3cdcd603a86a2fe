"""Watch: whether a SQLite file was written since somebody looked last, told without waiting."""

from __future__ import annotations

import os
import sqlite3
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

Sign = tuple[int, ...]

_TICK = 50_000_000
"""Nanoseconds within which two changes of a file may bear the same time."""


@dataclass(frozen=True, eq=False)
class Watch:
    """One session with a file that stays open to be asked for its version; a process that was forked off has its own.

    SQLite's `data_version` is another number after each commit of somebody else, and its users here never write.  What
    is changed behind SQLite's back shows in the times that the system keeps of the file.
    """

    opened: list[int] = field(default_factory=lambda: [0])
    """How many sessions were opened: versions of two sessions cannot be compared."""
    session: list[tuple[int, sqlite3.Connection]] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        weakref.finalize(self, _close, self.session)

    def sign(self, path: Path, connect: Callable[[], sqlite3.Connection]) -> Sign | None:
        """Return numbers that are others after every change of the file; None where that cannot be told at once."""
        with self.lock:
            try:
                ((version,),) = self._open(connect).execute("PRAGMA data_version").fetchall()
                found = path.lstat()
            except (sqlite3.Error, OSError):  # it is being written, or gone: whoever reads it is told
                _close(self.session)
                return None
        if not 0 <= found.st_ctime_ns < time.time_ns() - _TICK:
            return None
        times = found.st_mtime_ns, found.st_ctime_ns
        return self.opened[0], version, found.st_dev, found.st_ino, found.st_size, *times

    def _open(self, connect: Callable[[], sqlite3.Connection]) -> sqlite3.Connection:
        if not self.session or self.session[0][0] != os.getpid():
            self.session[:] = [(os.getpid(), connect())]
            self.opened[0] += 1
            self.session[0][1].execute("PRAGMA busy_timeout = 0")
        return self.session[0][1]


def _close(session: list[tuple[int, sqlite3.Connection]]) -> None:
    while session:
        process, connection = session.pop()
        if process == os.getpid():
            connection.close()
