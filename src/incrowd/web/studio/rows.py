"""Data access of a page: started by a button, recorded, and done in the background."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incrowd.core.table import Engine, Rows
from incrowd.engines.readers.guess import policy_keys
from incrowd.engines.settings import engine_of
from incrowd.web.studio.jobs import Job, Tell
from incrowd.web.studio.page import PageRequest
from incrowd.web.studio.policy_file import PolicyFile
from incrowd.workflows.policy.ledger import record_look
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.policy.rows import open_rows
from incrowd.workflows.profile.profile import profile


@dataclass(frozen=True)
class RowAccess:
    """A look at the rows of a policy: what the ledger calls it, what is shown, and what is computed.

    Where `any_policy` is true, the same is found whatever else the policy says of the rows.
    """

    verb: str
    what: str
    title: str
    find: Callable[[Policy, Rows, Engine], Any]
    any_policy: bool = False

    def key(self, file: PolicyFile) -> str:
        """Return what tells this look from others: the rows as they are, and how they are read and declared."""
        policy = file.policy
        source = Path(policy.source) if policy.source is not None and "://" not in policy.source else None
        stat = source.stat() if source is not None and source.is_file() else None
        state = None if stat is None else (stat.st_mtime_ns, stat.st_size)
        reading = sorted(policy_keys(policy.options).items()) if self.any_policy else policy.hash
        return f"{self.what} {file.path} {policy.source} {state} {reading}"

    def job(self, request: PageRequest, file: PolicyFile) -> Job | None:
        """Return the look, if it was started."""
        return request.jobs.find(self.key(file))

    def begin(self, request: PageRequest, file: PolicyFile) -> Job:
        """Start it: the ledger and the studio write down that rows are looked at, and then they are."""
        policy = file.policy

        def work(tell: Tell) -> Any:
            with engine_of(policy.engine) as engine:
                rows = open_rows(None, policy, engine=engine)
                record_look(policy, self.verb)
                file.seen.add(self.what)
                return self.find(policy, engine.watched(rows, tell), engine)

        return request.job(self.key(file), self.title, work)


PROFILE = RowAccess(
    "profile",
    "the profile of the columns",
    "Reading every row, twice",
    lambda _policy, rows, engine: profile(rows, engine),
    any_policy=True,
)
"""What each column holds, and which of them single people out."""


def rows_state(policy: Policy) -> str:
    """Return when the files of a policy's rows were changed and how large they are; databases tell nothing."""
    graph = policy.graph
    sources = (policy.source,) if graph is None else (graph.nodes[0], graph.edges[0])
    paths = [policy.folder / source for source in sources if source is not None and "://" not in source]
    stats = [path.stat() for path in paths if path.is_file()]
    return f"{sources} {[(stat.st_mtime_ns, stat.st_size) for stat in stats]}"
