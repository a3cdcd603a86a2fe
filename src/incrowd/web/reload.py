"""Reload: a new query service takes the place of the old one when the policies declare a new version of the data."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

from incrowd.errors import IncrowdError, InvalidParameter
from incrowd.web.logs import note
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.query.service import QueryService

Opening = Callable[[Sequence[Policy]], AbstractContextManager[QueryService]]
_INTERVAL = 1.0
"""Seconds between two looks at the policies."""


@dataclass(frozen=True)
class OpenService:
    """A query service, the policies that it serves, and how it is closed."""

    queries: QueryService
    policies: Sequence[Policy]
    stack: ExitStack

    @classmethod
    def of(cls, policies: Sequence[Policy], opening: Opening) -> OpenService:
        """Open a service."""
        with ExitStack() as stack:
            queries = stack.enter_context(opening(policies))
            return cls(queries, policies, stack.pop_all())

    @property
    def versions(self) -> dict[str, str | None]:
        """The declared version of each dataset."""
        return versions_of(self.policies)


def versions_of(policies: Sequence[Policy]) -> dict[str, str | None]:
    """Return the version that each policy declares of its data."""
    return {policy.name: policy.section.dataset.version for policy in policies}


class ReloadingQueries:
    """The query service of the latest version; queries that an earlier one began are finished there.

    A thread reads the files of the policies every second.  When one changed and declares another version of a dataset,
    a new service is opened, and takes its place when its rows are ready.  Rows that change while the version stays as
    it is are not taken: the same version would mean two things.
    """

    def __init__(self, paths: Sequence[str], opening: Opening, linger: float) -> None:
        self._paths = tuple(map(Path, paths))
        self._opening = opening
        self._linger = linger  # seconds that the longest query of an earlier service may still take
        self._texts = _texts(self._paths)
        # No lock: one thread writes the two below, and a request reads `current` once and keeps what it has read.
        self.current = OpenService.of([load_policy(path) for path in paths], opening)
        self._earlier: list[tuple[float, OpenService]] = []
        self._end = Event()
        Thread(target=self._watch, name="reload", daemon=True).start()

    def close(self) -> None:
        """Watch no longer, and close all services."""
        self._end.set()
        for service in (*(service for _, service in self._earlier), self.current):
            service.stack.close()

    def look(self) -> bool:
        """Take new policies if they declare a new version; return whether that was done."""
        try:
            new = self._opened()
        except (IncrowdError, OSError, UnicodeError) as problem:
            reason = str(problem) if isinstance(problem, IncrowdError) else "a policy cannot be read"
            note("not reloaded", fault=type(problem).__name__, why=reason)
            return False
        if new is None:
            return False
        self._earlier.append((time.monotonic() + self._linger, self.current))
        self.current = new
        note("reloaded", versions=new.versions)
        return True

    def _opened(self) -> OpenService | None:
        """Return a service for a new version whose rows are ready, or None if there is no new version."""
        texts = _texts(self._paths)
        if texts == self._texts:
            return None
        self._texts = texts
        policies = [load_policy(path) for path in self._paths]
        if versions_of(policies) == self.current.versions:
            note("not reloaded", why="the policies declare the versions of data that are served already")
            return None
        _require_same_stores(policies, self.current.policies)
        new = OpenService.of(policies, self._opening)
        with ExitStack() as undone:
            undone.callback(new.stack.close)
            new.queries.load()
            undone.pop_all()
        return new

    def _watch(self) -> None:
        while not self._end.wait(_INTERVAL):
            self.look()
            while self._earlier and self._earlier[0][0] < time.monotonic():
                self._earlier.pop(0)[1].stack.close()


def _require_same_stores(policies: Sequence[Policy], before: Sequence[Policy]) -> None:
    """Raise if a new version has another ledger or consent registry: tokens, allowances and withdrawals stay valid."""

    def stores(policies: Sequence[Policy]) -> list[object]:
        sections = [(policy, policy.section) for policy in policies]
        return [(policy.name, policy.ledger_address, section.purpose, section.consent) for policy, section in sections]

    if stores(policies) != stores(before):
        raise InvalidParameter(
            "a new version has the names, the ledger, the purpose and the consents of the one before: start the server "
            "again to change them."
        )


def _texts(paths: Sequence[Path]) -> tuple[str, ...]:
    return tuple(path.read_text(encoding="utf-8") for path in paths)
