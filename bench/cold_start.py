"""A small release, started cold, beside a process that only imports what it cannot do without: CPU seconds of each.

    python -m bench.cold_start              # 10,000 rows, CSV to CSV

Python's compiled modules are there, as after an installation.  Nearly all of such a release is imports, so the floor is
`import numpy, pyarrow`; the best of several runs counts, in turn, as both suffer alike from a machine that is not idle.
The goal: at most 0.7 CPU seconds where the floor takes 0.11, which is 6.4 floors.
"""

from __future__ import annotations

import os
import sys
import tempfile

from bench.safe_release import DATA, Run, measured, released, table

TIMES = 7
GOAL_RATIO = 6.4
FLOOR = "import numpy, pyarrow"


def main() -> None:
    """Measure both in turn; exit 1 if the goal is missed."""
    small = table(10_000, "csv")
    with tempfile.TemporaryDirectory(dir=DATA) as compiled:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = compiled
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        floors, runs = list[Run](), list[Run]()
        for _ in range(1 + TIMES):  # the first one compiles
            floors.append(measured([sys.executable, "-c", FLOOR], DATA))
            runs.append(released(small, "0.5", "csv"))
    floor, run = (min(each[1:], key=lambda each: each.cpu) for each in (floors, runs))
    ratio = run.cpu / floor.cpu
    print(f"{'':28} {'wall s':>8} {'CPU s':>8} {'peak MB':>8} {'ratio':>8}")
    print(f"{FLOOR:28} {floor.wall:8.2f} {floor.cpu:8.2f} {floor.megabytes:8.0f}")
    print(f"{'10,000 rows, released':28} {run.wall:8.2f} {run.cpu:8.2f} {run.megabytes:8.0f} {ratio:7.1f}×")
    print("goal met" if ratio <= GOAL_RATIO else "GOAL MISSED")
    sys.exit(0 if ratio <= GOAL_RATIO else 1)


if __name__ == "__main__":
    main()
