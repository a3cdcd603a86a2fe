"""Flights: the same question, asked again while it is being answered, waits for that answer."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock


@dataclass(frozen=True, eq=False)
class InFlightQueries:
    """The questions that one worker is answering, by their marks.

    The first who asks leads; whoever asks the same meanwhile is given a future that is done when the leader is.

    >>> flights = InFlightQueries()
    >>> with flights.boarding() as first, flights.boarding() as second:
    ...     first.lead("a question"), second.lead("a question").done()
    (None, False)
    >>> first.over.done(), flights.leading
    (True, {})
    """

    lock: Lock = field(default_factory=Lock)
    leading: dict[str, Future[None]] = field(default_factory=dict)

    @contextmanager
    def boarding(self) -> Iterator[InFlightQuery]:
        """Return a flight whose question may be known later; it is over at the end of the block."""
        flight = InFlightQuery(self)
        try:
            yield flight
        finally:
            flight.end()


@dataclass(frozen=True, eq=False)
class InFlightQuery:
    """What somebody asks: it leads, waits for the one that does, or is over.

    >>> flights = InFlightQueries()
    >>> with flights.boarding() as flight:
    ...     flight.lead("a question"), flight.lead("a question"), list(flights.leading)
    (None, None, ['a question'])
    >>> flight.over.done(), flights.leading
    (True, {})
    """

    flights: InFlightQueries
    over: Future[None] = field(default_factory=Future)
    led: set[str] = field(default_factory=set)

    def lead(self, mark: str) -> Future[None] | None:
        """Lead the flight of a question and return None, or return what to wait for; any thread may call it.

        When it is over nobody waits for it: then its question is answered beside others.
        """
        with self.flights.lock:
            if self.over.done():
                return None
            before = self.flights.leading.setdefault(mark, self.over)
            if before is not self.over:
                return before
            self.led.add(mark)
            return None

    def end(self) -> None:
        """Let those go on who wait for it."""
        with self.flights.lock:
            for mark in self.led:
                del self.flights.leading[mark]
            self.over.set_result(None)
