"""Mondrian on UCI Adult and on invented tables: time, memory and growth, beside a plain recursion in the same run.

    python bench/mondrian.py [FOLDER] [ROWS …]        # FOLDER with adult.csv and hierarchies/ in ARX's format

The folder may also be named by INCROWD_ADULT.  The recursion is a floor: one piece after another, codes in plain
Python, no reading, no labels, no rows unfolded, and it gives up where a median repeats, so its classes are few.
anonypy 0.2.1, which does the whole work, was measured once at 27.7 s on Adult and is not run here.  Goal: at least 100
times as fast, with counting, cutting, labeling and unfolding; and a million rows of eight columns in seconds.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from incrowd.core.domain import Numbers, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.hierarchy.tree import parse_arx
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.table import Rows, SourceOptions, Table
from incrowd.engines.local.engine import LOCAL
from incrowd.methods.anonymity.mondrian.method import Mondrian
from incrowd.noise.system import SystemCoins

ANONYPY, GOAL = 27.7, 100.0
METHODS = {
    "strict": Mondrian(5),
    "relaxed": Mondrian(5, relaxed=True),
    "nodes": Mondrian(5, show="nodes"),
    "3-diverse": Mondrian(5, l=3),
    "0.2-close": Mondrian(5, t=Fraction(1, 5)),
}
QUASI = ("age", "education", "marital-status", "native-country", "race", "salary-class", "sex", "workclass")
SIZES = (100, 16, 7, 40, 5, 2, 2, 1000)


def adult(folder: Path) -> tuple[Schema, Rows]:
    """Return Adult with eight quasi-identifiers and the occupation as sensitive column."""
    columns = []
    for name in (*QUASI, "occupation"):
        tree = parse_arx((folder / "hierarchies" / f"adult_hierarchy_{name}.csv").read_text()).hierarchy()
        role = Role.SENSITIVE if name == "occupation" else Role.QUASI
        if name == "age":
            columns.append(Column(name, role, Type.INTEGER, Flat(Numbers(0, 120))))
        else:
            columns.append(Column(name, role, hierarchy=tree))
    return Schema(tuple(columns)), LOCAL.open(str(folder / "adult.csv"), SourceOptions(delimiter=";"))


def invented(rows: int, columns: int) -> tuple[Schema, Rows]:
    """Return numbers that crowd at the low end, in columns of different size."""
    chance, sizes = np.random.default_rng(7), (SIZES * 2)[:columns]
    found = {f"c{n}": (chance.random(rows) ** 1.5 * size).astype(np.int32) for n, size in enumerate(sizes)}
    schema = Schema(
        tuple(Column(f"c{n}", Role.QUASI, Type.INTEGER, Flat(Numbers(0, size - 1))) for n, size in enumerate(sizes))
    )
    return schema, LOCAL.open(pa.table(found))


def seconds(work: Callable[[], object], times: int = 3) -> float:
    """Return the least CPU time of a few runs."""
    found = []
    for _ in range(times):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def released(method: Mondrian, given: tuple[Schema, Rows]) -> int:
    """Release in memory, from the source to an Arrow table; return how many classes there are."""
    outcome = method.release(Table(*given, LOCAL), SystemCoins())
    outcome.to_arrow()
    return len(outcome.sizes)


def recursion(rows: list[tuple[int, ...]], k: int) -> int:
    """Cut rows one piece after another, along the column with the most values; return how many classes there are."""
    if len(rows) >= 2 * k:
        spans = [(len({row[c] for row in rows}), c) for c in range(len(rows[0]))]
        for _, c in sorted(spans, reverse=True):
            middle = sorted(row[c] for row in rows)[len(rows) // 2]
            low, high = [row for row in rows if row[c] < middle], [row for row in rows if row[c] >= middle]
            if min(len(low), len(high)) >= k:
                return recursion(low, k) + recursion(high, k)
    return 1


def line(what: str, spent: float, classes: int | None = None, beside: float | None = None) -> None:
    ratio = "" if beside is None else f"{beside / spent:9.0f}×"
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{what:44} {spent:9.3f} s {'' if classes is None else f'{classes:,}':>10} {memory:8.0f} MB {ratio}")


def on_adult(folder: Path) -> bool:
    """Measure Adult; return whether the goal is met."""
    given = adult(folder)
    table = pa.Table.from_batches(given[1].batches(QUASI))
    codes = [column.combine_chunks().dictionary_encode().indices.to_pylist() for column in table.columns]
    plain = list(zip(*codes, strict=True))
    floor = seconds(lambda: recursion(plain, 5), 1)
    line("Adult, k = 5, recursion in plain Python", floor, recursion(plain, 5))
    found = {}
    for name, method in METHODS.items():
        found[name] = spent = seconds(partial(released, method, given))
        line(f"Adult, k = 5, {name}", spent, released(method, given), floor)
    faster = ANONYPY / found["strict"]
    print(f"anonypy was measured at {ANONYPY} s: strict is {faster:.0f}× as fast (goal: {GOAL:.0f}×)")
    return faster >= GOAL


def growth(sizes: list[int]) -> None:
    """Measure how time grows with rows, columns and k."""
    base = sizes[0]
    cases = [(rows, 8, 5) for rows in sizes] + [(base, columns, 5) for columns in (2, 4, 16)]
    for rows, columns, k in [*cases, *((base, 8, k) for k in (2, 50, 1000))]:
        given = invented(rows, columns)
        line(f"{rows:,} rows, {columns} columns, k = {k}", seconds(partial(released, Mondrian(k), given), 1))


def main() -> None:
    """Measure all of it; exit 1 if the goal on Adult is missed."""
    words = sys.argv[1:]
    numbers = [int(float(word)) for word in words if word[0].isdigit()]
    named = [word for word in words if not word[0].isdigit()]
    folder = Path(named[0] if named else os.environ.get("INCROWD_ADULT", "adult"))
    folder = folder.parent if folder.is_file() else folder
    print(f"{'':44} {'CPU':>11} {'classes':>10} {'peak':>11} {'faster':>10}")
    met = True
    if (folder / "adult.csv").is_file():
        met = on_adult(folder)
    else:
        print("Adult is not there: name its folder, or set INCROWD_ADULT.")
    growth(numbers or [100_000, 1_000_000])
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
