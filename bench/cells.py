"""Cell suppression of UCI Adult in both senses of missing, beside what was measured of sdcMicro 5.8.1.

    python bench/cells.py [FOLDER] [--rows 1000000]     # with adult.csv and hierarchies/ in ARX's format

The folder may also be named by INCROWD_ADULT.  sdcMicro needs R and is not run here.  Its localSuppression with k = 5,
in which an empty cell matches anything, was measured once: 12.8 s of CPU and 3,298 cells on 3,016 rows of Adult, and
not finished after 253 s on all 30,162.  Which 3,016 rows and how many columns those were is not known; here it is every
tenth row, with nine and with eight quasi-identifiers.  Beside it stands the plain way, whole columns emptied one after
the other in the rows that still fall short, and a bound below which no choice of cells can be: each row's cheapest
cells under which k rows of the whole table agree with it.  Larger tables are Adult drawn with replacement, each cell
redrawn from its column with probability 0.2.  Goals: all of Adult in seconds, a million rows in a minute.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

from incrowd.core.hierarchy.tree import parse_arx
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.table import Table
from incrowd.engines.local.engine import LOCAL
from incrowd.methods.anonymity.cell_suppression.cells import Patterns, VisibleTuples
from incrowd.methods.anonymity.cell_suppression.method import CellSuppression
from incrowd.noise.system import SystemCoins

NINE = (
    "age", "education", "marital-status", "native-country", "race", "salary-class", "sex", "workclass", "occupation",
)  # fmt: skip
K, SECONDS, MINUTE = 5, 10.0, 60.0


def adult(folder: Path) -> tuple[Schema, pa.Table]:
    files = {name: folder / "hierarchies" / f"adult_hierarchy_{name}.csv" for name in NINE}
    trees = {name: parse_arx(file.read_text()).hierarchy() for name, file in files.items()}
    rows = csv.read_csv(folder / "adult.csv", parse_options=csv.ParseOptions(delimiter=";"))
    texts = pa.table({name: rows[name].cast(pa.string()) for name in NINE})
    return Schema(tuple(Column(name, Role.QUASI, hierarchy=tree) for name, tree in trees.items())), texts


def larger(table: pa.Table, rows: int) -> pa.Table:
    chance = np.random.default_rng(20261116)
    drawn = chance.integers(0, len(table), rows)
    redrawn = [np.where(chance.random(rows) < 0.2, chance.integers(0, len(table), rows), drawn) for _ in NINE]
    return pa.table({name: table[name].take(pa.array(places)) for name, places in zip(NINE, redrawn, strict=True)})


def shown_of(table: pa.Table) -> VisibleTuples:
    codes = np.stack([column.combine_chunks().dictionary_encode().indices.to_numpy() + 1 for column in table.columns])
    tuples, rows = np.unique(codes, axis=1, return_counts=True)
    return VisibleTuples(tuples.astype(np.int32), rows.astype(np.int64))


def bound(shown: VisibleTuples) -> int:
    """Return a number of cells that no choice can be below, where missing is a value."""
    patterns = Patterns.of([1.0] * len(shown.codes))
    least: NDArray[np.float64] = np.full(len(shown), np.inf)
    for blank, price in zip(patterns.blank, patterns.prices, strict=True):
        ids, rows = shown.alike(~blank)
        least = np.where(rows[ids] >= K, np.minimum(least, price), least)
    return int((least * shown.rows).sum())


def plainly(shown: VisibleTuples) -> int:
    """Return the cells of the plain way, where missing is a value: the columns with the most values first."""
    codes, cells = shown.codes.copy(), 0
    for column in np.argsort([-len(np.unique(values)) for values in codes], kind="stable"):
        ids, rows = VisibleTuples(codes, shown.rows).alike(np.ones(len(codes), np.bool_))
        short = rows[ids] < K
        cells += int(shown.rows[short].sum())
        codes[column, short] = 0
    return cells


def released(schema: Schema, table: pa.Table, method: CellSuppression) -> tuple[float, int]:
    """Return the CPU seconds of a release in memory, from the rows to an Arrow table, and its empty cells."""
    start = time.process_time()
    outcome = method.release(Table(schema, LOCAL.open(table), LOCAL), SystemCoins())
    outcome.to_arrow()
    return time.process_time() - start, sum(outcome.missing.values())


def line(what: str, spent: float | None, cells: int) -> None:
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{what:<58}{'' if spent is None else f'{spent:8.2f} s':>10}{cells:>12,} cells{memory:>8.0f} MB", flush=True)


def measure(what: str, schema: Schema, table: pa.Table, fits: Callable[[float], bool]) -> bool:
    ways = {
        "missing is a value": CellSuppression(K),
        "missing matches": CellSuppression(K, missing="matches"),
        "a value, age three times as important": CellSuppression(K, importance={"age": Fraction(3)}),
    }
    good = True
    for name, method in ways.items():
        spent, cells = released(schema, table, method)
        line(f"{what}, {name}", spent, cells)
        good &= fits(spent)
    return good


def main(folder: Path, sizes: list[int]) -> bool:
    """Measure all of it; return whether the goals are met."""
    schema, table = adult(folder)
    tenth, good = table.take(pa.array(np.arange(0, len(table), 10))), True
    print("sdcMicro, 3,016 rows of Adult: 12.80 s, 3,298 cells (missing matches); all rows: not finished after 253 s")
    for columns in (9, 8):
        some, less = Schema(schema.columns[:columns]), tenth.select(list(NINE[:columns]))
        line(f"{len(less):,} rows, {columns} columns, no choice can be below (a value)", None, bound(shown_of(less)))
        line(f"{len(less):,} rows, {columns} columns, the plain way (a value)", None, plainly(shown_of(less)))
        good &= measure(f"{len(less):,} rows, {columns} columns", some, less, lambda spent: spent < SECONDS)
    pairs = CellSuppression(1, subsets={2: 10, 3: 5})
    line("3,017 rows, 9 columns, pairs 10 and triples 5, a value", *released(schema, tenth, pairs))
    line(f"{len(table):,} rows, no choice can be below (a value)", None, bound(shown_of(table)))
    good &= measure(f"{len(table):,} rows, 9 columns", schema, table, lambda spent: spent < SECONDS)
    for rows in sizes:
        good &= measure(f"{rows:,} rows, 9 columns", schema, larger(table, rows), lambda spent: spent < MINUTE)
    return good


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    named = os.environ.get("INCROWD_ADULT", str(Path(__file__).parents[2] / "shared" / "data" / "adult"))
    parser.add_argument("folder", type=Path, nargs="?", default=Path(named))
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000])
    given = parser.parse_args()
    if not given.folder.is_dir():
        sys.exit(f"{given.folder} is not there: name the folder of Adult.")
    sys.exit(0 if main(given.folder, given.rows) else 1)
