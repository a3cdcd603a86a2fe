"""Samples that make trouble for the task that asks them, and are otherwise what they wrap."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from incrowd.core.coins import Sample

PATIENCE = 600.0
"""How many seconds a held task hangs, and others wait for it, if nobody comes."""


def attempt() -> tuple[int, int]:
    """Return the number of the partition that this task works on, and which attempt at it this is."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return (context.partitionId(), context.attemptNumber()) if context is not None else (0, 0)


@dataclass(frozen=True)
class Unsteady:
    """Notes every attempt in a folder, by host; then first attempts at a task fail, or one is slow, after its coins."""

    sample: Sample
    folder: str
    fails: bool = False
    slow: bool = False
    """The first attempt at the first task hangs until there is a second one."""
    held: str = ""
    """The host on which every attempt hangs until it is killed; first attempts elsewhere wait until one hangs there."""

    def at(self, start: int, stop: int) -> NDArray[np.bool_]:
        coins = self.sample.at(start, stop)
        partition, number = attempt()
        host = os.environ.get("SPARK_LOCAL_IP", "")
        Path(self.folder, f"{partition}-{number}-{host}").touch()
        if number == 0 and self.fails:
            raise RuntimeError("this attempt fails when it has read some of its rows")
        if (partition, number) == (0, 0) and self.slow:
            self._wait_for("0-1-*")
        if self.held and host == self.held:
            time.sleep(PATIENCE)
        elif self.held and number == 0:
            self._wait_for(f"*-{self.held}")
        return coins

    def _wait_for(self, note: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and not any(Path(self.folder).glob(note)):
            time.sleep(0.05)
