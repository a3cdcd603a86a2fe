"""Group commit: a commit waits for the disk however small it is, so everything that waits is written in one go.

A `CommitQueue` serves callers who wait until their own change is durable.  A `BatchWriter` serves callers who go on.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Condition, Event, Lock, Thread
from typing import Any, Generic, TypeVar

from incrowd.errors import IncrowdError, LedgerUnavailable
from incrowd.store.transaction import Writer

T = TypeVar("T")

_INTERRUPTED = "the transaction that this change was part of was interrupted. Nothing is released without it."
_OWN_FAILURES = (IncrowdError, ValueError, TypeError, LookupError, AssertionError)
_ALIVE_CHECK = 0.5
"""Seconds between two checks that the writing thread is alive: a process that was forked off does not have it."""


class ChangeFailed(Exception):
    """One change of several failed for a reason of its own: the transaction is undone, the others are tried again."""


@dataclass(eq=False)
class QueuedChange:
    """One caller's change to a chain, and its outcome."""

    change: Callable[[Writer], Any]
    result: Any = None
    error: BaseException | None = None
    done: bool = False
    woken: Event = field(default_factory=Event)
    """Set when the change is done, or when its caller is to lead."""

    def apply(self, writer: Writer) -> None:
        """Apply the change.  A failure of the database concerns the whole transaction, any other this change alone."""
        try:
            self.result = self.change(writer)
        except LedgerUnavailable:
            raise
        except _OWN_FAILURES as problem:
            self.error = problem
            raise ChangeFailed from problem

    def finish(self) -> None:
        """Wake the caller, who finds the outcome."""
        self.done = True
        self.woken.set()


class CommitQueue:
    """The changes that wait for one chain, in the order in which they came.

    The caller at the head of the queue leads: it commits all changes that wait by then.  The others sleep until their
    change is done or it is their turn to lead.  A leader always appoints the next one when it leaves, however it
    leaves, so no caller waits for a wake-up that nobody sends.
    """

    def __init__(self) -> None:
        # Guards `waiting` and `leader`.  It is never held during a commit, so that callers can queue up meanwhile.
        self._lock = Lock()
        self.waiting: deque[QueuedChange] = deque()
        self._leader: QueuedChange | None = None

    def run(self, change: Callable[[Writer], Any], commit: Callable[[list[QueuedChange]], None]) -> Any:
        """Let `commit` apply a change together with all others that wait by then, and return the change's result."""
        own = QueuedChange(change)
        with self._lock:
            self.waiting.append(own)
            if self._leader is None:
                self._appoint_leader()
        try:
            own.woken.wait()
            if not own.done:
                self._lead(own, commit)
        finally:
            with self._lock:
                if own in self.waiting:  # interrupted while it waited
                    self.waiting.remove(own)
                if self._leader is own:
                    self._appoint_leader()
        if own.error is not None:
            raise own.error
        return own.result

    def take_waiting(self, changes: list[QueuedChange]) -> None:
        """Move all changes that wait by now to the end of a list."""
        with self._lock:
            changes.extend(self.waiting)
            self.waiting.clear()

    def _appoint_leader(self) -> None:
        """Wake the first of those who wait, so that no later caller overtakes; the caller holds the lock."""
        self._leader = self.waiting[0] if self.waiting else None
        if self._leader is not None:
            self._leader.woken.set()

    def _lead(self, own: QueuedChange, commit: Callable[[list[QueuedChange]], None]) -> None:
        changes = list[QueuedChange]()
        self.take_waiting(changes)
        try:
            while changes:
                try:
                    commit(changes)
                    break
                except ChangeFailed:
                    changes = _without_failed(changes)
        except BaseException as problem:
            for change in changes:
                change.error = problem if change is own else _failure_of_others(problem)
            raise
        finally:
            for change in changes:
                change.finish()


def _without_failed(changes: list[QueuedChange]) -> list[QueuedChange]:
    """Wake the callers whose change failed, and return the other changes."""
    for change in changes:
        if change.error is not None:
            change.finish()
    return [change for change in changes if not change.done]


def _failure_of_others(problem: BaseException) -> LedgerUnavailable:
    """Return what the other callers are told: an error of their own, since an exception belongs to one thread."""
    return type(problem)(str(problem)) if isinstance(problem, LedgerUnavailable) else LedgerUnavailable(_INTERRUPTED)


class BatchWriter(Generic[T]):
    """A thread that writes items; those that arrive while it writes are written together afterwards.

    `write` reports by itself what it cannot write.  The thread starts with the first item, and does not keep the
    process from ending.

    >>> written = list[list[int]]()
    >>> writer = BatchWriter(written.append)
    >>> writer.submit(1), writer.settle(), writer.submit(2), writer.stop(10), written
    (None, None, None, True, [[1], [2]])
    """

    def __init__(self, write: Callable[[list[T]], object]) -> None:
        self._write = write
        # Guards everything below, and is notified of every change of it.  It is never held while `write` runs.
        self._changed = Condition()
        self._pending: list[T] = []
        self._submitted = 0
        self._written = 0
        self._stopped = False
        self._thread: Thread | None = None

    def submit(self, item: T) -> None:
        """Let an item be written soon; after `stop`, write it now, because no thread would."""
        with self._changed:
            if not self._stopped:
                self._pending.append(item)
                self._submitted += 1
                self._start()
                self._changed.notify_all()
                return
        self._write([item])

    def settle(self) -> None:
        """Wait until all items that were submitted so far are written."""
        with self._changed:
            submitted = self._submitted
            while self._written < submitted and self._thread is not None and self._thread.is_alive():
                self._changed.wait(_ALIVE_CHECK)

    def stop(self, seconds: float | None = None) -> bool:
        """Write what is pending and end; return whether that was done within the time."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
            thread = self._thread
        if thread is None:
            return True
        thread.join(seconds)
        return not thread.is_alive()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._run, name="batch writer", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._pending and not self._stopped:
                    self._changed.wait()
                items, self._pending = self._pending, []
            if not items:
                return
            try:
                self._write(items)
            except Exception:  # noqa: BLE001 (reported as if it had ended the thread, but later items are written)
                threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))
            with self._changed:
                self._written += len(items)
                self._changed.notify_all()
