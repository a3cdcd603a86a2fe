from __future__ import annotations

import contextlib
import os
import pty
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from incrowd.cli import progress as shown
from incrowd.cli.progress import progress
from tests.cli.hospital import patients, policy
from tests.cli.running import Runner


class AtOnce:
    """A timer that does not wait."""

    def __init__(self, _: float, call: Callable[..., object], arguments: tuple[Any, ...], more: dict[str, Any]) -> None:
        self.start = lambda: call(*arguments, **more)
        self.cancel = lambda: None


@contextlib.contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """Let standard error be a terminal of 80 columns, and gather what is shown there."""
    ours, theirs = pty.openpty()
    pieces = list[bytes]()

    def read() -> None:
        with contextlib.suppress(OSError):  # the end of a terminal is an error
            while piece := os.read(ours, 1 << 12):
                pieces.append(piece)

    reader = threading.Thread(target=read)
    reader.start()
    with monkeypatch.context() as patched, os.fdopen(theirs, "w", encoding="utf-8") as stream:
        patched.setenv("TERM", "xterm")
        patched.setenv("COLUMNS", "80")
        patched.setattr(sys, "stderr", stream)
        patched.setattr(shown, "Timer", AtOnce)
        yield pieces
    reader.join(60)
    os.close(ours)


@pytest.fixture
def folder(run: Runner, tmp_path: Path) -> Path:
    patients(tmp_path)
    policy(tmp_path, queries={}, budget={"epsilon": 9, "delta": "1e-3"})
    return tmp_path


READING = [
    ("profile patients.csv", "3,000 rows"),
    ("check --policy policy.yaml", "3,000 rows"),
    ("release --policy policy.yaml --out out", "3,000 rows"),
    ("assess out --policy policy.yaml", "3,000 rows"),
    ("attack out --policy policy.yaml --attack linkage", "0 attacks"),
    ('query "SELECT COUNT(*) AS n FROM patients" --policy policy.yaml --epsilon 0.1', "3,000 rows"),
]


def test_on_a_terminal_every_verb_that_reads_rows_shows_how_far_it_is(
    run: Runner, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for line, words in READING:
        with terminal(monkeypatch) as pieces:
            assert run(line).code in (0, 1), folder
        told = b"".join(pieces).decode()
        assert words in told
        assert "left" in told
        assert told.endswith("\x1b[2K"), "the bar was not wiped away"


def test_a_second_pass_starts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch) as pieces, progress(True) as tell:
        assert tell is not None
        tell(10, 20)
        tell(20, 20)
        tell(7, None)
    assert "pass 2" in b"".join(pieces).decode()


def test_elsewhere_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(True) as tell:
        assert tell is None
    assert capsys.readouterr() == ("", "")
