"""Methods whose speed has a goal: synthesis of 40 columns, t-closeness of Adult, masks of 4,580 and a million rows.

    INCROWD_ADULT=folder python -m bench.methods

ARX and sdcMicro need Java and R packages that are not run here.  Beside t-closeness stand ARX's CPU seconds as they
were measured once, scaled by an exhaustive search of the same nodes, which ran then and runs here.  Beside masks stand
those of sdcMicro 5.8.1, as they were measured once: not scaled, so a slow machine counts against incrowd.  The others
have goals in CPU seconds.  Without Adult its rows are left out, and that is printed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from bench import lattice, perturbation
from bench.rows import HEAD, Row, finish, show
from bench.synthesis import declared, forty, released
from incrowd.methods.anonymity.search import rollup

TIMES = 5
CLOSE = ("k, 0.2-closeness, 100 %", "the same, hierarchical")
FASTER = 4.0
MDAV, NOISE = "microaggregation, MDAV, k = 3", "noise, uncorrelated"
FEW, MANY = 4_580, 1_000_000


def synthesis() -> Iterator[Row]:
    """Synthesize 40 columns that depend on each other."""
    table = forty()
    _, seconds, megabytes = released(table, "marginals", "1", declared(table))
    yield Row("synthesis of 40 columns", seconds, goal=12.0, megabytes=megabytes)


def closeness(folder: Path) -> Iterator[Row]:
    """Find the best generalization of Adult that is 0.2-close, any number of rows suppressed."""
    counts = lattice.count(folder, folder / "adult.csv")
    scale = lattice.exhaustive(counts) / lattice.FLOOR
    for row in lattice.WARM:
        if row[0] in CLOSE:
            _, seconds = lattice.warm(counts, rollup.grouped_by_numba, row)
            work = f"0.2-close, 100 % suppression{', hierarchical' * (row[0] != CLOSE[0])}"
            yield Row(work, seconds, row[-1] * scale, "ARX 3.9.2, scaled", 1 / FASTER)


def masks() -> Iterator[Row]:
    """Mask rows in memory, after one run that imports; the least of several for few rows."""
    for rows, names, times in ((FEW, (MDAV, NOISE), TIMES), (MANY, (MDAV,), 1)):
        data = perturbation.table(rows)
        for name in names:
            step = perturbation.MASKS[name]
            _, out = perturbation.seconds(step, data)
            seconds = min(perturbation.alone(step, out) for _ in range(times))
            peer = perturbation.PEER[name].get(rows)
            goal = 6.0 if peer is None else 1.0
            yield Row(f"{name}, {rows:,} rows", seconds, None if peer is None else float(peer), "sdcMicro", goal)


def main() -> None:
    """Measure all; exit 1 if a goal is missed."""
    folder = Path(os.environ.get("INCROWD_ADULT", Path(__file__).parents[2] / "shared" / "data" / "adult"))
    print(HEAD)
    rows = [show(row) for row in synthesis()]
    if (folder / "adult.csv").is_file():
        rows += [show(row) for row in closeness(folder)]
    else:
        print("Adult is not there: t-closeness is left out. Name its folder in INCROWD_ADULT.")
    rows += [show(row) for row in masks()]
    finish(rows)


if __name__ == "__main__":
    main()
