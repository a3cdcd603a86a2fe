"""Open charges: what a desk charged and has not concluded, written beside the ledger for whoever finds it dead.

A process that is killed cannot say what came of its charges.  It holds a lock on a file that names them; the system
lets go of the lock when the process ends, however it ends.  The next desk that opens concludes what the dead left.

So an answer that is kept may be given before the ledger is told what came of its charge: that is written soon, for all
charges together that wait for it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TextIO

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.accounting.ledger.status import Entry
from incrowd.errors import LedgerUnavailable
from incrowd.store.clerk import BatchWriter
from incrowd.store.disk import lock_at
from incrowd.workflows.query.answers import Answers

if TYPE_CHECKING:
    from filelock import BaseFileLock

    from incrowd.store.database import NamedLocks

Conclusion = tuple[Entry, str | None]
"""A charge, and the digest of the certificate that came of it, or None."""
_FOLDER, _LOCK, _NAMES, _FLIGHT = ".desks", ".lock", ".open", ".flight"


class SameQuestion(Exception):
    """Another desk, or another thread of this one, is answering the same question: look for its answer soon."""


@dataclass(frozen=True, eq=False)
class OpenCharges:
    """The releases that one desk is at work on.

    Without a folder it knows of no other desk of this machine, unless their ledger is in a database that holds names.
    """

    file: TextIO
    holds: NamedLocks
    ledger: Ledger
    folder: Path | None = None
    lock: Lock = field(default_factory=Lock)
    names: set[str] = field(default_factory=set)
    unwritten: dict[str, Conclusion] = field(default_factory=dict)
    """What came of releases that the ledger was not told yet."""
    clerk: BatchWriter[Conclusion] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "clerk", BatchWriter(self._conclude))

    @contextmanager
    def alone(self, mark: str) -> Iterator[None]:
        """Answer a question alone among all desks of this ledger, or raise SameQuestion."""
        with ExitStack() as stack:
            if self.folder is not None:
                stack.enter_context(_alone_here(self.folder, mark))
            if not stack.enter_context(self.holds.alone(mark)):
                raise SameQuestion
            yield

    @contextmanager
    def of(self, release: str) -> Iterator[None]:
        """Name a release from before its charge until it is concluded."""
        with self.lock:
            self.names.add(release)
            self.file.write(f"{release}\n")
            self.file.flush()
        try:
            yield
        finally:
            with self.lock:
                if release not in self.unwritten:
                    self._forget(release)

    def conclude(self, charge: Entry, certificate: str | None) -> None:
        """Let the ledger be told soon what came of a charge; until then its release stays named here.

        Where no file names it, the ledger is told at once.
        """
        if self.folder is None:
            self.ledger.conclude(charge, certificate)
            return
        with self.lock:
            self.unwritten[charge.body["release"]] = charge, certificate
        self.clerk.hand((charge, certificate))

    def settle(self) -> None:
        """Wait until the ledger was told what came of all charges so far."""
        self.clerk.settle()

    def close(self) -> None:
        """Tell the ledger what it was not told yet; what it cannot be told now stays named."""
        self.clerk.stop()
        if self.unwritten:
            self._conclude([])

    def _conclude(self, _new: list[Conclusion]) -> None:
        """Tell the ledger all that it was not told yet, also what it could not be told before."""
        with self.lock:
            found = dict(self.unwritten)
        with suppress(LedgerUnavailable):
            self.ledger.conclude_all(list(found.values()))
            with self.lock:
                for release in found:
                    del self.unwritten[release]
                    self._forget(release)

    def _forget(self, release: str) -> None:
        self.names.discard(release)
        if not self.names and not self.file.closed:
            self.file.seek(0)
            self.file.truncate()


@contextmanager
def _alone_here(folder: Path, mark: str) -> Iterator[None]:
    """Answer a question alone among the desks of this machine, or raise SameQuestion."""
    path = folder / f"{mark[:32]}{_FLIGHT}"
    lock = lock_at(path)
    if _alive(lock):
        raise SameQuestion
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        lock.release()


@contextmanager
def open_charges(beside: Path, ledger: Ledger, answers: Answers) -> Iterator[OpenCharges]:
    """Conclude what dead desks left open, then name this desk's own charges until it is closed.

    Where no file can be written here, charges are not named (they are at all only if the ledger is elsewhere): what a
    killed process leaves of them stays open.  Prices are told all the same.
    """
    opened = _opened(beside / _FOLDER, ledger, answers)
    with closing(ledger.chain.database.holds(ledger.id)) as holds:
        if opened is None:
            yield OpenCharges(StringIO(), holds, ledger)
            return
        with _named(*opened, holds, ledger) as charges:
            yield charges


@contextmanager
def _named(own: Path, lock: BaseFileLock, file: TextIO, holds: NamedLocks, ledger: Ledger) -> Iterator[OpenCharges]:
    with file:
        charges = OpenCharges(file, holds, ledger, own.parent)
        try:
            yield charges
        finally:
            charges.close()
            if charges.names:  # what was left undone is concluded by the next desk
                lock.release()
            else:
                _forget(own, lock)


def _opened(folder: Path, ledger: Ledger, answers: Answers) -> tuple[Path, BaseFileLock, TextIO] | None:
    own = folder / secrets.token_hex(8)
    lock = lock_at(own.with_suffix(_LOCK))
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with lock_at(folder / "all.lock"):
            conclude_dead(folder, ledger, answers)
            lock.acquire()
            return own, lock, own.with_suffix(_NAMES).open("w", encoding="utf-8")
    except OSError:
        return None


def conclude_dead(folder: Path, ledger: Ledger, answers: Answers) -> None:
    """Write down what came of the charges of desks that are no more: an answer that was kept, or nothing."""
    for path in sorted(folder.glob(f"*{_NAMES}")):
        lock = lock_at(path.with_suffix(_LOCK))
        if _alive(lock):
            continue
        named = set(path.read_text(encoding="utf-8").split()) if path.exists() else set[str]()  # it closed just now
        for lost in ledger.unfinished() if named else ():
            release = lost.charge.body["release"]
            if release in named and not lost.concluded:
                kept = answers.named(release)
                ledger.conclude(lost.charge, None if kept is None else kept.certificate.digest())
        _forget(path, lock)


def _alive(lock: BaseFileLock) -> bool:
    from filelock import Timeout

    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    return False


def _forget(path: Path, lock: BaseFileLock) -> None:
    """Remove the files of a desk: the names first, so that no names are left without a lock to ask for."""
    path.with_suffix(_NAMES).unlink(missing_ok=True)
    lock.release()
    path.with_suffix(_LOCK).unlink(missing_ok=True)
