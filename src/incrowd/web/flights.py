"""Flights: the same question, asked again while it is being answered, waits for that answer."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock


@dataclass(frozen=True, eq=False)
class Flights:
    """The questions that one worker is answering, by their marks.

    The first who asks leads; whoever asks the same meanwhile is given a future that is done when the leader is.

    >>> flights = Flights()
    >>> with flights.of("a question") as first, flights.of("a question") as second:
    ...     first is None, second.done()
    (True, False)
    >>> second.done()
    True
    """

    lock: Lock = field(default_factory=Lock)
    leading: dict[str, Future[None]] = field(default_factory=dict)

    @contextmanager
    def of(self, mark: str) -> Iterator[Future[None] | None]:
        """Lead the flight of a question until the end of the block, or get what to wait for."""
        own = Future[None]()
        with self.lock:
            before = self.leading.setdefault(mark, own)
        if before is not own:
            yield before
            return
        try:
            yield None
        finally:
            with self.lock:
                del self.leading[mark]
            own.set_result(None)
