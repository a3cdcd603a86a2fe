"""The example with linked tables: its rows are those that its script makes, and its release verifies."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.csv

from examples.stays.hospital import hospital
from incrowd.cli.main import main

STAYS = Path(__file__).resolve().parents[2] / "examples" / "stays"


def test_the_rows_are_those_that_the_script_makes() -> None:
    for name, table in hospital().items():
        assert pyarrow.csv.read_csv(STAYS / f"{name}.csv").to_pylist() == table.to_pylist()


def test_the_release_verifies_is_assessed_and_attacked(tmp_path: Path) -> None:
    folder, out = tmp_path / "stays", str(tmp_path / "out")
    shutil.copytree(STAYS, folder, ignore=shutil.ignore_patterns(".incrowd", "__pycache__"))
    policy = str(folder / "policy.yaml")
    assert main(["plan", "--policy", policy]) == 0
    assert main(["release", "--policy", policy, "--out", out, "--hold-out", "20%"]) == 0
    assert main(["verify", out, "--ledger", f"sqlite:///{folder}/.incrowd/ledger.sqlite", "--policy", policy]) == 0
    assert main(["assess", out, "--policy", policy]) == 0
    assert main(["attack", out, "--policy", policy, "--held-out", "--trials", "100"]) == 0
