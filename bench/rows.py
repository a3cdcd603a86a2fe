"""Rows of a bench: CPU seconds of incrowd beside a floor or a peer of the same run, and exit 1 if a goal is missed.

`bench/all` names a file in INCROWD_BENCH; every bench adds its rows to it, and `scripts/bench compare` reads them.

A peer runs in an environment of its own, INCROWD_PEERS/NAME/bin/python, with the packages that bench/peers/NAME.py
imports (the two of graphs need numpy and pyarrow besides); its rows are left out, and that is printed, where the
environment is not there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

FILE, PEERS = "INCROWD_BENCH", "INCROWD_PEERS"


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


def peer(name: str, *words: str) -> dict[str, Any] | None:
    """Run a peer and return what it measured; None where its environment is not there."""
    place = os.environ.get(PEERS)
    python = Path(place or "peers", name, "bin", "python")
    if place is None or not python.exists():
        print(f"{name} is not there: its rows are left out. Make its environment and name the folder in {PEERS}.")
        return None
    command = [str(python), str(Path(__file__).parent / "peers" / f"{name}.py"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name} failed:\n{done.stderr[-2000:]}")
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def finish(rows: Iterable[Row]) -> NoReturn:
    """Say which goals are missed, and leave with 1 if any is."""
    missed = [row.work for row in rows if not row.met]
    print(f"GOALS MISSED: {', '.join(missed)}" if missed else "goals met")
    sys.exit(1 if missed else 0)
