"""Processes that are told to end, and processes that are killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kills import Round, Scene, play
from tests.ports import free_port
from tests.web.processes import PATIENCE, wait_for

ROUNDS, SEED = 8, 20
ENDING = """
import pathlib, resource, signal, time
from types import SimpleNamespace
from incrowd.cli import entry, main

def work(**_: object) -> int:
    try:
        signal.raise_signal({number})
        time.sleep(0.01)
        return 0
    except KeyboardInterrupt:
        pathlib.Path("closed").write_text(str(resource.getrlimit(resource.RLIMIT_CORE)[0]))
        return 130

signal.signal({number}, {before})
main.typer.main.get_command = lambda app: SimpleNamespace(main=work)
entry.start()
"""


def ending(folder: Path, number: signal.Signals, before: signal.Handlers) -> int:
    program = ENDING.format(number=int(number), before=int(before))
    return subprocess.run([sys.executable, "-c", program], cwd=folder, check=False).returncode


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_end_unwinds_like_an_interrupt_and_no_core_is_written(
    tmp_path: Path, number: signal.Signals
) -> None:
    assert ending(tmp_path, number, signal.SIG_DFL) == 130
    assert (tmp_path / "closed").read_text() == "0"


@pytest.mark.long
def test_a_process_that_is_to_outlive_its_terminal_does(tmp_path: Path) -> None:
    assert ending(tmp_path, signal.SIGHUP, signal.SIG_IGN) == 0


@pytest.mark.long
@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_server_that_is_told_to_end_closes_what_it_has_open(tmp_path: Path, number: signal.Signals) -> None:
    scene, port = Scene.at(tmp_path), free_port()
    with scene.start(Round(0, "serve", scene.sources[1]), port) as process:
        wait_for(f"http://127.0.0.1:{port}/healthz", process)
        process.send_signal(number)
        assert process.wait(PATIENCE) == 0
    assert list(scene.scratch.iterdir()) == []


@pytest.mark.long
def test_a_process_that_is_killed_at_any_moment_leaves_no_identifier_and_no_charge_unexplained(tmp_path: Path) -> None:
    play(Scene.at(tmp_path), ROUNDS, SEED)
