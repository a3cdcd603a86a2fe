"""Risk: uniqueness on ten million rows and special uniques on 100,000 × 8, each beside a floor in the same run.

    python bench/risk.py                          # invented people
    python bench/risk.py --rows 1000000
    python bench/risk.py --adult FOLDER           # with adult.csv: special uniques as sdcMicro was measured

The floor of uniqueness is DuckDB's GROUP BY over the same columns and file.  The floor of special uniques is one sort
of all rows by all columns: whoever looks at every set of columns cannot be faster than looking at one.  sdcMicro 5.8.1
(C++) took 0.203 s of CPU for SUDA2 on Adult (30,162 rows) on the machine on which these ratios were first taken.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv
from pyarrow import parquet as pq

from incrowd.core.keys import Layout
from incrowd.engines.local.engine import LOCAL
from incrowd.engines.readers.sources import open_source
from incrowd.measures.risk.classes import Sizes
from incrowd.measures.risk.population import population_uniqueness
from incrowd.measures.risk.special_uniques import special_uniques
from incrowd.workflows.check.raw_cells import as_is

SIZES = (80, 16, 7, 41, 5, 2, 2, 8)
NAMES = tuple(f"c{number}" for number in range(len(SIZES)))
ADULT = ("age", "education", "marital-status", "native-country", "race", "salary-class", "sex", "workclass")
SDCMICRO = 0.203
PEOPLE_PER_ROW = 20


def people(rows: int, seed: int = 1) -> list[NDArray[np.int32]]:
    """Return columns with few frequent values and many rare ones."""
    chance = np.random.default_rng(seed)
    return [(chance.zipf(1.6, rows) % size).astype(np.int32) for size in SIZES]


def timed(what: str, work: Callable[[], Any]) -> tuple[Any, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    found = work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{what:<52}{wall:>8.2f} s wall {cpu:>8.2f} s CPU")
    return found, cpu


def uniqueness(rows: int) -> None:
    """Compare counting classes, and estimating what is unique in a population, with a plain GROUP BY."""
    import duckdb

    with TemporaryDirectory() as folder:
        path = Path(folder) / "people.parquet"
        pq.write_table(pa.table({name: pa.array(c) for name, c in zip(NAMES, people(rows), strict=True)}), path)
        query = f"SELECT count(*) FROM (SELECT count(*) AS n FROM '{path}' GROUP BY ALL) WHERE n = 1"
        grouped = query.replace("SELECT count(*) AS n", f"SELECT {', '.join(NAMES)}, count(*) AS n")
        floor, least = timed(f"DuckDB: GROUP BY, {rows:,} rows", lambda: duckdb.execute(grouped).fetchall()[0][0])
        table = open_source(path)
        sizes, ours = timed("incrowd: classes", lambda: Sizes(LOCAL.count(table, as_is(table, NAMES)).counts))
        assert sizes.unique == floor
        found, more = timed(
            "incrowd: unique in the population", lambda: population_uniqueness(sizes.each, PEOPLE_PER_ROW * rows)
        )
    print(f"  {sizes.unique:,} rows alone; in the population {found.value:.5f} [{found.low:.5f}, {found.high:.5f}]")
    print(f"  CPU over the floor: classes {ours / least:.2f}, with the estimate {(ours + more) / least:.2f}")


def special(columns: list[NDArray[np.int32]], what: str) -> float:
    """Compare all sets of columns with one sort by all of them; return the seconds of CPU."""
    layout = Layout(tuple(int(column.max()) + 1 for column in columns))
    _, least = timed(f"floor: one sort, {what}", lambda: np.unique(layout.pack(columns), return_counts=True))
    found, ours = timed(f"incrowd: special uniques, {what}", lambda: special_uniques(columns))
    sets = 2 ** len(columns) - 1
    print(f"  {found.rows:,} rows, minimal uniques by size {found.by_size}; {ours / least:.0f} sorts for {sets} sets")
    return ours


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--adult", type=Path)
    arguments = parser.parse_args()
    special(people(100_000), "100,000 × 8")
    if arguments.adult is not None:
        table = csv.read_csv(arguments.adult / "adult.csv", parse_options=csv.ParseOptions(delimiter=";"))
        coded = [table[name].combine_chunks().dictionary_encode().indices.to_numpy() for name in ADULT]
        took = special([column.astype(np.int32) for column in coded], "Adult")
        print(f"  sdcMicro's figure over ours: {SDCMICRO / took:.2f} (another day, the same kind of machine)")
    uniqueness(arguments.rows)


if __name__ == "__main__":
    main()
