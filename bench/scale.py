"""A safe release of up to a hundred million rows: in this process, on local Spark, on a cluster of two workers.

    python -m bench.scale                                      # 1M and 10M rows here, 1M and 5M on Spark
    python -m bench.scale --local 1e6 1e7 1e8 --spark 1e6 5e6 1e7 --cluster 1e6 5e6 1e7

Every figure is a whole release, folder of Parquet files to folder, started cold in a process of its own; the best of
three.  CPU is that of all its processes: the JVM, Python workers and executors included.  The cost of a run without
rows to speak of (10,000) is taken as fixed, the rest is per row.  The goals: per row the same within a factor of 1.3 at
every size, and at most 1 GB here.  The lines cross where fixed costs are paid off by more cores, on paper.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.safe_release import Run, policy
from tests.spark import cluster

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "hospital"))

GOAL_SPREAD, GOAL_MEMORY = 1.3, 1024.0
BASE = 10_000
CHUNK = 1_000_000
CORES = (2, 8, 32, 128)
WATCH = """\
import ctypes, json, os, resource, subprocess, sys, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # whoever is orphaned below, as Spark's JVM is, becomes a child of ours
start = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
wall = time.perf_counter() - start
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
sys.exit(done.returncode)
"""


@dataclass(frozen=True)
class Trial:
    """An engine and what a release on it is given; `workers` are the processes in which a cluster does its work."""

    engine: str
    policy: Path
    times: int
    options: tuple[str, ...] = ()
    workers: tuple[int, ...] = ()


@dataclass(frozen=True)
class Line:
    """Costs that grow in a straight line: seconds that a run takes without rows, and CPU seconds for each row."""

    fixed: float
    row: float

    def wall(self, rows: float, cores: int) -> float:
        """Return the seconds that so many rows take on paper, if rows are shared evenly by the cores."""
        return self.fixed + self.row * rows / cores


def main() -> None:
    """Measure every size on every engine; exit 1 if a goal is missed."""
    told = _arguments()
    with tempfile.TemporaryDirectory(prefix="incrowd-scale-") as name:
        written = policy(Path(name), "0.5")
        print(f"{'':28} {'wall s':>8} {'CPU s':>8} {'peak MB':>8} {'ns/row':>8} {'CPU beside local':>16}")
        local = _measured(Trial("local", written, told.times), told.local, {})
        lines = {"local": _line(local)}
        met = _met("local", local, memory=True)
        for engine, sizes in (("local Spark", told.spark), ("two workers", told.cluster)):
            with _spark(engine, Path(name), wanted=bool(sizes)) as (options, workers):
                runs = _measured(Trial(engine, written, told.times, options, workers), sizes, local) if sizes else {}
            if runs:
                lines[engine] = _line(runs)
                met &= _met(engine, runs, memory=False)
    _on_paper(lines)
    print("goals met" if met else "GOALS MISSED")
    sys.exit(0 if met else 1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    defaults = {"local": [10**6, 10**7], "spark": [10**6, 5 * 10**6], "cluster": list[int]()}
    for name, sizes in defaults.items():
        parser.add_argument(f"--{name}", nargs="*", type=lambda text: int(float(text)), default=sizes, metavar="ROWS")
    parser.add_argument("--times", type=int, default=3, help="the best of how many runs counts")
    return parser.parse_args()


@contextlib.contextmanager
def _spark(engine: str, folder: Path, *, wanted: bool) -> Iterator[tuple[tuple[str, ...], tuple[int, ...]]]:
    """Start what an engine needs; yield the options that name it, and the processes of its workers."""
    chosen = ("--engine", "spark", "--master")
    if engine != "two workers" or not wanted:
        yield (*chosen, "local[2]"), ()
        return
    with cluster(folder) as address:
        yield (*chosen, address), _workers(address)


def _workers(address: str) -> tuple[int, ...]:
    """Return the processes that serve the master at this address."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (place / "cmdline").read_bytes().split(b"\0")
            if b"org.apache.spark.deploy.worker.Worker" in words and address.encode() in words:
                found.append(int(place.name))
    return tuple(found)


def _measured(trial: Trial, sizes: Sequence[int], beside: Mapping[int, Run]) -> dict[int, Run]:
    """Measure one engine at every size, and print a line for each."""
    runs: dict[int, Run] = {}
    for rows in sorted({BASE, *sizes}):
        with _table(rows) as source:
            runs[rows] = min((_released(trial, source) for _ in range(trial.times)), key=lambda run: run.cpu)
        run, base = runs[rows], runs[BASE]
        row = f"{1e9 * (run.cpu - base.cpu) / rows:8.0f}" if rows > BASE else f"{'':8}"
        ratio = f"{run.cpu / beside[rows].cpu:15.1f}×" if rows in beside else ""
        name = f"{rows:,} {trial.engine}"
        print(f"{name:28} {run.wall:8.1f} {run.cpu:8.1f} {run.megabytes:8.0f} {row} {ratio}", flush=True)
    return runs


@contextlib.contextmanager
def _table(rows: int) -> Iterator[Path]:
    """Make a folder of invented discharges, a million to a file, and remove it in the end."""
    import population
    import pyarrow as pa
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory(prefix="incrowd-scale-") as name:
        for number, batch in enumerate(population.discharges(rows)):
            pq.write_table(pa.Table.from_batches([batch]), Path(name, f"part-{number:05}.parquet"))
        yield Path(name)


def _released(trial: Trial, source: Path) -> Run:
    """Release once, with a fresh ledger and into a fresh folder."""
    with tempfile.TemporaryDirectory(prefix="incrowd-scale-") as name:
        own = Path(name, trial.policy.name)
        own.write_text(trial.policy.read_text(encoding="utf-8"), encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "incrowd",
            "release",
            str(source),
            "--policy",
            str(own),
            "--out",
            f"{name}/out",
        ]
        before = _cpu_of(trial.workers)
        watched = [sys.executable, "-c", WATCH, *command, *trial.options]
        done = subprocess.run(watched, capture_output=True, text=True, cwd=name, check=False)
        if done.returncode:
            sys.exit(done.stderr)
        wall, cpu, megabytes = json.loads(done.stdout)
        return Run(wall, cpu + _settled(trial.workers) - before, megabytes)


def _settled(workers: Sequence[int]) -> float:
    """Return the CPU of the workers once their executors are gone, and have been put on their account."""
    last, now = -1.0, _cpu_of(workers)
    while workers and now - last > 0.05:
        time.sleep(1)
        last, now = now, _cpu_of(workers)
    return now


def _cpu_of(workers: Sequence[int]) -> float:
    """Return the CPU seconds of these processes and of all that lives, or lived and ended, below them."""
    found: dict[int, tuple[int, int]] = {}
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (place / "stat").read_text().rpartition(") ")[2].split()
            found[int(place.name)] = int(words[1]), sum(int(word) for word in words[11:15])
    below = set(workers)
    while more := {process for process, (parent, _) in found.items() if parent in below} - below:
        below |= more
    return sum(found[process][1] for process in below & found.keys()) / os.sysconf("SC_CLK_TCK")


def _line(runs: dict[int, Run]) -> Line:
    """Return the line through the run without rows and the largest one."""
    largest = max(runs)
    return Line(runs[BASE].wall, (runs[largest].cpu - runs[BASE].cpu) / largest)


def _met(engine: str, runs: dict[int, Run], *, memory: bool) -> bool:
    each = [(run.cpu - runs[BASE].cpu) / rows for rows, run in runs.items() if rows >= CHUNK]
    spread = max(each) / min(each) if each else 1.0
    peak = max(run.megabytes for run in runs.values())
    print(f"{engine}: CPU per row within {spread:.2f}×, largest process {peak:.0f} MB", flush=True)
    return spread <= GOAL_SPREAD and (not memory or peak <= GOAL_MEMORY)


def _on_paper(lines: Mapping[str, Line]) -> None:
    """Print the cost model, and from how many rows on a cluster is sooner done than one core here."""
    here = lines["local"]
    print("\non paper: seconds = fixed + rows × CPU per row / cores")
    print(f"{'local':14} {here.fixed:6.1f} s + {here.row * 1e9:6.0f} ns; a billion rows in {here.wall(1e9, 1):,.0f} s")
    for engine, line in lines.items():
        if line is here:
            continue
        alike = f"{line.row / here.row:.1f} cores do as much as one here"
        print(f"{engine:14} {line.fixed:6.1f} s + {line.row * 1e9:6.0f} ns; {alike}")
        for cores in CORES:
            gain = here.row - line.row / cores
            from_rows = (
                f"sooner done from {(line.fixed - here.fixed) / gain:,.0f} rows on" if gain > 0 else "never sooner"
            )
            print(f"  {cores:4} cores: a billion rows in {line.wall(1e9, cores):8,.0f} s; {from_rows}")


if __name__ == "__main__":
    main()
