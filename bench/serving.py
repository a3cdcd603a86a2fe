"""Claim: a server answers many people at once on a table of a million rows.

    python -m bench.serving [--rows 1000000] [--clients 16] [--workers 2] [--seconds 20] [--pace 0 0.5]

A new question is charged, read, made noisy, certified, kept and written into the audit log; a repeated one is found and
written into the audit log.  With a pace of 0 nothing is padded.  Beside the questions a second and the 99th percentile
of their times stands the floor in the same run: DuckDB alone, one by one.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import count, repeat
from pathlib import Path

import duckdb

from incrowd.client import Client
from incrowd.governance.access.book import Access
from incrowd.governance.access.grant import AccessRole, Decision, Holder
from tests.web.processes import serving

UNLIMITED = ("--rate", "1000000", "--each", "1000", "--queue", "1000")
SQL = "SELECT sex, COUNT(*) AS n, AVG(income) AS mean FROM people WHERE income < {} GROUP BY sex"


def prepared(folder: Path, rows: int) -> Path:
    """Write a table and its policy."""
    source = folder / "people.parquet"
    columns = "CASE WHEN i % 2 = 0 THEN 'f' ELSE 'm' END AS sex, (i * 7919) % 100000 AS income"
    duckdb.sql(f"COPY (SELECT {columns} FROM range({rows}) t(i)) TO '{source}' (FORMAT parquet)")
    content = {
        "incrowd": 1,
        "dataset": {"name": "people"},
        "source": str(source),
        "columns": {"sex": {"categories": ["f", "m"]}, "income": {"type": "integer", "bounds": [0, 100000]}},
        "queries": {"table": "people", "open": True},
        "budget": {"epsilon": 1_000_000},
    }
    path = folder / "policy.yaml"
    path.write_text(json.dumps(content))
    return path


def floor(folder: Path) -> float:
    """Return the median time of plain DuckDB."""
    connection = duckdb.connect()
    connection.sql(f"CREATE VIEW people AS SELECT * FROM '{folder / 'people.parquet'}'")
    return statistics.median(seconds(lambda: connection.sql(SQL.format(50_000)).fetchall()) for _ in range(9))


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def load(client: Client, clients: int, duration: float, numbers: Iterator[int]) -> list[float]:
    """Ask for so long, each client one question after the other, and return how long each took."""
    end = time.monotonic() + duration
    times: list[float] = []

    def ask() -> None:
        while time.monotonic() < end:
            times.append(seconds(lambda: client.query(SQL.format(next(numbers)), epsilon="0.1")))

    with ThreadPoolExecutor(clients) as pool:
        for done in [pool.submit(ask) for _ in range(clients)]:
            done.result()
    return times


def figures(times: list[float], duration: float) -> str:
    """Return questions a second, the median and the 99th percentile of their times."""
    ordered = sorted(times)
    median, high = statistics.median(ordered), ordered[int(0.99 * len(ordered))]
    return f"{len(times) / duration:.1f} questions a second, median {median:.2f} s, 99 % within {high:.2f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("rows", 1_000_000), ("clients", 16), ("workers", 2), ("seconds", 20)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--pace", nargs="*", default=["0", "0.5"])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        policy, numbers = prepared(folder, given.rows), count(1)
        access = Access.create(f"sqlite:///{folder}/.incrowd/ledger.sqlite")
        holder = Holder("ann", AccessRole.ANALYST)
        token = access.grant(holder, access.now() + timedelta(days=1), Decision("bench", "load")).token
        plain = floor(folder)
        print(f"{given.rows:,} rows, {given.clients} clients, {given.workers} workers")
        print(f"DuckDB alone: {1000 * plain:.1f} ms, {1 / plain:.0f} questions a second")
        for pace in given.pace:
            with serving(policy, "--workers", str(given.workers), "--pace", pace, *UNLIMITED) as (address, _):
                client = Client(address, token)
                load(client, given.clients, 5.0, numbers)  # every worker has answered before it counts
                fresh = load(client, given.clients, given.seconds, numbers)
                again = load(client, given.clients, given.seconds, repeat(1))
            print(f"pace {pace} s, new questions: {figures(fresh, given.seconds)}")
            print(f"pace {pace} s, repeated ones: {figures(again, given.seconds)}")


if __name__ == "__main__":
    main()
