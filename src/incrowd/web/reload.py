"""Reload: a desk that another takes the place of when its policies declare a new version of the data."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

from incrowd.errors import IncrowdError, InvalidParameter
from incrowd.web.logs import note
from incrowd.web.services import JsonDocument, PlannedQuestion, QueryBackend
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.query.history import HistoryRange
from incrowd.workflows.query.request import QueryBatch, QueryRequest
from incrowd.workflows.query.service import QueryService

Opening = Callable[[Sequence[Policy]], AbstractContextManager[QueryService]]
_LOOK = 1.0  # seconds between two looks at the policies


@dataclass(frozen=True)
class OpenDesk:
    """A desk, what its policies declare, and how it is closed."""

    desk: QueryService
    stack: ExitStack

    @classmethod
    def of(cls, policies: Sequence[Policy], opening: Opening) -> OpenDesk:
        """Open a desk and let its rows be read."""
        with ExitStack() as stack:
            desk = stack.enter_context(opening(policies))
            return cls(desk, stack.pop_all())

    @property
    def versions(self) -> dict[str, str | None]:
        """The declared version of each dataset."""
        return versions_of(self.desk.policies)


def versions_of(policies: Sequence[Policy]) -> dict[str, str | None]:
    """Return the version that each policy declares of its data."""
    return {policy.name: policy.section.dataset.version for policy in policies}


@dataclass(eq=False)
class ReloadingDesk:
    """The desk of now; what was begun at an earlier one is finished there.

    The files of the policies are looked at every second.  When one changed and declares another version of a dataset, a
    new desk is opened beside the old one, and takes its place when its rows are ready.  Rows that change while the
    version stays as it is are not taken: the same version would mean two things.
    """

    paths: tuple[Path, ...]
    opening: Opening
    linger: float
    """How many seconds the longest question of an earlier desk may still take."""
    now: OpenDesk
    read: tuple[str, ...]
    end: Event = field(default_factory=Event)
    earlier: list[tuple[float, OpenDesk]] = field(default_factory=list)

    @classmethod
    def watching(cls, paths: Sequence[str], opening: Opening, linger: float) -> ReloadingDesk:
        """Open a desk for the policies at these paths, and watch them."""
        places = tuple(map(Path, paths))
        read = _texts(places)
        desk = cls(places, opening, linger, OpenDesk.of([load_policy(path) for path in paths], opening), read)
        Thread(target=desk._watch, name="reload", daemon=True).start()
        return desk

    def close(self) -> None:
        """Watch no longer, and close all desks."""
        self.end.set()
        for each in (*(desk for _, desk in self.earlier), self.now):
            each.stack.close()

    def look(self) -> bool:
        """Take new policies if they declare a new version; return whether that was done."""
        try:
            texts = _texts(self.paths)
            if texts == self.read:
                return False
            self.read = texts
            policies = [load_policy(path) for path in self.paths]
            if versions_of(policies) == self.now.versions:
                note("not reloaded", why="the policies declare the versions of data that are served already")
                return False
            _require_same_books(policies, self.now.desk.policies)
            new = OpenDesk.of(policies, self.opening)
            with ExitStack() as undone:
                undone.callback(new.stack.close)
                new.desk.load()
                undone.pop_all()
        except (IncrowdError, OSError, UnicodeError) as problem:
            why = str(problem) if isinstance(problem, IncrowdError) else "a policy cannot be read"
            note("not reloaded", fault=type(problem).__name__, why=why)
            return False
        self.earlier.append((time.monotonic() + self.linger, self.now))
        self.now = new
        note("reloaded", versions=new.versions)
        return True

    def _watch(self) -> None:
        while not self.end.wait(_LOOK):
            self.look()
            while self.earlier and self.earlier[0][0] < time.monotonic():
                self.earlier.pop(0)[1].stack.close()

    @property
    def locks(self) -> Path | None:
        """The folder where desks hold locks."""
        return self.now.desk.locks

    def price(self, asking: QueryRequest) -> JsonDocument:
        """Say what a question would cost."""
        return self.now.desk.price(asking)

    def prepare(self, asking: QueryRequest) -> PlannedQuestion:
        """Plan a question at the desk of now."""
        return self.now.desk.prepare(asking)

    def recall(self, asking: QueryRequest) -> PlannedQuestion | None:
        """Return a question that was planned lately at the desk of now."""
        return self.now.desk.recall(asking)

    def price_batch(self, asking: QueryBatch) -> JsonDocument:
        """Say what several questions would cost together."""
        return self.now.desk.price_batch(asking)

    def prepare_batch(self, asking: QueryBatch) -> PlannedQuestion:
        """Plan several questions at the desk of now."""
        return self.now.desk.prepare_batch(asking)

    def schema(self) -> Mapping[str, Any]:
        """Return the public description of the tables."""
        return self.now.desk.schema()

    def budget(self, analyst: str | None) -> Mapping[str, Any]:
        """Return what is left of each dataset."""
        return self.now.desk.budget(analyst)

    def releases(self, analyst: str | None = None) -> Sequence[Mapping[str, Any]]:
        """Return what was released so far and an analyst may read."""
        return self.now.desk.releases(analyst)

    def certificate(self, id_: str, analyst: str | None = None) -> JsonDocument | None:
        """Return the certificate of a release, if the analyst may read it."""
        return self.now.desk.certificate(id_, analyst)

    def history(self, analyst: str | None, page: HistoryRange, *, reads_all: bool = False) -> JsonDocument:
        """Return a page of what an analyst asked."""
        return self.now.desk.history(analyst, page, reads_all=reads_all)

    def answer(self, id_: str, analyst: str | None = None) -> JsonDocument | None:
        """Return an answer that was given to the analyst before."""
        return self.now.desk.answer(id_, analyst)

    def within(self, datasets: Collection[str]) -> QueryBackend:
        """Return a desk that knows these datasets alone."""
        return self.now.desk.within(datasets)

    def load(self) -> None:
        """Read what questions will read."""
        self.now.desk.load()

    def check(self) -> None:
        """Raise SourceUnavailable unless the rows can be asked about now."""
        self.now.desk.check()


def _require_same_books(policies: Sequence[Policy], before: Sequence[Policy]) -> None:
    """Raise if budgets or consents would be kept elsewhere: tokens, allowances and withdrawals stay where they were."""

    def books(told: Sequence[Policy]) -> list[object]:
        return [(policy.name, policy.ledger_address, policy.section.purpose, policy.section.consent) for policy in told]

    if books(policies) != books(before):
        raise InvalidParameter(
            "a new version has the names, the ledger, the purpose and the consents of the one before: start the server "
            "again to change them."
        )


def _texts(paths: Sequence[Path]) -> tuple[str, ...]:
    return tuple(path.read_text(encoding="utf-8") for path in paths)
