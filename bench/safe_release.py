"""A safe release, file to file, beside DuckDB merely copying the same file; time, CPU and peak memory of each.

    python -m bench.safe_release            # 1M rows
    python -m bench.safe_release 1e6 1e7 1e8

Every figure is a whole process, started cold, measured by the kernel (rusage of the child).  The goals: from ten
million rows on at most the CPU of the copy, and .7 of it for Parquet; below, at most .45 CPU seconds
more; at most 600 MB.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.rows import HEAD, Row, finish, show

HERE = Path(__file__).parent
DATA = HERE / "data"
GOAL_RATIOS, GOAL_MORE, GOAL_MEMORY = {"parquet": 0.7, "csv": 1.0}, 0.45, 600.0
LARGE = 10_000_000

POLICY = """\
incrowd: 1
dataset: {{name: bench, population: 200000000}}
columns:
  age: {{type: integer, bounds: [0, 99], hierarchy: {{intervals: [5, 10, 20]}}}}
  sex: {{categories: [F, M]}}
  zip: {{hierarchy: {{prefix: [4, 3, 2]}}}}
  ethnicity: {{categories: [white, black, asian, hispanic, native, mixed]}}
  discharged: {{type: date, bounds: ["2025-01-01", "2025-12-31"], hierarchy: {{dates: [month, quarter, year]}}}}
  diagnosis: {{hierarchy: {{prefix: [1]}}}}
  procedure: {{categories: [{procedures}]}}
  charge: {{type: integer, bounds: [0, 1000000], hierarchy: {{intervals: [1000, 10000, 100000]}}}}
release:
  method: safe
  levels: {{age: 2, zip: 2, discharged: 2, diagnosis: 1, charge: 2}}
  rate: {rate}
  epsilon: 1
  delta: 1e-9
"""
COPY = """\
import duckdb, sys
duckdb.sql(f"COPY (SELECT * EXCLUDE patient FROM '{sys.argv[1]}') TO '{sys.argv[2]}' (FORMAT parquet)")
"""
COPY_CSV = """\
import duckdb, sys
duckdb.sql(f"COPY (FROM read_csv('{sys.argv[1]}', all_varchar=true)) TO '{sys.argv[2]}' (FORMAT csv)")
"""


@dataclass(frozen=True)
class Run:
    """What the kernel saw of one process."""

    wall: float
    cpu: float
    megabytes: float


def measured(command: list[str], folder: Path, expected: Collection[int] = (0,)) -> Run:
    """Run a command in a process of its own and return its costs; other exit codes than expected end the bench."""
    watcher = (
        "import json, resource, subprocess, sys, time\n"
        "start = time.perf_counter()\n"
        "done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(json.dumps([time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))\n"
        "sys.exit(done.returncode)"
    )
    done = subprocess.run(
        [sys.executable, "-c", watcher, *command], capture_output=True, text=True, cwd=folder, check=False
    )
    if done.returncode not in expected:
        sys.exit(done.stderr)
    return Run(*json.loads(done.stdout))


def table(rows: int, kind: str) -> Path:
    """Return the invented table of so many rows, made once."""
    sys.path.insert(0, str(HERE.parent / "examples" / "hospital"))
    import population

    DATA.mkdir(exist_ok=True)
    path = DATA / f"discharges-{rows}.{kind}"
    if not path.exists():
        started = time.perf_counter()
        population.write(rows, path)
        print(f"made {path.name} in {time.perf_counter() - started:.0f} s")
    return path


def policy(folder: Path, rate: str) -> Path:
    """Write the policy; its ledger is made beside it."""
    import population

    path = folder / "policy.yaml"
    procedures = ", ".join(json.dumps(name) for name in population.PROCEDURES)
    path.write_text(POLICY.format(procedures=procedures, rate=rate))
    return path


def released(source: Path, rate: str, form: str) -> Run:
    """Release once, from a fresh folder with a fresh ledger."""
    with tempfile.TemporaryDirectory(dir=DATA) as name:
        folder = Path(name)
        written = policy(folder, rate)
        command = [sys.executable, "-m", "incrowd", "release", str(source), "--policy", str(written)]
        return measured([*command, "--out", str(folder / "out"), "--format", form], folder)


def copied(source: Path, code: str, form: str) -> Run:
    """Copy once with DuckDB."""
    with tempfile.TemporaryDirectory(dir=DATA) as name:
        return measured([sys.executable, "-c", code, str(source), str(Path(name) / f"copy.{form}")], Path(name))


def row(rows: int, form: str, rate: str, run: Run, copy: Run) -> Row:
    """Print and return one row of the bench."""
    large = rows >= LARGE
    goal, more = (GOAL_RATIOS[form], 0.0) if large else (1.0, GOAL_MORE)
    work = f"release of {rows:,} rows, rate {rate}, {form}"
    return show(Row(work, run.cpu, copy.cpu, "DuckDB copy", goal, more, run.megabytes, GOAL_MEMORY))


def best(times: int, once: Callable[[], Run]) -> Run:
    """Return the run of several that took the fewest CPU seconds."""
    return min((once() for _ in range(times)), key=lambda run: run.cpu)


def main() -> None:
    """Measure each size; exit 1 if a goal is missed."""
    sizes = [int(float(size)) for size in sys.argv[1:]] or [1_000_000]
    rows = list[Row]()
    print(HEAD)
    for size in sizes:
        times = 3 if size <= LARGE else 1
        source = table(size, "parquet")
        copy = best(times, partial(copied, source, COPY, "parquet"))
        for rate in ("0.1", "0.5"):
            run = best(times, partial(released, source, rate, "parquet"))
            rows.append(row(size, "parquet", rate, run, copy))
        if size <= LARGE:
            text = table(size, "csv")
            copy = copied(text, COPY_CSV, "csv")
            rows.append(row(size, "csv", "0.5", released(text, "0.5", "csv"), copy))
    finish(rows)


if __name__ == "__main__":
    main()
