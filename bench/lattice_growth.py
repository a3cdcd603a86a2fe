"""How the search for levels grows with rows, columns and levels: CPU seconds and memory, each in a process of its own.

    python bench/lattice_growth.py

The tables are invented: every column has 64 values, the frequent ones far more frequent than the rare ones, and rows
come in kinds, so that columns depend on each other.  A column's hierarchy halves its values at every level.  The search
is for k = 5 with at most 5 % of the rows suppressed, by loss.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from incrowd.core.counts import Counts
from incrowd.core.hierarchy.tree import TreeHierarchy
from incrowd.core.keys import Layout, grouped
from incrowd.core.recoding import Classes, Recoding
from incrowd.core.schema import Column
from incrowd.criteria.k_anonymity import KAnonymity
from incrowd.methods.anonymity.search.lattice import Lattice, LevelLimits, Task
from incrowd.methods.anonymity.search.optimal import SearchLimits, optimal

VALUES, KINDS, MOST = 64, 40, 7
HEADER = "      rows  columns  levels        nodes     tuples   judged    CPU s      MB  loss"


@dataclass(frozen=True)
class Size:
    """How large a problem is."""

    rows: int = 300_000
    columns: int = 6
    levels: int = 4


GROWTH = {
    "rows": [Size(rows=rows) for rows in (10_000, 100_000, 1_000_000, 3_000_000)],
    "columns": [Size(columns=columns) for columns in (2, 4, 6, 8, 10)],
    "levels": [Size(levels=levels) for levels in (2, 3, 4, 5, 6, 7)],
}


def lattice(size: Size) -> Lattice:
    """Return an invented table, counted, with so many levels of each column, the finest and `*` among them."""
    hierarchy = TreeHierarchy(tuple(tuple(f"{value >> level}" for level in range(MOST - 1)) for value in range(VALUES)))
    chance, classes, codes = np.random.default_rng(20261116), list[Classes](), []
    kinds = chance.integers(0, KINDS, size.rows)
    for number in range(size.columns):
        listed = Recoding(Column(f"c{number}", hierarchy=hierarchy), 0).classes
        if listed is None:
            raise AssertionError("the values are declared")
        classes.append(listed)
        usual = chance.integers(0, VALUES, KINDS)[kinds]
        codes.append(((usual + chance.geometric(0.3, size.rows) - 1) % VALUES).astype(np.int32))
    keys, counts = grouped(Layout(tuple(len(each) for each in classes)).pack(codes))
    names = [each.recoding.column.name for each in classes]
    lowest = dict.fromkeys(names, MOST - size.levels)
    return Lattice.of(Counts(tuple(classes), keys, counts), names, limits=LevelLimits(lowest))


def measure(size: Size) -> None:
    """Search once, and print what it took; a minute at most."""
    made = lattice(size)
    start = time.process_time()
    found = optimal(made, Task(KAnonymity(5), limit="0.05"), SearchLimits(seconds=60))
    spent = time.process_time() - start
    status = Path("/proc/self/status").read_text().splitlines()
    memory = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    loss = "none" if found.best is None else f"{found.best.score:.4f}"
    end = "optimal" if found.complete else f"gap {found.gap:.3g}"
    print(
        f"{size.rows:>10,}{size.columns:>9}{size.levels:>8}{made.nodes:>13,}{len(made.base):>11,}"
        f"{found.judged:>9,}{spent:>9.2f}{memory / 1024:>8.0f}  {loss} {end}",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--one", nargs=3, type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        measure(Size(*given.one))
        sys.exit()
    for name, sizes in GROWTH.items():
        print(f"growth with {name}")
        print(HEADER)
        for each in sizes:
            one = [str(each.rows), str(each.columns), str(each.levels)]
            subprocess.run([sys.executable, __file__, "--one", *one], check=True)
