"""Releases over time: CPU seconds of one period of running counts, and errors beside other ways to add noise.

    python bench/series.py [--periods 365] [--cells 1000]

The first line is the last period of a series, counted, mixed, noised and checked as a release is.  The table holds
the 95 % error of the worst total at (ε, δ) = (1, 1e-6), for one row a person: ours, independent noise, and the binary
tree (left nodes; and all nodes with least squares, from what is known in each period, up to 60 periods).  Where OpenDP
is installed in the environment of `--opendp`, its tree `make_b_ary_tree` is run at the same ρ with its own consistent
post-processing; that needs all periods at once, so it is the error after the last one.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import time
from fractions import Fraction

import numpy as np
import pyarrow as pa

from incrowd.core.domain import Categories
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.table import Table
from incrowd.core.unit import Kind, Unit
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.readers.sources import open_source
from incrowd.methods.histograms.continual.check import RunningCheck
from incrowd.methods.histograms.continual.method import CHECK, Continual, largest_rho
from incrowd.methods.histograms.continual.running import PastPeriod, RunningRows
from incrowd.methods.histograms.continual.strategies import (
    ContributionPattern,
    Estimates,
    NoiseStrategy,
    matrix_of,
    sensitivity,
)
from incrowd.noise.system import SystemCoins

DELTA = Fraction(1, 10**6)
_OPENDP = """
import json, sys, numpy as np, opendp.prelude as dp
dp.enable_features("contrib")
periods, scale, runs = int(sys.argv[1]), float(sys.argv[2]), 400
errors = []
space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
tree = space >> dp.t.then_b_ary_tree(leaf_count=periods, branching_factor=2)
size = len(tree([0] * periods))
post = dp.t.make_consistent_b_ary_tree(branching_factor=2)
rng = np.random.default_rng(1)
for _ in range(runs):
    noisy = np.rint(rng.normal(0, scale, size)).astype(int).tolist()
    leaves = post(noisy)[:periods]
    errors.append(np.cumsum(leaves))
print(json.dumps(float(np.sqrt(np.mean(np.square(errors), axis=0)).max())))
"""


def one_period(periods: int, cells: int) -> None:
    """Time the last period of a series over as many cells, with a person in each of ten thousand rows."""
    labels = tuple(f"c{number}" for number in range(cells - 2))  # other and missing are cells, too
    unit = Unit(Kind.PERSON, column="id")
    schema = Schema((Column("id", Role.IDENTIFIER), Column("cell", hierarchy=Flat(Categories(labels)))), unit)
    chance = np.random.default_rng(3)
    source = pa.table(
        {
            "id": pa.array([f"p{number}" for number in range(10_000)]),
            "cell": pa.array([labels[place] for place in chance.integers(0, len(labels), 10_000)]),
        }
    )
    method = Continual(epsilon=Fraction(1), delta=DELTA, periods=periods, participations=1)
    begin = time.process_time()
    plan = method.plan(schema)
    planned = time.process_time()
    past = tuple(
        PastPeriod(number, f"d{number}", chance.integers(0, 50, cells), chance.integers(0, 10**6, cells))
        for number in range(1, periods)
    )
    table = Table(schema, open_source(source), LocalEngine())
    started = time.process_time()
    output = plan.release(RunningRows(table, periods, f"d{periods}", past, bytes(32)), SystemCoins())
    released = time.process_time()
    _check(CHECK, plan, output, schema)
    checked = time.process_time()
    print(
        f"T = {periods}, K = {cells}: plan {planned - begin:.2f}, release {released - started:.2f}, "
        f"check {checked - released:.2f} CPU s; {periods * cells:,} rows"
    )


def _check(check: RunningCheck, plan: object, output: object, schema: Schema) -> None:
    from incrowd.core.statement import Statement

    names = tuple(column.name for column in schema.released)
    statement = Statement(plan.basis, plan.claims, names, {}, {}, {})  # type: ignore[attr-defined]
    problem = check.contradiction(statement) or check.recount(statement, output)
    if problem is not None:
        raise SystemExit(f"the check refuses the output: {problem}")


def tree_variance(periods: int, *, squares: bool) -> float:
    """Return the variance of the worst total of a binary tree, in units of 1/(2ρ), by the nodes of each total."""
    levels = math.ceil(math.log2(periods)) if periods > 1 else 0
    nodes = [
        (start, start + (1 << level))
        for level in range(levels + 1)
        for place, start in enumerate(range(0, periods, 1 << level))
        if start + (1 << level) <= periods and (squares or place % 2 == 0)
    ]
    matrix = np.array([[start <= t < end for t in range(periods)] for start, end in nodes], float)
    depth = matrix.sum(axis=0).max()
    if not squares:
        return float(depth * max(t.bit_count() for t in range(1, periods + 1)))
    worst = 0.0
    for t in range(1, periods + 1):  # what is known at the end of period t
        known = matrix[[end <= t for _, end in nodes], :t]
        worst = max(worst, float(((np.ones(t) @ np.linalg.pinv(known)) ** 2).sum()))
    return float(depth * worst)


def errors(opendp: str | None) -> None:
    """Print the 95 % error of the worst total for each way, at the same ρ."""
    rho = float(largest_rho(Fraction(1), DELTA))
    unit = 1.96 / math.sqrt(2 * rho)
    heads = ("T", "independent", "tree, left", "tree, squares", "OpenDP tree", "root", "ours")
    print("\n" + " ".join(f"{head:>{wide}}" for head, wide in zip(heads, (4, 12, 12, 14, 12, 8, 8), strict=True)))
    for periods in (12, 60, 365):
        norms = {}
        for strategy in (NoiseStrategy.ROOT, NoiseStrategy.NORMALIZED_ROOT):
            matrix = matrix_of(strategy, periods, 12)
            worst = Estimates.of(matrix, tuple(range(periods)), 12).norms()["totals"].max()
            norms[strategy] = math.sqrt(sensitivity(matrix, ContributionPattern(1, 1))) * worst
        squares = f"{unit * math.sqrt(tree_variance(periods, squares=True)):.1f}" if periods <= 60 else "-"
        depth = 1 + math.ceil(math.log2(periods))
        peer = "-" if opendp is None else f"{1.96 * _peer(opendp, periods, math.sqrt(depth / (2 * rho))):.1f}"
        print(
            f"{periods:>4} {unit * math.sqrt(periods):>12.1f} "
            f"{unit * math.sqrt(tree_variance(periods, squares=False)):>12.1f} {squares:>14} {peer:>12} "
            f"{unit * norms[NoiseStrategy.ROOT]:>8.1f} {unit * norms[NoiseStrategy.NORMALIZED_ROOT]:>8.1f}"
        )


def _peer(python: str, periods: int, scale: float) -> float:
    done = subprocess.run([python, "-c", _OPENDP, str(periods), str(scale)], check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Releases over time")
    parser.add_argument("--periods", type=int, default=365)
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--opendp", help="the Python of an environment with OpenDP")
    options = parser.parse_args()
    one_period(options.periods, options.cells)
    errors(options.opendp)
