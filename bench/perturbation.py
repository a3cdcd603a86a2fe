"""Masks on a table like Adult and on a million rows: CPU seconds beside reading and writing the same table.

    python bench/perturbation.py [ROWS ...]          30,162 and 1,000,000 by default

Each mask is run through the whole road (policy, charge, release in memory).  The floor is the same table counted,
unfolded and sorted, which every mask needs; ratios are to the floor of the same run.
"""

from __future__ import annotations

import sys
import tempfile
import time
from typing import Any

import numpy as np
import pyarrow as pa

from incrowd.workflows.release.publish import release

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
}


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
        }
    )


def seconds(step: Any, data: pa.Table) -> tuple[float, pa.Table]:
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
        out = release(data, policy).result.to_arrow()
        return time.process_time() - start, out


def main() -> None:
    for rows in [int(each) for each in sys.argv[1:]] or [30162, 1_000_000]:
        data = table(rows)
        seconds(FLOOR, table(1000))  # imports
        floor, _ = seconds(FLOOR, data)
        print(f"\n{rows:,} rows; floor (count, unfold, sort) {floor:.2f} s CPU")
        print(f"{'mask':32} {'CPU s':>8} {'x floor':>8}  mean and correlation of income and rent, before and after")
        for name, step in MASKS.items():
            took, out = seconds(step, data)
            print(f"{name:32} {took:8.2f} {took / floor:8.1f}  {moments(data)} -> {moments(out)}", flush=True)


def moments(data: pa.Table) -> str:
    income, rent = data["income"].to_numpy(), data["rent"].to_numpy()
    return f"{income.mean():.0f}, {np.corrcoef(income, rent)[0, 1]:.3f}"


if __name__ == "__main__":
    main()
