"""Open charges: what a desk charged and has not concluded, written beside the ledger for whoever finds it dead.

A process that is killed cannot say what came of its charges.  It holds a lock on a file that names them; the system
lets go of the lock when the process ends, however it ends.  The next desk that opens concludes what the dead left.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TextIO

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.store.disk import lock_at
from incrowd.workflows.ask.answers import Answers

if TYPE_CHECKING:
    from filelock import BaseFileLock

_FOLDER, _LOCK, _NAMES = ".desks", ".lock", ".open"


@dataclass(frozen=True, eq=False)
class OpenCharges:
    """The releases that one desk is at work on."""

    file: TextIO
    lock: Lock = field(default_factory=Lock)
    names: set[str] = field(default_factory=set)

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
                self.names.discard(release)
                if not self.names and not self.file.closed:
                    self.file.seek(0)
                    self.file.truncate()


@contextmanager
def open_charges(beside: Path, ledger: Ledger, answers: Answers) -> Iterator[OpenCharges]:
    """Conclude what dead desks left open, then name this desk's own charges until it is closed."""
    folder = beside / _FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with lock_at(folder / "all.lock"):
        conclude_dead(folder, ledger, answers)
        own = folder / secrets.token_hex(8)
        lock = lock_at(own.with_suffix(_LOCK))
        lock.acquire()
    with own.with_suffix(_NAMES).open("w", encoding="utf-8") as file:
        charges = OpenCharges(file)
        try:
            yield charges
        finally:
            if charges.names:  # what was left undone is concluded by the next desk
                lock.release()
            else:
                _forget(own, lock)


def conclude_dead(folder: Path, ledger: Ledger, answers: Answers) -> None:
    """Write down what came of the charges of desks that are no more: an answer that was kept, or nothing."""
    for path in sorted(folder.glob(f"*{_NAMES}")):
        lock = lock_at(path.with_suffix(_LOCK))
        if _alive(lock):
            continue
        named = set(path.read_text(encoding="utf-8").split())
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
