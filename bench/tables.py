"""Secondary suppression of large tables, for readers, one contributor and two who share; beside the hypercube method.

    python bench/tables.py [CASE …]        # all cases by default

The hypercube method is our own reimplementation of what Giessing & Repsilber 2002 publish: for each sensitive cell the
cheapest box of cells of the table, totals among them, in which every second corner has enough room.  It knows neither
hierarchies, nor that zeros are published below, nor contributors.  Goal: 200 × 200 and a city in less than 10 CPU
seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from itertools import product

import numpy as np

from incrowd.errors import Infeasible
from incrowd.methods.tabulation.protected.boxes import ProtectionDemand
from incrowd.methods.tabulation.protected.coalitions import Owners
from incrowd.methods.tabulation.protected.frame import TableAxis, TableFrame, Whole
from incrowd.methods.tabulation.protected.rules import Contributions
from incrowd.methods.tabulation.protected.suppression import suppress, task_of

MINIMUM = 3


def axis(name: str, *sizes: int) -> TableAxis:
    """Return lines under a total, nested as deep as there are sizes."""
    labels, parents = ["*"], [-1]

    def grow(above: int, prefix: str, rest: tuple[int, ...]) -> None:
        for place in range(rest[0]):
            labels.append(f"{prefix}.{place}")
            parents.append(above)
            if rest[1:]:
                grow(len(labels) - 1, f"{prefix}.{place}", rest[1:])

    grow(0, name, sizes)
    return TableAxis(name, tuple(labels), tuple(parents))


def pareto(scale: int, *axes: TableAxis) -> tuple[TableFrame, Whole]:
    """Return a table of counts with a heavy tail."""
    frame = TableFrame(axes)
    return frame, (np.random.default_rng(scale).pareto(1.0, frame.leaf_shape) * scale).astype(np.int64)


def city() -> tuple[TableFrame, Whole]:
    """Return 20,000 incidents by district, month and type: 5,434 cells."""
    chance = np.random.default_rng(8)
    sides = [chance.dirichlet(np.full(size, shape)) for size, shape in ((18, 2.0), (12, 20.0), (21, 0.4))]
    frame = TableFrame((axis("district", 18), axis("month", 12), axis("type", 21)))
    shares = np.einsum("i,j,k->ijk", *sides).ravel()
    return frame, chance.multinomial(20_000, shares).reshape(frame.leaf_shape)


CASES: dict[str, Callable[[], tuple[TableFrame, Whole]]] = {
    "city": city,
    "200 × 200": lambda: pareto(12, axis("a", 200), axis("b", 200)),
    "geography": lambda: pareto(20, axis("g", 10, 20, 25), axis("b", 10)),
    "hierarchy, sparse": lambda: pareto(6, axis("h", 5, 6), axis("r", 50), axis("c", 20)),
    "hierarchy, dense": lambda: pareto(60, axis("h", 5, 6), axis("r", 50), axis("c", 20)),
    "50 × 50 × 50": lambda: pareto(30, axis("a", 50), axis("b", 50), axis("c", 50)),
}


def hypercube(frame: TableFrame, cells: Whole, demands: list[ProtectionDemand]) -> tuple[int, int]:
    """Return how many cells the hypercube method leaves empty in a table without hierarchies, and unprotected."""
    unprotected = 0
    values = cells.reshape(frame.shape)
    suppressed = np.zeros(frame.shape, np.bool_)
    suppressed.ravel()[[demand.cell for demand in demands]] = True
    for demand in sorted(demands, key=lambda demand: -demand.up):
        base = np.unravel_index(demand.cell, frame.shape)
        cost, fits = np.zeros(frame.shape), np.ones(frame.shape, np.bool_)
        for corner in product((False, True), repeat=len(base)):
            where = tuple(slice(None) if far else slice(node, node + 1) for far, node in zip(corner, base, strict=True))
            cost = cost + np.where(suppressed[where], 0, values[where])
            fits = fits & (values[where] >= (demand.up if sum(corner) % 2 else 1))
        for number, node in enumerate(base):
            fits[(slice(None),) * number + (int(node),)] = False
        fits[(0,) * len(base)] = False
        if fits.any():
            other = np.unravel_index(int(np.argmin(np.where(fits, cost, np.inf))), frame.shape)
            suppressed[np.ix_(*([a, b] for a, b in zip(base, other, strict=True)))] = True
        unprotected += not fits.any()
    return int(suppressed.sum()), unprotected


def main() -> None:
    """Protect the tables against each attacker."""
    for name in sys.argv[1:] or CASES:
        frame, leaves = CASES[name]()
        some = np.flatnonzero(leaves)
        rows = Contributions(some, np.full(len(some), -1), np.ones(len(some), np.int64), leaves.ravel()[some])
        for size in range(3):
            start = time.process_time()
            task = task_of(frame, leaves, owners=Owners.of(frame, rows, size))
            least = frame.matrix @ task.low
            demands = [
                ProtectionDemand(cell, int(task.cells[cell] - least[cell]), MINIMUM)
                for cell in np.flatnonzero((task.cells > 0) & (task.cells < MINIMUM)).tolist()
            ]
            try:
                empty = f"{suppress(task, demands, MINIMUM).suppressed.sum():,} empty"
            except Infeasible:
                empty = "refused"
            what = f"{frame.size:,} cells, {len(demands):,} sensitive, coalition {size}"
            print(f"{name}: {what}: {empty}, {time.process_time() - start:.1f} s CPU", flush=True)
        if all(side.flat for side in frame.axes):
            start = time.process_time()
            count, bare = hypercube(frame, task.cells, demands)
            spent = time.process_time() - start
            print(
                f"{name}: hypercube: {count:,} empty, {bare:,} sensitive without a box, {spent:.1f} s CPU", flush=True
            )


if __name__ == "__main__":
    main()
