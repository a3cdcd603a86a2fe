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
