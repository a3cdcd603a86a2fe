"""Claim: a server answers many people at once on a table of a million rows, and one who floods it delays nobody much.

    python -m bench.serving [--rows 1000000] [--clients 16] [--workers 2] [--seconds 20] [--pace 0 0.5] [--postgres]

With --postgres all questions come through the PostgreSQL door, by psycopg on connections that stay open.

The question groups a table with several rows of each person by 20 × 50 groups.  A new question is charged, read, made
noisy, certified, kept and written into the audit log; a repeated one is found and written into the audit log.  With a
pace of 0 nothing is padded.  Beside the questions a second and the 99th percentile of their times stands what is
sturdier where a machine has other work: the processor time of the server for each question, with that of plain DuckDB
for the same question in the same run.

A new question costs the scan of the rows, work that grows with its text (planning), with its groups (noise, intervals,
JSON) and with nothing else, and four commits, which questions that arrive together share; one of them is not waited
for.  A repeated one costs a commit and the sending of a text that is kept ready.  `--rows 100000` shows what is left
beside the scan.

Whoever asks beside a flood is a process of its own, as people are, and asks one question after the other.  The flood is
one other analyst's, first with as many questions in hand as there are clients, then with no more than a server lets one
have by default.  All of them, the server and its clients, share the processors of one machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import count, repeat
from multiprocessing import get_context
from pathlib import Path

import duckdb
import psycopg

from incrowd.client import Client
from incrowd.errors import ServerUnavailable
from incrowd.governance.access_list import AccessList
from incrowd.governance.grant import AccessDecision, AccessRole, User
from tests.ports import free_port
from tests.web.processes import serving

USUAL = ("--requests-per-minute", "1000000")
UNLIMITED = (*USUAL, "--queries-per-user", "64", "--queue", "1000")
BUSY = ("53300", "57P03")
REFUSED = 0.1
"""Seconds after which a client that was refused asks again."""
SQL = "SELECT region, age, COUNT(*) AS n, AVG(income) AS mean FROM people WHERE income < {} GROUP BY region, age"
REGIONS, AGES, EACH = 20, 50, 3


def prepared(folder: Path, rows: int) -> Path:
    """Write a table and its policy."""
    source = folder / "people.parquet"
    columns = (
        f"i // {EACH} AS id, 'r' || (i * 31) % {REGIONS} AS region, 20 + (i * 17) % {AGES} AS age, "
        "(i * 7919) % 100000 AS income"
    )
    duckdb.sql(f"COPY (SELECT {columns} FROM range({rows}) t(i)) TO '{source}' (FORMAT parquet)")
    content = {
        "incrowd": 1,
        "dataset": {"name": "people", "rows": rows, "unit": {"column": "id", "max_rows": EACH}},
        "source": str(source),
        "columns": {
            "id": {"role": "identifier", "type": "integer"},
            "region": {"categories": [f"r{place}" for place in range(REGIONS)]},
            "age": {"type": "integer", "bounds": [20, 20 + AGES - 1]},
            "income": {"type": "integer", "bounds": [0, 100000]},
        },
        "queries": {"table": "people", "open": True},
        "budget": {"epsilon": 1_000_000},
    }
    path = folder / "policy.yaml"
    path.write_text(json.dumps(content))
    return path


def floor(folder: Path) -> tuple[float, float]:
    """Return the median time and the processor time of plain DuckDB, on a table in memory."""
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE people AS SELECT * FROM '{folder / 'people.parquet'}'")
    used, times = time.process_time(), list[float]()
    for number in range(9):
        sql = SQL.format(50_000 + number)
        times.append(seconds(lambda: connection.sql(sql).fetchall()))  # noqa: B023 - done at once
    return statistics.median(times), (time.process_time() - used) / len(times)


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def used_by(process: int) -> float:
    """Return the processor time of a process and of all that it started, in seconds; Linux tells it."""
    ticks, children = 0, [process]
    while children:
        number = children.pop()
        with suppress(OSError):
            fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
            children += map(int, Path(f"/proc/{number}/task/{number}/children").read_text().split())
    return ticks / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Analyst:
    """A user of the server, by HTTP, or by PostgreSQL's protocol where a port is given."""

    address: str
    name: str
    token: str
    port: int | None = None

    @contextmanager
    def connection(self) -> Iterator[Callable[[str], object]]:
        """Yield what asks a question; a server that has too much to do raises ServerUnavailable."""
        if self.port is None:
            client = Client(self.address, self.token)
            yield lambda sql: client.query(sql, epsilon="0.1")
            return
        place = f"postgresql://{self.name}:{self.token}@127.0.0.1:{self.port}/incrowd"
        with psycopg.connect(place, autocommit=True, options="-c incrowd.epsilon=0.1") as connection:

            def ask(sql: str) -> object:
                try:
                    return connection.execute(sql.encode()).fetchall()
                except psycopg.Error as problem:
                    raise (ServerUnavailable if problem.sqlstate in BUSY else RuntimeError)(str(problem)) from problem

            yield ask


def load(client: Analyst, clients: int, duration: float, numbers: Iterator[int]) -> list[float]:
    """Ask for so long, each client one question after the other, and return how long each took."""
    end = time.monotonic() + duration
    times: list[float] = []

    def ask() -> None:
        with client.connection() as connection:
            while time.monotonic() < end:
                try:
                    times.append(seconds(lambda: connection(SQL.format(next(numbers)))))
                except ServerUnavailable:
                    time.sleep(REFUSED)

    with ThreadPoolExecutor(clients) as pool:
        for done in [pool.submit(ask) for _ in range(clients)]:
            done.result()
    return times


def quantile(times: list[float], part: float) -> float:
    return sorted(times)[int(part * len(times))]


def figures(times: list[float], duration: float, used: float) -> str:
    """Return questions a second, the median and the 99th percentile of their times, and processor time of each."""
    return (
        f"{len(times) / duration:.1f} questions a second, median {statistics.median(times):.2f} s, "
        f"99 % within {quantile(times, 0.99):.2f} s, {1000 * used / len(times):.1f} ms of processor time each"
    )


def flooded(ann: Analyst, flooder: Analyst, clients: int, duration: float, numbers: Iterator[int]) -> str:
    """Return how much later one analyst's answers come while another asks with many clients."""
    with ProcessPoolExecutor(1, get_context("spawn")) as other, ThreadPoolExecutor(1) as pool:
        alone = other.submit(load, ann, 1, duration, _some(numbers)).result()
        flood = pool.submit(load, flooder, clients, duration, numbers)
        beside = other.submit(load, ann, 1, duration, _some(numbers)).result()
        flood.result()
    told = [
        f"{name} {_ms(alone, part)} ms alone, {_ms(beside, part)} ms beside {clients} clients of another: "
        f"{quantile(beside, part) / quantile(alone, part):.1f} ×"
        for name, part in (("median", 0.5), ("99 % within", 0.99))
    ]
    return "; ".join(told)


def _some(numbers: Iterator[int]) -> Iterator[int]:
    """Return numbers that another process counts on, far above those that are counted here."""
    return count(20_000 * (1 + next(numbers)) + 20_000)


def _ms(times: list[float], part: float) -> str:
    return f"{1000 * quantile(times, part):.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("rows", 1_000_000), ("clients", 16), ("workers", 2), ("seconds", 20)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--pace", nargs="*", default=["0", "0.5"])
    parser.add_argument("--postgres", action="store_true")
    given = parser.parse_args()
    port = free_port() if given.postgres else None
    door = () if port is None else ("--postgres", str(port))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        policy, numbers = prepared(folder, given.rows), count(1)
        access = AccessList.create(f"sqlite:///{folder}/.incrowd/ledger.sqlite")
        decision = AccessDecision("bench", "load")
        tokens = {
            name: access.grant(User(name, AccessRole.ANALYST), access.now() + timedelta(days=1), decision).token
            for name in ("ann", "bob")
        }
        plain, used = floor(folder)
        print(
            f"{given.rows:,} rows, {REGIONS} × {AGES} groups, {given.clients} clients, {given.workers} workers, "
            f"{'PostgreSQL' if given.postgres else 'HTTP'}"
        )
        print(f"DuckDB alone: {1000 * plain:.1f} ms, {1 / plain:.0f} a second, {1000 * used:.1f} ms of processor time")
        for pace in given.pace:
            options = ("--workers", str(given.workers), "--reply-interval", pace, *UNLIMITED, *door)
            with serving(policy, *options) as (address, process):
                ann, bob = (Analyst(address, who, token, port) for who, token in tokens.items())
                load(ann, given.clients, 5.0, numbers)  # every worker has answered before it counts
                for kind, asked in (("new questions", numbers), ("repeated ones", repeat(1))):
                    before = used_by(process)
                    times = load(ann, given.clients, given.seconds, asked)
                    print(f"pace {pace} s, {kind}: {figures(times, given.seconds, used_by(process) - before)}")
                told = flooded(ann, bob, given.clients - 1, given.seconds, numbers)
                print(f"pace {pace} s, one beside a flood: {told}")
            usual = ("--workers", str(given.workers), "--reply-interval", pace, *USUAL, *door)
            with serving(policy, *usual) as (address, _):
                ann, bob = (Analyst(address, who, token, port) for who, token in tokens.items())
                load(bob, given.clients, 5.0, numbers)
                told = flooded(ann, bob, given.clients - 1, given.seconds, numbers)
            print(f"pace {pace} s, one beside a flood, at the usual limits: {told}")


if __name__ == "__main__":
    main()
