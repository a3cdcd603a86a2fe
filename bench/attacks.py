"""How long attacks take, and in how much memory: linkage and similarity, a million rows against a million.

    python bench/attacks.py [linkage|local|similarity|films] [ROWS]

linkage: a list of a million people against a published table of the same people, zip cut to four digits, ages in
ranges of five.  local: the same with ranges that overlap, as local recoding makes them.  similarity: everybody by eight
events known about, against a million published ones of some 27,000 people.  films: ten thousand
people and a thousand films, eight ratings known about, against the pseudonymized table.  Beside linkage stands the
floor: DuckDB joins the two tables by equal labels, which each person had to be given first.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable

import duckdb
import numpy as np
import pyarrow as pa

from incrowd.attacks.finding import Finding
from incrowd.attacks.histories import similarity
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.records.linkage import linkage
from tests.attacks.crowds import pseudonymized, ratings


def people(rows: int, seed: int) -> pa.Table:
    chance = np.random.default_rng(seed)
    return pa.table(
        {
            "zip": chance.integers(10000, 99999, rows).astype(str),
            "age": chance.integers(0, 100, rows).astype(str),
            "sex": chance.choice(["F", "M"], rows),
            "ill": chance.integers(0, 50, rows).astype(str),
        }
    )


def coarse(table: pa.Table, width: int, *, shifted: bool = False) -> pa.Table:
    chance = np.random.default_rng(7)
    ages = np.array(table.column("age").to_pylist(), int)
    start = ages - chance.integers(0, width, len(ages)) if shifted else ages // width * width
    labels = np.char.add(np.char.add(start.astype(str), "-"), (start + width - 1).astype(str))
    zips = np.char.add(np.array(table.column("zip").to_pylist()).astype("U4"), "*")
    return table.set_column(0, "zip", pa.array(zips)).set_column(1, "age", pa.array(labels))


def floor(published: pa.Table, listed: pa.Table) -> float:
    begun = time.perf_counter()
    engine = duckdb.connect()
    engine.register("published", published)
    engine.register("listed", listed)
    engine.sql(
        "SELECT count(*) FROM (SELECT zip, age, sex, count(*) AS n FROM published GROUP BY ALL) p"
        " JOIN listed l ON p.zip = l.zip AND p.age = l.age AND p.sex = l.sex"
    ).fetchall()
    return time.perf_counter() - begun


def linked(rows: int, *, shifted: bool) -> None:
    original, outsiders = people(rows, 1), people(rows // 10, 2)
    published = coarse(original, 5, shifted=shifted)
    knowledge = Knowledge(original, ("zip", "age", "sex"), "ill", trials=rows)
    measured("linkage", rows, lambda: linkage(PublishedTable(published), knowledge, outsiders))
    if not shifted:
        print(f"floor, an equality join in DuckDB: {floor(published, coarse(original, 5)):.1f} s")


def matched(persons: int, films: int, trials: int) -> None:
    original, outsiders = ratings(persons, films, 1), ratings(min(persons, 1000), films, 2, "q")
    published = pseudonymized(original, "who", 3)
    slack = {"rating": 1.0, "day": 14.0}
    known = ("film", "rating", "day")
    knowledge = Knowledge(original, known, person="who", item="film", slack=slack, trials=trials)
    measured("similarity", original.num_rows, lambda: similarity(PublishedTable(published), knowledge, outsiders))


def measured(name: str, rows: int, attack: Callable[[], Finding]) -> None:
    begun, used = time.perf_counter(), time.process_time()
    found = attack()
    took, cpu = time.perf_counter() - begun, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    outside = "–" if found.control is None else f"{found.control.estimate:.4f}"
    print(
        f"{name}, {rows:,} published rows, {found.success.of:,} people: {took:.1f} s ({cpu:.1f} s CPU), {peak:.2f} GB"
    )
    print(f"  success {found.success.estimate:.4f}, baseline {found.baseline.estimate:.4f}, control group {outside}")


def main() -> None:
    what = sys.argv[1] if len(sys.argv) > 1 else "linkage"
    rows = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    if what in ("linkage", "local"):
        linked(rows, shifted=what == "local")
    elif what == "similarity":
        matched(rows // 37, max(100, rows // 100), rows // 37)
    else:
        matched(10_000, 1_000, 10_000)


if __name__ == "__main__":
    main()
