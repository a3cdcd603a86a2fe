"""Synthetic points: error beside the stated bound and beside private synthetic points, and time for millions.

    python bench/points.py                 # errors, and a million points
    python bench/points.py --large         # five million points too

All three releases see a secret sample at the same rate and cost the same (ε, δ): cells below k suppressed; cells below
k noisy; and, as the peer, a differentially private histogram on the same grid (integer Laplace noise on every cell,
clamped at 0).  Both kinds of noise have the largest ε that the sample turns into the guaranteed one.  Points stand at
the centers of their cells.  Errors are against all rows, so they hold what the sample changed; the bound compares with
the sampled rows and holds 19 times in 20.
"""

from __future__ import annotations

import argparse
import math
import resource
import time
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.accounting.amplification import amplify
from incrowd.core.domain import Numbers, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import Column, Schema
from incrowd.core.table import Table
from incrowd.engines.local.engine import LocalEngine
from incrowd.mechanisms.add_noise import AddLaplace
from incrowd.methods.synthesis.points.method import SyntheticPoints
from incrowd.noise.system import SystemCoins

Floats = NDArray[np.float64]
ROWS, RATE, BANDWIDTH = 200_000, Fraction(1, 10), 0.1
EPSILON, DELTA = Fraction(1, 2), Fraction(1, 10**6)
NOISE = Fraction(math.floor(1e6 * math.log1p(math.expm1(0.5) / float(RATE))), 10**6)
SEED = 11


class Weighted(NamedTuple):
    """Places and how many points are at each."""

    places: Floats
    counts: Floats


def mixture(rows: int, d: int, seed: int = SEED) -> Floats:
    """Five clumps of different widths, and a tenth of the rows anywhere."""
    chance = np.random.default_rng(seed)
    middles, widths = chance.uniform(0.2, 0.8, (5, d)), chance.uniform(0.02, 0.08, 5)
    clump = chance.choice(5, rows, p=[0.4, 0.25, 0.2, 0.1, 0.05])
    near = middles[clump] + chance.normal(0, 1, (rows, d)) * widths[clump, None]
    return np.clip(np.where(chance.uniform(0, 1, (rows, 1)) < 0.1, chance.uniform(0, 1, (rows, d)), near), 0, 1)


def table_of(points: Floats) -> Table:
    side = Flat(Numbers(0, 1, Type.DECIMAL))
    columns = tuple(Column(f"x{n}", type=Type.DECIMAL, hierarchy=side) for n in range(points.shape[1]))
    rows = pa.table({column.name: points[:, n] for n, column in enumerate(columns)})
    engine = LocalEngine()
    return Table(Schema(columns), engine.open(rows), engine)


def ours(table: Table, s: int, noise: Fraction | None) -> tuple[Weighted, float]:
    """Return the released cells, and by how much a mean over them is off at most for L = 1 and values 1 apart."""
    method = SyntheticPoints(s=s, rate=RATE, epsilon=EPSILON, delta=DELTA, noise_epsilon=noise)
    method.plan(table.schema)
    made = method.release(table, SystemCoins())
    centers = np.stack([axis.centers[code] for axis, code in zip(made.grid.axes, made.codes(), strict=True)], axis=1)
    likely = made.accuracy.likely
    bound = math.nan if likely is None else float(made.accuracy.reach) + float(likely) / len(made)
    return Weighted(centers, made.counts.astype(np.float64)), bound


def private(table: Table, s: int) -> Weighted:
    """Return the peer's cells: noise on every cell of the sample, at the ε that sampling turns into EPSILON."""
    if amplify(NOISE, 0, RATE)[0] > float(EPSILON):
        raise AssertionError("the peer would cost more")
    coins, grid = SystemCoins(), SyntheticPoints(s=s, k=1).grid(table.schema)
    counts = table.engine.count(table.rows, grid.cells, coins.sample(RATE))
    dense = np.zeros(grid.size, np.int64)
    dense[counts.keys] = counts.counts
    noisy = np.maximum(AddLaplace(1 / NOISE).release(dense, coins), 0)
    keys = np.flatnonzero(noisy)
    codes = grid.cells.layout.unpack(keys)
    centers = np.stack([axis.centers[code] for axis, code in zip(grid.axes, codes, strict=True)], axis=1)
    return Weighted(centers, noisy[keys].astype(np.float64))


def errors(truth: Floats, made: Weighted) -> dict[str, float]:
    """Return how far statistics of the points are from those of all rows."""
    weights = made.counts / made.counts.sum()
    means = np.abs(truth.mean(axis=0) - weights @ made.places).max()
    levels = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
    off = [np.abs(np.quantile(truth[:, n], levels) - quantiles(made.places[:, n], weights, levels)).max()
           for n in range(truth.shape[1])]  # fmt: skip
    whole = Weighted(truth[:50_000], np.ones(min(len(truth), 50_000)))
    cost = clustering_cost(whole, clusters(made)) / clustering_cost(whole, clusters(whole)) - 1
    spots = np.random.default_rng(1).uniform(0, 1, (100, truth.shape[1]))
    near = np.abs(densities(whole, spots) - densities(made, spots)).max()
    return {"means": float(means), "quantiles": float(max(off)), "k-means cost": float(cost), "densities": float(near)}


def quantiles(values: Floats, weights: Floats, levels: Floats) -> Floats:
    order = np.argsort(values)
    found: Floats = values[order][np.searchsorted(np.cumsum(weights[order]), levels).clip(0, len(values) - 1)]
    return found


def clusters(data: Weighted, number: int = 5) -> Floats:
    """Lloyd's algorithm, started at the same places of the box for everybody, the best of four starts."""
    best, least = data.places[:number], math.inf
    for seed in range(4):
        middles = np.random.default_rng(seed).uniform(0.1, 0.9, (number, data.places.shape[1]))
        for _ in range(15):
            nearest = distances(data.places, middles).argmin(axis=1)
            for n in range(number):
                mine = nearest == n
                if mine.any():
                    middles[n] = np.average(data.places[mine], axis=0, weights=data.counts[mine])
        if (cost := clustering_cost(data, middles)) < least:
            best, least = middles, cost
    return best


def clustering_cost(data: Weighted, middles: Floats) -> float:
    return float(np.average(distances(data.places, middles).min(axis=1), weights=data.counts))


def distances(points: Floats, others: Floats) -> Floats:
    squares: Floats = ((points[:, None, :] - others[None]) ** 2).sum(axis=2)
    return squares


def densities(data: Weighted, spots: Floats) -> Floats:
    """Mean of the Gaussian kernel, between 0 and 1, at each spot."""
    parts = np.array_split(np.arange(len(data.places)), max(1, len(data.places) // 20_000))
    kernels = [np.exp(-distances(spots, data.places[p]) / (2 * BANDWIDTH**2)) @ data.counts[p] for p in parts]
    found: Floats = np.sum(kernels, axis=0) / data.counts.sum()
    return found


def compare(d: int, s: int) -> None:
    truth = mixture(ROWS, d)
    table, rows = table_of(truth), list[tuple[str, Weighted, float]]()
    rows.append(("suppressed", *ours(table, s, None)))
    rows.append((f"noisy when small, {float(NOISE):.2f}", *ours(table, s, NOISE)))
    rows.append(("private histogram", private(table, s), math.nan))
    steep = math.exp(-0.5) / BANDWIDTH
    print(f"\nd = {d}, s = {s}: {s**d:,} cells, {ROWS:,} rows, rate {RATE}, ε ≤ {EPSILON}, δ ≤ 1e-6")
    head = ("points", "means", "quantiles", "k-means", "densities", "bound: mean", "density")
    print(f"{'':<24}" + "".join(f"{word:>12}" for word in head))
    for name, made, bound in rows:
        found = errors(truth, made)
        density = bound + (steep - 1) * math.sqrt(d) / (2 * s)
        numbers = (*found.values(), bound, density)
        print(f"{name:<24}{made.counts.sum():>12,.0f}" + "".join(f"{number:>12.4f}" for number in numbers))


def timings(sizes: list[int]) -> Iterator[str]:
    cases: tuple[tuple[int, int, Fraction | None], ...] = (
        (2, 100, NOISE),
        (3, 50, NOISE),
        (10, 4, None),
        (10, 10, None),
    )
    for rows in sizes:
        for d, s, noise in cases:
            table = table_of(mixture(rows, d))
            for place in ("centers", "uniform"):
                method = SyntheticPoints(s=s, k=20, noise_epsilon=noise, place=place)
                started = time.perf_counter()
                made = method.release(table, SystemCoins())
                counted = time.perf_counter() - started
                unfolded = sum(len(batch) for batch in made.batches())
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                took = time.perf_counter() - started
                yield (
                    f"{rows:>10,} rows  d = {d:>2}  s = {s:>3}  {place:<8} {unfolded:>10,} points "
                    f"{counted:>7.2f} s released {took:>7.2f} s unfolded {peak:>7.0f} MB peak so far"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--large", action="store_true", help="five million points too")
    asked = parser.parse_args()
    for d, s in ((2, 10), (2, 30), (2, 100), (3, 10), (3, 30), (5, 6)):
        compare(d, s)
    print("\nTime of a release without a sample, the rows in memory:")
    for line in timings([1_000_000, *([5_000_000] if asked.large else [])]):
        print(line)


if __name__ == "__main__":
    main()
