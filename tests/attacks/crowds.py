"""People who are invented, outsiders of the same kind, and releases of them, for attacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import incrowd
from incrowd.attacks.knowledge import PublishedTable
from incrowd.engines.settings import open_table
from incrowd.workflows.attack.publication import lookup_of
from tests.coins import SeededCoins
from tests.policies import changed, with_ledger

ILLS = ["flu", "gout", "asthma", "measles"]
POLICY: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "patients"},
    "columns": {
        "zip": {"role": "quasi", "hierarchy": {"prefix": [3]}},
        "age": {"role": "quasi", "type": "integer", "bounds": [0, 99], "hierarchy": {"intervals": [25, 50]}},
        "sex": {"role": "quasi", "categories": ["F", "M"]},
        "worth": {"role": "quasi", "type": "integer", "bounds": [0, 999999], "hierarchy": {"intervals": [250000]}},
        "ill": {"role": "sensitive", "categories": ILLS},
    },
    "release": {
        "method": "safe",
        "levels": {"zip": 1, "age": 2, "worth": 2},
        "rate": "1/2",
        "epsilon": 1,
        "delta": "1e-4",
    },
}
KNOWN = ("zip", "age", "sex")


def crowd(rows: int, seed: int) -> pa.Table:
    """Return people of one kind as text; the illness depends on the age, as it may for everybody."""
    chance = np.random.default_rng(seed)
    age = chance.integers(0, 100, rows)
    ill = np.where(chance.random(rows) < 0.3, chance.integers(0, 4, rows), age // 25)
    return pa.table(
        {
            "zip": (10000 + 100 * chance.integers(0, 2, rows) + chance.integers(0, 40, rows)).astype(str),
            "age": age.astype(str),
            "sex": chance.choice(["F", "M"], rows),
            "worth": np.minimum(999999, chance.lognormal(11, 1, rows)).astype(int).astype(str),
            "ill": np.array(ILLS)[ill],
        }
    )


def table_of(policy: incrowd.Policy, rows: pa.Table, seed: int) -> pa.Table:
    """Return what the plan of a policy makes of rows, by the real samplers on words that are always the same."""
    shown: pa.Table = policy.plan.draw(open_table(rows, policy.schema, policy.options), SeededCoins(seed)).to_arrow()
    return shown


def released(rows: pa.Table, folder: Path, **changes: Any) -> PublishedTable:
    """Return what a release of people shows, and how its labels are read."""
    policy = incrowd.load_policy(with_ledger(changed(POLICY, **changes), folder))
    table = table_of(policy, rows, 6)
    count = "count" if "count" in table.column_names else None
    return PublishedTable(table, {column.name: lookup_of(column) for column in policy.schema.columns}, count)


def ratings(people: int, films: int, seed: int, prefix: str = "p") -> pa.Table:
    """Return who rated which film how and when: few films are seen by many, most by few."""
    chance = np.random.default_rng(seed)
    shares = 1.0 / np.arange(1, films + 1) ** 0.8
    who = np.repeat(np.arange(people), chance.integers(20, 60, people))
    film = chance.choice(films, len(who), p=shares / shares.sum())
    first = np.unique(who * films + film, return_index=True)[1]
    return pa.table(
        {
            "who": np.char.add(prefix, who[first].astype(str)),
            "film": np.char.add("f", film[first].astype(str)),
            "rating": chance.integers(1, 6, len(first)),
            "day": chance.integers(0, 2000, len(first)),
        }
    )


def pseudonymized(table: pa.Table, column: str, seed: int) -> pa.Table:
    """Return the rows in another order, with names exchanged for numbers that tell nothing."""
    chance = np.random.default_rng(seed)
    names = np.array(table.column(column).to_pylist())
    known, codes = np.unique(names, return_inverse=True)
    fresh = chance.permutation(len(known))[codes]
    place = table.column_names.index(column)
    return table.set_column(place, column, pa.array(fresh.astype(str))).take(chance.permutation(table.num_rows))
