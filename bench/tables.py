"""Secondary suppression of large tables, and their audit by linear programs; beside leaving out whole lines.

    python bench/tables.py [AUDITED]        # so many empty cells of each table are audited, 12 by default

A hierarchy of three levels × 50 × 20, with counts as in sparse, middling and dense registers.  The floor is what one
would do at first: every finest line that holds a sensitive cell is left empty.  The audit asks two linear programs a
cell, each over all tables that agree with what is published, as Fischetti & Salazar
2001 do.  Goal: less than a CPU minute a table.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from incrowd.methods.tabulation.protected.boxes import ProtectionDemand
from incrowd.methods.tabulation.protected.frame import TableAxis, TableFrame
from incrowd.methods.tabulation.protected.suppression import Pattern, SuppressionTask, suppress, task_of

MINIMUM = 3
SCALES = (6, 20, 60)


def axis(name: str, groups: int, size: int) -> TableAxis:
    """Return lines under a total, in groups or (with one group) not."""
    labels, parents = ["*"], [-1]
    for group in range(groups):
        if groups > 1:
            labels.append(f"{name}{group}")
            parents.append(0)
        above = len(labels) - 1 if groups > 1 else 0
        labels += [f"{name}{group}.{place}" for place in range(size)]
        parents += [above] * size
    return TableAxis(name, tuple(labels), tuple(parents))


def task(scale: int) -> tuple[SuppressionTask, list[ProtectionDemand]]:
    """Return a table of counts and its sensitive cells."""
    frame = TableFrame((axis("h", 5, 6), axis("r", 1, 50), axis("c", 1, 20)))
    leaves = (np.random.default_rng(scale).pareto(1.0, frame.leaf_shape) * scale).astype(np.int64)
    found = task_of(frame, leaves)
    few = np.flatnonzero((found.cells > 0) & (found.cells < MINIMUM))
    least = found.frame.matrix @ found.low
    return found, [ProtectionDemand(cell, int((found.cells - least)[cell]), MINIMUM) for cell in few.tolist()]


def audited(given: SuppressionTask, demands: list[ProtectionDemand], pattern: Pattern) -> int:
    """Return how many of these sensitive cells a linear program can infer within their protection interval."""
    matrix, values, left = given.attacker(pattern.suppressed).open
    sums, close = LinearConstraint(matrix, values, values), 0
    bounds = Bounds(given.low[left], float(given.cells[0]))
    for demand in demands:
        row = np.asarray(given.frame.matrix[[demand.cell]].todense(), np.float64).ravel()[left]
        low, high = (milp(sign * row, constraints=sums, bounds=bounds) for sign in (1, -1))
        true = row @ given.truth[left]
        close += low.fun > true - demand.down + 1e-6 or -high.fun < true + demand.up - 1e-6
    return close


def main() -> None:
    """Protect and audit three tables."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    for scale in SCALES:
        given, demands = task(scale)
        start = time.process_time()
        pattern = suppress(given, demands, MINIMUM)
        spent = time.process_time() - start
        few = np.zeros(given.frame.size, np.bool_)
        few[[demand.cell for demand in demands]] = True
        lines = int(few[given.frame.leaves].reshape(given.frame.leaf_shape).any(2).sum()) * given.frame.leaf_shape[2]
        chosen = [demands[place] for place in np.linspace(0, len(demands) - 1, number).astype(int)]
        start = time.process_time()
        close = audited(given, chosen, pattern)
        audit = time.process_time() - start
        print(
            f"{given.frame.size:,} cells, {len(demands):,} sensitive: {spent:.1f} s CPU, {pattern.suppressed.sum():,} "
            f"empty (whole lines: {lines:,}); audit of {len(chosen)}: {close} inferred, {audit:.1f} s"
        )


if __name__ == "__main__":
    main()
