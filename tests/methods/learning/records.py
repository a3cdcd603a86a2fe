"""Small tables of whole numbers, and the records that the real code makes of them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from incrowd.engines.settings import open_table
from incrowd.methods.learning.shared.planning import LearningTask
from incrowd.methods.learning.shared.statistics import Records
from incrowd.workflows.policy.policy import Policy, load_policy
from tests.coins import SeededCoins

SMALL: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "small"},
    "columns": {
        "a": {"categories": ["x", "y"], "missing": "drop", "outside": "drop"},
        "n": {"type": "integer", "bounds": [0, 2], "missing": "drop"},
        "m": {"type": "integer", "bounds": [-4, 4], "missing": "drop"},
        "t": {"categories": ["p", "q", "r"], "missing": "drop", "outside": "drop"},
    },
    "release": {"method": "classifier", "target_column": "t", "epsilon": 1, "delta": "1e-6"},
}
COLUMNS = ("a", "n", "m", "t")


def small(**release: Any) -> Policy:
    """Return the policy with some parameters changed; None removes one."""
    told = {**SMALL["release"], **release}
    return load_policy({**SMALL, "release": {key: value for key, value in told.items() if value is not None}})


def table(rows: list[tuple[str, int, int, str]]) -> pa.Table:
    """Return a table of rows."""
    columns = [[row[place] for row in rows] for place in range(4)]
    types = (pa.string(), pa.int64(), pa.int64(), pa.string())
    return pa.table([pa.array(each, kind) for each, kind in zip(columns, types, strict=True)], names=COLUMNS)


def records_of(policy: Policy, task: LearningTask, rows: list[tuple[str, int, int, str]]) -> Records:
    """Return the records of rows, counted by the engine."""
    opened = open_table(table(rows), policy.schema, policy.options)
    return Records.of(opened, task.classes, SeededCoins(1))
