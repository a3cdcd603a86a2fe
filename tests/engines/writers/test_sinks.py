"""Publishing: all of it at once or nothing, also under Ctrl-C, a full disk and kill -9."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from incrowd.engines.writers.sinks import Folders, check_free, staged, write_table
from incrowd.errors import InvalidParameter, OutputUnavailable

TABLE = pa.table({"a": ["x", "y"]})


def write(stage: Folders) -> None:
    write_table(TABLE, stage.public / "data.csv")
    if stage.internal:
        (stage.internal / "numbers.json").write_text("{}")


def accept(stage: Folders) -> None:
    assert (stage.public / "data.csv").read_text() == "a\nx\ny\n"


def publish(target: Folders, *steps: Callable[[Folders], None]) -> None:
    with staged(target) as stage:
        for step in steps:
            step(stage)


def everything(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*"))


@pytest.mark.parametrize("prepare", [lambda out: None, lambda out: out.mkdir()], ids=["absent", "empty"])
def test_all_files_appear_and_nothing_else(tmp_path: Path, prepare: Callable[[Path], None]) -> None:
    prepare(tmp_path / "out")
    publish(Folders(tmp_path / "out", tmp_path / "deep" / "internal" / "r1"), write, accept)
    assert everything(tmp_path) == [
        "deep",
        "deep/internal",
        "deep/internal/r1",
        "deep/internal/r1/numbers.json",
        "out",
        "out/data.csv",
    ]


def test_the_public_folder_has_usual_rights_and_the_internal_one_is_private(tmp_path: Path) -> None:
    usual = tmp_path / "usual"
    usual.mkdir()
    publish(Folders(tmp_path / "out", tmp_path / "in"), write, accept)
    assert (tmp_path / "out").stat().st_mode == usual.stat().st_mode
    assert stat.S_IMODE((tmp_path / "in").stat().st_mode) == 0o700


def test_nothing_is_there_while_it_is_being_written_and_checked(tmp_path: Path) -> None:
    target = Folders(tmp_path / "out", tmp_path / "in")

    def look(stage: Folders) -> None:
        assert not target.public.exists()
        assert target.internal is not None
        assert not target.internal.exists()
        for folder in (stage.public, stage.internal):
            assert folder is not None
            assert folder.parent.name.startswith(".")
            assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
        write(stage)

    publish(target, look, accept)
    assert target.public.exists()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("step", ["write", "check"])
def test_whatever_goes_wrong_nothing_appears(tmp_path: Path, error: type[BaseException], step: str) -> None:
    def fail(stage: Folders) -> None:
        write(stage)
        raise error

    steps = (fail, accept) if step == "write" else (write, fail)
    with pytest.raises(error):
        publish(Folders(tmp_path / "a" / "out", tmp_path / "b" / "in"), *steps)
    assert everything(tmp_path) == []


def test_a_check_that_says_no_stops_the_release(tmp_path: Path) -> None:
    class TooSmall(Exception):
        pass

    def recount(stage: Folders) -> None:
        raise TooSmall

    with pytest.raises(TooSmall):
        publish(Folders(tmp_path / "out"), write, recount)
    assert everything(tmp_path) == []


def test_if_the_public_folder_cannot_appear_the_internal_one_does_not_stay(tmp_path: Path) -> None:
    target = Folders(tmp_path / "out", tmp_path / "in")

    def intrude(stage: Folders) -> None:
        target.public.mkdir()
        (target.public / "somebody else's").touch()

    with pytest.raises(OutputUnavailable, match="Nothing appeared"):
        publish(target, write, intrude)
    assert everything(tmp_path) == ["out", "out/somebody else's"]


def test_a_folder_that_is_not_empty_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old.csv").touch()
    with pytest.raises(OutputUnavailable, match="is not empty, and nothing is overwritten"):
        check_free(Folders(tmp_path / "out"))
    with pytest.raises(OutputUnavailable):
        publish(Folders(tmp_path / "new", tmp_path / "out"), write, accept)
    assert everything(tmp_path) == ["out", "out/old.csv"]


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    with pytest.raises(OutputUnavailable, match="is a file"):
        check_free(Folders(tmp_path / "out"))
    with pytest.raises(OutputUnavailable, match="cannot be written to"):
        check_free(Folders(tmp_path / "out" / "below"))


@pytest.mark.parametrize(("public", "internal"), [("out", "out/in"), ("in/out", "in"), ("x", "x")])
def test_internal_and_public_must_lie_apart(tmp_path: Path, public: str, internal: str) -> None:
    with pytest.raises(InvalidParameter, match="Keep them apart"):
        check_free(Folders(tmp_path / public, tmp_path / internal))


def test_a_link_to_a_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    publish(Folders(tmp_path / "out"), write, accept)
    assert (tmp_path / "real" / "data.csv").exists()


def test_an_unknown_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match=r"\.parquet, \.csv, \.tsv"):
        write_table(TABLE, tmp_path / "data.xlsx")


FILL_DISK = """
import resource, sys
from pathlib import Path
import numpy as np, pyarrow as pa
from incrowd.engines.writers.sinks import Folders, staged, write_table
from incrowd.errors import OutputUnavailable
table = pa.table({"a": np.random.default_rng(0).integers(0, 2**60, 500_000)})
root, name = Path(sys.argv[1]), sys.argv[2]
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
try:
    target = Folders(root / "out", root / "in")
    with staged(target) as stage:
        write_table(table, stage.public / name)
except OutputUnavailable as error:
    print(error)
"""
HANG = """
import sys, time
from pathlib import Path
from incrowd.engines.writers.sinks import Folders, staged
root = Path(sys.argv[1])
with staged(Folders(root / "out", root / "in")) as stage:
    (stage.public / "half").write_text("secret")
    (stage.internal / "half").write_text("secret")
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("name", ["data.parquet", "data.csv"])
def test_a_full_disk_is_reported_and_leaves_nothing(tmp_path: Path, name: str) -> None:
    command = [sys.executable, "-c", FILL_DISK, str(tmp_path), name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "File too large. Nothing appeared there." in done.stdout
    assert everything(tmp_path) == []


@pytest.fixture
def hanging(tmp_path: Path) -> subprocess.Popen[str]:
    child = subprocess.Popen([sys.executable, "-c", HANG, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


def stop(child: subprocess.Popen[str], how: signal.Signals) -> None:
    os.kill(child.pid, how)
    child.wait()
    assert child.stdout is not None
    child.stdout.close()


def test_ctrl_c_leaves_nothing(tmp_path: Path, hanging: subprocess.Popen[str]) -> None:
    stop(hanging, signal.SIGINT)
    assert everything(tmp_path) == []


def test_what_a_killed_process_leaves_is_hidden_and_swept_by_the_next_release(
    tmp_path: Path, hanging: subprocess.Popen[str]
) -> None:
    stop(hanging, signal.SIGKILL)
    left = list(tmp_path.iterdir())
    assert all(path.name.startswith(".") for path in left)
    assert [stat.S_IMODE(path.stat().st_mode) for path in left if path.is_dir()] == [0o700, 0o700]
    assert [path.stat().st_size for path in left if path.is_file()] == [0, 0]  # the locks of both
    publish(Folders(tmp_path / "out", tmp_path / "in"), write, accept)
    assert everything(tmp_path) == ["in", "in/numbers.json", "out", "out/data.csv"]


def test_a_release_at_work_is_not_swept_away(tmp_path: Path, hanging: subprocess.Popen[str]) -> None:
    working = sorted(tmp_path.iterdir())
    publish(Folders(tmp_path / "out", tmp_path / "in"), write, accept)
    assert [folder for folder in working if folder.exists()] == working
    stop(hanging, signal.SIGINT)
    assert everything(tmp_path) == ["in", "in/numbers.json", "out", "out/data.csv"]
