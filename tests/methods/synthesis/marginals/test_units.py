"""Models of people, of replaced rows, of columns with missing values and of columns that only some rows have."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import incrowd
from incrowd.methods.synthesis.marginals.budget import Sensitivity, Shares
from incrowd.methods.synthesis.marginals.evaluation import WeightedRows
from incrowd.methods.synthesis.marginals.search import Search, WorkLimits
from incrowd.methods.synthesis.marginals.steps import spent
from incrowd.noise.system import SystemCoins
from tests.policies import changed, with_ledger

METHODS = ("marginals", "tree")
HOMES: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "homes"},
    "columns": {
        "owns": {"categories": ["no", "yes"], "outside": "drop"},
        "rent": {"type": "integer", "bounds": [0, 1999], "hierarchy": {"intervals": [500]}, "missing": "class"},
    },
    "release": {"method": "marginals", "epsilon": 3, "delta": "1e-6", "levels": {"rent": 1}},
}
NEVER = {
    "zeros": [
        {"owns": "yes", "rent": ["< 500", "[500, 1000)", "[1000, 1500)", ">= 1500"]},
        {"owns": ["no", "missing"], "rent": "missing"},
    ]
}


def homes() -> pa.Table:
    """Of 3,000 homes 900 are owned, by people who pay no rent."""
    owned = np.arange(3000) % 10 < 3
    rents = [None if own else str(100 + 7 * n % 1800) for n, own in enumerate(owned)]
    return pa.table({"owns": np.where(owned, "yes", "no"), "rent": pa.array(rents, pa.string())})


def made(plain: dict[str, Any], folder: Path, rows: pa.Table | None = None) -> Any:
    return incrowd.synthesize(homes() if rows is None else rows, with_ledger(plain, folder))


@pytest.mark.parametrize("method", METHODS)
def test_missing_values_are_a_class_that_is_drawn_as_often_as_it_occurs(method: str, tmp_path: Path) -> None:
    """Noise has a standard deviation of about 10 rows, of 3,000: a tenth more or less would be 30 of them."""
    drawn = made(changed(HOMES, release__method=method), tmp_path).result.to_arrow()
    assert drawn["rent"].type == pa.int64()
    assert drawn["rent"].null_count / drawn.num_rows == pytest.approx(0.3, abs=0.1)


@pytest.mark.parametrize("method", METHODS)
def test_missing_values_that_are_dropped_are_not_drawn(method: str, tmp_path: Path) -> None:
    found = made(changed(HOMES, release__method=method, columns__rent__missing="drop"), tmp_path)
    assert found.result.to_arrow()["rent"].null_count == 0
    assert len(found.result) == pytest.approx(2100, abs=300)


@pytest.mark.parametrize("method", METHODS)
def test_a_column_that_only_some_rows_have_is_drawn_for_those_alone(method: str, tmp_path: Path) -> None:
    """Whoever owns pays no rent, and whoever does not pays some: declared, and true of every row that is drawn."""
    found = made(changed(HOMES, release={**HOMES["release"], **NEVER, "method": method}), tmp_path)
    for table in (found.result.to_arrow(), found.model.sample(10_000)):
        rows = table.select(["owns", "rent"]).to_pylist()
        assert all((row["rent"] is None) == (row["owns"] == "yes") for row in rows)
        assert {row["owns"] for row in rows} >= {"no", "yes"}


@pytest.mark.parametrize("method", METHODS)
def test_noise_grows_with_what_a_unit_can_move(method: str, tmp_path: Path) -> None:
    """By √2 where a row is replaced, by r where people have r rows; what is spent stays within the same ρ."""
    rows = homes().append_column("id", pa.array([str(n // 5) for n in range(3000)]))
    person = {"column": "id", "max_rows": 2}
    named = {"columns__id": {"role": "identifier"}}
    units = {
        "row": (HOMES, Sensitivity(1, 1), 3000),
        "replaced": (changed(HOMES, dataset__unit={"adjacency": "replace-one"}), Sensitivity(2, 2), 3000),
        "person": (changed(HOMES, **named, dataset__unit=person), Sensitivity(4, 2), 1200),
        "person replaced": (
            changed(HOMES, **named, dataset__unit={**person, "adjacency": "replace-one"}),
            Sensitivity(8, 4),
            1200,
        ),
    }
    first = {}
    for name, (plain, reach, total) in units.items():
        found = made(changed(plain, release__method=method, release__errors="tables"), tmp_path / name, rows)
        evidence, claim = found.certificate.evidence, found.certificate.claims[0]
        first[name] = float(Fraction(evidence["tables"][0]["scale"]))
        assert spent(evidence, reach) <= claim.rho
        assert found.result.search.model.total == pytest.approx(total, abs=400), "two rows of each of 600 people"
        assert any("different people" in each for each in map(str, claim.not_protected)) == (total == 1200)
        assert any("how many rows" in each for each in map(str, claim.not_protected)) == ("replaced" in name)
    for name, (_, reach, _) in units.items():
        assert first[name] == pytest.approx(first["row"] * reach.table**0.5, rel=1e-4)


@dataclass(frozen=True)
class Wild(SystemCoins):
    """Coins whose noise somebody chose: nothing, as it is, or far beyond, another one for each table."""

    factors: tuple[int, ...] = (1,)
    seed: int = 0

    def gaussian(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        factor = self.factors[(size + scale.denominator + self.seed) % len(self.factors)]
        return super().gaussian(scale, size) * factor


@settings(deadline=None, max_examples=20)
@given(
    st.fractions(min_value=Fraction(1, 10**5), max_value=20),
    st.lists(st.sampled_from([0, 1, -3, 60, 10**4]), min_size=1, max_size=4),
    st.integers(1, 6),
    st.sampled_from([Sensitivity(1, 1), Sensitivity(2, 2), Sensitivity(9, 3), Sensitivity(18, 6)]),
    st.integers(60, 400),
)
def test_the_filter_is_never_exceeded_for_any_outcomes(
    rho: Fraction, factors: list[int], rounds: int, reach: Sensitivity, cells: int
) -> None:
    sizes = (2, 3, 5, 4)
    chance = np.random.default_rng(rounds)
    rows = WeightedRows.once(sizes, np.array([chance.integers(0, size, 60) for size in sizes]))
    workload = (*combinations(range(4), 2), (0, 1, 2))
    search = Search(rows, WorkLimits(workload, rounds, cells, 1), reach, Wild(factors=tuple(factors), seed=cells))
    found = search.adaptive(Shares.of(rho, 4, rounds, reach))
    assert found.rho(reach) <= rho
    assert found.model.tree.cells <= cells
    assert len(found.rounds) <= 4 + 4 * rounds
