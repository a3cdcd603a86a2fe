"""A small table of patients as a CSV file, and a policy for it, for tests of commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

POLICY: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "patients"},
    "source": "patients.csv",
    "columns": {
        "id": {"role": "identifier"},
        "age": {"role": "quasi", "type": "integer", "bounds": [0, 99], "hierarchy": {"intervals": [50]}},
        "sex": {"role": "quasi", "categories": ["F", "M"]},
        "ill": {"role": "sensitive", "hierarchy": {"file": "ill.csv"}},
    },
    "release": {
        "method": "safe",
        "levels": {"age": 1, "ill": 1},
        "rate": "1/2",
        "epsilon": 1,
        "delta": "1e-4",
    },
}


def patients(folder: Path, rows: int = 3000) -> Path:
    lines = [f"P{n:05d},{n * 7 % 100},{'FM'[n % 2]},{('flu', 'cold', 'gout')[n % 3]}" for n in range(rows)]
    path = folder / "patients.csv"
    path.write_text("\n".join(["id,age,sex,ill", *lines]) + "\n", encoding="utf-8")
    return path


def policy(folder: Path, **changes: Any) -> Path:
    (folder / "ill.csv").write_text("flu;airways;*\ncold;airways;*\ngout;joints;*\n", encoding="utf-8")
    path = folder / "policy.yaml"
    path.write_text(json.dumps(POLICY | changes), encoding="utf-8")
    return path
