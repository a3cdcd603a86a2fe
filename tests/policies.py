"""A small policy and people to go with it, for tests of releases."""

from __future__ import annotations

import copy
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

PEOPLE: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "people"},
    "columns": {
        "sex": {"categories": ["F", "M"]},
        "age": {"type": "integer", "bounds": [0, 99], "hierarchy": {"intervals": [10, 50]}, "outside": "bound"},
        "zip": {"hierarchy": {"prefix": [2]}},
    },
    "release": {
        "method": "safe",
        "levels": {"age": 2, "zip": 1},
        "rate": "1/2",
        "epsilon": 1,
        "delta": "1e-4",
    },
}
"""Three columns; k is solved as 21."""


def people(rows: int = 600, seed: int = 7) -> pa.Table:
    """Return people as text, as a CSV file is read; the eight tuples of PEOPLE's levels are about equally common."""
    chance = np.random.default_rng(seed)
    return pa.table(
        {
            "sex": chance.choice(["F", "M"], rows),
            "age": chance.integers(0, 100, rows).astype("U3"),
            "zip": np.char.add(chance.choice(["02", "94"], rows), chance.integers(100, 999, rows).astype("U3")),
        }
    )


def changed(policy: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a policy with some places changed; `release__rate=1` changes release.rate, and None removes it."""
    result = copy.deepcopy(policy)
    for path, value in changes.items():
        *above, name = path.split("__")
        place = result
        for step in above:
            place = place.setdefault(step, {})
        if value is None:
            place.pop(name, None)
        else:
            place[name] = copy.deepcopy(value)
    return result


def with_ledger(policy: dict[str, Any], folder: Path, **changes: Any) -> dict[str, Any]:
    """Return a policy whose ledger is in a folder, for releases from Python."""
    return changed(policy, ledger=f"sqlite:///{folder}/ledger.sqlite", **changes)


def written(policy: dict[str, Any], folder: Path, name: str = "policy.yaml") -> Path:
    """Write a policy to a file; JSON is YAML."""
    path = folder / name
    path.write_text(json.dumps(policy, indent=1), encoding="utf-8")
    return path


def tuples(table: pa.Table) -> Counter[tuple[object, ...]]:
    """Count the rows of a released table, one by one."""
    return Counter(tuple(row.values()) for row in table.to_pylist())
