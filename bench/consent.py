"""Claim: ten million decisions are folded within 3 times DuckDB's window query, in memory that grows with people.

    python -m bench.consent [--events 10000000] [--people 1000000] [--folder FOLDER]

The registry is read from its first entry, every entry checked against its keyed hash and the one before it.  Beside it
stand two queries of DuckDB of the same events in Parquet, which check nothing: a window query of the newest decision of
each person, which is the yardstick, and one that applies the rule for a tree of purposes.  CPU seconds and peak memory,
each in a process of its own, on one thread.  Then one withdrawal is matched.  It exits with 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.rows import HEAD, Row, finish, show
from incrowd.core.subjects import Subject
from incrowd.governance.consent.event import ConsentEvent, Decided
from incrowd.governance.consent.matching import Consents
from incrowd.governance.consent.registry import Registry
from incrowd.governance.consent.state import AsOf, consenting

PURPOSE, NOW = "research/newborns", "2026-06-01T00:00:00.000000Z"
_CHUNK = 100_000
_NEWEST = """
SELECT count(*) FROM (
    SELECT subject, decided FROM read_parquet('{file}')
    WHERE valid_from <= '{now}' AND (valid_to IS NULL OR valid_to > '{now}')
    QUALIFY row_number() OVER (PARTITION BY subject ORDER BY "at" DESC, decided = 'give') = 1)
WHERE decided = 'give'
"""
_RULE = """
WITH newest AS (
    SELECT subject, purpose, decided, "at" FROM read_parquet('{file}')
    WHERE valid_from <= '{now}' AND (valid_to IS NULL OR valid_to > '{now}')
    QUALIFY row_number() OVER (PARTITION BY subject, purpose, decided = 'give' ORDER BY "at" DESC) = 1),
people AS (
    SELECT subject,
        max("at") FILTER (decided = 'give' AND purpose = 'research') AS g0,
        max("at") FILTER (decided = 'give' AND purpose = 'research/newborns') AS g1,
        max("at") FILTER (decided <> 'give' AND purpose = 'research') AS n0,
        max("at") FILTER (decided <> 'give' AND purpose = 'research/newborns') AS n1
    FROM newest GROUP BY subject)
SELECT count(*) FROM people
WHERE coalesce(greatest(g0, g1), '') > coalesce(n0, '') AND (n1 IS NULL OR coalesce(g1, '') > n1)
"""
GOAL, WITHDRAWAL = 3.0, 0.5
"""How many times DuckDB's CPU seconds; and CPU seconds for one withdrawal among a million events."""


def rows(events: int, people: int) -> Iterator[list[list[str | None]]]:
    """Yield made-up events in chunks: most give, some withdraw, about two purposes."""
    chance = np.random.default_rng(19)
    for start in range(0, events, _CHUNK):
        size = min(_CHUNK, events - start)
        who, kind = chance.integers(0, people, size), chance.integers(0, 5, size)
        wide, second = chance.integers(0, 2, size), chance.integers(0, 10**7, size)
        yield [
            [
                f"{(int(w) * 0x9E3779B97F4A7C15F39CC0605CEDC835) % 2**128:032x}",
                "withdraw" if k == 0 else "give",
                "research" if p else PURPOSE,
                f"2026-01-01T00:00:00.{int(s) % 10**6:06}Z",
                "2026-01-01T00:00:00.000000Z",
                None,
                "consent",
                "",
                f"{(int(w) * 0xC2B2AE3D27D4EB4F165667B19E3779F9 + 1) % 2**128:032x}",
            ]
            for w, k, p, s in zip(who, kind, wide, second, strict=True)
        ]


def write(folder: Path, events: int, people: int) -> None:
    """Write the same events as a registry and as a Parquet file."""
    names = ["subject", "decided", "purpose", "at", "valid_from", "valid_to", "basis", "notice", "alike"]
    schema = pa.schema([(name, pa.string()) for name in names])
    registry = Registry.create(f"sqlite:///{folder}/registry.sqlite")
    with pq.ParquetWriter(folder / "events.parquet", schema) as file:
        for chunk in rows(events, people):
            (folder / "person").write_text(f"{chunk[0][0]} {chunk[0][8]}")
            file.write_table(pa.table(list(map(pa.array, zip(*chunk, strict=True))), schema=schema))
            registry.record(ConsentEvent(r[0], Decided(r[1]), *r[2:]) for r in chunk)  # type: ignore[arg-type]


def checked(folder: Path) -> int:
    """Fold the registry itself."""
    registry = Registry.open(f"sqlite:///{folder}/registry.sqlite")
    return len(consenting(registry.rows(), PURPOSE, AsOf(NOW, "9999")))


def withdrawal(folder: Path) -> int:
    """Find whom a withdrawal of one person reaches."""
    registry = Registry.open(f"sqlite:///{folder}/registry.sqlite")
    who = Subject(*(folder / "person").read_text().split())
    return len(Consents.among([who]).read(registry.naming(who.pseudonym, who.alike)).consented)


def window(folder: Path) -> int:
    """Let DuckDB find the newest decision of each person, whatever its purpose."""
    return _counted(_NEWEST, folder)


def rule(folder: Path) -> int:
    """Let DuckDB apply the rule for a purpose and a wider one, as the registry's fold does."""
    return _counted(_RULE, folder)


def _counted(query: str, folder: Path) -> int:
    import duckdb

    with duckdb.connect(config={"threads": 1}) as connection:
        ((number,),) = connection.sql(query.format(file=folder / "events.parquet", now=NOW)).fetchall()
    return int(number)


def measured(work: Callable[[Path], int], folder: Path) -> tuple[int, float, float]:
    """Return a number of people, the CPU seconds of finding it and the peak of this process in MB."""
    begun = time.process_time()
    number = work(folder)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return number, time.process_time() - begun, peak


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--events", type=int, default=10_000_000)
    options.add_argument("--people", type=int, default=1_000_000)
    options.add_argument("--folder", default=None)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as name:
        folder = Path(name)
        write(folder, chosen.events, chosen.people)
        print(f"{chosen.events:,} events of {chosen.people:,} people")
        seconds, numbers = {}, {}
        for work in (checked, window, rule, withdrawal):
            title = work.__name__
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                numbers[title], seconds[title], peak = pool.submit(measured, work, folder).result()
            print(f"{title:>10}: {numbers[title]:,}, {seconds[title]:7.2f} CPU s, {peak:6.0f} MB", flush=True)
    if numbers["checked"] != numbers["rule"]:
        sys.exit("the fold and the rule in SQL differ")
    millions = max(1.0, chosen.events / 1e6)
    print(HEAD)
    fold, one = f"consent, {chosen.events:,} events", "one withdrawal, per million events"
    finish(
        [
            show(Row(fold, seconds["checked"], seconds["window"], "DuckDB window query", GOAL)),
            show(Row(one, seconds["withdrawal"] / millions, goal=WITHDRAWAL)),
        ]
    )


if __name__ == "__main__":
    main()
