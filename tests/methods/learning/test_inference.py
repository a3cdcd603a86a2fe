"""Intervals of linear models: those of least squares, aware of the noise, and left out where it is too large."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from incrowd.core.plan import Plan
from incrowd.core.statement import Statement
from incrowd.engines.settings import open_table
from incrowd.errors import InvalidParameter
from incrowd.methods.learning.shared.inference import LinearInference
from incrowd.methods.learning.shared.interval_check import other_intervals
from incrowd.methods.learning.shared.models import LearnedModel
from incrowd.methods.learning.shared.steps import ModelForm, PublishModel
from incrowd.workflows.policy.policy import load_policy
from tests.coins import SeededCoins

COLUMNS: dict[str, Any] = {
    "x": {"type": "decimal", "bounds": [0, 10], "missing": "drop"},
    "z": {"type": "decimal", "bounds": [-1, 1], "missing": "drop"},
    "town": {"categories": ["Łódź", "Örebro", "Ψ"]},
    "y": {"type": "decimal", "bounds": [-8, 8], "missing": "drop"},
}
TRUTH = {("x", None): 0.2, ("z", None): -1.0, ("town", "Örebro"): 0.5, ("town", "Ψ"): -1.0, (None, None): 1.0}


@cache
def policy(epsilon: str) -> Any:
    release = {"method": "regressor", "target_column": "y", "model": "linear", "epsilon": epsilon, "delta": "1e-6"}
    return load_policy({"incrowd": 1, "dataset": {"name": "line"}, "columns": COLUMNS, "release": release})


def rows(number: int, seed: int) -> pa.Table:
    chance = np.random.default_rng(seed)
    x, z = chance.uniform(0, 10, number), np.clip(chance.normal(0, 0.4, number), -1, 1)
    town = chance.choice(["Łódź", "Örebro", "Ψ"], number, p=[0.5, 0.3, 0.2])
    y = 0.2 * x - z + 0.5 * (town == "Örebro") - (town == "Ψ") + 1.0 + chance.normal(0, 0.5, number)
    return pa.table({"x": x, "z": z, "town": town, "y": y})


def learned(epsilon: str, number: int, seed: int) -> LearnedModel:
    plan: Plan = policy(epsilon).plan
    opened = open_table(rows(number, seed), policy(epsilon).schema, policy(epsilon).options)
    output: Any = plan.draw(opened, SeededCoins(seed))
    model: LearnedModel = output.model
    return model


def test_without_noise_they_are_those_of_least_squares() -> None:
    """Numbers are read in 64 bins and targets in 256, which moves a coefficient by a tenth of its interval at most."""
    model, table = learned("1e9", 4000, 1), rows(4000, 1)
    assert model.inference is not None
    town = np.array(table["town"].to_pylist())
    design = np.column_stack([table["x"], table["z"], town == "Örebro", town == "Ψ", np.ones(4000)]).astype(float)
    y = table["y"].to_numpy()
    line, left, *_ = np.linalg.lstsq(design, y, rcond=None)
    spread = np.sqrt(np.diag(np.linalg.inv(design.T @ design) * left[0] / (4000 - 5)))
    order = [list(TRUTH).index(term) for term in model.inference.terms]
    assert np.allclose(model.inference.estimates, line[order], atol=0.4 * spread[order])
    assert np.allclose(np.sqrt(np.diag(model.inference.covariance)), spread[order], rtol=0.05)
    assert model.inference.variance == pytest.approx(left[0] / 3995, rel=0.05)


def test_they_hold_the_truth_as_often_as_they_say_with_noise() -> None:
    """At ε = 2 noise doubles the intervals of 6,000 rows.  Of 150 at 95 %, fewer than 131 hold with chance 1e-4."""
    held, inside = 0, []
    for seed in range(30):
        model = learned("2", 6000, seed)
        assert model.inference is not None
        low, high = model.inference.intervals()
        truth = np.array([TRUTH[term] for term in model.inference.terms])
        held += int(((low <= truth) & (truth <= high)).sum())
        fresh = rows(300, 1000 + seed)
        ends, y = model.intervals(fresh), fresh["y"].to_numpy()
        inside.append(float(((ends[0] <= y) & (y <= ends[1])).mean()))
    assert held >= 131
    assert 0.93 <= np.mean(inside) <= 0.98


def test_noise_makes_them_wider() -> None:
    quiet, loud = learned("1e9", 6000, 3).inference, learned("2", 6000, 3).inference
    assert quiet is not None
    assert loud is not None
    assert (np.diag(loud.covariance) > 1.3 * np.diag(quiet.covariance)).all()


def test_there_are_none_where_noise_leaves_too_little() -> None:
    model = learned("0.1", 300, 1)
    assert model.inference is None
    assert np.isfinite(model.numbers(rows(5, 2))).all()
    with pytest.raises(InvalidParameter, match="model: linear, from enough rows"):
        model.intervals(rows(5, 2))
    with pytest.raises(InvalidParameter, match="no intervals"):
        model.coefficients()


def test_the_file_of_a_model_keeps_them_and_refuses_others() -> None:
    model = learned("20", 4000, 1)
    again = LearnedModel.from_json(json.loads(model.to_text()))
    assert again.coefficients().equals(model.coefficients())
    assert again.coefficients().column_names == ["column", "value", "estimate", "low", "high"]
    means, singles = (model.intervals(rows(9, 4), single=single) for single in (False, True))
    assert ((singles[1] - singles[0]) > (means[1] - means[0])).all()
    plain = json.loads(model.to_text())
    for change in ({"variance": -1}, {"estimates": [1.0]}, {"terms": [[1, None]] * 5}, {"covariance": "x"}):
        with pytest.raises(InvalidParameter, match="no model that incrowd wrote"):
            LearnedModel.from_json(plain | {"inference": plain["inference"] | change})


def forged(inference: LinearInference, how: str) -> LinearInference:
    """Return an inference that praises itself, or is of another line."""
    match how:
        case "no width":
            return replace(inference, covariance=0 * inference.covariance)
        case "a thousandth":
            return replace(inference, covariance=inference.covariance * 1e-6)
        case "no covariance":
            return replace(inference, covariance=2 * np.diag(np.diag(inference.covariance)) - 3 * inference.covariance)
        case "another line":
            return replace(inference, estimates=inference.estimates * 1.01)
        case "another constant":
            return replace(inference, estimates=inference.estimates + np.eye(len(inference.estimates))[-1])
    terms = tuple(("town", "Ψ") if term == ("town", "Örebro") else term for term in inference.terms)
    return replace(inference, terms=terms)


@pytest.mark.parametrize(
    "how", ["no width", "a thousandth", "no covariance", "another line", "another constant", "another class"]
)
def test_a_check_notices_intervals_that_the_noise_and_the_model_cannot_have(how: str) -> None:
    plan, model = policy("2").plan, learned("2", 6000, 1)
    statement = Statement(plan.basis, plan.claims, tuple(COLUMNS), {"rows estimated": 6000}, {}, {})
    assert model.inference is not None
    assert other_intervals(statement, model) is None
    assert other_intervals(statement, replace(model, inference=forged(model.inference, how))) is not None


def test_a_check_notices_intervals_of_a_model_that_has_none() -> None:
    plan, model = policy("2").plan, learned("2", 6000, 1)
    steps = tuple(replace(s, model=ModelForm.LEAST_SQUARES) if isinstance(s, PublishModel) else s for s in plan.steps)
    statement = Statement(replace(plan.basis, steps=steps), plan.claims, tuple(COLUMNS), {}, {}, {})
    assert other_intervals(statement, model) is not None
    assert other_intervals(statement, replace(model, inference=None)) is None


@pytest.mark.parametrize("seed", range(3))
def test_a_check_lets_honest_intervals_pass_with_missing_values_and_much_noise(seed: int) -> None:
    changed = {
        name: {key: part for key, part in column.items() if key != "missing"} for name, column in COLUMNS.items()
    }
    table = rows(9000, seed)
    holes = pa.array(np.random.default_rng(seed).random(9000) < 0.2)
    for place, name in enumerate(("x", "town")):
        table = table.set_column((0, 2)[place], name, pc.if_else(holes, None, table[name]))
    release = {"method": "regressor", "target_column": "y", "model": "linear", "epsilon": 3, "delta": "1e-6"}
    read = load_policy({"incrowd": 1, "dataset": {"name": "line"}, "columns": changed, "release": release})
    output: Any = read.plan.draw(open_table(table, read.schema, read.options), SeededCoins(seed))
    statement = Statement(read.plan.basis, read.plan.claims, tuple(COLUMNS), {"rows estimated": output.rows}, {}, {})
    assert output.model.inference is not None
    assert other_intervals(statement, LearnedModel.from_json(json.loads(output.model.to_text()))) is None
