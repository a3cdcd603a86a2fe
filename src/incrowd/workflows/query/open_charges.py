"""Open charges: what a query service charged and has not concluded, in a file for whoever finds its process dead.

A process that is killed cannot conclude its charges.  It holds a lock on a file that names them, and the system
releases the lock when the process ends, however it ends.  The next service that opens concludes what the dead left.

So an answer that is stored may be given before its charge is concluded: that follows soon, for all charges together.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from io import StringIO
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TextIO

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.accounting.ledger.status import Entry
from incrowd.errors import LedgerUnavailable
from incrowd.store.disk import lock_at
from incrowd.store.group_commit import BatchWriter
from incrowd.workflows.query.answers import Answers

if TYPE_CHECKING:
    from filelock import BaseFileLock

    from incrowd.store.database import NamedLocks

Conclusion = tuple[Entry, str | None]
"""A charge, and the digest of its certificate, or None where nothing was released."""
_FOLDER, _LOCK, _NAMES, _QUERY = ".charges", ".lock", ".open", ".query"


class QueryInFlight(Exception):
    """Another process or thread is answering the same query: look for its answer soon."""


class OpenCharges:
    """The charges that one query service has not concluded.

    Without a folder it knows of no other service of this machine, unless their ledger is in a database with locks.
    """

    def __init__(self, file: TextIO, locks: NamedLocks, ledger: Ledger, folder: Path | None = None) -> None:
        self.folder = folder
        self._file = file
        self._locks = locks
        self._ledger = ledger
        self._lock = Lock()  # guards the names, the file and the conclusions; never held while the ledger is written
        self.names: set[str] = set()
        self._unwritten: dict[str, Conclusion] = {}
        self._writer = BatchWriter(self._write_conclusions)

    @contextmanager
    def alone(self, query_id: str) -> Iterator[None]:
        """Answer a query alone among all services of this ledger, or raise QueryInFlight."""
        with ExitStack() as stack:
            if self.folder is not None:
                stack.enter_context(_alone_on_machine(self.folder, query_id))
            if not stack.enter_context(self._locks.alone(query_id)):
                raise QueryInFlight
            yield

    @contextmanager
    def named(self, release: str) -> Iterator[None]:
        """Name a release in the file from before its charge until its charge is concluded."""
        with self._lock:
            self.names.add(release)
            self._file.write(f"{release}\n")
            self._file.flush()  # the system has it now, even if this process is killed
        try:
            yield
        finally:
            with self._lock:
                if release not in self._unwritten:
                    self._forget(release)

    def conclude(self, charge: Entry, certificate: str | None) -> None:
        """Let the ledger conclude a charge soon; until then the file names its release.  Without a file, do it now."""
        if self.folder is None:
            self._ledger.conclude(charge, certificate)
            return
        with self._lock:
            self._unwritten[charge.body["release"]] = charge, certificate
        self._writer.submit((charge, certificate))

    def settle(self) -> None:
        """Wait until all charges so far are concluded."""
        self._writer.settle()

    def close(self) -> None:
        """Conclude what is not concluded yet; what the ledger cannot write now stays named."""
        self._writer.stop()
        if self._unwritten:
            self._write_conclusions([])

    def _write_conclusions(self, _new: list[Conclusion]) -> None:
        """Write all conclusions that are not written yet, including those that failed before."""
        with self._lock:
            conclusions = dict(self._unwritten)
        with suppress(LedgerUnavailable):  # they stay unwritten, and are tried with the next ones
            self._ledger.conclude_all(list(conclusions.values()))
            with self._lock:
                for release in conclusions:
                    self._unwritten.pop(release, None)
                    self._forget(release)

    def _forget(self, release: str) -> None:
        """Forget a name; the file is emptied when it is the last, and the caller holds the lock."""
        self.names.discard(release)
        if not self.names and not self._file.closed:
            self._file.seek(0)
            self._file.truncate()


@contextmanager
def _alone_on_machine(folder: Path, query_id: str) -> Iterator[None]:
    """Answer a query alone among the services of this machine, or raise QueryInFlight."""
    path = folder / f"{query_id[:32]}{_QUERY}"
    lock = lock_at(path)
    if not _acquired(lock):
        raise QueryInFlight
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # before the release: else it could be the file that the next one has locked
        lock.release()


@contextmanager
def open_charges(beside: Path, ledger: Ledger, answers: Answers) -> Iterator[OpenCharges]:
    """Conclude what dead services left open, then name this service's own charges until it is closed.

    Where no file can be written, charges are not named (there are some only if the ledger is elsewhere).  What a
    killed process leaves of them stays open.  Costs can be estimated all the same.
    """
    own = _own_files(beside / _FOLDER, ledger, answers)
    with closing(ledger.chain.database.locks(ledger.id)) as locks:
        if own is None:
            yield OpenCharges(StringIO(), locks, ledger)
            return
        path, lock, file = own
        with file:
            charges = OpenCharges(file, locks, ledger, path.parent)
            try:
                yield charges
            finally:
                charges.close()
                if charges.names:  # the next service concludes them
                    lock.release()
                else:
                    _remove(path, lock)


def _own_files(folder: Path, ledger: Ledger, answers: Answers) -> tuple[Path, BaseFileLock, TextIO] | None:
    """Return this service's lock and file of names, or None where no file can be written."""
    path = folder / secrets.token_hex(8)
    lock = lock_at(path.with_suffix(_LOCK))
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with lock_at(folder / "all.lock"):  # nobody takes a service for dead between its lock and its file
            conclude_dead(folder, ledger, answers)
            lock.acquire()
            return path, lock, path.with_suffix(_NAMES).open("w", encoding="utf-8")
    except OSError:
        return None


def conclude_dead(folder: Path, ledger: Ledger, answers: Answers) -> None:
    """Conclude the charges of services whose process has ended: with a stored answer, or as without a release."""
    for path in sorted(folder.glob(f"*{_NAMES}")):
        lock = lock_at(path.with_suffix(_LOCK))
        if not _acquired(lock):
            continue
        names = set(path.read_text(encoding="utf-8").split()) if path.exists() else set[str]()  # it closed just now
        for unfinished in ledger.unfinished() if names else ():
            release = unfinished.charge.body["release"]
            if release in names and not unfinished.concluded:
                stored = answers.named(release)
                ledger.conclude(unfinished.charge, None if stored is None else stored.certificate.digest())
        _remove(path, lock)


def _acquired(lock: BaseFileLock) -> bool:
    """Take a lock without waiting, and return whether nobody held it."""
    from filelock import Timeout

    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    return True


def _remove(path: Path, lock: BaseFileLock) -> None:
    """Remove the files of a service: the names first, so that no names are left without a lock."""
    path.with_suffix(_NAMES).unlink(missing_ok=True)
    lock.release()
    path.with_suffix(_LOCK).unlink(missing_ok=True)
