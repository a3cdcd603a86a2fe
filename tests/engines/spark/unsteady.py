"""Samples that make trouble for the task that asks them, and are otherwise what they wrap."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from incrowd.core.mechanism import Sample


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

    def at(self, start: int, stop: int) -> NDArray[np.bool_]:
        coins = self.sample.at(start, stop)
        partition, number = attempt()
        host = os.environ.get("SPARK_LOCAL_IP", "")
        Path(self.folder, f"{partition}-{number}-{host}").touch()
        if number == 0 and self.fails:
            raise RuntimeError("this attempt fails when it has read some of its rows")
        if number == 0 and self.sleeps and host.startswith(self.where):
            time.sleep(self.sleeps)
        return coins
