"""Claim: a charge takes as long in a ledger of a million entries as in one of a thousand; reading one is quick, too.

    python -m bench.ledger [--sizes 1000,100000,1000000] [--folder FOLDER]
    python -m bench.ledger --read 200000

Beside each median stands the floor in the same run: one row written by the bare driver and flushed to the same disk.
With `--read`, the commands of `GOALS` read a ledger of that size, of charges and conclusions, one charge in a thousand
without a release.  Seconds are processor time of the whole command, from its start.  Exit 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import count
from pathlib import Path

from incrowd.accounting.budget import Budget
from incrowd.accounting.ledger.datasets import Declaration
from incrowd.accounting.ledger.ledger import Ledger, enter
from incrowd.accounting.ledger.request import Accountant, Part, Request, charging
from incrowd.accounting.ledger.status import Entry
from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import Pure
from incrowd.core.terms import Theorem
from incrowd.core.unit import Unit
from incrowd.store.transaction import Writer
from tests.postgres import binaries, server

GOALS = {"show": (2.0, 300), "show --json": (2.0, 300), "show --json --entries": (8.0, 300), "check": (10.0, 300)}
"""Seconds and megabytes that a command may take for 200,000 entries."""
GUARANTEE = Guarantee(Pure(Fraction(1, 10**9)), Unit(), (Theorem("dwork-2006", "Dwork et al. 2006, Proposition 1"),))
ROUNDS, BATCH = 50, 10_000


def fill(ledger: Ledger, size: int) -> None:
    """Charge until the ledger has `size` entries, many charges to a transaction."""
    request = charging(Accountant(), [Part("births", GUARANTEE)], "bench", "ann")

    def work(writer: Writer) -> None:
        for _ in range(min(BATCH, size - writer.head.sequence)):
            enter(writer, request)

    while ledger.show().head.sequence < size:
        ledger.chain.transact(work)


def fill_pairs(ledger: Ledger, size: int) -> None:
    """Charge and conclude until the ledger has `size` entries."""
    request, numbers = charging(Accountant(), [Part("births", GUARANTEE)], "bench", "ann"), count(1)

    def work(writer: Writer) -> None:
        end = min(size, writer.head.sequence + BATCH)
        while writer.head.sequence < end:
            release = f"{next(numbers):032x}"
            charged = enter(writer, replace(request, body={**request.body, "release": release}))
            if isinstance(charged, Entry) and charged.sequence % 1000 != 3:
                body = {"release": release, "charge": charged.sequence, "certificate": "ab" * 32}
                enter(writer, Request("conclude", body, ()))

    while ledger.show().head.sequence < size:
        ledger.chain.transact(work)


def read_all(folder: Path, size: int) -> bool:
    """Read a ledger of that size with every command, print what each takes, and return whether all goals are met."""
    ledger = Ledger.create(f"sqlite:///{folder}/read.sqlite")
    ledger.register(Declaration("births", Unit(), Budget.of(1)))
    fill_pairs(ledger, size)
    met = True
    for words, (most_seconds, most_megabytes) in GOALS.items():
        command = [
            sys.executable,
            "-m",
            "incrowd",
            "ledger",
            *words.split(),
            "--ledger",
            f"sqlite:///{folder}/read.sqlite",
        ]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        taken, megabytes = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
        good = process.returncode == 0 and taken < most_seconds and megabytes < most_megabytes
        goal = f"goal {most_seconds:.0f} s, {most_megabytes} MB"
        print(f"ledger {words}: {taken:.2f} s, {megabytes:.0f} MB; {goal}: {'met' if good else 'MISSED'}")
        met = met and good
    return met


def prepared(address: str, size: int) -> Ledger:
    """Make a ledger with `size` entries."""
    ledger = Ledger.create(address)
    ledger.register(Declaration("births", Unit(), Budget.of(1)))
    fill(ledger, size)
    return ledger


def report(name: str, ledgers: dict[int, Ledger], floor: Callable[[], object]) -> None:
    """Time charges to all ledgers in turn, so that whatever else the machine does meets them alike."""
    times: dict[int, list[float]] = {size: [] for size in [0, *ledgers]}
    for _ in range(ROUNDS):
        times[0].append(seconds(floor))
        for size, ledger in ledgers.items():
            times[size].append(seconds(lambda ledger=ledger: charge(ledger)))  # type: ignore[misc]
    medians = {size: 1000 * statistics.median(found) for size, found in times.items()}
    print(f"{name}: floor {medians[0]:.2f} ms")
    for size in ledgers:
        print(f"{size:>12,} entries: {medians[size]:6.2f} ms a charge, x{medians[size] / medians[min(ledgers)]:.2f}")


def charge(ledger: Ledger) -> None:
    ledger.charge(GUARANTEE, "births", release="bench", analyst="ann")


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


@contextmanager
def sqlite_floor(folder: Path) -> Iterator[Callable[[], object]]:
    connection = sqlite3.connect(folder / "floor.sqlite", isolation_level=None)
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("CREATE TABLE rows (body TEXT)")
    yield lambda: connection.execute("INSERT INTO rows VALUES (?)", ("x" * 1000,))
    connection.close()


@contextmanager
def postgres_floor(address: str) -> Iterator[Callable[[], object]]:
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE TABLE rows (body TEXT)")
        yield lambda: connection.execute("INSERT INTO rows VALUES (%s)", ("x" * 1000,))


def schema(address: str, size: int) -> str:
    """Return the address of a schema for the ledger of this size."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA bench_{size}")
    return f"{address}&options=-csearch_path%3Dbench_{size}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sizes", default="1000,100000,1000000")
    options.add_argument("--folder", default=None, help="where to put the ledgers: the disk that is measured")
    options.add_argument("--read", type=int, default=None, metavar="ENTRIES", help="time the reading commands instead")
    chosen = options.parse_args()
    if chosen.read is not None:
        with tempfile.TemporaryDirectory(dir=chosen.folder) as name:
            sys.exit(0 if read_all(Path(name), chosen.read) else 1)
    sizes = [int(size) for size in chosen.sizes.split(",")]
    with tempfile.TemporaryDirectory(dir=chosen.folder) as name:
        folder = Path(name)
        with sqlite_floor(folder) as floor:
            report("SQLite", {size: prepared(f"sqlite:///{folder}/{size}.sqlite", size) for size in sizes}, floor)
        if binaries() is None:
            print("PostgreSQL: not installed here")
            return
        with server(folder) as address, postgres_floor(address) as floor:
            report("PostgreSQL", {size: prepared(schema(address, size), size) for size in sizes}, floor)


if __name__ == "__main__":
    main()
