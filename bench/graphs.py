"""Graphs of a million nodes: degree anonymity, degree distribution and triangles, beside a floor and networkx.

    python -m bench.graphs                          # 1M nodes, 10M edges
    python -m bench.graphs --nodes 100000 --edges 1000000

Edges are drawn with ends by weights that fall like a power, and written as Parquet.  Each figure is a release through
the whole road (policy, validation, ledger, certificate, files, check) with real coins, in a process of its own: CPU
seconds and peak memory.  The floor is DuckDB reading the edges and counting degrees.  networkx, where it is installed,
counts degrees and triangles of a tenth of the size, beside the same releases of that size: from one size to the other
the table shows how cost grows.  igraph and networkit (peers `graphs_igraph` and `graphs_networkit`, see
`bench/rows.py`) count degrees and triangles of the whole graph in one thread each.

Besides what the smallest graph takes, memory grows with the edges, by 55 to 105 bytes for each: edges are read some
millions at a time, and products of matrices are made in pieces of 2 million entries.  CPU time of degrees grows with
the edges; that of triangles with the pairs of edges that have a common end, whose common neighbors are counted as far
as they can matter.  Triangles are measured with the extra `fast`.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet as pq

from bench.rows import HEAD, Row, finish, peer, show

RELEASES: dict[str, dict[str, Any]] = {
    "degree-anonymity, k = 10": {"method": "degree-anonymity", "k": 10},
    "degree-distribution, edges": {"method": "degree-distribution", "epsilon": 1},
    "degree-distribution, nodes": {"method": "degree-distribution", "epsilon": 1, "bound": 50},
    "degree-sequence": {"method": "degree-sequence", "epsilon": 1},
    "triangles": {"method": "subgraph-count", "count": "triangles", "epsilon": 1},
}


GOALS = {
    "degree-anonymity, k = 10": 10 / 2.2,
    "degree-distribution, edges": 5 / 2.2,
    "triangles": 15 / 2.2,
}
"""How many times the floor, at 10M edges."""
PEERS = {
    "graphs_networkit": {"triangles": ("seconds", 15 / 11.9)},
    "graphs_igraph": {"triangles": ("seconds", 15 / 15.3), "degree-anonymity, k = 10": ("degree seconds", 10 / 13.6)},
}
"""What peers measure of the work of a release, and how many times that may be taken."""


def write(folder: Path, nodes: int, edges: int, seed: int = 0) -> None:
    chance = np.random.default_rng(seed)
    totals = np.cumsum((np.arange(nodes) + 1000.0) ** -0.4)
    ends = np.searchsorted(totals, chance.random((edges + edges // 20, 2)) * totals[-1])
    low, high = ends.min(axis=1), ends.max(axis=1)
    keys = chance.permutation(np.unique((low * nodes + high)[low < high]))[:edges]
    text = pa.array(np.arange(nodes)).cast(pa.string())
    columns = {"source": text.take(pa.array(keys // nodes)), "target": text.take(pa.array(keys % nodes))}
    pq.write_table(pa.table({"id": text}), folder / "nodes.parquet")
    pq.write_table(pa.table(columns), folder / "edges.parquet")


def floor(folder: Path) -> None:
    import duckdb

    file = folder / "edges.parquet"
    duckdb.connect().execute(
        "SELECT degree, count(*) FROM (SELECT node, count(*) AS degree FROM (SELECT source AS node FROM "
        f"'{file}' UNION ALL SELECT target FROM '{file}') GROUP BY node) GROUP BY degree"
    ).fetchall()


def release(folder: Path, name: str) -> None:
    from incrowd.workflows.graph.release import release_graph
    from incrowd.workflows.release.deliver import Destination

    unit = "node" if name.endswith("nodes") else "edge"
    place = Path(tempfile.mkdtemp(dir=folder))
    policy = {
        "incrowd": 1,
        "dataset": {"name": "bench", "unit": {"kind": unit}},
        "nodes": {"source": str(folder / "nodes.parquet"), "id": "id"},
        "edges": {"source": str(folder / "edges.parquet")},
        "release": RELEASES[name],
        "budget": {"epsilon": 10, "unbounded": "a benchmark"},
        "ledger": f"sqlite:///{place}/ledger.sqlite",
    }
    file = place / "policy.yaml"
    file.write_text(json.dumps(policy), encoding="utf-8")
    release_graph(file, Destination(place / "out"))


def networkx(folder: Path) -> None:
    nx: Any = import_module("networkx")

    table = pq.read_table(folder / "edges.parquet")
    graph = nx.Graph(zip(table["source"].to_pylist(), table["target"].to_pylist(), strict=True))
    nx.degree_histogram(graph)
    sum(nx.triangles(graph).values())


def measured(folder: Path, job: str) -> tuple[float, float, float] | None:
    """Run a job in a process of its own: CPU seconds, seconds, and peak memory in MB; None if it cannot run."""
    words = [sys.executable, "-m", "bench.graphs", "--job", job, "--folder", str(folder)]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    if found.returncode:
        print(found.stderr.strip().splitlines()[-1:])
        return None
    cpu, seconds, memory = json.loads(found.stdout.splitlines()[-1])
    return cpu, seconds, memory


def run(folder: Path, job: str) -> None:
    jobs: dict[str, Callable[[], None]] = {"floor": lambda: floor(folder), "networkx": lambda: networkx(folder)}
    before = time.perf_counter()
    if job.startswith("write"):  # apart, so that the memory it takes is no other job's
        jobs[job] = lambda: write(folder, *map(int, job.split()[1:]))
    jobs.get(job, lambda: release(folder, job))()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps([usage.ru_utime + usage.ru_stime, time.perf_counter() - before, usage.ru_maxrss / 1024]))


def peers(folder: Path, ours: dict[str, float]) -> list[Row]:
    """Set our CPU seconds beside those of peers that are there, on the same file."""
    rows = []
    for name, works in PEERS.items():
        theirs = peer(name, str(folder / "edges.parquet"))
        for job, (key, goal) in works.items() if theirs is not None else ():
            rows.append(show(Row(f"{job}, {name.removeprefix('graphs_')}", ours[job], theirs[key], name, goal)))  # type: ignore[index]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=10**6)
    parser.add_argument("--edges", type=int, default=10**7)
    parser.add_argument("--job")
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    if given.job:
        run(given.folder, given.job)
        return
    rows = list[Row]()
    print(HEAD)
    with tempfile.TemporaryDirectory() as name:
        whole, tenth = Path(name) / "whole", Path(name) / "tenth"
        for folder, part, jobs in ((tenth, 10, ["networkx", *RELEASES]), (whole, 1, list(RELEASES))):
            folder.mkdir()
            measured(folder, f"write {given.nodes // part} {given.edges // part}")
            print(f"{given.nodes // part:,} nodes, {given.edges // part:,} edges")
            base, ours = None, dict[str, float]()
            for job in ["floor", *jobs]:
                found = measured(folder, job)
                if found is not None:
                    base, ours[job] = base or found[0], found[0]
                    work = f"{job}, {given.edges // part:,} edges"
                    goal = GOALS.get(job) if part == 1 else None
                    rows.append(show(Row(work, found[0], base, "DuckDB", goal, megabytes=found[2])))
        rows += peers(whole, ours)
    finish(rows)


if __name__ == "__main__":
    main()
