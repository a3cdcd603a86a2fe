"""Staging: a private hidden folder beside the place where its content will appear."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def beside(place: Path) -> Iterator[Path]:
    """Make a private hidden folder beside a place, and remove it, and what was made on the way, in the end."""
    made = [each for each in place.parents if not each.exists()]
    place.parent.mkdir(parents=True, exist_ok=True)
    _sweep(place)
    folder, lock = _locked_folder(place)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)
        for each in made:
            with contextlib.suppress(OSError):
                each.rmdir()


def _prefix(place: Path) -> str:
    return f".{place.name}.incrowd-"


def _locked_folder(place: Path) -> tuple[Path, int]:
    """Make the folder and hold a lock on it, which the system lets go if the process dies."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_prefix(place), dir=place.parent))
        lock = os.open(folder, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.exists():
            return folder, lock
        os.close(lock)  # swept away by another process between the two lines above


def _sweep(place: Path) -> None:
    """Remove what killed processes left: folders that nobody holds a lock on."""
    for folder in place.parent.iterdir():
        if not folder.name.startswith(_prefix(place)):
            continue
        with contextlib.suppress(OSError):
            lock = os.open(folder, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
