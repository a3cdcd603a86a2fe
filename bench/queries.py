"""One question over 20 × 50 groups, COUNT, SUM and AVG at a total epsilon of 1: time and error beside the peers.

    python bench/queries.py [ROWS ...] [--peers FOLDER] [--spark]     # default 1000000

Rows are invented: region, job, pay from 0 to 200,000, one row a person.  Time is that of a warm query: the service is
open, the file has been read before; each run asks for another number of rows, so that no answer is a repeated one, and
includes its charge, its certificate and the store of its answer.  The floor is DuckDB's own GROUP BY of the same file.
FOLDER holds an environment for each peer, FOLDER/NAME/bin/python with the package that bench/peers/NAME.py imports; a
peer without one is left out.  Errors are root mean squares over all groups against the exact answer.

With --spark the same is asked on Spark with two cores of this machine, beside Tumult Analytics on its Spark: cold, from
the start of a process to its first answer, and warm.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1]))

from incrowd.queries.query import QueryTerms
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.query.request import QueryRequest
from incrowd.workflows.query.service import QueryService, open_queries

REGIONS, JOBS, MOST = 20, 50, 200_000
SQL = "SELECT region, job, COUNT(*) AS n, SUM(pay) AS total, AVG(pay) AS mean FROM people GROUP BY region, job"
PEERS = ("opendp_polars", "pipelinedp", "smartnoise", "tumult")
GOAL = (1.5, 0.1)
BATCH = 1_000_000


def invented(rows: int, path: Path) -> None:
    """Write the rows, a million at a time."""
    rng, writer = np.random.default_rng(7), None
    for start in range(0, rows, BATCH):
        size = min(BATCH, rows - start)
        pay = np.minimum(rng.gamma(2, 25_000, size), MOST).astype(np.int64)
        table = pa.table({"region": rng.integers(0, REGIONS, size), "job": rng.integers(0, JOBS, size), "pay": pay})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def policy(folder: Path) -> dict[str, Any]:
    columns = {"region": REGIONS - 1, "job": JOBS - 1, "pay": MOST}
    return {
        "incrowd": 1,
        "dataset": {"name": "people"},
        "columns": {
            name: {"type": "integer", "bounds": [0, high], "missing": "drop"} for name, high in columns.items()
        },
        "queries": {},
        "budget": {"epsilon": 1000},
        "ledger": f"sqlite:///{folder}/ledger.sqlite",
    }


def best(work: Callable[[], Any], times: int = 5) -> tuple[float, Any]:
    """Return the least time of several runs, and the last result."""
    found, least = None, math.inf
    for _ in range(times):
        start = time.perf_counter()
        found = work()
        least = min(least, time.perf_counter() - start)
    return least, found


def exact_answer(path: Path) -> tuple[float, np.ndarray]:
    """Return the time of DuckDB's own GROUP BY, and its answer."""
    import duckdb

    text = SQL.replace("FROM people", f"FROM '{path}'") + " ORDER BY region, job"
    with duckdb.connect() as base:
        seconds, table = best(lambda: base.sql(text).to_arrow_table())
    return seconds, np.array([np.asarray(table[name], dtype=float) for name in ("n", "total", "mean")])


def ours(service: QueryService, times: int = 5, asked: int = 0) -> tuple[float, np.ndarray]:
    """Return the time of a warm question, and one answer at epsilon 1; so many were asked before."""
    limits = iter(range(10**6 + asked, 2 * 10**6))

    def ask() -> Any:
        return service.ask(QueryRequest(f"{SQL} LIMIT {next(limits)}", QueryTerms(epsilon=Fraction(1)))).answer

    seconds, answer = best(ask, times)
    table = answer.table.sort_by([("region", "ascending"), ("job", "ascending")])
    return seconds, np.array([np.asarray(table[name], dtype=float) for name in ("n", "total", "mean")])


def errors(answer: np.ndarray, truth: np.ndarray) -> str:
    """Return the errors of counts, sums and means."""
    found = np.sqrt(np.mean((np.asarray(answer, dtype=float) - truth) ** 2, axis=1))
    return f"{found[0]:8.2f} {found[1]:12,.0f} {found[2]:9,.0f}"


def peer(name: str, folder: Path, path: Path, rows: int) -> dict[str, Any] | None:
    """Run a peer in its own environment."""
    python = folder / name.removesuffix("_polars") / "bin" / "python"
    if not python.exists():
        return None
    script = Path(__file__).parent / "peers" / f"{name}.py"
    command = [str(python), str(script), str(path), str(REGIONS), str(JOBS), str(rows)]
    surroundings = os.environ | {"PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python)}
    done = subprocess.run(command, capture_output=True, text=True, env=surroundings, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else None


def compare(rows: int, peers: Path | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "people.parquet")
        invented(rows, path)
        floor, truth = exact_answer(path)
        with open_queries([load_policy(policy(Path(folder)))], path) as service:
            seconds, answer = ours(service)
        goal = GOAL[0] * floor + GOAL[1]
        print(f"\n{rows:,} rows: warm seconds, then the errors of count, sum and mean")
        print(f"  {'DuckDB, exact':<22}{floor:8.3f}")
        print(f"  {'incrowd':<22}{seconds:8.3f} {errors(answer, truth)}   goal {goal:.3f} s", flush=True)
        for name in PEERS if peers is not None else ():
            found = peer(name, peers or Path(), path, rows)
            if found is None:
                print(f"  {name:<22}not installed, or failed", flush=True)
                continue
            told = f"   {found['warm'] / seconds:.0f} times as long"
            print(f"  {name:<22}{found['warm']:8.3f} {errors(found['answer'], truth)}{told}", flush=True)


def ask_on_spark(path: Path) -> None:
    """Answer on Spark and print one JSON object: when the first answer came, and how long a warm one took."""
    from incrowd.engines.settings import Spark

    with tempfile.TemporaryDirectory() as folder:
        settings = Spark(master="local[2]", config={"spark.sql.shuffle.partitions": "2"})
        with open_queries([load_policy(policy(Path(folder)))], path, settings=settings) as service:
            ours(service, 1)
            first = time.time()
            seconds, answer = ours(service, 4, asked=1)
    print(json.dumps({"first": first, "warm": seconds, "answer": answer.tolist()}), flush=True)


def compare_on_spark(rows: int, peers: Path | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "people.parquet")
        invented(rows, path)
        _, truth = exact_answer(path)
        begun = time.time()
        command = [sys.executable, __file__, "--ask-on-spark", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        cold = found["first"] - begun
        print(f"\n{rows:,} rows on local Spark: cold and warm seconds, then the errors of count, sum and mean")
        print(f"  {'incrowd':<22}{cold:8.2f}{found['warm']:8.3f} {errors(found['answer'], truth)}", flush=True)
        other = None if peers is None else peer("tumult", peers, path, rows)
        if other is not None:
            told = f"   {other['cold'] / cold:.1f} and {other['warm'] / found['warm']:.1f} times as long"
            line = f"{other['cold']:8.2f}{other['warm']:8.3f} {errors(other['answer'], truth)}"
            print(f"  {'tumult':<22}{line}{told}", flush=True)


def main(arguments: list[str]) -> None:
    if "--ask-on-spark" in arguments:
        ask_on_spark(Path(arguments[-1]))
        return
    peers = Path(arguments[arguments.index("--peers") + 1]) if "--peers" in arguments else None
    sizes = [int(text) for text in arguments if text.isdigit()] or [1_000_000]
    for rows in sizes:
        (compare_on_spark if "--spark" in arguments else compare)(rows, peers)


if __name__ == "__main__":
    main(sys.argv[1:])
