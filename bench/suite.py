"""The quick tests, once everything is set up: seconds on the clock of `./test --quick`, and its CPU seconds.

    python -m bench.suite

It runs twice, and the second run counts: the first one sets up what is missing.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from bench.rows import FILE, HEAD, Row, finish, show

ROOT = Path(__file__).resolve().parent.parent
GOAL = 90.0


def run() -> tuple[float, float]:
    """Run the quick tests; return seconds on the clock and CPU seconds."""
    environment = {name: value for name, value in os.environ.items() if name != FILE}
    wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([str(ROOT / "test"), "--quick"], stdout=subprocess.DEVNULL, env=environment, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit("./test --quick failed")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - wall, cpu


def main() -> None:
    """Measure both; exit 1 if the goal is missed."""
    run()
    seconds, cpu = run()
    print(HEAD)
    finish([show(Row("./test --quick, seconds on the clock", seconds, goal=GOAL)), show(Row("./test --quick", cpu))])


if __name__ == "__main__":
    main()
