"""A small release and the help, started cold, beside a process that only imports what it cannot do without.

    python -m bench.cold_start              # 10,000 rows, CSV to CSV

Python's compiled modules are there, as after an installation.  Nearly all of such a release is imports, so the floor is
`import numpy, pyarrow`; the best of several runs counts, in turn, as both suffer alike from a machine that is not idle.
The goals: at most .55 and .15 CPU seconds where the floor takes .11.
"""

from __future__ import annotations

import os
import sys
import tempfile

from bench.rows import HEAD, Row, finish, show
from bench.safe_release import DATA, Run, measured, released, table

TIMES = 7
GOALS = {"release of 10,000 rows, cold": 0.55 / 0.11, "--help": 0.15 / 0.11}
FLOOR = "import numpy, pyarrow"


def main() -> None:
    """Measure all in turn; exit 1 if a goal is missed."""
    small = table(10_000, "csv")
    with tempfile.TemporaryDirectory(dir=DATA) as compiled:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = compiled
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        floors, runs, helps = list[Run](), list[Run](), list[Run]()
        for _ in range(1 + TIMES):  # the first one compiles
            floors.append(measured([sys.executable, "-c", FLOOR], DATA))
            runs.append(released(small, "0.5", "csv"))
            helps.append(measured([sys.executable, "-m", "incrowd", "--help"], DATA))
    floor, *best = (min(times[1:], key=lambda run: run.cpu) for times in (floors, runs, helps))
    print(HEAD)
    finish(
        [
            show(Row(work, run.cpu, floor.cpu, FLOOR, goal, megabytes=run.megabytes))
            for (work, goal), run in zip(GOALS.items(), best, strict=True)
        ]
    )


if __name__ == "__main__":
    main()
