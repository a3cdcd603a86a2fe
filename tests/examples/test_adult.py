"""UCI Adult with its ARX hierarchies, end to end; the data is not part of the project.

Runs where the environment variable INCROWD_ADULT names a folder with adult.csv and hierarchies/.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

FOLDER = os.environ.get("INCROWD_ADULT")
LEVELS = {
    "sex": 0, "age": 3, "race": 0, "marital-status": 1, "education": 2, "native-country": 1, "workclass": 1,
    "occupation": 2, "salary-class": 0,
}  # fmt: skip

pytestmark = pytest.mark.skipif(FOLDER is None, reason="INCROWD_ADULT names no folder with adult.csv")


def policy(folder: Path) -> dict[str, Any]:
    files = {name: str(folder / "hierarchies" / f"adult_hierarchy_{name}.csv") for name in LEVELS}
    return {
        "incrowd": 1,
        "dataset": {"name": "adult", "population": 100_000_000},
        "source": {"path": str(folder / "adult.csv"), "delimiter": ";"},
        "columns": {name: {"hierarchy": {"file": file}} for name, file in files.items()},
        "release": {"method": "safe", "levels": LEVELS, "rate": "1/2", "epsilon": 1, "delta": "1e-9"},
    }


def test_adult_is_released_and_verified(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(json.dumps(policy(Path(str(FOLDER)))))
    for command in (
        "release --policy policy.yaml --out out --format csv",
        "verify out --ledger sqlite:///.incrowd/ledger.sqlite",
    ):
        done = subprocess.run(
            [sys.executable, "-m", "incrowd", *command.split()],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    with (tmp_path / "out" / "data.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == list(LEVELS)
    k = json.loads((tmp_path / "out" / "certificate.json").read_text())["claims"][0]["parameters"]["k"]
    assert min(Counter(map(tuple, rows)).values()) >= k
    assert len(rows) > 5000
