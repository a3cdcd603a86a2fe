"""Tables to look at, and what a release is expected to keep of them, computed the slow way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import binom

from incrowd.core.cells import Cells
from incrowd.core.schema import Schema
from incrowd.core.table import Table
from incrowd.engines.local.engine import LOCAL
from incrowd.workflows.plan.preview.method import PrivatePreview, look_of
from incrowd.workflows.plan.preview.steps import WeighedChoice
from incrowd.workflows.policy.policy import load_policy

ROWS = 20_000
SURVEY: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "survey", "rows": ROWS},
    "columns": {
        "age": {"type": "integer", "bounds": [0, 79], "hierarchy": {"intervals": [5, 20]}},
        "town": {"categories": [f"t{n:02d}" for n in range(24)], "hierarchy": {"groups": [3, 6]}},
        "work": {"categories": ["none", "part", "full"]},
    },
    "release": {
        "method": "safe",
        "levels": {"age": 1, "town": 1},
        "rate": "1/2",
        "epsilon": 1,
        "delta": "1e-6",
    },
    "budget": {"epsilon": 3, "delta": "1e-4"},
}


def table(policy: dict[str, Any], rows: pa.Table) -> Table:
    return Table(load_policy(policy).schema, LOCAL.open(rows), LOCAL)


def look(policy: dict[str, Any], epsilon: str) -> PrivatePreview:
    return look_of(load_policy(policy), Fraction(epsilon))


def even(chance: np.random.Generator, rows: int) -> pa.Table:
    return _table(chance.integers(0, 80, rows), chance.integers(0, 24, rows), chance.integers(0, 3, rows))


def skewed(chance: np.random.Generator, rows: int) -> pa.Table:
    towns, works = 1.0 / np.arange(1, 25), np.array([0.15, 0.25, 0.6])
    ages = np.clip(chance.normal(38, 14, rows), 0, 79).astype(int)
    return _table(ages, chance.choice(24, rows, p=towns / towns.sum()), chance.choice(3, rows, p=works))


def correlated(chance: np.random.Generator, rows: int) -> pa.Table:
    towns = chance.choice(24, rows, p=(law := np.arange(24, 0, -1.0) ** 2) / law.sum())
    ages = np.clip(20 + towns + chance.normal(0, 6, rows), 0, 79).astype(int)
    return _table(ages, towns, np.where(ages < 24, 0, np.where(ages < 36, 2, 1)))


MADE: dict[str, Callable[[np.random.Generator, int], pa.Table]] = {
    "even": even,
    "skewed": skewed,
    "correlated": correlated,
}


def _table(ages: Any, towns: Any, works: Any) -> pa.Table:
    town, work = (np.array(SURVEY["columns"][name]["categories"]) for name in ("town", "work"))
    return pa.table({"age": ages.astype("U3"), "town": town[towns], "work": work[works]})


def expected(rows: Table, choice: WeighedChoice) -> float:
    """Return the expected number kept of a table: over its cells, the sum of m·P[Bin(n, β) = m] from m = k on."""
    sizes = Counter(_sizes(rows, choice))
    return sum(times * _kept(n, choice) for n, times in sizes.items())


def _kept(n: int, choice: WeighedChoice) -> float:
    m = np.arange(choice.k, n + 1)
    return float((m * binom.pmf(m, n, float(choice.rate))).sum())


def _sizes(rows: Table, choice: WeighedChoice) -> list[int]:
    schema: Schema = rows.schema
    names = [column.name for column in schema.released]
    cells = Cells.of(schema, dict(zip(names, choice.levels, strict=True)))
    return [int(count) for count in rows.engine.count(rows.rows, cells).counts]
