"""Masks on tables as large as sdcMicro's testdata and Adult, and on a million rows: CPU seconds.

    python bench/perturbation.py [ROWS ...]          4,580, 30,162 and 1,000,000 by default

Each mask is run through the whole road (policy, charge, release in memory), and alone, on rows in memory.  The floor
is the same table counted, unfolded and sorted, which every mask needs; ratios are to the floor of the same run.
sdcMicro 5.8.1 needs R and is not run here: what it took on tables of these sizes, alone and in memory, was measured
once; `more than` is where it had not finished.  Goals: ten times faster at 30,162 rows, and finished at a million.
"""

from __future__ import annotations

import sys
import tempfile
import time
from typing import Any

import numpy as np
import pyarrow as pa

from incrowd.methods.perturbation.shared.masks import MaskInput, PlannedMask
from incrowd.noise.system import SystemCoins
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.tables import release

COLUMNS: dict[str, Any] = {
    "household": {"role": "identifier"},
    "sex": {"role": "quasi", "categories": ["F", "M"]},
    "region": {
        "role": "quasi",
        "hierarchy": {"tree": {f"R{n}": [f"r{n}{m}" for m in range(10)] for n in range(10)}},
    },
    "age": {"role": "quasi", "type": "integer", "bounds": [0, 120], "missing": "drop"},
    "income": {"role": "sensitive", "type": "decimal", "missing": "drop"},
    "rent": {"role": "plain", "type": "decimal", "missing": "drop"},
    "weight": {"role": "weight", "type": "decimal", "missing": "drop"},
}
FLOOR = {"method": "coding", "columns": {"income": {"top": 10**12}}}
MASKS: dict[str, Any] = {
    "PRAM": {"method": "pram", "columns": {"sex": {"stay": "4/5"}, "region": {"stay": "4/5"}}},
    "microaggregation, MDAV, k = 3": {"method": "microaggregation", "columns": ["age", "income", "rent"]},
    "microaggregation, univariate": {"method": "microaggregation", "columns": ["income"], "grouping": "univariate"},
    "noise, uncorrelated": {"method": "noise", "columns": ["income", "rent"]},
    "noise, correlated": {"method": "noise", "columns": ["income", "rent"], "law": "correlated"},
    "orthogonal": {"method": "orthogonal", "columns": ["income", "rent"]},
    "rank swap": {"method": "rank-swap", "columns": ["income", "rent"]},
    "record swap": {"method": "record-swap", "area": "region", "household": "household", "risk": ["age"]},
    "shuffle": {"method": "shuffle", "columns": ["income"], "given": ["rent", "age", "sex"]},
    "rank swap within regions": {"method": "rank-swap", "columns": ["income", "rent"], "within": ["region"]},
    "local suppression, 1/5": {"method": "local-suppression", "threshold": "1/5"},
    "local suppression, weights, 1/50": {"method": "local-suppression", "threshold": "1/50", "risk": "survey"},
    "calibration": {"method": "calibration", "margins": [["region"], ["sex"]]},
}
PEER = {
    "PRAM": {4580: "0.055", 30162: "0.150"},
    "microaggregation, MDAV, k = 3": {4580: "0.055"},
    "noise, uncorrelated": {4580: "0.002"},
    "noise, correlated": {4580: "0.002"},
    "rank swap": {4580: "0.003"},
    "shuffle": {4580: "0.059"},
    "local suppression, 1/5": {4580: "1.4", 30162: "more than 253"},
}
"""CPU seconds of sdcMicro 5.8.1 by the number of rows, of its testdata and of Adult."""


def table(rows: int) -> pa.Table:
    chance = np.random.default_rng(7)
    income = np.exp(chance.normal(10, 1, rows)).round(2)
    homes = chance.integers(0, 100, rows // 2 + 1)
    places = homes[np.arange(rows) // 2]
    return pa.table(
        {
            "household": np.char.add("h", (np.arange(rows) // 2).astype("U8")),
            "sex": chance.choice(["F", "M"], rows),
            "region": np.char.add("r", np.char.zfill(places.astype("U2"), 2)),
            "age": chance.integers(0, 100, rows),
            "income": income,
            "rent": (income * 0.2 + chance.normal(0, 500, rows)).round(2),
            "weight": chance.uniform(1, 90, rows).round(2),
        }
    )


def alone(step: Any, out: Any) -> float:
    """Return what a mask takes on the rows that a release of it read."""
    policy = load_policy({"incrowd": 1, "dataset": {"name": "bench"}, "columns": COLUMNS, "release": step})
    mask = PlannedMask(policy.method, out.stages[1].step)  # type: ignore[arg-type]
    start = time.process_time()
    mask.apply(MaskInput(out.stages[0].frame, policy.schema, SystemCoins()))
    return time.process_time() - start


def seconds(step: Any, data: pa.Table) -> tuple[float, Any]:
    with tempfile.TemporaryDirectory() as folder:
        policy = {
            "incrowd": 1,
            "dataset": {"name": "bench"},
            "columns": COLUMNS,
            "release": step,
            "budget": {"unbounded": "a benchmark"},
            "ledger": f"sqlite:///{folder}/ledger.sqlite",
        }
        start = time.process_time()
        out = release(data, policy).result
        return time.process_time() - start, out


def main() -> None:
    for rows in [int(each) for each in sys.argv[1:]] or [4580, 30162, 1_000_000]:
        data = table(rows)
        for step in MASKS.values():
            seconds(step, table(1000))  # imports
        floor, _ = seconds(FLOOR, data)
        print(f"\n{rows:,} rows; floor (count, unfold, sort) {floor:.2f} s CPU")
        print(
            f"{'mask':32} {'CPU s':>8} {'x floor':>8} {'alone':>8} {'sdcMicro':>14}  "
            "mean and correlation of income and rent, before and after"
        )
        for name, step in MASKS.items():
            took, out = seconds(step, data)
            peer = PEER.get(name, {}).get(rows, "")
            own = f"{took:8.2f} {took / floor:8.1f} {alone(step, out):8.3f}"
            print(f"{name:32} {own} {peer:>14}  {moments(data)} -> {moments(out.to_arrow())}", flush=True)


def moments(data: pa.Table) -> str:
    income, rent = data["income"].to_numpy(), data["rent"].to_numpy()
    if not len(income):
        return "no rows"
    return f"{income.mean():.0f}, {np.corrcoef(income, rent)[0, 1]:.3f}"


if __name__ == "__main__":
    main()
