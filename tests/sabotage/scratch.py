"""A scratch copy of source and tests, in which sabotages are applied one after the other.

The copy is never installed: `PYTHONPATH` leads to it.  Tests run there with a home, a state and temporary files of
their own, so that no ledger outside of the copy is touched.
"""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.sabotage.first_failure import REPORT
from tests.sabotage.sabotage import Sabotage, applied_in

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 600.0
"""Seconds after which tests are ended: a sabotage that makes a release endless is noticed, too."""
_COPIED, _LINKED = ("src", "tests"), ("docs", "examples", "demo", "bench", "scripts", "pyproject.toml", "README.md")
_HERE = ("-m", "not (spark or postgres or browser or docs)")
"""Tests that start no server of their own: it could not read a scratch copy that belongs to another user."""
_FAILED, _NOTHING = (1, 2), (4, 5)
"""How pytest ends if a test fails or a file of tests cannot be read; and if there is no test of a name."""
ENDLESS = f"a test that did not end within {LIMIT:.0f} seconds"


class Unusable(AssertionError):
    """The tests of an area say nothing, because they fail without any sabotage, or do not exist."""


class OutOfTime(Exception):
    """The time for all sabotages of a run is over; nothing is known of this one."""


@dataclass(frozen=True)
class Verdict:
    """What became of a sabotage: the test that noticed it, if one did, and in how many seconds."""

    sabotage: Sabotage
    noticed_by: str | None
    seconds: float

    @property
    def sentence(self) -> str:
        """The verdict in one line."""
        what = f"caught by {self.noticed_by}" if self.noticed_by else "SURVIVED"
        return f"{self.seconds:6.1f} s  {self.sabotage.area:14} {what}\n          {self.sabotage.name}"


@dataclass
class Scratch:
    """A copy of a checkout, and the time on the clock after which nothing runs there any more."""

    root: Path
    deadline: float = math.inf
    passed: set[str] = field(default_factory=set)

    def verdict(self, sabotage: Sabotage, witness: str | None = None) -> Verdict:
        """Apply a sabotage, run its tests, and put the source back; a test that noticed it before runs first.

        Whoever notices must pass without the sabotage, else it says nothing.
        """
        start = time.monotonic()
        lists = ([(witness,)] if witness else []) + [sabotage.tests]
        noticed = next(filter(None, (self._noticed(sabotage, tests) for tests in lists)), None)
        if noticed is not None and noticed != ENDLESS:
            self._check_without(noticed)
        return Verdict(sabotage, noticed, time.monotonic() - start)

    def _noticed(self, sabotage: Sabotage, tests: tuple[str, ...]) -> str | None:
        """Return the first test that fails under a sabotage, None if all pass."""
        path = self.root / "src" / "incrowd" / sabotage.file
        before = path.read_text(encoding="utf-8")
        path.write_text(applied_in(sabotage, self.root), encoding="utf-8")
        try:
            code, text, first = self._run(tests)
        finally:
            path.write_text(before, encoding="utf-8")
        if code == 0 or (code in _NOTHING and tests != sabotage.tests):
            return None  # all pass, or the test that noticed it before has another name now
        if code is not None and code not in _FAILED:
            raise Unusable(f"pytest {' '.join(tests)} ends with {code}:\n{text[-3000:]}")
        return ENDLESS if code is None else first

    def _check_without(self, test: str) -> None:
        """Refuse a test that fails without a sabotage; each runs once."""
        if test not in self.passed:
            code, text, _ = self._run((test,))
            if code:
                raise Unusable(f"without a sabotage {test} ends with {code}:\n{text[-3000:]}")
            self.passed.add(test)

    def _run(self, tests: tuple[str, ...]) -> tuple[int | None, str, str]:
        """Return how pytest ends (None: not within `LIMIT` seconds), what it prints, and the test that fails first."""
        limit = min(LIMIT, self.deadline - time.monotonic())
        if limit <= 0:
            raise OutOfTime
        report = self.root / "first_failure"
        report.write_text("", encoding="utf-8")
        options = ("-q", "-x", "-p", "no:cacheprovider", "--hypothesis-profile", "quick", "--tb", "line", *_HERE)
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-p", "tests.sabotage.first_failure", *options, *tests],
            cwd=self.root,
            env={**environment(self.root), REPORT: str(report)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            text, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            if limit < LIMIT:
                raise OutOfTime from None
            return None, "", ""
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        return process.returncode, text, report.read_text(encoding="utf-8").strip() or "the import"


def environment(root: Path) -> dict[str, str]:
    """Return variables under which nothing outside of the copy is read or written but the libraries."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("INCROWD_", "XDG_", "PYTEST_"))}
    home = root / "home"
    places = {name: str(home / name.lower()) for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")}
    return {
        **own,
        **places,
        "HOME": str(home),
        "TMPDIR": str(root / "temporary"),
        "PYTHONPATH": str(root / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


@contextmanager
def scratch(seconds: float = math.inf) -> Iterator[Scratch]:
    """Copy source and tests, and remove the copy afterwards; tests run there for at most `seconds`.

    Compiled files come along, but those of the sources that are changed are never trusted: they are compared with the
    time of the source, which a change in the same second would keep, so the copies get an old time.
    """
    start, memory = time.monotonic(), Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="sabotage-", dir=memory if memory.is_dir() else None) as folder:
        root = Path(folder)
        root.chmod(0o755)  # some tests try rights as another user
        for name in _COPIED:
            shutil.copytree(ROOT / name, root / name, symlinks=True)
        for name in _LINKED:
            (root / name).symlink_to(ROOT / name)
        for name in ("home", "temporary"):
            (root / name).mkdir()
        _check_import(root)
        yield Scratch(root, start + seconds)


def _check_import(root: Path) -> None:
    """Refuse to go on if the package that is imported is not the copy."""
    command = [sys.executable, "-c", "import incrowd; print(incrowd.__file__)"]
    imported = subprocess.run(command, env=environment(root), cwd=root, capture_output=True, text=True, check=True)
    if not imported.stdout.startswith(str(root)):
        raise Unusable(f"the copy is not imported, but {imported.stdout.strip()}")
