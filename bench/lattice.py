"""The optimal generalization of Adult beside judging every node, and beside what was measured of ARX 3.9.2.

    python bench/lattice.py [FOLDER]              # with adult.csv and hierarchies/ in ARX's format
    python bench/lattice.py [FOLDER] --rows 1000000 5000000

ARX needs Java and is not run here.  It was measured once, beside an exhaustive NumPy evaluation of all 4,320 nodes that
took 2.4 s of CPU.  An evaluation of our own of the same nodes runs here first; it is not the same program, so ARX's CPU
times are shown both as measured and scaled by it, and only what holds for both should be claimed.  Warm is the search
alone, counts in memory, as ARX's warm runs were.  Cold is a whole process: read, count, search, write the classes of at
least k rows; by default Numba is loaded only where there is much to group.  `incrowd release` does more in its process:
the ledger, a certificate, the file counted again, and a report.  Before the first one is measured each program runs
once, so that Python's bytecode and the compiled kernels are there, as they are in an installation.  Larger tables are
Adult drawn with replacement, each cell redrawn from its column with probability 0.2.  Growth: bench/lattice_growth.py.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from incrowd.core.cells import Cells
from incrowd.core.counts import Counts
from incrowd.core.hierarchy.tree import parse_arx
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.table import SourceOptions
from incrowd.criteria.closeness import EqualCloseness, HierarchicalCloseness
from incrowd.criteria.criterion import Criterion
from incrowd.criteria.diversity import DistinctDiversity
from incrowd.criteria.k_anonymity import KAnonymity
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.readers.sources import open_source
from incrowd.methods.anonymity.search import rollup
from incrowd.methods.anonymity.search.lattice import Lattice, Task
from incrowd.methods.anonymity.search.optimal import SearchResult, optimal
from incrowd.quality.additive import Loss

EIGHT = ("age", "education", "marital-status", "native-country", "race", "salary-class", "sex", "workclass")
NINE = (*EIGHT, "occupation")
K = KAnonymity(5)
DIVERSE = K & DistinctDiversity("occupation", 3)
CLOSE = K & EqualCloseness("occupation", "0.2")
NEAR = K & HierarchicalCloseness("occupation", "0.2")
FLOOR = 2.4
"""CPU seconds of the exhaustive evaluation on the machine where ARX was measured."""
TELL = """import atexit; atexit.register(lambda: print(next(l for l in open("/proc/self/status") if "VmHWM" in l)))"""
"""Python code that prints the most memory that a process had, in kB, as its last words; Linux tells it."""

WARM: tuple[tuple[str, tuple[str, ...], Criterion, str, float], ...] = (
    ("k, 0 %", EIGHT, K, "0", 0.025),
    ("k, 5 %", EIGHT, K, "0.05", 0.220),
    ("k, 100 %", EIGHT, K, "1", 0.332),
    ("k, 3-diversity, 0 %", EIGHT, DIVERSE, "0", 0.035),
    ("k, 3-diversity, 5 %", EIGHT, DIVERSE, "0.05", 0.392),
    ("k, 0.2-closeness, 5 %", EIGHT, CLOSE, "0.05", 1.23),
    ("k, 0.2-closeness, 100 %", EIGHT, CLOSE, "1", 2.1),
    ("the same, hierarchical", EIGHT, NEAR, "1", 2.3),
    ("9 columns, k, 5 %", NINE, K, "0.05", 0.872),
    ("9 columns, k, 100 %", NINE, K, "1", 2.57),
)


def schema(folder: Path) -> Schema:
    files = {name: folder / "hierarchies" / f"adult_hierarchy_{name}.csv" for name in NINE}
    trees = {name: parse_arx(file.read_text()).hierarchy() for name, file in files.items()}
    return Schema(tuple(Column(name, Role.QUASI, hierarchy=tree) for name, tree in trees.items()))


def count(folder: Path, source: Path) -> Counts:
    options = SourceOptions(delimiter=";") if source.suffix == ".csv" else SourceOptions()
    return LocalEngine().count(open_source(source, options), Cells.of(schema(folder), {}))


def exhaustive(counts: Counts) -> float:
    """Return the CPU seconds of grouping and scoring every node from the finest tuples, in NumPy alone."""
    lattice = Lattice.of(counts, EIGHT)
    base, measure = lattice.base, Loss().over(lattice.ladders, lattice.base)
    start, best = time.process_time(), 1.0
    for node in itertools.product(*(range(len(ladder)) for ladder in lattice.ladders)):
        keys = np.zeros(len(base), np.int64)
        for codes, tables, sizes, rung in zip(base.codes, lattice.tables, lattice.sizes, node, strict=True):
            if sizes[rung] > 1:
                keys *= sizes[rung]
                keys += tables[rung][codes]
        _, ids = np.unique(keys, return_inverse=True)
        best = min(best, measure.score(node, base, np.bincount(ids, base.sizes)[ids] >= 5))
    print(f"exhaustive, NumPy: best {best:.11f}")
    return time.process_time() - start


def warm(
    counts: Counts, group: rollup.Grouper, row: tuple[str, tuple[str, ...], Criterion, str, float]
) -> tuple[SearchResult, float]:
    """Return what is found, and the least CPU seconds of five searches, the lattice built anew in each."""
    _, quasi, criterion, limit, _ = row
    spent = []
    use(group)
    for _ in range(5):
        start = time.process_time()
        found = optimal(Lattice.of(counts, quasi, criterion.sensitive), Task(criterion, limit=limit))
        spent.append(time.process_time() - start)
    return found, min(spent)


def use(group: rollup.Grouper) -> None:
    """Let every search from here on group by this kernel."""
    setattr(rollup, "grouper", lambda _: group)  # noqa: B010 (a module, not a class)


def cold(folder: Path, source: Path, closeness: str, kernel: str) -> None:
    """Read, count, search and write, in this process alone."""
    if kernel != "chosen":
        use(getattr(rollup, f"grouped_by_{kernel}"))
    counts = count(folder, source)
    criterion: Criterion = CLOSE if closeness == "t" else K
    found = optimal(Lattice.of(counts, EIGHT, criterion.sensitive), Task(criterion, limit="0.05"))
    if found.levels is None:
        sys.exit("nothing was found")
    released = counts.marginal(EIGHT).rollup(found.levels).at_least(5)
    with TemporaryDirectory() as out, pq.ParquetWriter(Path(out) / "out.parquet", released.schema) as writer:
        for batch in released.batches():
            writer.write_batch(batch)


def larger(folder: Path, rows: int, target: Path) -> None:
    chance = np.random.default_rng(20261116)
    adult = csv.read_csv(folder / "adult.csv", parse_options=csv.ParseOptions(delimiter=";"))
    drawn = chance.integers(0, len(adult), rows)
    columns = {}
    for name in NINE:
        column = adult[name].combine_chunks().cast(pa.string()).dictionary_encode()
        redrawn = np.where(chance.random(rows) < 0.2, chance.integers(0, len(adult), rows), drawn)
        columns[name] = pa.DictionaryArray.from_arrays(column.indices.take(pa.array(redrawn)), column.dictionary)
    pq.write_table(pa.table(columns), target)


def measured(what: str, command: Sequence[str], runs: int = 3) -> None:
    """Run a program once unmeasured, then several times; print the least of each number."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(Path(gettempdir()) / "incrowd-bench-bytecode")
    found = []
    for number in range(runs + 1):
        with TemporaryDirectory() as out:
            given = [each.replace("OUT", f"{out}/out") for each in command]
            start = time.perf_counter()
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            told = subprocess.run(given, env=environment, stdout=subprocess.PIPE, check=True, text=True).stdout
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if number:
            spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            found.append((time.perf_counter() - start, spent, int(told.split()[-2]) / 1024))
    wall, cpu, memory = (min(column) for column in zip(*found, strict=True))
    print(f"{what:<38}{wall:>8.2f} s wall {cpu:>8.2f} s CPU {memory:>8.0f} MB", flush=True)


def release_command(folder: Path, work: Path) -> list[str]:
    """Return the command that releases Adult with everything that belongs to it, its policy written to a folder."""
    files = {name: str(folder.resolve() / "hierarchies" / f"adult_hierarchy_{name}.csv") for name in NINE}
    columns = {name: {"hierarchy": {"file": file}} for name, file in files.items()}
    policy = {
        "incrowd": 1,
        "dataset": {"name": "adult"},
        "source": {"path": str(folder.resolve() / "adult.csv"), "delimiter": ";"},
        "columns": {**columns, "occupation": {**columns["occupation"], "role": "sensitive"}},
        "release": {"method": "full-domain", "k": 5, "suppression": "0.05"},
        "budget": {"unbounded": "a public table"},
    }
    (work / "policy.yaml").write_text(json.dumps(policy))
    return [
        sys.executable,
        "-c",
        f"{TELL}; from incrowd.cli.entry import start; start()",
        "release",
        "--policy",
        str(work / "policy.yaml"),
        "--out",
        "OUT",
    ]


def processes(folder: Path, sizes: Sequence[int]) -> None:
    """Measure whole processes, on Adult and on larger tables."""
    print("whole processes; ARX: Adult k 1.7 to 2.5 s wall, 2.9 to 3.6 s CPU, 320 to 380 MB; t 3.2 to 4.3 s wall;")
    print("1M rows k 4.5 s wall, 0.94 GB; t 22.8 s wall, 3.4 GB; 5M rows k 12.1 s wall, 2.6 GB")
    run = f"{TELL}; import runpy; runpy.run_path({__file__!r}, run_name='__main__')"
    me, adult = [sys.executable, "-c", run, str(folder), "--cold"], str(folder / "adult.csv")
    with TemporaryDirectory() as work:
        for kernel in ("chosen", "numpy", "numba"):
            measured(f"Adult, k at 5 %, {kernel}", [*me, adult, "k", kernel])
        measured("Adult, k and t at 5 %", [*me, adult, "t", "chosen"])
        measured("Adult, incrowd release, k at 5 %", release_command(folder, Path(work)))
        for rows in sizes:
            target = Path(work) / f"{rows}.parquet"
            larger(folder, rows, target)
            for kernel in ("numba", "numpy"):
                measured(f"{rows:,} rows, k at 5 %, {kernel}", [*me, str(target), "k", kernel], runs=1)
            if rows <= 1_000_000:
                measured(f"{rows:,} rows, k and t at 5 %", [*me, str(target), "t", "chosen"], runs=1)


def main(folder: Path, sizes: Sequence[int]) -> None:
    counts = count(folder, folder / "adult.csv")
    floor = exhaustive(counts)
    print(f"exhaustive, NumPy: {floor:.2f} s CPU; ARX's times are multiplied by {floor / FLOOR:.2f}")
    print(
        f"{'warm, CPU ms':<24}{'ARX':>8}{'scaled':>8}{'Numba':>8}{'NumPy':>8}{'judged':>8}  levels, suppressed, score"
    )
    for row in WARM:
        found, compiled = warm(counts, rollup.grouped_by_numba, row)
        _, plain = warm(counts, rollup.grouped_by_numpy, row)
        if found.best is None:
            sys.exit("nothing was found")
        times = "".join(f"{1000 * each:>8.0f}" for each in (row[-1], row[-1] * floor / FLOOR, compiled, plain))
        best = found.best
        print(f"{row[0]:<24}{times}{found.judged:>8}  {best.levels} {best.suppressed} {best.score:.11f}", flush=True)
    processes(folder, sizes)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, nargs="?", default=Path(__file__).parents[2] / "shared" / "data" / "adult")
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000, 5_000_000])
    parser.add_argument("--cold", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not given.folder.is_dir():
        sys.exit(f"{given.folder} is not there: name the folder of Adult.")
    if given.cold:
        cold(given.folder, Path(given.cold[0]), *given.cold[1:])
    else:
        main(given.folder, given.rows)
