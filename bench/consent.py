"""Claim: ten million decisions are folded in memory that grows with people, not with events.

    python -m bench.consent [--events 10000000] [--people 1000000] [--folder FOLDER]

The registry is read from its first entry, every entry checked against its keyed hash and the one before it.  Beside it
stand the fold alone, and a DuckDB GROUP BY of the same events, which checks nothing: CPU seconds and peak memory, each
in a process of its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from incrowd.governance.consent.event import ConsentEvent, Decided
from incrowd.governance.consent.registry import Registry
from incrowd.governance.consent.state import AsOf, RecordedRows, consenting

PURPOSE, NOW = "research/newborns", "2026-06-01T00:00:00.000000Z"
_CHUNK, _ENTRY = 100_000, 2_000
_SQL = """
SELECT count(*) FROM (
    SELECT subject,
        max("at") FILTER (decided = 'give' AND purpose = 'research') AS g0,
        max("at") FILTER (decided = 'give' AND purpose = 'research/newborns') AS g1,
        max("at") FILTER (decided <> 'give' AND purpose = 'research') AS n0,
        max("at") FILTER (decided <> 'give' AND purpose = 'research/newborns') AS n1
    FROM read_parquet('{file}') WHERE valid_from <= '{now}' AND (valid_to IS NULL OR valid_to > '{now}')
    GROUP BY subject)
WHERE coalesce(greatest(g0, g1), '') > coalesce(n0, '') AND (n1 IS NULL OR coalesce(g1, '') > n1)
"""


def rows(events: int, people: int) -> Iterator[list[list[str | None]]]:
    """Yield made-up events in chunks: most give, some withdraw, about two purposes."""
    chance = np.random.default_rng(19)
    for start in range(0, events, _CHUNK):
        size = min(_CHUNK, events - start)
        who, kind = chance.integers(0, people, size), chance.integers(0, 5, size)
        wide, second = chance.integers(0, 2, size), chance.integers(0, 10**7, size)
        yield [
            [
                f"{(int(w) * 0x9E3779B97F4A7C15) % 2**128:032x}",
                "withdraw" if k == 0 else "give",
                "research" if p else PURPOSE,
                f"2026-01-01T00:00:00.{int(s) % 10**6:06}Z",
                "2026-01-01T00:00:00.000000Z",
                None,
                "consent",
                "",
            ]
            for w, k, p, s in zip(who, kind, wide, second, strict=True)
        ]


def write(folder: Path, events: int, people: int) -> None:
    """Write the same events as a registry and as a Parquet file."""
    names = ["subject", "decided", "purpose", "at", "valid_from", "valid_to", "basis", "notice"]
    schema = pa.schema([(name, pa.string()) for name in names])
    registry = Registry.create(f"sqlite:///{folder}/registry.sqlite")
    with pq.ParquetWriter(folder / "events.parquet", schema) as file:
        for chunk in rows(events, people):
            file.write_table(pa.table(list(map(pa.array, zip(*chunk, strict=True))), schema=schema))
            registry.record(ConsentEvent(r[0], Decided(r[1]), *r[2:]) for r in chunk)  # type: ignore[arg-type]


def checked(folder: Path) -> int:
    """Fold the registry itself."""
    registry = Registry.open(f"sqlite:///{folder}/registry.sqlite")
    return len(consenting(registry.rows(), PURPOSE, AsOf(NOW, "9999")))


def fold(folder: Path) -> int:
    """Fold the same events from the Parquet file."""

    def batches() -> Iterator[RecordedRows]:
        for batch in pq.ParquetFile(folder / "events.parquet").iter_batches(_ENTRY):
            yield NOW, list(zip(*(column.to_pylist() for column in batch.columns), strict=True))

    return len(consenting(batches(), PURPOSE, AsOf(NOW, "9999")))


def group_by(folder: Path) -> int:
    """Let DuckDB group the same events by person."""
    import duckdb

    with duckdb.connect(config={"threads": 1}) as connection:
        found = connection.sql(_SQL.format(file=folder / "events.parquet", now=NOW)).fetchall()
    return int(found[0][0])


def measured(work: Callable[[Path], int], folder: Path) -> tuple[int, float, float]:
    """Return what was found, the CPU seconds of it and the peak of this process in MB."""
    begun = time.process_time()
    found = work(folder)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return found, time.process_time() - begun, peak


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
        for title, work in (("registry", checked), ("fold", fold), ("DuckDB", group_by)):
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                found, seconds, peak = pool.submit(measured, work, folder).result()
            print(f"{title:>10}: {found:,} consent, {seconds:7.1f} CPU s, {peak:6.0f} MB")


if __name__ == "__main__":
    main()
