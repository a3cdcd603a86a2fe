"""Doctor: what is installed, what each verb needs, and whether releases can work on this machine."""

from __future__ import annotations

import os
import platform
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, metadata, version
from pathlib import Path

from incrowd.store.disk import force, lock_at

NEEDED_BY = {
    "web": "serve, studio, collect",
    "postgres": "ledgers and tables in PostgreSQL",
    "formats": "Excel, SPSS, Stata and SAS files; Polars frames",
    "spark": "--engine spark",
    "fast": "no verb; graphs and queries are quicker with it",
    "learn": "the estimators for scikit-learn",
    "lists": "public lists of countries, languages and currencies",
    "onnx": "export --to onnx",
    "s3": "rows and releases at s3:// addresses",
    "gs": "rows and releases at gs:// addresses",
    "az": "rows and releases at az:// addresses",
    "delta": "Delta tables",
    "iceberg": "Iceberg tables",
}
"""What each extra is for, in the order of the help."""
_EARLIEST = datetime(2025, 1, 1, tzinfo=UTC)  # this version was made later: a clock before that is wrong
_DRAWN = 4096  # bytes; a fair generator keeps the share of ones within 0.5 ± 0.03 but for a chance below 2**-40
_REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)[^;]*;.*extra == ['\"]([a-z0-9]+)['\"]")


@dataclass(frozen=True)
class MachineCheck:
    """One thing that was looked at, what was found, and whether incrowd can work with it; None: not needed."""

    about: str
    text: str
    good: bool | None


def findings(state: Path) -> list[MachineCheck]:
    """Look at the packages, the system's generator, its clock, its locks, and the rights of the folder for state."""
    tests: tuple[tuple[str, Callable[[], MachineCheck]], ...] = (
        ("random numbers", _generator),
        ("clock", _clock),
        ("locks", lambda: _locks(state)),
        ("folder for state", lambda: _rights(state)),
    )
    tested = [_python(), *_extras(), _java()]
    for about, test in tests:
        try:
            tested.append(test())
        except OSError as error:
            tested.append(MachineCheck(about, error.strerror or "the system refused", good=False))
    return tested


def _python() -> MachineCheck:
    return MachineCheck("Python", f"{platform.python_version()} on {platform.system()}", sys.version_info >= (3, 11))


def _extras() -> Iterator[MachineCheck]:
    """Say of each extra which packages it lacks."""
    needed: dict[str, list[str]] = {}
    for line in metadata("incrowd").get_all("Requires-Dist") or ():
        required = _REQUIREMENT.match(line)
        if required:
            needed.setdefault(required[2], []).append(required[1])
    for extra, purpose in NEEDED_BY.items():
        missing = [package for package in needed.get(extra, []) if _version(package) is None]
        if missing:
            yield MachineCheck(extra, f"not installed ({', '.join(missing)}), needed by {purpose}", good=None)
        else:
            yield MachineCheck(extra, f"installed, for {purpose}", good=True)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _java() -> MachineCheck:
    java = os.environ.get("JAVA_HOME") or shutil.which("java")
    return MachineCheck("Java", java or "not installed, needed by --engine spark", good=True if java else None)


def _generator() -> MachineCheck:
    """Draw from the source of every coin: two draws differ, and about half of the bits are ones."""
    first, second = os.urandom(_DRAWN), os.urandom(_DRAWN)
    share = int.from_bytes(first, "big").bit_count() / (8 * _DRAWN)
    good = first != second and abs(share - 0.5) < 0.03
    return MachineCheck("random numbers", "drawn from the system" if good else "the system repeats itself", good)


def _clock() -> MachineCheck:
    """Say what the clock tells; ledgers and certificates are dated by it."""
    now, start = datetime.now(UTC), time.monotonic()
    good = now > _EARLIEST and time.monotonic() >= start
    return MachineCheck("clock", now.isoformat(timespec="seconds"), good)


def _locks(state: Path) -> MachineCheck:
    """Lock a file twice, where ledgers are: the second time must fail."""
    with tempfile.TemporaryDirectory(prefix=".doctor-", dir=_nearest(state)) as folder:
        path = Path(folder, "lock")
        with lock_at(path):
            try:
                with lock_at(path).acquire(timeout=0):
                    good = False
            except OSError:  # Timeout is one
                good = True
        force(Path(folder))
    return MachineCheck("locks", "held by one process at a time" if good else "not kept here: use a local disk", good)


def _rights(state: Path) -> MachineCheck:
    """Say whether the folder for state can be written, and whether others can look into it."""
    nearest = _nearest(state)
    if not os.access(nearest, os.W_OK | os.X_OK):
        return MachineCheck("folder for state", f"{nearest} cannot be written: set INCROWD_STATE", good=False)
    others = stat.S_IMODE(nearest.stat().st_mode) & (stat.S_IWGRP | stat.S_IWOTH)
    shared = others and nearest == state
    return MachineCheck("folder for state", f"{state}, which others can write" if shared else str(state), not shared)


def _nearest(folder: Path) -> Path:
    return next(path for path in (folder, *folder.absolute().parents) if path.is_dir())
