"""A safe release, file to file, beside DuckDB merely copying the same file; time, CPU and peak memory of each.

    python bench/safe_release.py            # 1M rows
    python bench/safe_release.py 1e6 1e7 1e8

Every figure is a whole process, started cold, measured by the kernel (rusage of the child).  The goal: at most the CPU
of the copy, at most 600 MB, at every size.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
DATA = HERE / "data"
GOAL_RATIO, GOAL_MEMORY = 1.0, 600.0

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


def measured(command: list[str], folder: Path) -> Run:
    """Run a command in a process of its own and return its costs."""
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
    if done.returncode:
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


def row(what: str, run: Run, beside: Run | None = None) -> bool:
    """Print one line; return whether the goals are met."""
    ratio = "" if beside is None else f"{run.cpu / beside.cpu:8.2f}×"
    print(f"{what:34} {run.wall:9.2f} {run.cpu:9.2f} {run.megabytes:9.0f} {ratio}")
    return beside is None or (run.cpu <= GOAL_RATIO * beside.cpu and run.megabytes <= GOAL_MEMORY)


def main() -> None:
    """Measure each size; exit 1 if a goal is missed."""
    sizes = [int(float(size)) for size in sys.argv[1:]] or [1_000_000]
    met = True
    small = table(10_000, "csv")
    print(f"{'':34} {'wall s':>9} {'CPU s':>9} {'peak MB':>9} {'CPU ratio':>9}")
    cold = released(small, "0.5", "csv")
    row("10k rows, CSV to CSV, cold", cold)
    met &= cold.wall <= 1.5
    for rows in sizes:
        source = table(rows, "parquet")
        times = 3 if rows <= 10_000_000 else 1
        copy = min((copied(source, COPY, "parquet") for _ in range(times)), key=lambda run: run.cpu)
        row(f"{rows:,} DuckDB copy, Parquet", copy)
        for rate in ("0.1", "0.5"):
            best = min((released(source, rate, "parquet") for _ in range(times)), key=lambda run: run.cpu)
            met &= row(f"{rows:,} safe, rate {rate}, Parquet", best, copy)
        if rows <= 10_000_000:
            text = table(rows, "csv")
            copy = copied(text, COPY_CSV, "csv")
            row(f"{rows:,} DuckDB copy, CSV", copy)
            row(f"{rows:,} safe, rate 0.5, CSV", released(text, "0.5", "csv"), copy)
    print("goals met" if met else "GOALS MISSED")
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
