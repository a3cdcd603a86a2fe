"""Three histograms of one secret sample at one epsilon, side by side; and their time beside DuckDB's GROUP BY.

    python bench/histograms.py [ROWS [ADULT]]     # 1M invented rows; a folder with adult.csv and hierarchies/

Suppressed, blended and private counts are made from the same sample and cost the same epsilon.  Errors are those of
counts against the exact counts of the sample: what sampling itself costs is the same for all three.  Times are
CPU seconds of whole processes, started cold, from the same Parquet file to a written table.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.safe_release import Run, measured, table
from incrowd.core.coins import Sample
from incrowd.core.schema import Schema
from incrowd.core.table import Table
from incrowd.engines.local.engine import LocalEngine
from incrowd.methods.histograms.blended import BlendedHistogram
from incrowd.methods.histograms.private import PrivateHistogram
from incrowd.methods.histograms.shared.partition import BinPartition
from incrowd.methods.histograms.suppressed import SuppressedHistogram
from incrowd.noise.system import SystemCoins
from incrowd.workflows.policy.policy import load_policy

GOAL_RATIO = 1.3
EPSILON = Fraction(1)
GROUP_BY = """\
import duckdb, sys
duckdb.sql(f'''COPY (SELECT age // 10 AS decade, sex, ethnicity, procedure, count(*) AS n FROM '{sys.argv[1]}'
GROUP BY ALL ORDER BY ALL) TO '{sys.argv[2]}' (FORMAT parquet)''')
"""
INVENTED: dict[str, Any] = {
    "age": {"type": "integer", "bounds": [0, 99], "hierarchy": {"intervals": [10]}},
    "sex": {"categories": ["F", "M"]},
    "ethnicity": {"categories": ["white", "black", "asian", "hispanic", "native", "mixed"]},
}


@dataclass(frozen=True)
class SameSample(SystemCoins):
    """Coins whose sample is the same for every method; the noise is fresh."""

    drawn: Sample | None = None

    def sample(self, rate: Fraction) -> Sample:
        """Return the one sample."""
        if self.drawn is None or self.drawn.rate != rate:
            raise AssertionError("the sample was drawn at another rate")
        return self.drawn


@dataclass(frozen=True)
class Case:
    """A table, its bins and a budget."""

    name: str
    table: Table
    columns: tuple[str, ...]
    levels: Mapping[str, int]
    rate: Fraction
    delta: Fraction


def compared(case: Case) -> None:
    """Print the errors of three histograms of one sample."""
    coins = SameSample(SystemCoins().sample(case.rate))
    bins: dict[str, Any] = {"columns": case.columns, "levels": case.levels}
    sampled: dict[str, Any] = {"rate": case.rate, "epsilon": EPSILON, "delta": case.delta}
    partition = BinPartition.of(case.table.schema, case.columns, case.levels)
    truth = partition.occupied(partition.count(case.table, coins, case.rate)).dense()
    blended = BlendedHistogram(**bins, **sampled, noise_epsilon=free_noise(case.rate))
    k = blended.parameters(case.table.schema.unit).k
    private = PrivateHistogram(**bins, epsilon=EPSILON, rate=case.rate)
    found = {
        "suppressed": SuppressedHistogram(**bins, **sampled).release(case.table, coins).counts,
        "blended": blended.release(case.table, coins).counts,
        "private": private.release(case.table, coins).counts,
    }
    errors = {name: np.abs(counts - truth) for name, counts in found.items()}
    scale = float(private.plan(case.table.schema).settings["scale"])
    print(f"\n{case.name}: {len(truth):,} bins, rate {case.rate}, k = {k}, Laplace scale {scale:.3f}")
    print(
        f"{'mean error of counts':24} {'bins':>9} {'suppressed':>11} {'blended':>9} {'private':>9}   blended wins/ties"
    )
    sizes = {"all": truth >= 0, "empty": truth == 0, "1 … k−1": (truth > 0) & (truth < k), "k and more": truth >= k}
    for name, which in sizes.items():
        line(name, which, errors)


def free_noise(rate: Fraction) -> Fraction:
    """Return the ε of noise on small counts that is just free at this rate: ln(1 + (e^ε − 1)/rate), rounded down."""
    return Fraction(math.floor(10**6 * math.log1p(math.expm1(float(EPSILON)) / float(rate))), 10**6)


def line(name: str, which: NDArray[np.bool_], errors: Mapping[str, NDArray[np.int64]]) -> None:
    """Print one line for the bins of one size."""
    bins = int(which.sum())
    if not bins:
        return
    means = [float(errors[each][which].mean()) for each in ("suppressed", "blended", "private")]
    better = int((errors["blended"] < errors["private"])[which].sum())
    same = int((errors["blended"] == errors["private"])[which].sum())
    shown = f"{means[0]:11.3f} {means[1]:9.3f} {means[2]:9.3f}"
    print(f"{name:24} {bins:9,} {shown}   {better / bins:6.1%} / {same / bins:6.1%}")


def adult(folder: Path) -> list[Case]:
    """Return cases on the UCI Adult table."""
    names = ("sex", "age", "race", "education", "occupation", "salary-class")
    files = {name: str(folder / "hierarchies" / f"adult_hierarchy_{name}.csv") for name in names}
    schema = schema_of({name: {"hierarchy": {"file": file}} for name, file in files.items()})
    engine = LocalEngine()
    rows = Table(schema, engine.open(folder / "adult.csv"), engine)
    coarse, fine = {"age": 2, "education": 1}, {"age": 1, "education": 0}
    return [
        Case(f"Adult, {name}", rows, ("sex", "age", "education", *more), levels, rate, Fraction(1, 10**6))
        for name, levels, more in (("coarse", coarse, ()), ("fine", fine, ("salary-class",)))
        for rate in (Fraction(1, 10), Fraction(1, 2))
    ]


def invented(path: Path, rows: int) -> list[Case]:
    """Return cases on the invented table."""
    engine = LocalEngine()
    opened = Table(schema_of(columns()), engine.open(path), engine)
    crossed = ("age", "sex", "ethnicity", "procedure")
    return [
        Case(f"{rows:,} rows", opened, crossed, {"age": 1}, rate, Fraction(1, 10**9))
        for rate in (Fraction(1, 10), Fraction(1, 2))
    ]


def columns() -> dict[str, Any]:
    """Return the declared columns of the invented table."""
    import population

    return {**INVENTED, "procedure": {"categories": list(population.PROCEDURES)}}


def schema_of(declared: Mapping[str, Any]) -> Schema:
    """Return the schema that a policy with these columns declares."""
    release = {"method": "suppressed-histogram", "k": 5}
    return load_policy({"incrowd": 1, "dataset": {"name": "b"}, "columns": declared, "release": release}).schema


def timed(path: Path, rows: int) -> bool:
    """Print the CPU of each release beside that of a plain GROUP BY; return whether all are near enough.

    A process has a start: what it costs is measured on a small table, and taken off for the second ratio.
    """
    small = table(10_000, "parquet")
    plain, start = grouped(path), grouped(small)
    print(f"\n{rows:,} rows, Parquet{'':22} {'wall s':>8} {'CPU s':>8} {'peak MB':>8}   GROUP BY, beyond start")
    print(f"{'DuckDB GROUP BY':40} {plain.wall:8.2f} {plain.cpu:8.2f} {plain.megabytes:8.0f}")
    met = True
    sample = {"rate": "1/10", "epsilon": 1, "delta": "1e-9"}
    for options in (
        {"method": "suppressed-histogram", **sample},
        {"method": "blended-histogram", "noise_epsilon": 2, **sample},
        {"method": "private-histogram", "epsilon": 1},
    ):
        best, cold = least(path, options), least(small, options)
        whole, beyond = best.cpu / plain.cpu, (best.cpu - cold.cpu) / (plain.cpu - start.cpu)
        costs = f"{best.wall:8.2f} {best.cpu:8.2f} {best.megabytes:8.0f}"
        print(f"{options['method']:40} {costs}   {whole:.2f}× {beyond:.2f}×")
        met &= beyond <= GOAL_RATIO
    return met


def grouped(path: Path) -> Run:
    """Count with DuckDB, three times, and return the cheapest run."""
    with tempfile.TemporaryDirectory(dir=path.parent) as name:
        command = [sys.executable, "-c", GROUP_BY, str(path), str(Path(name) / "groups.parquet")]
        return min((measured(command, Path(name)) for _ in range(3)), key=lambda run: run.cpu)


def least(path: Path, options: Mapping[str, Any]) -> Run:
    """Release three times, and return the cheapest run."""
    return min((released(path, options) for _ in range(3)), key=lambda run: run.cpu)


def released(path: Path, options: Mapping[str, Any]) -> Run:
    """Release once, from a fresh folder with a fresh ledger."""
    release = {**options, "columns": ["age", "sex", "ethnicity", "procedure"], "levels": {"age": 1}}
    policy = {"incrowd": 1, "dataset": {"name": "bench"}, "columns": columns(), "release": release}
    with tempfile.TemporaryDirectory(dir=path.parent) as name:
        folder = Path(name)
        (folder / "policy.yaml").write_text(json.dumps(policy))
        command = [sys.executable, "-m", "incrowd", "release", str(path), "--policy", "policy.yaml", "--out", "out"]
        return measured(command, folder)


def main() -> None:
    """Compare and time; exit 1 if a release takes much longer than a GROUP BY."""
    rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000
    folder = sys.argv[2] if len(sys.argv) > 2 else os.environ.get("INCROWD_ADULT")
    path = table(rows, "parquet")
    for case in [*(adult(Path(folder)) if folder else []), *invented(path, rows)]:
        compared(case)
    met = timed(path, rows)
    print("goals met" if met else "GOALS MISSED")
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
