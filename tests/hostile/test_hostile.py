"""Every hostile file gets an answer or a refusal, in bounded time and memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from incrowd.core.limits import CERTIFICATE_BYTES, check_depth
from incrowd.engines.regular_file import open_regular, read_bounded
from incrowd.engines.worker import WorkerLimits, count_file, lift_limits, limited
from incrowd.errors import InvalidParameter, LimitExceeded, ReaderCrashed
from tests.hostile.documents import DOCUMENTS
from tests.hostile.tables import TABLES
from tests.hostile.tasks import count_to, crash, fault, fill_memory, refuse, spin

ROOT = Path(__file__).parents[2]


def test_every_hostile_file_gets_an_answer_or_a_refusal(tmp_path: Path) -> None:
    assert len(DOCUMENTS | TABLES) >= 80
    environment = os.environ | {"TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-m", "tests.hostile", "--quick"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.count(" exit ") == len(DOCUMENTS | TABLES)


@pytest.fixture
def limits_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INCROWD_LIMITS", raising=False)


@pytest.mark.usefixtures("limits_on")
def test_a_worker_that_takes_too_much_memory_is_ended() -> None:
    with pytest.raises(LimitExceeded, match=r"MB of memory.*--no-limits"):
        limited(fill_memory)


@pytest.mark.usefixtures("limits_on")
def test_a_worker_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("incrowd.engines.worker.LIMITED", WorkerLimits(clock=3))
    with pytest.raises(LimitExceeded, match="longer than files of this size need"):
        limited(spin)


@pytest.mark.usefixtures("limits_on")
def test_a_crash_an_error_and_a_fault_of_a_worker_are_told() -> None:
    with pytest.raises(ReaderCrashed, match="SIGSEGV"):
        limited(crash)
    with pytest.raises(InvalidParameter, match="this is refused"):
        limited(refuse)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        limited(fault)


@pytest.mark.usefixtures("limits_on")
def test_a_worker_tells_how_far_it_is() -> None:
    heard: list[int] = []
    assert limited(count_to, 7, tell=lambda done, _total: heard.append(done)) == 7
    assert set(heard) <= {0, 7}


def test_limits_grow_with_large_files_only() -> None:
    assert WorkerLimits(10, 20, 30).for_size(1) == WorkerLimits(10, 20, 30)
    assert WorkerLimits(10, 20, 30).for_size(640 * 2**20) == WorkerLimits(100, 200, 300)
    count_file("nothing", 1)  # outside of a worker, nothing is counted
    lift_limits()


def command(words: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"HOME": str(folder)} | variables
    return subprocess.run(
        [sys.executable, "-m", "incrowd", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_a_command_says_which_limit_was_hit_and_how_to_lift_it(tmp_path: Path) -> None:
    words = TABLES["sqlite: a value of 900 MB"](tmp_path)
    ended = command([*words, "--json"], tmp_path)
    assert ended.returncode == 1
    assert '"kind": "LimitExceeded"' in ended.stderr
    assert "--no-limits" in ended.stderr
    assert ended.stdout == ""


def test_a_command_ends_as_before_and_limits_can_be_lifted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("age,sex\n41,F\n41,F\n")
    codes = {
        command(["profile", "a.csv"], tmp_path).returncode,
        command(["profile", "a.csv", "--no-limits"], tmp_path).returncode,
        command(["profile", "a.csv"], tmp_path, INCROWD_LIMITS="off").returncode,
    }
    assert codes == {0}


def test_a_command_that_is_asked_to_end_ends_with_its_worker(tmp_path: Path) -> None:
    words = TABLES["sqlite: an endless view"](tmp_path)
    process = subprocess.Popen([sys.executable, "-m", "incrowd", *words], cwd=tmp_path, stderr=subprocess.PIPE)
    time.sleep(2)
    process.terminate()
    _, text = process.communicate(timeout=120)
    assert process.returncode in (1, 130)
    assert b"Traceback" not in text


def test_only_files_are_opened(tmp_path: Path) -> None:
    file, link, pipe = tmp_path / "file", tmp_path / "link", tmp_path / "pipe"
    file.write_text("abc")
    link.symlink_to(file)
    os.mkfifo(pipe)
    with open_regular(file) as opened:
        assert opened.read() == b"abc"
    for place in (link, pipe, tmp_path, Path("/dev/zero")):
        with pytest.raises(InvalidParameter, match="only files are read here"):
            open_regular(place)
    assert read_bounded(link, 3, through_link=True) == b"abc"
    with pytest.raises(InvalidParameter, match="more than 2 bytes"):
        read_bounded(file, 2)


def test_a_document_is_not_nested_without_end() -> None:
    deep: list[object] = []
    for _ in range(100):
        deep = [deep]
    with pytest.raises(InvalidParameter, match="nested more than 64 deep"):
        check_depth(deep, "a certificate")
    assert CERTIFICATE_BYTES == 16 * 2**20
