"""Detail: values inside classes follow paid counts of finer pieces; spikes and weekdays stand above the noise."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import incrowd
from incrowd.core.unit import Unit
from incrowd.errors import InvalidParameter
from incrowd.methods.synthesis.marginals.budget import PATTERNS, Sensitivity, gaussian_scale
from incrowd.methods.synthesis.marginals.detail import FinerPieces
from incrowd.methods.synthesis.marginals.method import Marginals
from incrowd.methods.synthesis.marginals.number_range import NumberRange
from incrowd.methods.synthesis.marginals.steps import MeasureTables, spent
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.verify.verify import verify
from tests.policies import changed, with_ledger

DEBTS: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "debts"},
    "columns": {
        "age": {"type": "integer", "bounds": [18, 97], "hierarchy": {"intervals": [20]}},
        "debt": {"type": "decimal", "bounds": [0, 5000], "decimals": 2, "hierarchy": {"cuts": [[100, 1000]]}},
        "visit": {"type": "date", "bounds": ["2024-01-01", "2024-12-31"], "hierarchy": {"dates": ["quarter"]}},
        "town": {"hierarchy": {"tree": {f"region {n}": [f"town {n}-{m}" for m in range(40)] for n in range(5)}}},
    },
    "release": {"method": "tree", "epsilon": 3, "delta": "1e-6", "levels": {"age": 1}},
}

METHOD = Marginals(Fraction(1), Fraction(1, 10**6), levels={"age": 1})


def debts(rows: int = 8000) -> pa.Table:
    """Most have no debt, the oldest age is capped, nobody comes on Sundays, and a few towns are large."""
    chance = np.random.default_rng(8)
    days = [date(2024, 1, 1) + timedelta(days=int(day)) for day in chance.integers(0, 366, rows)]
    visits = [day - timedelta(days=1) if day.weekday() == 6 else day for day in days]
    owed = np.where(chance.random(rows) < 0.6, 0.0, np.round(chance.gamma(2, 300, rows), 2).clip(0, 5000))
    ages = np.where(chance.random(rows) < 0.1, 97, chance.integers(18, 90, rows))
    towns = [f"town {n}-{m}" for n, m in zip(chance.integers(0, 5, rows), chance.zipf(2, rows) % 40, strict=True)]
    return pa.table({"age": ages, "debt": owed, "visit": visits, "town": towns})


@pytest.fixture(scope="module")
def drawn_rows(tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    folder = tmp_path_factory.mktemp("debts")
    policy, out = with_ledger(DEBTS, folder), folder / "out"
    release_to(debts(), policy, Destination(out, "parquet"))
    verification = verify(out, policy=load_policy(policy))
    assert verification.passed, verification.failure
    from incrowd.methods.synthesis.marginals.synthetic_model import SyntheticModel

    return SyntheticModel.load(out / "model.json").sample(8000, seed=1)


def test_spikes_caps_weekdays_and_large_towns_are_those_of_the_data(drawn_rows: pa.Table) -> None:
    """The scale of noise is below 40 rows for each piece: shares differ by less than .04 in all but e^-16 of runs."""
    data = debts()
    rules: dict[str, Any] = {"debt": lambda debt: debt == 0, "age": lambda age: age == 97}
    rules |= {"visit": lambda day: day.weekday() == 6, "town": lambda town: town.endswith("-1")}
    for name, rule in rules.items():
        shares = [np.mean([rule(value) for value in table[name].to_pylist()]) for table in (data, drawn_rows)]
        assert abs(shares[0] - shares[1]) < 0.04, name


def test_numbers_have_the_declared_decimals_and_no_class_below_the_noise_is_drawn(drawn_rows: pa.Table) -> None:
    owed = drawn_rows["debt"].to_pylist()
    assert all(round(value, 2) == value and 0 <= value <= 5000 for value in owed)
    assert any(round(value, 1) != value for value in owed)
    assert all(drawn_rows[name].null_count == 0 for name in drawn_rows.column_names)
    assert "other" not in drawn_rows["town"].to_pylist()
    assert {town[:4] for town in drawn_rows["town"].to_pylist()} == {"town"}


def test_halves_of_a_class_differ_as_in_the_data(drawn_rows: pa.Table) -> None:
    """Debts from 1,000 to 5,000: nine of ten are below 2,000; uniform draws would put a quarter there."""
    large = [value for value in drawn_rows["debt"].to_pylist() if value >= 1000]
    assert np.mean(np.array(large) < 2000) > 0.6


def test_what_is_missing_above_the_noise_is_drawn(tmp_path: Path) -> None:
    data = debts(4000)
    ages = [None if place % 5 == 0 else age for place, age in enumerate(data["age"].to_pylist())]
    policy = with_ledger(changed(DEBTS, release__epsilon=5), tmp_path)
    made = incrowd.synthesize(data.set_column(0, "age", pa.array(ages)), policy).model.sample(4000, seed=2)
    assert abs(made["age"].null_count / 4000 - 0.2) < 0.03
    assert made["debt"].null_count == 0


@pytest.mark.parametrize("share", ["0", "1/20", "1/2"])
def test_detail_is_paid_within_the_same_budget(share: str, tmp_path: Path) -> None:
    """What all tables, choices, pieces and errors cost is at most ρ and nearly all of it."""
    policy = with_ledger(changed(DEBTS, release__detail=share), tmp_path)
    made = incrowd.synthesize(debts(500), policy)
    evidence = made.certificate.evidence
    measure = next(step for step in made.certificate.steps if isinstance(step, MeasureTables))
    cost = spent(evidence, Sensitivity.of(Unit()))
    assert cost <= measure.rho
    assert cost >= Fraction(999, 1000) * measure.rho
    pieces = [item for item in evidence["tables"] if "classes" in item]
    names = [] if share == "0" else ["age", "debt", "visit", "town", "visit"]
    assert [item["columns"][0] for item in pieces] == names
    if pieces:
        of_pieces, of_weekdays = (
            Fraction(share) * measure.rho * (1 - PATTERNS),
            Fraction(share) * measure.rho * PATTERNS,
        )
        assert {item["scale"] for item in pieces[:4]} == {str(gaussian_scale(of_pieces, 4, Sensitivity.of(Unit())))}
        assert pieces[4]["scale"] == str(gaussian_scale(of_weekdays, 1, Sensitivity.of(Unit())))


def test_one_row_moves_one_piece_by_one() -> None:
    """Every value of a column is in exactly one piece, and each piece in exactly one class."""
    schema = load_policy(DEBTS).schema
    for classes in METHOD.classes(schema):
        pieces = FinerPieces.of(classes)
        assert pieces is not None
        data = debts(2000)[classes.recoding.column.name]
        fine, coarse = (item.codes(data.combine_chunks()) for item in (pieces.fine.recoding, classes.recoding))
        assert np.array_equal(pieces.owners[fine], coarse)
        assert len(pieces.owners) == len(pieces.fine) == len(pieces.labels)


def test_noisy_counts_alone_decide_what_is_even() -> None:
    schema = load_policy(DEBTS).schema
    classes = next(c for c in METHOD.classes(schema) if c.recoding.column.name == "age")
    pieces = FinerPieces.of(classes)
    assert pieces is not None
    flat = pieces.range(np.full(len(pieces.fine), 50), 10.0)
    assert np.allclose(flat.chances, 1 / 20)
    spiked = np.full(len(pieces.fine), 50)
    spiked[79] = 900
    chances = np.array(pieces.range(spiked, 10.0).chances)
    assert chances[79] == pytest.approx(900 / (900 + 19 * 50))
    assert np.allclose(chances[60:79], (1 - chances[79]) / 19)


def test_shares_and_pieces_that_are_none_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="detail"):
        Marginals(Fraction(1), Fraction(1, 10**6), detail=Fraction(2, 3))
    sound = NumberRange((0.0, 5.0), 10.0, whole=True, classes=(0, 0), chances=(0.5, 0.5))
    sound.require_sound()
    for wrong in ({"starts": (5.0, 0.0)}, {"classes": (1, 0)}, {"classes": (0, 2)}, {"chances": (2.0, 0.0)}):
        with pytest.raises(ValueError, match="pieces"):
            replace(sound, **wrong).require_sound()


def test_a_target_column_weighs_in_the_choice_and_must_be_released() -> None:
    policy = changed(DEBTS, release__method="marginals", release__target_column="town")
    step = next(step for step in load_policy(policy).plan.steps if isinstance(step, MeasureTables))
    assert "“town” weigh more" in step.sentence
    for method, column, message in (("marginals", "street", "not released"), ("tree", "town", "no target_column")):
        with pytest.raises(InvalidParameter, match=message):
            _ = load_policy(changed(DEBTS, release__method=method, release__target_column=column)).plan
