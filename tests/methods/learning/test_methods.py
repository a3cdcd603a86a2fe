"""Methods of learning: what they choose by public numbers, refuse, guarantee and predict."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import incrowd
from incrowd.core.loss import Pure, ZeroConcentrated
from incrowd.errors import InvalidParameter, Refused
from incrowd.methods.learning.shared.models import LearnedModel
from incrowd.methods.learning.shared.steps import CountByTarget, FollowGradients, MultiplyColumns
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.verify.verify import verify
from tests.methods.learning.records import SMALL, small

MANY: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "many"},
    "columns": {
        "x": {"type": "decimal", "bounds": [-1, 1]},
        "z": {"type": "decimal", "bounds": [-1, 1]},
        "y": {"categories": list("abcde")},
    },
    "release": {"method": "classifier", "target_column": "y", "epsilon": 1, "delta": "1e-6"},
}


def declared(columns: dict[str, Any], release: dict[str, Any]) -> Any:
    return load_policy({"incrowd": 1, "dataset": {"name": "d"}, "columns": columns, "release": release}).plan


@pytest.mark.parametrize(
    ("change", "step"),
    [
        ({}, FollowGradients),
        ({"delta": None}, CountByTarget),
        ({"expected_rows": 30}, CountByTarget),
        ({"expected_rows": 100}, MultiplyColumns),
        ({"expected_rows": 100_000}, FollowGradients),
        ({"model": "moments"}, MultiplyColumns),
    ],
)
def test_the_model_is_chosen_by_public_numbers(change: dict[str, Any], step: type) -> None:
    assert small(**change).plan.basis.find(step) is not None


def test_many_classes_of_numbers_are_learned_from_products() -> None:
    assert load_policy(MANY).plan.basis.find(MultiplyColumns) is not None


@pytest.mark.parametrize("model", ["naive-bayes", "gradient", "additive", "moments"])
@pytest.mark.parametrize("unit", [{}, {"adjacency": "replace-one"}])
def test_what_is_charged_is_never_above_what_was_asked(model: str, unit: dict[str, str]) -> None:
    policy = load_policy(
        {**SMALL, "dataset": {"name": "d", "unit": unit}, "release": {**SMALL["release"], "model": model}}
    )
    assert isinstance(policy.plan.guarantee.loss, ZeroConcentrated)
    assert Fraction(9, 10) < Fraction(policy.plan.settings["epsilon"]) <= 1


def test_naive_bayes_without_a_delta_guarantees_epsilon_alone() -> None:
    plan = small(delta=None).plan
    assert plan.guarantee.loss == Pure(Fraction(1))
    assert plan.guarantee.delta == 0
    assert plan.claims[0].kind == "pure differential privacy"


@pytest.mark.parametrize(
    ("columns", "release", "words"),
    [
        ({"x": {"type": "decimal"}}, {}, "no declared bounds"),
        ({"x": {}}, {}, "not declared"),
        ({"x": {"categories": ["one"], "missing": "drop", "outside": "drop"}}, {}, "single class"),
        ({"x": {"type": "integer", "bounds": [3, 3], "missing": "drop"}}, {}, "single class"),
        ({"x": {"categories": ["a", "b"], "derived": "rows"}}, {}, "drafted from rows"),
        ({"x": {"categories": ["a", "b"], "role": "identifier"}}, {"columns": ["x"]}, "identifier"),
        ({"x": {"categories": ["a", "b"]}}, {"delta": None, "model": "gradient"}, "needs a delta"),
        ({"x": {"categories": ["a", "b"]}}, {"epsilon": 0}, "above 0"),
        ({"x": {"categories": ["a", "b"]}}, {"bins": 1}, "bins"),
        ({"x": {"categories": ["a", "b"]}}, {"target_column": "x", "columns": ["x"]}, "not the one that it predicts"),
        ({"coefficient": {"categories": ["a", "b"]}}, {}, "of its own"),
        ({"x": {"categories": ["a", "b"]}, "t": {}}, {}, "not declared"),
        ({"x": {"categories": ["a", "b"]}, "t": {"categories": ["p"]}}, {}, "single declared class"),
    ],
)
def test_what_cannot_be_learned_is_refused_before_rows(
    columns: dict[str, Any], release: dict[str, Any], words: str
) -> None:
    told = {"method": "classifier", "target_column": "t", "epsilon": 1, "delta": "1e-6", **release}
    kept = {key: value for key, value in told.items() if value is not None}
    with pytest.raises(InvalidParameter, match=words):
        declared({"t": {"categories": ["p", "q"]}, **columns}, kept)


def test_a_regressor_wants_numbers_and_pca_few_components() -> None:
    columns = {"x": {"categories": ["a", "b"], "missing": "drop", "outside": "drop"}}
    with pytest.raises(InvalidParameter, match="column of numbers"):
        declared(columns, {"method": "regressor", "target_column": "x", "epsilon": 1, "delta": "1e-6"})
    with pytest.raises(InvalidParameter, match="at most as many components"):
        declared(columns, {"method": "pca", "components": 3, "epsilon": 1, "delta": "1e-6"})
    with pytest.raises(InvalidParameter, match="clusters"):
        declared(columns, {"method": "kmeans", "clusters": 1, "epsilon": 1, "delta": "1e-6"})


def test_rows_that_fit_nowhere_hold_back_nothing(tmp_path: Path) -> None:
    """An empty table, a class that nobody has, strange and missing values: all are learned from, and say nothing."""
    empty = pa.table({"x": pa.array([], pa.float64()), "z": pa.array([], pa.float64()), "y": pa.array([], pa.string())})
    odd = pa.table({"x": [1e300, None, 0.5], "z": [float("nan"), -7.0, 0.0], "y": ["a", None, "unknown"]})
    for rows in (empty, odd):
        for model in ("naive-bayes", "gradient", "additive", "moments"):
            ledger = f"sqlite:///{tmp_path}/{model}{len(rows)}.sqlite"
            told = {**MANY, "release": {**MANY["release"], "model": model}, "ledger": ledger}
            found = incrowd.learn_model(rows, told).model
            assert found.outputs == tuple("abcde")
            assert found.predicted(odd).num_rows == 3


def points(number: int = 4000) -> pa.Table:
    chance = np.random.default_rng(4)
    x, z = chance.uniform(-1, 1, number), chance.uniform(-1, 1, number)
    label = np.array(list("abcde"))[np.clip(((x + 1) / 2 * 5).astype(int), 0, 4)]
    return pa.table({"x": x, "z": z, "y": label})


def test_a_model_learns_verifies_and_predicts_from_its_folder(tmp_path: Path) -> None:
    """Half of five classes along a line are right at ε = 20; blind guessing has a fifth: chance plays no part."""
    told = {**MANY, "ledger": f"sqlite:///{tmp_path}/ledger.sqlite", "release": {**MANY["release"], "epsilon": 20}}
    release_to(points(), told, Destination(tmp_path / "out"))
    assert verify(tmp_path / "out").passed
    said = incrowd.predict(tmp_path / "out", points()).read_all()
    assert said.column_names == ["prediction", "p_a", "p_b", "p_c", "p_d", "p_e"]
    right = np.mean(np.array(said["prediction"].to_pylist()) == np.array(points()["y"].to_pylist()))
    assert right > 0.4
    shares = sum(said[name].to_numpy() for name in said.column_names[1:])
    assert np.allclose(shares, 1.0)


def test_a_changed_model_is_found(tmp_path: Path) -> None:
    told = {**MANY, "ledger": f"sqlite:///{tmp_path}/ledger.sqlite"}
    release_to(points(500), told, Destination(tmp_path / "out"))
    file = tmp_path / "out" / "model.json"
    plain = json.loads(file.read_text(encoding="utf-8"))
    plain["offset"][0] += 1.0
    file.write_text(json.dumps(plain), encoding="utf-8")
    assert not verify(tmp_path / "out").passed


@pytest.mark.parametrize(
    "change",
    [{"outputs": ["a"]}, {"offset": [1]}, {"tables": []}, {"use": "magic"}, {"more": 1}, {"incrowd learned model": 2}],
    ids=lambda change: next(iter(change)),
)
def test_a_damaged_model_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    told = {**MANY, "ledger": f"sqlite:///{tmp_path}/ledger.sqlite"}
    plain = incrowd.learn_model(points(50), told).model.to_json()
    assert LearnedModel.from_json(plain).to_json() == plain
    with pytest.raises(InvalidParameter, match="model"):
        LearnedModel.from_json(plain | change)


def test_a_second_model_is_another_charge_or_refused(tmp_path: Path) -> None:
    told = {**MANY, "ledger": f"sqlite:///{tmp_path}/ledger.sqlite"}
    incrowd.learn_model(points(50), told)
    with pytest.raises(Refused):
        incrowd.learn_model(points(50), told)


def test_other_policies_are_sent_elsewhere() -> None:
    told = {**MANY, "release": {"method": "private-histogram", "columns": ["y"], "epsilon": 1}}
    with pytest.raises(InvalidParameter, match="Nothing was charged"):
        incrowd.learn_model(points(10), told)
