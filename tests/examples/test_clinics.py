"""The example with points: its rows are those that its script makes, and its release is near them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from examples.clinics.patients import SIDE, patients
from incrowd.cli.main import main

CLINICS = Path(__file__).resolve().parents[2] / "examples" / "clinics"


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clone") / "clinics"
    shutil.copytree(CLINICS, folder, ignore=shutil.ignore_patterns(".incrowd", "__pycache__"))
    assert main(["release", "--policy", str(folder / "policy.yaml"), "--out", str(folder / "out")]) == 0
    return folder


def test_the_rows_are_those_that_the_script_makes() -> None:
    assert pyarrow.csv.read_csv(CLINICS / "patients.csv").equals(patients(12_000))


def test_the_release_verifies(clone: Path) -> None:
    ledger = f"sqlite:///{clone}/.incrowd/ledger.sqlite"
    assert main(["verify", str(clone / "out"), "--ledger", ledger]) == 0


def test_points_are_about_a_quarter_of_the_people_and_have_their_means(clone: Path) -> None:
    points, people = pq.read_table(clone / "out" / "data.parquet"), patients(12_000)
    assert points.column_names == ["east", "north", "age"]
    assert 2_600 < points.num_rows < 3_700  # 3,065 are expected, and one standard deviation is 51
    for name, side in (("east", SIDE), ("north", SIDE), ("age", 100)):
        apart = np.mean(points[name].to_numpy()) - np.mean(people[name].to_numpy())
        assert abs(apart) < 0.05 * side  # twelve standard deviations
