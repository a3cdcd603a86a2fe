"""Whole releases through a real cluster and over Spark Connect, by the command line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.workflows.verify.verify import verify
from tests.policies import PEOPLE, changed, people, tuples, written

ROWS, PARTS = 500_000, 8
ONE_CORE = {"spark.cores.max": "1", "spark.executor.memory": "512m", "spark.sql.shuffle.partitions": "2"}
"""Two drivers share two cores."""


@pytest.fixture(scope="module")
def visits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half a million people in a folder of files."""
    folder = tmp_path_factory.mktemp("visits")
    table = people(ROWS)
    for part in range(PARTS):
        pq.write_table(table.slice(part * ROWS // PARTS, ROWS // PARTS), folder / f"part-{part}.parquet")
    return folder


def started(folder: Path, arguments: Sequence[str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "incrowd", *arguments]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def release(folder: Path, data: Path, out: str, *where: str) -> subprocess.Popen[str]:
    return started(folder, ["release", str(data), "--policy", "policy.yaml", "--out", out, "--engine", "spark", *where])


def charges(folder: Path) -> int:
    entries = Ledger.open(f"sqlite:///{folder}/.incrowd/ledger.sqlite").entries()
    return [entry.kind for entry in entries].count("charge")


def test_of_two_drivers_at_once_the_budget_pays_for_one(visits: Path, spark_cluster: str, tmp_path: Path) -> None:
    written(changed(PEOPLE, engine={"spark": {"config": ONE_CORE}}), tmp_path)
    running = {out: release(tmp_path, visits, out, "--master", spark_cluster) for out in ("one", "two")}
    said = {out: driver.communicate(timeout=1000)[1] for out, driver in running.items()}
    codes = {out: driver.returncode for out, driver in running.items()}
    assert sorted(codes.values()) == [0, 1], said
    paid, refused = sorted(codes, key=lambda out: codes[out])
    assert "budget" in said[refused]
    assert not (tmp_path / refused).exists()
    assert charges(tmp_path) == 1
    found = verify(tmp_path / paid / "certificate.json")
    assert found.passed
    released = tuples(pq.read_table(tmp_path / paid / "data.parquet"))
    assert len(released) == 8
    assert released.total() == pytest.approx(
        ROWS / 2, abs=6 * 354
    )  # six standard deviations of the sample's size: 2e-9
    assert "spark" not in (tmp_path / paid / "certificate.json").read_text(encoding="utf-8")


def test_a_release_over_spark_connect(visits: Path, spark_connect: str, tmp_path: Path) -> None:
    written(PEOPLE, tmp_path)
    driver = release(tmp_path, visits / "part-0.parquet", "out", "--remote", spark_connect)
    _, said = driver.communicate(timeout=1000)
    assert driver.returncode == 0, said
    assert verify(tmp_path / "out" / "certificate.json").passed
    assert charges(tmp_path) == 1
