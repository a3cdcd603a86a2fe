"""Sessions with one SQLite file that stay open, and what tells whether the file was written since the last look."""

from __future__ import annotations

import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from incrowd.errors import LedgerLocked

FileVersion = tuple[int, ...]

_IDLE = 2
"""Sessions of each kind that stay open."""
_TICK = 50_000_000
"""Nanoseconds within which two changes of a file may have the same time."""
_PAUSE = 0.001
"""Seconds for which a process that has just written leaves the file to others: longer than they sleep between tries."""


class Sessions:
    """Open sessions that wait for a transaction; a process that was forked off opens its own."""

    def __init__(self) -> None:
        # No lock: `append` and `pop` of a list are atomic, and a session is in the list or with one thread.
        self.idle: list[tuple[int, sqlite3.Connection]] = []
        weakref.finalize(self, _close_all, self.idle)

    def take(self) -> sqlite3.Connection | None:
        """Return a session that is open and free, if there is one."""
        with suppress(IndexError):  # no idle session is left; popping is atomic, so threads need no lock
            while True:
                process, session = self.idle.pop()
                if process == os.getpid():
                    return session
        return None

    def give(self, session: sqlite3.Connection) -> None:
        """Let a session wait for its next transaction, unless enough wait already."""
        if len(self.idle) < _IDLE:
            self.idle.append((os.getpid(), session))
        else:
            session.close()


class WriteTurn:
    """Lets the threads of this process write one after the other, and leaves a pause for other processes.

    Threads that SQLite lets wait try at random, some of them for long.  Of two processes that write all the time, one
    would wait for long without the pause.
    """

    def __init__(self) -> None:
        self.lock = Lock()  # held during a whole transaction; it also guards `_last`
        self._last = 0.0

    @contextmanager
    def taken(self, seconds: float, busy: Callable[[], LedgerLocked]) -> Iterator[None]:
        """Hold the turn until the end of the block; after too many seconds raise what `busy` returns."""
        if not self.lock.acquire(timeout=seconds):
            raise busy()
        try:
            time.sleep(max(0.0, min(_PAUSE, self._last + _PAUSE - time.monotonic())))
            yield
        finally:
            self._last = time.monotonic()
            self.lock.release()


class FileWatch:
    """One session that stays open to be asked for the version of its file.

    SQLite's `data_version` changes with each commit of another session, and this one never writes.  A change that does
    not go through SQLite shows in the times that the system keeps of the file.
    """

    def __init__(self) -> None:
        self._lock = Lock()  # one thread at a time uses the session
        self._sessions = Sessions()
        self._opened = 0  # part of a version, because versions of two sessions cannot be compared

    def version(self, path: Path, connect: Callable[[], sqlite3.Connection]) -> FileVersion | None:
        """Return numbers that change with every change of the file; None where that is not known without waiting."""
        with self._lock:
            session = self._sessions.take()
            try:
                if session is None:
                    session = self._open(connect)
                ((version,),) = session.execute("PRAGMA data_version").fetchall()
                status = path.lstat()
            except (sqlite3.Error, OSError):  # it is being written, or gone: its readers report that
                if session is not None:
                    session.close()
                return None
            self._sessions.give(session)
            opened = self._opened
        if not 0 <= status.st_ctime_ns < time.time_ns() - _TICK:
            return None
        times = status.st_mtime_ns, status.st_ctime_ns
        return opened, version, status.st_dev, status.st_ino, status.st_size, *times

    def _open(self, connect: Callable[[], sqlite3.Connection]) -> sqlite3.Connection:
        session = connect()
        self._opened += 1
        session.execute("PRAGMA busy_timeout = 0")
        return session


def _close_all(idle: list[tuple[int, sqlite3.Connection]]) -> None:
    while idle:
        process, session = idle.pop()
        if process == os.getpid():
            session.close()
