"""One verb on one hostile file: how it ended, and what time and memory it took."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from incrowd.engines.worker import WorkerLimits, fork_worker
from incrowd.errors import IncrowdError
from tests.hostile.documents import DOCUMENTS, MARK, Make
from tests.hostile.tables import TABLES
from tests.released import release_into

CORPUS: dict[str, Make] = DOCUMENTS | TABLES


@dataclass(frozen=True)
class Ending:
    """How a verb ended on a hostile file."""

    name: str
    verb: str
    code: int
    seconds: float
    processor: float
    memory: int
    bytes: int
    text: str
    left: tuple[str, ...]

    @property
    def problem(self) -> str | None:
        """What is wrong with it: a crash, a trace, content from outside, files left behind; None if it ended well."""
        if self.code not in (0, 1, 2):
            return f"exit code {self.code}: {self.text[-300:]}"
        if not self.text.strip():
            return "it said nothing"
        if "Traceback" in self.text or MARK in self.text:
            return "it shows a trace, or what stands outside"
        return f"it left {', '.join(self.left)}" if self.left else None


def run_corpus(place: Path, names: list[str], start: Callable[[list[str]], int]) -> Iterator[Ending]:
    """Make each file in a folder of its own, run a verb on it by `start` in a child, and remove the folder."""
    in_child(lambda: [str(release_into(place / "release").path)])
    for name in names:
        folder = place / "case"
        shutil.copytree(place / "release", folder)
        shutil.rmtree(folder / ".incrowd", ignore_errors=True)
        words = in_child(partial(CORPUS[name], folder))
        size = sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())
        yield _ending(name, words, size, (folder, start))
        shutil.rmtree(folder)


def in_child(work: Callable[[], list[str]]) -> list[str]:
    """Return the words that some work gives, done in a child, so that this process stays small and without threads."""
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                output.write(json.dumps(work()).encode())
                output.flush()
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        output.seek(0)
        words: list[str] = json.load(output)
        return words


def _ending(name: str, words: list[str], size: int, run: tuple[Path, Callable[[list[str]], int]]) -> Ending:
    folder, start = run
    temporary = folder.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    before = set(folder.rglob("*"))
    began = time.monotonic()
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            os.chdir(folder)
            os.environ["TMPDIR"] = str(temporary)
            for stream in (1, 2):
                os.dup2(output.fileno(), stream)
            code = 99
            try:
                code = start(words)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        _, status, usage = os.wait4(child, 0)
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    left = (*(set(folder.rglob("*")) - before), *temporary.iterdir())
    return Ending(
        name,
        words[0],
        os.waitstatus_to_exitcode(status),
        time.monotonic() - began,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss * 1024,
        size,
        text,
        tuple(sorted(path.name for path in left)),
    )


def within(limits: WorkerLimits) -> Callable[[list[str]], int]:
    """Return a start of the command line within limits, without importing it again for each file."""

    def start(words: list[str]) -> int:
        from incrowd.cli.main import fail, main

        try:
            code = fork_worker(limits)
        except IncrowdError as error:
            return fail(str(error), type(error).__name__, error.exit_code, as_json=False)
        return main(words) if code is None else code

    return start


def as_installed(words: list[str]) -> int:
    """Start the command line as a person does."""
    os.execv(sys.executable, [sys.executable, "-m", "incrowd", *words])
