"""Disk: what has to outlive a power cut is forced there; what one process alone may do is done under a lock."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filelock import BaseFileLock


def force(path: Path) -> None:
    """Force a file, or the names in a folder, to the disk; Windows does the latter by itself."""
    windows = os.name == "nt"
    if windows and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDWR if windows else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock_at(path: Path) -> BaseFileLock:
    """Return the lock of a file, made if need be: the system lets it go if the process dies.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, lock_at(Path(folder, "lock")) as lock:
    ...     lock.is_locked
    True
    """
    from filelock import FileLock

    return FileLock(path, mode=0o600, thread_local=False)  # whoever closes something may be another thread


def holders_of(path: Path) -> list[str]:
    """Return the other processes that hold a lock on a file, with their numbers; none where the system does not say."""
    try:
        status = path.stat()
        file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
        locks = [line.split() for line in Path("/proc/locks").read_text(encoding="ascii").splitlines()]
    except (OSError, ValueError):  # only names the holder in a message; not every system tells
        return []
    numbers = {int(words[-4]) for words in locks if words[-3] == file and words[-4].isdigit()}
    return [_process(number) for number in sorted(numbers - {os.getpid()})]


def _process(number: int) -> str:
    try:
        name = Path(f"/proc/{number}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:  # it is another user's, or over
        return f"process {number}"
    return f"process {number} ({name})"
