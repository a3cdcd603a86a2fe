"""Rows of a bench: CPU seconds of incrowd beside a floor or a peer of the same run, and exit 1 if a goal is missed.

`bench/all` names a file in INCROWD_BENCH; every bench adds its rows to it, and `scripts/bench compare` reads them.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn

FILE = "INCROWD_BENCH"


@dataclass(frozen=True)
class Row:
    """One measured work.  Its goal is a multiple of what stands beside it, and CPU seconds where nothing does.

    >>> Row("a copy", 1.2, 1.0, "DuckDB", goal=1.0).met
    False
    >>> Row("a copy", 1.2, 1.0, "DuckDB", goal=1.0, more=0.45).met
    True
    """

    work: str
    ours: float
    beside: float | None = None
    peer: str = ""
    goal: float | None = None
    more: float = 0.0
    """CPU seconds that are allowed besides."""
    megabytes: float | None = None
    most_megabytes: float | None = None

    @property
    def allowed(self) -> float | None:
        """The CPU seconds of the goal."""
        return None if self.goal is None else self.goal * (1.0 if self.beside is None else self.beside) + self.more

    @property
    def met(self) -> bool:
        """Whether time and memory are within the goal; true where there is none."""
        small = None in (self.megabytes, self.most_megabytes) or self.megabytes <= self.most_megabytes  # type: ignore[operator]
        return small and (self.allowed is None or self.ours <= self.allowed)

    @property
    def line(self) -> str:
        """The row as text: what stands beside it, ours, the ratio, memory, and whether the goal is met."""
        floor = " " * 10 if self.beside is None else f"{self.beside:10.3f}"
        ratio = " " * 9 if self.beside is None else f"{self.ours / self.beside:8.2f}×"
        memory = " " * 8 if self.megabytes is None else f"{self.megabytes:8.0f}"
        goal = " " * 10 if self.allowed is None else f"{self.allowed:10.3f}"
        return f"{self.work:44}{floor}{self.ours:10.3f}{ratio}{memory}{goal}  {'' if self.met else 'MISSED'}"


HEAD = f"{'CPU seconds':44}{'beside':>10}{'incrowd':>10}{'ratio':>9}{'MB':>8}{'goal':>10}"


def show(row: Row) -> Row:
    """Print a row as soon as it is measured, and add it to the file of `bench/all`."""
    print(row.line, flush=True)
    if FILE in os.environ:
        with Path(os.environ[FILE]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(row) | {"met": row.met}) + "\n")
    return row


def finish(rows: Iterable[Row]) -> NoReturn:
    """Say which goals are missed, and leave with 1 if any is."""
    missed = [row.work for row in rows if not row.met]
    print(f"GOALS MISSED: {', '.join(missed)}" if missed else "goals met")
    sys.exit(1 if missed else 0)
