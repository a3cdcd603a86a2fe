"""Patterns: synthetic days fall on the weekdays of the data, numbers are as round, and stays as long."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import incrowd
from incrowd.core.unit import Unit
from incrowd.methods.synthesis.marginals.budget import Sensitivity
from incrowd.methods.synthesis.marginals.faint import harmless_zeros
from incrowd.methods.synthesis.marginals.model import Zero, ZeroTable
from incrowd.methods.synthesis.marginals.patterns import (
    Distance,
    NoisyPattern,
    PatternKind,
    ValuePattern,
    counted_cells,
    distance_starts,
)
from incrowd.methods.synthesis.marginals.steps import MeasureTables, spent
from incrowd.methods.synthesis.marginals.synthetic_model import SyntheticModel
from incrowd.verifier.judge import statement_of
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.registry import check_of
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.verify.verify import verify
from tests.policies import changed, with_ledger

_DAY: dict[str, Any] = {
    "type": "date",
    "bounds": ["2023-01-01", "2024-12-31"],
    "hierarchy": {"dates": ["month"]},
    "missing": "drop",
}
STAYS: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "stays"},
    "columns": {
        "admitted": _DAY,
        "left": _DAY,
        "pay": {"type": "integer", "bounds": [0, 30000], "hierarchy": {"intervals": [1000]}, "missing": "drop"},
    },
    "release": {
        "method": "marginals",
        "epsilon": 2,
        "delta": "1e-6",
        "rounds": 2,
        "constraints": [{"order": ["admitted", "left"]}],
    },
}
PATTERNS = (
    ValuePattern(PatternKind.WEEKDAY, ("a",), tuple(range(7))),
    ValuePattern(PatternKind.ROUND, ("a",), (1000, 500, 100, 50, 10, 5)),
    ValuePattern(PatternKind.DISTANCE, ("a", "b"), distance_starts(60)),
)


def stays(rows: int = 8000) -> pa.Table:
    """Nobody comes at the weekend, stays last four days on average, and pay is a multiple of 50."""
    chance = np.random.default_rng(4)
    days = [date(2023, 1, 2) + timedelta(days=int(day)) for day in chance.integers(0, 690, rows)]
    begin = [day - timedelta(days=max(0, day.weekday() - 4)) for day in days]
    end = [
        day + timedelta(days=int(more) - 1) for day, more in zip(begin, chance.geometric(0.2, rows) % 30, strict=True)
    ]
    return pa.table(
        {"admitted": begin, "left": list(map(max, begin, end)), "pay": chance.gamma(3, 1200, rows) // 50 * 50}
    )


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stays")
    policy, out = with_ledger(STAYS, folder), folder / "out"
    release_to(stays(), policy, Destination(out, "parquet"))
    verification = verify(out, policy=load_policy(policy))
    assert verification.passed, verification.failure
    return out


@pytest.fixture(scope="module")
def rows(released: Path) -> pa.Table:
    return SyntheticModel.load(released / "model.json").sample(8000, seed=1)


def test_nobody_comes_on_days_of_the_week_on_which_nobody_came(rows: pa.Table) -> None:
    """Of 8,000 rows a twentieth are 400, and the noise of two days is above that in fewer than e^-15 of runs."""
    assert np.mean([day.weekday() >= 5 for day in rows["admitted"].to_pylist()]) < 0.05


def test_stays_are_as_long_as_in_the_data(rows: pa.Table) -> None:
    lengths = [
        [(b - a).days for a, b in zip(table["admitted"].to_pylist(), table["left"].to_pylist(), strict=True)]
        for table in (stays(), rows)
    ]
    assert min(lengths[1]) >= 0
    assert abs(np.quantile(lengths[0], 0.5) - np.quantile(lengths[1], 0.5)) <= 1
    assert abs(np.quantile(lengths[0], 0.75) - np.quantile(lengths[1], 0.75)) <= 2


def test_numbers_are_as_round_as_in_the_data_and_in_their_bounds(rows: pa.Table) -> None:
    pay = rows["pay"].to_numpy()
    assert np.mean(pay % 50 == 0) > 0.8
    assert 0 <= pay.min() <= pay.max() <= 30_000


def test_a_law_of_distances_ends_where_noise_begins() -> None:
    """Without it a twentieth of the noise of long distances would be stays of years."""
    starts = distance_starts(700)
    counts = np.array([400, 300, 200, 100, 60, *[30, -28] * len(starts)][: len(starts)])
    law = NoisyPattern(ValuePattern(PatternKind.DISTANCE, ("a", "b"), starts), counts, Fraction(20)).distances()
    assert law is not None
    chances = np.array(law.chances)
    assert chances[5:].max() == 0
    assert chances[:5].argmax() == 0
    assert abs(chances.sum() - 1) < 1e-9
    nothing = NoisyPattern(ValuePattern(PatternKind.DISTANCE, ("a", "b"), starts), 0 * counts, Fraction(20))
    assert nothing.distances() is None


def test_faint_tails_give_way_where_a_sum_needs_them() -> None:
    """Without the last class of a part and that of the total every other total can be; without two of a part not."""
    never = ~np.array([[[a + b == total for total in range(5)] for b in range(3)] for a in range(3)])
    total = ZeroTable((0, 1, 2), never)
    harmless = [Zero((0,), ((2,),)), Zero((2,), ((4,),))]
    assert harmless_zeros(harmless, [total]) == harmless
    assert harmless_zeros([Zero((0,), ((1, 2),)), Zero((2,), ((4,),))], [total]) == []
    pair = ZeroTable((0, 1), ~np.eye(3, dtype=np.bool_))
    assert harmless_zeros([Zero((0,), ((1, 2),)), Zero((1,), ((2,),))], [pair]) == []
    assert harmless_zeros([Zero((0,), ((1, 2),)), Zero((1,), ((1, 2),))], [pair]) != []


@given(
    st.lists(st.tuples(st.integers(-1, 60), st.integers(-1, 60), st.integers(0, 3)), max_size=12),
    st.tuples(st.integers(-1, 60), st.integers(-1, 60), st.integers(1, 3)),
    st.sampled_from(PATTERNS),
)
def test_a_row_moves_a_pattern_by_its_weight_in_one_cell(
    others: list[tuple[int, int, int]], row: tuple[int, int, int], pattern: ValuePattern
) -> None:
    """The sensitivity that the price of patterns rests on; a code of -1 or beyond the values is no value."""

    def table(rows: list[tuple[int, int, int]]) -> Any:
        codes = np.array(rows, np.int64).reshape(-1, 3).T
        width = len(pattern.columns)
        return counted_cells(pattern, [np.arange(60)] * width, list(codes[:width]), codes[2])

    moved = table([*others, row]) - table(others)
    assert sorted(np.abs(moved).tolist())[:-1] == [0] * (pattern.size - 1)
    assert np.abs(moved).max() in (0, row[2])


def test_patterns_are_paid_within_the_same_budget(released: Path) -> None:
    certificate = read_certificate(released / "certificate.json")
    measure = next(step for step in certificate.steps if isinstance(step, MeasureTables))
    assert [pattern.kind for pattern in measure.patterns or ()] == ["weekday", "weekday", "round", "distance"]
    assert all(pattern.words in measure.sentence for pattern in measure.patterns or ())
    cost = spent(certificate.evidence, Sensitivity.of(Unit()))
    assert measure.rho * 999 / 1000 <= cost <= measure.rho


def test_a_model_that_rounds_or_keeps_distances_otherwise_than_counted_is_noticed(tmp_path: Path) -> None:
    made = incrowd.synthesize(stays(2000), with_ledger(STAYS, tmp_path))
    statement, model = statement_of(made.certificate), made.model
    check = check_of("marginals")
    assert check.recount(statement, made.result) is None
    column = model.columns[2]
    assert column.numbers is not None
    rounded = replace(column, numbers=replace(column.numbers, grains=((7, 0.5),)))
    law = model.distances[0].law
    for forged in (
        replace(model, columns=(*model.columns[:2], rounded)),
        replace(model, distances=(Distance(("admitted", "left"), replace(law, starts=(1.0, *law.starts[1:]))),)),
    ):
        problem = check.recount(statement, replace(made.result, model=forged))
        assert problem is not None
        assert "not counted" in problem.text


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        ({"release__detail": 0}, []),
        ({"release__constraints": []}, ["weekday", "weekday", "round"]),
        (
            {"columns__pay__bounds": [0, 400], "columns__pay__hierarchy": {"intervals": [20]}},
            ["weekday"] * 2 + ["distance"],
        ),
        (
            {"columns__left__bounds": ["2001-01-01", "2024-12-31"], "columns__left__hierarchy": {"dates": ["decade"]}},
            ["weekday", "weekday", "round"],
        ),
    ],
)
def test_what_is_declared_alone_decides_which_patterns_are_counted(change: dict[str, Any], kinds: list[str]) -> None:
    steps = load_policy(changed(STAYS, **change)).plan.steps
    measure = next(step for step in steps if isinstance(step, MeasureTables))
    assert sorted(pattern.kind for pattern in measure.patterns or ()) == sorted(kinds)
