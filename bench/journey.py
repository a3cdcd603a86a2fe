"""The road of an engineer with many trips: from a raw file to a verified release, by commands alone.

python -m bench.journey [ROWS]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from incrowd.cli.main import main
from tests.journeys.raw_files import trips

ROWS = 2_000_000
ROAD = (
    "check trips.csv --json",
    "profile trips.csv --write policy.yaml --period 2024 --json",
    "plan --policy policy.yaml --json",
    "release --policy policy.yaml --out out --json",
    "verify out --ledger sqlite:///.incrowd/ledger.sqlite --json",
)


def walk(rows: int) -> list[tuple[str, int, float]]:
    """Return each command of the road with its exit code and its CPU seconds."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        trips(Path(folder), rows)
        os.chdir(folder)
        for line in ROAD:
            begin = time.process_time()
            code = main(line.split())
            found.append((line.split()[0], code, time.process_time() - begin))
        os.chdir("/")
    return found


if __name__ == "__main__":
    rows = int(sys.argv[1]) if sys.argv[1:] else ROWS
    for verb, code, seconds in walk(rows):
        print(f"{verb:8} exit {code}  {seconds:7.1f} CPU s", file=sys.stderr)
