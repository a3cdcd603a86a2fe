"""Line: works that wait for the end of a chain; whoever's turn it is does them all, in one transaction.

A commit waits for the disk, however little is in it.  Works that arrive while one is being committed are committed
together after it: each of them returns only when what it added is durable.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Any

from incrowd.errors import IncrowdError, LedgerUnavailable
from incrowd.store.transaction import Writer

_LOST = "what waited for the ledger together with this was interrupted. Nothing is released without it."
_OWN = (IncrowdError, ValueError, TypeError, LookupError, AssertionError)


class OneFailed(Exception):
    """One of several works failed for a reason of its own: the transaction is undone, and the others are done again."""


@dataclass(eq=False)
class Waiting:
    """One work, and what came of it."""

    work: Callable[[Writer], Any]
    result: Any = None
    error: BaseException | None = None
    done: bool = False
    woken: Event = field(default_factory=Event)
    """Set when the work was done, or when it is this one's turn to lead."""

    def attempt(self, writer: Writer) -> None:
        """Do the work; whatever is wrong with the database concerns all that wait, anything else this one alone."""
        try:
            self.result = self.work(writer)
        except LedgerUnavailable:
            raise
        except _OWN as problem:
            self.error = problem
            raise OneFailed from problem

    def finish(self) -> None:
        """Let whoever waits for the work go on."""
        self.done = True
        self.woken.set()

    def outcome(self) -> Any:
        """Return what the work returned, or raise what it raised."""
        if self.error is not None:
            raise self.error
        return self.result


@dataclass(frozen=True, eq=False)
class CommitQueue:
    """The works that wait for one chain, in the order in which they came.

    Whoever finds nobody at work leads.  The others sleep until their work was done by somebody, or until it is their
    turn to lead: nobody who came later overtakes.
    """

    waiting: deque[Waiting] = field(default_factory=deque)
    lock: Lock = field(default_factory=Lock)
    leader: list[Waiting] = field(default_factory=list)

    def do(self, work: Callable[[Writer], Any], together: Callable[[list[Waiting]], None]) -> Any:
        """Let a work be done by `together`, with all others that wait by then, and return what it returned."""
        own = Waiting(work)
        with self.lock:
            self.waiting.append(own)
            if not self.leader:
                self._appoint()
        try:
            own.woken.wait()
            if not own.done:
                self._lead(own, together)
        finally:
            with self.lock:
                if own in self.waiting:
                    self.waiting.remove(own)
                if self.leader == [own]:
                    self._appoint()
        return own.outcome()

    def join(self, works: list[Waiting]) -> None:
        """Add to some works all others that wait by now."""
        with self.lock:
            while self.waiting:
                works.append(self.waiting.popleft())

    def _appoint(self) -> None:
        """Let the first of those who wait lead, if somebody waits."""
        self.leader[:] = list(self.waiting)[:1]
        for each in self.leader:
            each.woken.set()

    def _lead(self, own: Waiting, together: Callable[[list[Waiting]], None]) -> None:
        works = list[Waiting]()
        self.join(works)
        try:
            while works:
                try:
                    together(works)
                    break
                except OneFailed:
                    works = self._without_failed(works)
        except BaseException as problem:
            known = isinstance(problem, LedgerUnavailable)
            for each in works:
                each.error = problem if each is own else type(problem)(str(problem)) if known else _lost()
            raise
        finally:
            for each in works:
                each.finish()

    def _without_failed(self, works: list[Waiting]) -> list[Waiting]:
        for each in works:
            if each.error is not None:
                each.finish()
        return [each for each in works if not each.done]


def _lost() -> LedgerUnavailable:
    return LedgerUnavailable(_LOST)
