"""Clerk: a thread to which things are handed that are to be written, and which writes all that wait at once."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import Generic, TypeVar

T = TypeVar("T")
_LOOK = 0.5
"""Seconds after which whoever waits looks whether anybody still writes."""


@dataclass(frozen=True, eq=False)
class BatchWriter(Generic[T]):
    """Whoever hands something over goes on; what comes while something is being written is written together after it.

    `write` tells by itself what it could not write.  The thread is begun by the first thing, and does not keep a
    process from ending.

    >>> written = list[list[int]]()
    >>> clerk = BatchWriter(written.append)
    >>> clerk.hand(1), clerk.settle(), clerk.hand(2), clerk.stop(10), written
    (None, None, None, True, [[1], [2]])
    """

    write: Callable[[list[T]], object]
    waiting: SimpleQueue[T | Event] = field(default_factory=SimpleQueue)
    threads: list[Thread] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)
    end: Event = field(default_factory=Event)

    def hand(self, thing: T) -> None:
        """Let something be written soon; after the end, at once."""
        if self.end.is_set():
            self.write([thing])
            return
        self.waiting.put(thing)
        if not self.threads:
            self._begin()

    def settle(self) -> None:
        """Wait until all that was handed over so far was written."""
        if self.threads:
            done = Event()
            self.waiting.put(done)
            while not done.wait(_LOOK) and self.threads[0].is_alive():
                pass

    def stop(self, seconds: float | None = None) -> bool:
        """Write what waits, then nothing more; return whether that was done within so many seconds."""
        self.end.set()
        self.waiting.put(self.end)
        for thread in self.threads:
            thread.join(seconds)
        return not any(thread.is_alive() for thread in self.threads)

    def _begin(self) -> None:
        with self.lock:
            if not self.threads:
                thread = Thread(target=self._write_on, name="clerk", daemon=True)
                thread.start()
                self.threads.append(thread)

    def _write_on(self) -> None:
        while not (self.end.is_set() and self.waiting.empty()):
            found = [self.waiting.get()]
            while not self.waiting.empty():
                found.append(self.waiting.get())
            things = [each for each in found if not isinstance(each, Event)]
            try:
                if things:
                    self.write(things)
            except Exception:  # noqa: BLE001 (told as that of a thread that ended, but this one goes on)
                threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))
            for each in found:
                if isinstance(each, Event):
                    each.set()
