"""A scratch copy of source and tests, in which sabotages are applied one after the other.

The copy is never installed: `PYTHONPATH` leads to it.  Tests run there with a home, a state and temporary files of
their own, so that no ledger outside of the copy is touched.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.sabotage.sabotage import Sabotage, applied_in

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 600
"""Seconds after which tests are ended: a sabotage that makes a release endless is noticed, too."""
_COPIED, _LINKED = ("src", "tests"), ("docs", "examples", "demo", "bench", "scripts", "pyproject.toml", "README.md")
_HERE = ("-m", "not (spark or postgres or browser or docs)")
"""Tests that start no server of their own: it could not read a scratch copy that belongs to another user."""
_FAILED = (1, 2)
"""How pytest ends if a test fails, or if a file of tests cannot be read."""


class Unusable(AssertionError):
    """The tests of an area say nothing, because they fail without any sabotage, or do not exist."""


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
    """A copy of a checkout."""

    root: Path
    passed: set[tuple[str, ...]] = field(default_factory=set)

    def verdict(self, sabotage: Sabotage) -> Verdict:
        """Apply a sabotage, run its tests, and put the source back."""
        self._check_without(sabotage.tests)
        path = self.root / "src" / "incrowd" / sabotage.file
        before, start = path.read_text(encoding="utf-8"), time.monotonic()
        path.write_text(applied_in(sabotage, self.root), encoding="utf-8")
        try:
            code, text = self._run(sabotage.tests)
        finally:
            path.write_text(before, encoding="utf-8")
        return Verdict(sabotage, _noticed(code, text), time.monotonic() - start)

    def _check_without(self, tests: tuple[str, ...]) -> None:
        """Refuse tests that fail without a sabotage; each list of them runs once."""
        if tests not in self.passed:
            code, text = self._run(tests)
            if code:
                raise Unusable(f"without a sabotage pytest {' '.join(tests)} ends with {code}:\n{text[-3000:]}")
            self.passed.add(tests)

    def _run(self, tests: tuple[str, ...]) -> tuple[int, str]:
        options = ("-q", "-x", "-p", "no:cacheprovider", "--hypothesis-profile", "quick", "--tb", "line", *_HERE)
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=self.root,
            env=environment(self.root),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            text, _ = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return -1, ""
        return process.returncode, text


def _noticed(code: int, text: str) -> str | None:
    """Return which test failed, None if all passed; refuse any other end."""
    if code == 0:
        return None
    if code == -1:
        return f"a test that did not end within {LIMIT} seconds"
    if code not in _FAILED:
        raise Unusable(f"pytest ends with {code}:\n{text[-3000:]}")
    lines = [line for line in text.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return lines[0].split(" ", 1)[1].split(" - ")[0] if lines else "the import"


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
def scratch() -> Iterator[Scratch]:
    """Copy source and tests, and remove the copy afterwards.

    Compiled files come along, but those of the sources that are changed are never trusted: they are compared with the
    time of the source, which a change in the same second would keep, so the copies get an old time.
    """
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="sabotage-", dir=memory if memory.is_dir() else None) as folder:
        root = Path(folder)
        for name in _COPIED:
            shutil.copytree(ROOT / name, root / name, symlinks=True)
        for name in _LINKED:
            (root / name).symlink_to(ROOT / name)
        for name in ("home", "temporary"):
            (root / name).mkdir()
        _check_import(root)
        yield Scratch(root)


def _check_import(root: Path) -> None:
    """Refuse to go on if the package that is imported is not the copy."""
    command = [sys.executable, "-c", "import incrowd; print(incrowd.__file__)"]
    imported = subprocess.run(command, env=environment(root), cwd=root, capture_output=True, text=True, check=True)
    if not imported.stdout.startswith(str(root)):
        raise Unusable(f"the copy is not imported, but {imported.stdout.strip()}")
