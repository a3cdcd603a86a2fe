"""A sample drawn by a column of chances: everyone by the own chance, moved into the declared range."""

from __future__ import annotations

from fractions import Fraction
from html import unescape
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from scipy.stats import binom

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.cells import Cells
from incrowd.core.domain import Type
from incrowd.core.schema import Column, Role, Schema
from incrowd.engines.local.engine import LocalEngine
from incrowd.errors import InvalidParameter
from incrowd.methods.shared.robust import draw_sample, with_chances
from incrowd.noise.system import SystemCoins
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.verify.verify import verify
from tests.policies import PEOPLE, changed, people, written
from tests.statistics.alarm import FALSE_ALARM, stray

SCHEMA = Schema((Column("group"), Column("chance", Role.IDENTIFIER, Type.DECIMAL)))
LOW, HIGH = Fraction(1, 20), Fraction(3, 10)
CHANCES: dict[str, tuple[str | None, float]] = {
    "a": ("0.1", 0.1),
    "b": ("0.3", 0.3),
    "c": ("0.9", 0.3),
    "d": ("0.001", 0.05),
    "e": ("0", 0.0),
    "f": (None, 0.0),
    "g": ("-1", 0.0),
}
ROBUST: dict[str, Any] = {
    "method": "safe",
    "levels": {"age": 3, "zip": 1},
    "k": 20,
    "delta": "1e-6",
    "robust": {"low": "0.05", "high": "0.3", "probability": "chance"},
}


def test_everyone_is_drawn_by_the_own_chance() -> None:
    size = 4_000
    rows = pa.table(
        {
            "group": [group for group in CHANCES for _ in range(size)],
            "chance": [chance for chance, _ in CHANCES.values() for _ in range(size)],
        }
    )
    engine = LocalEngine()
    split = engine.count(engine.open(rows), with_chances(Cells.of(SCHEMA, {}), SCHEMA, "chance"))
    found = {row["group"]: row["count"] for row in draw_sample(split, LOW, HIGH, SystemCoins()).to_table().to_pylist()}
    for group, (_, chance) in CHANCES.items():
        low, high = binom.interval(1 - FALSE_ALARM / len(CHANCES), size, chance)
        assert low <= found[group] <= high, group


def test_rows_of_one_tuple_with_different_chances_are_added_up() -> None:
    rows = pa.table({"group": ["a"] * 4000, "chance": ["0.1", "0.3"] * 2000})
    engine = LocalEngine()
    split = engine.count(engine.open(rows), with_chances(Cells.of(SCHEMA, {}), SCHEMA, "chance"))
    found = draw_sample(split, LOW, HIGH, SystemCoins())
    assert found.names == ("group",)
    assert 600 <= found.total <= 1000
    assert stray([(2000, 0.1), (2000, 0.3)], 600, 1000) < FALSE_ALARM


def policy(folder: Path, **changes: Any) -> Path:
    columns = {**PEOPLE["columns"], "chance": {"role": "identifier", "type": "decimal"}}
    return written(
        changed(PEOPLE, columns=columns, release=ROBUST, budget={"epsilon": 9, "delta": "1e-3"}, **changes), folder
    )


def population() -> pa.Table:
    return people(4000).append_column("chance", pa.array(["0.1", "0.2", "0.3", "0.25"] * 1000))


def test_a_population_with_chances_is_released_verified_and_released_again(tmp_path: Path) -> None:
    file = policy(tmp_path)
    for name in ("one", "two"):
        made = release_to(population(), file, Destination(tmp_path / name, "csv"))
        assert 500 < len(made.release.result) < 1200
        lost = 4 * 19  # four tuples, and k is 20
        assert stray([(1000, chance) for chance in (0.1, 0.2, 0.3, 0.25)], 501 + lost, 1199) < FALSE_ALARM / 2
        found = verify(tmp_path / name, ledger=Ledger.open(f"sqlite:///{tmp_path}/.incrowd/ledger.sqlite"))
        assert found.passed
        assert found.complete
    assert "in secret, at its own rate" in unescape((tmp_path / "two" / "report.html").read_text(encoding="utf-8"))


def test_the_column_of_chances_is_a_number_and_is_not_released(tmp_path: Path) -> None:
    for column, said in (
        ({"role": "identifier"}, "type: decimal"),
        ({"type": "decimal", "bounds": [0, 1]}, "role identifier"),
    ):
        loaded = load_policy(policy(tmp_path, columns__chance=column))
        with pytest.raises(InvalidParameter, match=said):
            loaded.method.plan(loaded.schema)
    with pytest.raises(InvalidParameter, match="nobody is irregular"):
        load_policy(policy(tmp_path, release__robust={**ROBUST["robust"], "irregular": 1}))
