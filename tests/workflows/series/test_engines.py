"""A period has the same rows on every engine, and running counts truncate the same people there."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from incrowd.core.table import Engine
from incrowd.engines.settings import Spark
from incrowd.mechanisms.add_noise import AddGaussian
from incrowd.workflows.policy.internal import FOR_HOLDER
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.series.series import run_period
from tests import spark
from tests.postgres_tables import load
from tests.workflows.series.test_series import MONTHS, RUNNING, place, policy_in

ON_SPARK = Spark(master=spark.MASTER, config=spark.CONFIG)


def stays() -> pa.Table:
    """Return stays of people who return, each in one ward, some without a date."""
    days = ["2025-01-31", "2025-02-01", "2025-02-14", None, "2025-03-09"]
    rows = [(f"p{n % 17}", "B" if n % 17 % 3 else "Ärzte", days[n % len(days)]) for n in range(85)]
    rows = [row for row in rows if row[2] != days[0] or int(row[0][1:]) < 9]  # the others come in February first
    names = ("patient", "ward", "discharged")
    return pa.table({name: pa.array([row[at] for row in rows], pa.string()) for at, name in enumerate(names)})


def true_counts(policy: Policy, data: object, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return what the holder keeps of running counts over three periods, noise left out."""
    monkeypatch.setattr(AddGaussian, "release", lambda _self, counts, _coins: np.asarray(counts, np.int64))
    for label in MONTHS[:3]:
        run_period(data, policy, label, place(folder, label))
    files = [json.loads(file.read_text(encoding="utf-8"))["running"] for file in folder.rglob(FOR_HOLDER)]
    counted = {running["label"]: (running["counts"], len(running["people"])) for running in files}
    return dict(sorted(counted.items()))


def moments(zone: str = "UTC") -> pa.Table:
    """Return a moment before and one after midnight in Berlin, at the ends of two months, and rows without one."""
    instants = [datetime(2025, 1, 31, 22, 30, tzinfo=UTC), datetime(2025, 1, 31, 23, 30, tzinfo=UTC)]
    instants.append(datetime(2025, 2, 28, 23, 59, tzinfo=UTC))
    places = [instants[n % 4] if n % 4 < 3 else None for n in range(12)]
    people = {"patient": [f"p{n}" for n in range(12)], "ward": ["B"] * 12}
    return pa.table({**people, "discharged": pa.array(places, pa.timestamp("us", zone))})


def in_berlin(folder: Path) -> Policy:
    return policy_at(folder, columns__discharged__type="text", period__zone="Europe/Berlin")


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_moments_are_read_in_the_zone_of_the_policy(zone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "moments.parquet"
    pq.write_table(moments(zone), file)
    counted = true_counts(in_berlin(tmp_path / "here"), str(file), tmp_path / "here", monkeypatch)
    assert [people for _, people in counted.values()] == [3, 3, 3]


def test_moments_are_read_in_the_zone_of_the_policy_on_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark_engine: Engine
) -> None:
    assert spark_engine is not None
    file = tmp_path / "moments.parquet"
    pq.write_table(moments(), file)
    policy = replace(in_berlin(tmp_path / "there"), engine=ON_SPARK)
    counted = true_counts(policy, str(file), tmp_path / "there", monkeypatch)
    assert [people for _, people in counted.values()] == [3, 3, 3]


@pytest.mark.postgres
def test_moments_are_read_in_the_zone_of_the_policy_from_postgresql(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres: str
) -> None:
    address = load(postgres, "moments", moments())
    counted = true_counts(in_berlin(tmp_path / "there"), address, tmp_path / "there", monkeypatch)
    assert [people for _, people in counted.values()] == [3, 3, 3]


def policy_at(folder: Path, **changes: Any) -> Policy:
    folder.mkdir()
    limits = {**RUNNING, "participations": 1, "strategy": "independent"}
    return policy_in(folder, release=limits, dataset__unit__max_rows=1, budget__delta="1e-5", **changes)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    counted = true_counts(policy_at(tmp_path / "here"), stays(), tmp_path / "here", monkeypatch)
    assert sum(sum(counts) for counts, _ in counted.values()) == sum(people for _, people in counted.values()) == 17
    assert [people for _, people in counted.values()] == [9, 8, 0]
    return counted


def test_running_counts_are_of_the_same_people_on_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: dict[str, Any], spark_engine: Engine
) -> None:
    assert spark_engine is not None
    file = tmp_path / "stays.parquet"
    pq.write_table(stays(), file)
    policy = replace(policy_at(tmp_path / "there"), engine=ON_SPARK)
    assert true_counts(policy, str(file), tmp_path / "there", monkeypatch) == here


@pytest.mark.postgres
def test_running_counts_are_of_the_same_people_from_postgresql(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: dict[str, Any], postgres: str
) -> None:
    address = load(postgres, "stays", stays())
    assert true_counts(policy_at(tmp_path / "there"), address, tmp_path / "there", monkeypatch) == here
