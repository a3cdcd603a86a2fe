"""Samples that make trouble for the task that asks them, and are otherwise what they wrap."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from incrowd.core.coins import Sample

PATIENCE = 180.0
"""How many seconds a held task hangs, and others wait for it, if nobody comes."""


def attempt() -> tuple[int, int]:
    """Return the number of the partition that this task works on, and which attempt at it this is."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return (context.partitionId(), context.attemptNumber()) if context is not None else (0, 0)


@dataclass(frozen=True)
class Unsteady:
    """Notes every attempt in a folder, by host; then the first attempt at a task fails, or sleeps, after its coins."""

    sample: Sample
    folder: str
    fails: bool = False
    sleeps: float = 0
    where: str = ""
    """The host on which it sleeps; everywhere if empty."""
    held: str = ""
    """The host on which every attempt hangs until it is killed; first attempts elsewhere wait until one hangs there."""

    def at(self, start: int, stop: int) -> NDArray[np.bool_]:
        coins = self.sample.at(start, stop)
        partition, number = attempt()
        host = os.environ.get("SPARK_LOCAL_IP", "")
        Path(self.folder, f"{partition}-{number}-{host}").touch()
        if number == 0 and self.fails:
            raise RuntimeError("this attempt fails when it has read some of its rows")
        if number == 0 and self.sleeps and host.startswith(self.where):
            time.sleep(self.sleeps)
        if self.held and host == self.held:
            time.sleep(PATIENCE)
        elif self.held and number == 0:
            self._wait_for_a_hanging_task()
        return coins

    def _wait_for_a_hanging_task(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and not any(Path(self.folder).glob(f"*-{self.held}")):
            time.sleep(0.05)
