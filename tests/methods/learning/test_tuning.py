"""Tuning: candidates from the policy alone, a price that is never above what was asked, and one model that leaves."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.loss import BestRun, Pure, ZeroConcentrated
from incrowd.engines.settings import open_table
from incrowd.errors import InvalidParameter
from incrowd.learn import Classifier, Regressor
from incrowd.methods.learning.shared.steps import FollowGradients, LearnFrom
from incrowd.methods.learning.shared.trials import SECRET, TryModels
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.verify.verify import verify
from tests.coins import SeededCoins
from tests.methods.learning.records import SMALL, small, table

TUNED: dict[str, Any] = {"method": "tuning", "column_sets": {"all": ["a", "n", "m"], "one": ["a"]}}


def tuned(**release: Any) -> Policy:
    return small(**{**TUNED, **release})


def test_every_model_with_all_bins_on_all_sets_of_columns_is_a_candidate() -> None:
    step = tuned(models=["naive-bayes", "gradient"], bins=[2, 4]).plan.basis.need(TryModels)
    assert len(step.candidates) == 8
    assert sum(isinstance(each, FollowGradients) for each in step.held) == 4
    columns = [[one.column for one in each.columns] for each in step.held if isinstance(each, LearnFrom)]
    assert sorted(map(len, columns)) == [1] * 4 + [3] * 4


@pytest.mark.parametrize("unit", [{}, {"adjacency": "replace-one"}])
@pytest.mark.parametrize("change", [{}, {"folds": 3}, {"runs": 50}, {"delta": None, "models": ["naive-bayes"]}])
def test_what_is_charged_is_never_above_what_was_asked(change: dict[str, Any], unit: dict[str, str]) -> None:
    plan = tuned(**change).method.plan(small_schema(unit))
    assert Fraction(99, 100) < Fraction(plan.numbers["epsilon"]) <= 1
    loss = plan.guarantee.loss
    assert isinstance(loss, BestRun)
    assert isinstance(loss.inner, Pure if "delta" in change else ZeroConcentrated)
    assert SECRET in plan.guarantee.assumes


def small_schema(unit: dict[str, str]) -> Any:
    return load_policy({**SMALL, "dataset": {"name": "small", "unit": unit} if unit else SMALL["dataset"]}).schema


def test_folds_cost_each_model_that_a_row_has_a_part_in() -> None:
    """With three folds two models of others and that of all rows; the noise of each model is larger in turn."""
    scales = []
    for folds in (None, 3):
        step = tuned(models=["gradient"], folds=folds).plan.basis.need(FollowGradients)
        scales.append(float(step.scale))
    assert (scales[1] / scales[0]) ** 2 == pytest.approx(3, rel=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"column_sets": None}, "nothing to tune"),
        ({"column_sets": {"all": ["a"]}}, "nothing to tune"),
        ({"bins": list(range(2, 50))}, "2 to 64"),
        ({"bins": [4, 4]}, "once each"),
        ({"runs": 1}, "2 to 1,000 runs"),
        ({"folds": 1}, "2 to 20 folds"),
        ({"column_sets": {"all": ["a"], "odd": ["t"]}}, "not the one that it predicts"),
        ({"delta": None, "models": ["gradient"]}, "needs a delta"),
        ({"models": ["forest"]}, "models"),
        ({"models": ["linear"]}, "models"),
        ({"target_column": "m", "column_sets": None, "models": ["naive-bayes", "moments"]}, "does not predict numbers"),
        ({"target_column": "m", "column_sets": None, "models": ["additive", "moments"], "delta": None}, "need a delta"),
    ],
)
def test_what_means_nothing_is_refused_before_rows_are_read(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        tuned(**change).plan  # noqa: B018 - the plan is made here


def rows(number: int) -> pa.Table:
    """Rows whose class follows from `a` alone."""
    chance = np.random.default_rng(5)
    classes = chance.choice(["p", "q"], number)
    return table(
        [("x" if t == "p" else "y", int(chance.integers(3)), int(chance.integers(-4, 5)), str(t)) for t in classes]
    )


@pytest.mark.parametrize("change", [{}, {"folds": 2}, {"delta": None, "models": ["naive-bayes"]}])
def test_the_kept_model_predicts(change: dict[str, Any]) -> None:
    policy = tuned(epsilon=8, models=["naive-bayes"], **{k: v for k, v in change.items() if k != "models"})
    opened = open_table(rows(600), policy.schema, policy.options)
    model = policy.plan.draw(opened, SeededCoins(4)).model
    said = model.predicted(table([("x", 1, 0, "p"), ("y", 1, 0, "q")]))["prediction"].to_pylist()
    assert said == ["p", "q"]


def test_the_certificate_tells_candidates_and_price_and_nothing_of_runs(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite"
    models = {"models": ["naive-bayes", "moments"], "column_sets": None}
    release = {key: value for key, value in {**SMALL["release"], **TUNED, **models}.items() if value is not None}
    told = {**SMALL, "release": release, "ledger": f"sqlite:///{ledger}"}
    release_to(rows(200), load_policy(told), Destination(tmp_path / "out", "csv"))
    assert verify(tmp_path / "out").passed
    certificate = json.loads((tmp_path / "out" / "certificate.json").read_text(encoding="utf-8"))
    step = certificate["steps"][0]
    assert set(step) == {"step", "gamma", "noise", "scale", "candidates"}
    assert len(step["candidates"]) == 2
    assert "rows estimated" in certificate["evidence"]
    assert not {"runs", "score", "scores"} & set(certificate["evidence"])
    assert [str(entry.kind) for entry in Ledger.open(f"sqlite:///{ledger}").entries()].count("charge") == 1


def test_an_estimator_tunes_and_reads_all_columns_that_may_be_kept(tmp_path: Path) -> None:
    policy = {**SMALL, "release": {**SMALL["release"], **TUNED}, "ledger": f"sqlite:///{tmp_path}/l.sqlite"}
    frame = rows(300)
    found = Classifier(policy).fit(frame.drop_columns(["t"]), frame["t"].to_pylist())
    assert found.feature_names_in_.tolist() == ["a", "n", "m"]
    assert found.predict_proba(np.array([["x", 1, 0], ["y", 2, 4]], object)).shape == (2, 3)


@pytest.mark.parametrize("folds", [None, 2])
def test_models_of_numbers_are_tuned_and_verified(folds: int | None, tmp_path: Path) -> None:
    sets = {"column_sets": {"class": ["t"], "nothing": ["n"]}, "models": ["moments"]}
    release = {**SMALL["release"], **TUNED, **sets, "target_column": "m", "epsilon": 20, "runs": 20}
    release |= {} if folds is None else {"folds": folds}
    policy = {**SMALL, "release": release, "ledger": f"sqlite:///{tmp_path}/ledger.sqlite"}
    chance = np.random.default_rng(8)
    classes = chance.choice(["p", "r"], 1000)
    whole = table([("x", int(chance.integers(3)), -3 if t == "p" else 3, str(t)) for t in classes])
    release_to(whole, load_policy(policy), Destination(tmp_path / "out", "csv"))
    assert verify(tmp_path / "out", policy=load_policy(policy)).passed
    read = load_policy(policy)
    model = read.plan.draw(open_table(whole, read.schema, read.options), SeededCoins(2)).model
    low, high = model.predicted(table([("x", 1, 0, "p"), ("x", 1, 0, "r")]))["prediction"].to_pylist()
    assert low < -2
    assert high > 2
    fitted = Regressor({**policy, "ledger": f"sqlite:///{tmp_path}/other.sqlite"})
    assert np.isfinite(fitted.fit(whole.drop_columns(["m"]), whole["m"].to_pylist()).predict(whole)).all()
