"""Advisory locks of PostgreSQL: names that one session of all machines holds; the server frees what the dead held."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from incrowd.store.database import explained

if TYPE_CHECKING:
    from sqlalchemy import Connection as Session

    from incrowd.store.postgres import Postgres

_SESSION = (
    "SET tcp_keepalives_idle = 10",
    "SET tcp_keepalives_interval = 5",
    "SET tcp_keepalives_count = 3",
)
"""A machine that vanished is noticed within half a minute."""


@dataclass(frozen=True, eq=False)
class AdvisoryHolds:
    """Names held through one session that stays open, beside the chain that `chain` names.

    Should the session break, all that it held is free for others; the next name is held through a new one.
    """

    database: Postgres
    chain: str
    lock: Lock = field(default_factory=Lock)
    held: set[int] = field(default_factory=set)
    """To the server a session that holds a lock may take it again; threads of one process may not."""
    sessions: list[Session] = field(default_factory=list)

    @contextmanager
    def alone(self, name: str) -> Iterator[bool]:
        """Hold a name until the end of the block, and tell whether that was possible."""
        key = int.from_bytes(hashlib.sha256(f"{self.chain} {name}".encode()).digest()[:8], "big", signed=True)
        if not self._take(key):
            yield False
            return
        try:
            yield True
        finally:
            self._free(key)

    def close(self) -> None:
        """Let go of everything."""
        with self.lock:
            self._hang_up()

    def _take(self, key: int) -> bool:
        with self.lock, explained(self.database.explain, SQLAlchemyError):
            if key in self.held:
                return False
            try:
                taken = bool(self._session().scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": key}))
            except SQLAlchemyError:  # the server hung up since the last name: once more, with a new session
                self._hang_up()
                taken = bool(self._session().scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": key}))
            if taken:
                self.held.add(key)
            return taken

    def _free(self, key: int) -> None:
        with self.lock:
            self.held.discard(key)
            try:
                for session in self.sessions:
                    session.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": key})
            except SQLAlchemyError:  # without a session nothing is held
                self._hang_up()

    def _session(self) -> Session:
        if not self.sessions:
            session = self.database.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            for statement in _SESSION:
                session.execute(text(statement))
            self.sessions.append(session)
        return self.sessions[0]

    def _hang_up(self) -> None:
        while self.sessions:
            with suppress(SQLAlchemyError):
                self.sessions.pop().close()
