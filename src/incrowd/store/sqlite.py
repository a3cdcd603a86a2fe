"""A chain in one SQLite file: created whole or not at all, flushed at every commit.

A chain remembers which file it was opened with, and checks before and after each transaction that this file is still in
its place.  A few sessions stay open between transactions, and forget what they read.  A symbolic link is refused: it
can point elsewhere tomorrow.  The file has a rollback journal, not a write-ahead log, so that a copy of it is complete.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from incrowd.errors import InvalidParameter, LedgerCorrupted, LedgerLocked, LedgerMissing, LedgerUnavailable
from incrowd.store.database import StoreDialect, Tables, Transaction, explained
from incrowd.store.disk import force, holders_of
from incrowd.store.sqlite_sessions import FileVersion, FileWatch, Sessions, WriteTurn

_PATIENCE = 60.0  # seconds to wait for other writers
_RETRY = 0.0005
"""Seconds after which a writer that waits tries again: SQLite itself would let it sleep longer and longer."""
_DURABLE = {"journal_mode": "delete", "synchronous": 3, "foreign_keys": 1}  # 3 is EXTRA: also sync the directory

_DIALECT = StoreDialect(number="INTEGER", bytewise="TEXT", by_key="WITHOUT ROWID")


@dataclass(frozen=True)
class SQLiteTransaction:
    """An open transaction in a file."""

    session: sqlite3.Connection

    def execute(self, statement: str, values: Mapping[str, Any] | None = None) -> Sequence[tuple[Any, ...]]:
        return self.session.execute(statement, values or {}).fetchall()


@dataclass(frozen=True)
class OneMachine:
    """Locks that everyone gets: a file is used on one machine, whose processes lock files instead."""

    @contextmanager
    def alone(self, name: str) -> Iterator[bool]:
        del name
        yield True

    def close(self) -> None:
        """Do nothing: nothing is locked."""


@dataclass(frozen=True)
class SQLite:
    """The chain called `name` in the file at `path`."""

    path: Path
    name: str
    mode: str = "rw"  # never create a file just by opening it
    turn: WriteTurn = field(default_factory=WriteTurn, repr=False, compare=False)
    file: tuple[int, int] | None = None
    """Device and number of the file with which the chain was opened."""
    readers: Sessions = field(default_factory=Sessions, repr=False, compare=False)
    writers: Sessions = field(default_factory=Sessions, repr=False, compare=False)
    watch: FileWatch = field(default_factory=FileWatch, repr=False, compare=False)

    def bound(self) -> SQLite:
        return SQLite(self.path, self.name, self.mode, file=self._file())

    @property
    def address(self) -> str:
        return str(self.path)

    @property
    def tables(self) -> Tables:
        return Tables(self.name)

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        with (
            explained(self.explain, sqlite3.Error),
            self._transaction(_begin_reading, self._connect, self.readers) as connection,
        ):
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """Open a transaction that holds the file's write lock from its start."""
        with explained(self.explain, sqlite3.Error), self.turn.taken(_PATIENCE, self._locked):
            with self._transaction(_begin_writing, self._durable, self.writers) as connection:
                yield connection
            self._require_same()

    def version(self) -> FileVersion | None:
        version = None if self.file is None else self.watch.version(self.path, lambda: self._connect(0.0))
        return version if version is None or version[2:4] == self.file else None

    def create(self, fill: Callable[[Transaction], None]) -> None:
        """Create the file beside its place and link it there: of two processes one wins, the other finds the file."""
        beside = SQLite(self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}"), self.name, mode="rwc")
        with explained(self.explain, sqlite3.Error):
            if self.path.exists() or self.path.is_symlink():
                return
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                _make_private(beside.path)
                with beside.writing() as connection:
                    for statement in (*self.tables.creation(_DIALECT), *_guards(self.tables)):
                        connection.execute(statement)
                    fill(connection)
                with suppress(FileExistsError):  # another process was first: its ledger stands, ours is dropped
                    self.path.hardlink_to(beside.path)
                force(self.path.parent)
            finally:
                beside.path.unlink(missing_ok=True)

    def locks(self, chain: str) -> OneMachine:
        del chain
        return OneMachine()

    def explain(self, error: Exception) -> LedgerUnavailable:
        """Return what a driver's error means for the ledger."""
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return LedgerCorrupted(
                f"the ledger {self.address} is damaged, or not a ledger: SQLite cannot read it. Nothing is released; "
                "restore the file from a backup and compare it with the last certificate (incrowd ledger check)."
            )
        if code == sqlite3.SQLITE_CANTOPEN and _is_missing(self.path):
            return LedgerMissing(
                f"no ledger exists at {self.address}. If it existed, restore it from a backup; a new one would "
                "forget what was spent."
            )
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return self._locked()
        return LedgerUnavailable(self._without(_trouble(code, error)))

    def _locked(self) -> LedgerLocked:
        """Return the error of a file that others held for too long, with the processes that hold it now."""
        holders = holders_of(self.path)
        who = f"by {' and '.join(holders)}" if holders else "by another process or thread"
        return LedgerLocked(
            f"the ledger {self.address} is in order, but was held {who} for {_PATIENCE:.0f} seconds. Nothing is "
            "released without it. Wait until that is done and try again; a process that hangs can be stopped: what it "
            "did not commit is undone."
        )

    def _without(self, trouble: str) -> str:
        return f"the ledger {self.address} {trouble} Nothing is released without it."

    def _file(self) -> tuple[int, int] | None:
        """Return which file is at the path, or None; a symbolic link is refused."""
        try:
            status = self.path.lstat()
        except OSError:  # not there, or unreadable: the caller refuses both
            return None
        if stat.S_ISLNK(status.st_mode):
            raise LedgerUnavailable(
                f"the ledger {self.address} is a symbolic link, which can point at another ledger tomorrow. Nothing is "
                "released; name the file itself."
            )
        return status.st_dev, status.st_ino

    def _require_same(self) -> None:
        """Raise if another file took the place of the one that was opened, or none is there any more."""
        if self.file is not None and self._file() != self.file:
            raise LedgerUnavailable(
                f"the ledger {self.address} was replaced by another file while it was in use: what was charged to the "
                "old one is not in it. Nothing is released; put the old file back, or check the new one against the "
                "last certificate (incrowd ledger check) and start again."
            )

    @contextmanager
    def _transaction(
        self, begin: Callable[[sqlite3.Connection], None], connect: Callable[[], sqlite3.Connection], idle: Sessions
    ) -> Iterator[Transaction]:
        """Commit in the end; what was not committed by then is undone, and its session closed."""
        session = idle.take()
        if session is None:
            session = connect()
        try:
            self._require_same()
            begin(session)
            yield SQLiteTransaction(session)
            session.commit()
        except BaseException:
            session.close()
            raise
        if self.file is None:
            session.close()
        else:
            session.execute("PRAGMA shrink_memory")  # what it read is forgotten, so that the next reads the file again
            idle.give(session)

    def _durable(self) -> sqlite3.Connection:
        """Open the file so that what is committed is on the disk."""
        connection = self._connect()
        try:
            self._make_durable(connection)
            self._require_same()
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self, patience: float | None = None) -> sqlite3.Connection:
        if self._file() is not None:  # else SQLite says why it cannot be opened
            self._require_same()
        connection = sqlite3.connect(
            f"{self.path.as_uri()}?mode={self.mode}",
            uri=True,
            timeout=_PATIENCE if patience is None else patience,
            isolation_level=None,
            check_same_thread=False,  # one thread after the other
        )
        try:
            connection.execute("PRAGMA schema_version")  # the file is opened by this
            self._require_same()
        except BaseException:
            connection.close()
            raise
        return connection

    def _make_durable(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA fullfsync = 1")  # on macOS fsync alone leaves the charge in the cache of the disk
        for setting, required in _DURABLE.items():
            connection.execute(f"PRAGMA {setting} = {required}")
            (actual,) = connection.execute(f"PRAGMA {setting}").fetchone()
            if actual != required:
                raise LedgerUnavailable(
                    f"SQLite refuses the setting {setting} = {required} for the ledger {self.address}."
                )


def _begin_reading(session: sqlite3.Connection) -> None:
    session.execute("BEGIN")


def _begin_writing(session: sqlite3.Connection) -> None:
    """Wait for the file's write lock and hold it."""
    end = time.monotonic() + _PATIENCE
    session.execute("PRAGMA busy_timeout = 0")
    while True:
        try:
            session.execute("BEGIN IMMEDIATE")
            break
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(_RETRY)
    session.execute(f"PRAGMA busy_timeout = {int(1000 * _PATIENCE)}")


def sqlite_at(address: str, name: str) -> SQLite:
    """Return the place of a chain in the file that an address such as `sqlite:///ledger.sqlite` names."""
    _, mark, rest = address.partition("://")
    if not mark:
        raise InvalidParameter("this address cannot be read; write sqlite:///FILE.")
    host, slash, file = rest.partition("/")
    if host or not slash or not file or file == ":memory:" or "?" in file:
        raise InvalidParameter("a ledger is a file that outlives the process; write sqlite:///FILE.")
    return SQLite(Path(file).absolute(), name)


def _is_missing(path: Path) -> bool:
    """Return whether nothing is there; a folder that may not be read proves nothing."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _trouble(code: int, cause: Any) -> str:
    match code:
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return "is read-only: give this user the right to write the file and its folder."
        case sqlite3.SQLITE_FULL:
            return "cannot grow: the disk is full. Free some space and try again."
        case sqlite3.SQLITE_CANTOPEN:
            return "cannot be opened: check the rights on the file and its folder."
        case sqlite3.SQLITE_ERROR:
            return "lacks the tables of a ledger: this file is something else, or a ledger that was emptied."
    reason = getattr(cause, "sqlite_errorname", None) or getattr(cause, "strerror", None) or type(cause).__name__
    return f"cannot be used ({reason}): check the disk and the rights on the file and its folder."


def _make_private(path: Path) -> None:
    """Create an empty file that its owner alone may read: a store holds secrets, hashes of passwords, and answers."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _guards(tables: Tables) -> list[str]:
    """Return triggers against careless changes; the hashes are against deliberate ones."""
    end = f"(SELECT coalesce(max(sequence), 0) FROM {tables.entries})"  # noqa: S608 - our own table
    return [
        f"CREATE TRIGGER {table}_{change.lower()} BEFORE {change} ON {table} WHEN {condition} "
        "BEGIN SELECT RAISE(ABORT, 'a chain only grows at its end'); END"
        for change, table, condition in tables.forbidden(end)
    ]
