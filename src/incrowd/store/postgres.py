"""A chain in a PostgreSQL database: serializable, one writer at a time at its head, flushed at every commit."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any

from sqlalchemy import URL, Engine, NullPool, create_engine, event, inspect, make_url, text
from sqlalchemy import Connection as Session
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from incrowd.errors import InvalidParameter, LedgerLocked, LedgerMissing, LedgerUnavailable
from incrowd.store.database import Conflict, StoreDialect, Tables, Transaction, explained

_CONNECT_SECONDS, _LOCK_SECONDS = 10, 60  # longer than any ordinary entry takes; then an error says who holds the lock
_SESSION = (
    "SET synchronous_commit = on",
    f"SET lock_timeout = '{_LOCK_SECONDS}s'",
    "SET client_encoding = 'UTF8'",
)
_KEEPALIVE = (
    "SET tcp_keepalives_idle = 10",
    "SET tcp_keepalives_interval = 5",
    "SET tcp_keepalives_count = 3",
)
"""A machine that vanished is noticed within half a minute, and its locks are free."""
_SERVER = ("fsync", "full_page_writes")  # cannot be set by a client, so they are asked for
_DIALECT = StoreDialect(number="BIGINT", bytewise='TEXT COLLATE "C"', by_key="")
_MAKING = 0x696E63726F7764  # the advisory lock of those who create tables


@dataclass(frozen=True)
class PostgresTransaction:
    """An open transaction in a PostgreSQL database."""

    session: Session

    def execute(self, statement: str, values: Mapping[str, Any] | None = None) -> Sequence[tuple[Any, ...]]:
        result = self.session.execute(text(statement), values)
        return [tuple(row) for row in result] if result.returns_rows else []


@dataclass(frozen=True)
class Postgres:
    """The chain called `name` in the database at `url`."""

    url: URL
    name: str

    @property
    def address(self) -> str:
        return self.url.set(drivername="postgresql", query={}).render_as_string(hide_password=True)

    @property
    def tables(self) -> Tables:
        return Tables(self.name)

    @cached_property
    def engine(self) -> Engine:
        """The connection to the server, closed after every transaction."""
        try:
            engine = create_engine(
                self.url,
                poolclass=NullPool,
                hide_parameters=True,
                isolation_level="SERIALIZABLE",
                connect_args={"connect_timeout": _CONNECT_SECONDS},
            )
        except ImportError as error:
            raise LedgerUnavailable("a ledger in PostgreSQL needs: pip install 'incrowd[postgres]'.") from error
        event.listen(engine, "connect", self._make_durable)
        return engine

    def bound(self) -> Postgres:
        return self

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        with self._explained(), self.engine.connect() as connection:
            connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            with connection.begin():
                yield PostgresTransaction(connection)

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """Open a serializable transaction, alone at the head of the chain.

        LOCK TABLE, unlike SELECT FOR UPDATE, takes no snapshot.  So a writer that waited for it sees what the last one
        wrote, and many writers queue up instead of failing in turn.
        """
        with self._explained(), self.engine.connect() as connection, connection.begin():
            connection.execute(text(f"LOCK TABLE {self.tables.head} IN EXCLUSIVE MODE"))
            yield PostgresTransaction(connection)

    def version(self) -> None:
        """Return None: only the server knows whether its tables changed."""

    def create(self, fill: Callable[[Transaction], None]) -> None:
        """Create the tables in one transaction: of two processes one wins, and the other finds the tables."""
        with self._explained(), self.engine.connect() as connection:
            connection.execution_options(isolation_level="READ COMMITTED")
            with connection.begin():
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_MAKING})"))
                if inspect(connection).has_table(self.tables.head):
                    return
                for statement in (*self.tables.creation(_DIALECT), *_guards(self.tables)):
                    connection.exec_driver_sql(statement)
                fill(PostgresTransaction(connection))

    def locks(self, chain: str) -> AdvisoryLocks:
        return AdvisoryLocks(self, chain)

    def explain(self, error: Exception) -> LedgerUnavailable:
        """Return what a driver's error means for the ledger."""
        state = getattr(getattr(error, "orig", None), "sqlstate", None)
        if state in ("40001", "40P01"):
            return Conflict(f"the ledger at {self.address} is busy. Try again.")
        if state == _LOCKED:
            return self._locked()
        kind = LedgerMissing if state in _NO_TABLES else LedgerUnavailable
        return kind(f"the ledger at {self.address} {_trouble(state)} Nothing is released without it.")

    def _locked(self) -> LedgerLocked:
        """Return the error of tables that others held for too long, with the sessions that hold them now."""
        holders: list[str] = []
        # the error that is being described counts; without the names of holders it is still raised
        with suppress(SQLAlchemyError, LedgerUnavailable), self.engine.connect() as connection:
            rows = connection.execute(text(_HOLDERS), {"head": self.tables.head})
            holders = [f"session {pid} of {user or 'another user'}" for pid, user in rows]
        who = f"by {' and '.join(holders)}" if holders else "by another session"
        return LedgerLocked(
            f"the ledger at {self.address} is in order, but was held {who} for longer than lock_timeout allows "
            f"({_LOCK_SECONDS} seconds, unless the server says otherwise). Nothing is released without it. Wait until "
            "that is done and try again; a session that hangs can be ended (pg_terminate_backend): what it did not "
            "commit is undone."
        )

    def _explained(self) -> AbstractContextManager[None]:
        return explained(self.explain, SQLAlchemyError)

    def _make_durable(self, connection: Any, _record: object) -> None:
        with connection.cursor() as cursor:
            for statement in _SESSION:
                cursor.execute(statement)
            for setting in _SERVER:
                (actual,) = cursor.execute(f"SHOW {setting}").fetchone()
                if actual != "on":
                    raise LedgerUnavailable(
                        f"the server of the ledger at {self.address} runs with {setting} = {actual}: a crash could "
                        "lose charges. Switch it on."
                    )
        connection.commit()


class AdvisoryLocks:
    """Names locked through one session that stays open, beside the chain that `chain` names.

    Should the session break, the server frees all its names; the next name is locked through a new session.
    """

    def __init__(self, database: Postgres, chain: str) -> None:
        self._database = database
        self._chain = chain
        self._lock = Lock()  # one thread at a time uses the session, and its names are checked and taken in one step
        # The server lets a session take a lock twice.  Threads of one process may not.
        self._names: set[int] = set()
        self.session: Session | None = None

    @contextmanager
    def alone(self, name: str) -> Iterator[bool]:
        """Lock a name until the end of the block, and return whether that was possible."""
        key = int.from_bytes(hashlib.sha256(f"{self._chain} {name}".encode()).digest()[:8], "big", signed=True)
        if not self._take(key):
            yield False
            return
        try:
            yield True
        finally:
            self._free(key)

    def close(self) -> None:
        """Release everything."""
        with self._lock:
            self._hang_up()

    def _take(self, key: int) -> bool:
        with self._lock, explained(self._database.explain, SQLAlchemyError):
            if key in self._names:
                return False
            try:
                taken = self._try(key)
            except SQLAlchemyError:  # the server hung up since the last name: once more, with a new session
                self._hang_up()
                taken = self._try(key)
            if taken:
                self._names.add(key)
            return taken

    def _try(self, key: int) -> bool:
        if self.session is None:
            self.session = self._database.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            for statement in _KEEPALIVE:
                self.session.execute(text(statement))
        return bool(self.session.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": key}))

    def _free(self, key: int) -> None:
        with self._lock:
            self._names.discard(key)
            try:
                if self.session is not None:
                    self.session.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": key})
            except SQLAlchemyError:  # without a session nothing is locked
                self._hang_up()

    def _hang_up(self) -> None:
        session, self.session = self.session, None
        if session is not None:
            with suppress(SQLAlchemyError):  # a broken session cannot be closed; its locks ended with it
                session.close()


def postgres_at(address: str, name: str) -> Postgres:
    """Return the place of a chain in the database that an address such as `postgresql://me@host/db` names."""
    try:
        url = make_url(address)
    except ArgumentError as error:
        raise InvalidParameter("this address cannot be read; write postgresql://USER@HOST/DATABASE.") from error
    return Postgres(url.set(drivername="postgresql+psycopg"), name)


_NO_TABLES = ("42P01", "3F000")
"""States of a server without such a table or schema."""
_LOCKED = "55P03"
_HOLDERS = (
    "SELECT DISTINCT held.pid, activity.usename FROM pg_locks AS held "
    "LEFT JOIN pg_stat_activity AS activity ON activity.pid = held.pid "
    "WHERE held.granted AND held.relation = to_regclass(:head) AND held.mode <> 'AccessShareLock' "
    "AND held.pid <> pg_backend_pid() ORDER BY held.pid"
)


def _trouble(state: str | None) -> str:
    match state:
        case None | "08000" | "08003" | "08006" | "57P01" | "57P03":
            return "cannot be reached, or hung up: check the address and the server."
        case "42P01" | "3F000":  # the same as `_NO_TABLES`
            return "does not exist: this database holds no such tables. If they existed, restore them from a backup."
        case "25006":
            return "is read-only: connect to the primary server, as a user who may write."
        case "53100" | "53200":
            return "cannot grow: the server's disk or memory is full. Free some space and try again."
        case "42501":
            return "is closed to this user: grant it the right to read and extend the tables."
    return f"cannot be used (SQLSTATE {state})."


def _guards(tables: Tables) -> list[str]:
    """Return triggers against careless changes; the hashes are against deliberate ones."""
    refuse, end = f"{tables.entries}_refuse()", f"{tables.entries}_end()"
    last = f"SELECT coalesce(max(sequence), 0) FROM {tables.entries}"  # noqa: S608 - our own table
    fail = "BEGIN RAISE EXCEPTION 'a chain only grows at its end'; END"
    return [
        f"CREATE FUNCTION {refuse} RETURNS trigger LANGUAGE plpgsql AS $$ {fail} $$",
        f"CREATE FUNCTION {end} RETURNS bigint LANGUAGE sql AS $$ {last} $$",
        *(
            f"CREATE TRIGGER {table}_{change.lower()} BEFORE {change} ON {table} "
            f"FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION {refuse}"
            for change, table, condition in tables.forbidden(end)
        ),
        *(
            f"CREATE TRIGGER {table}_truncate BEFORE TRUNCATE ON {table} EXECUTE FUNCTION {refuse}"
            for table in tables.all
        ),
    ]
