"""Estimators of scikit-learn: a policy in, a certified model out, and nothing that betrays rows."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_clusterer, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.domain import Type
from incrowd.core.reading import read
from incrowd.errors import InvalidParameter, Refused
from incrowd.learn import PCA, Classifier, KMeans, Regressor
from incrowd.learn.rows import target_of

PRICE = {"epsilon": 20, "delta": "1e-6"}
RELEASES: dict[str, dict[str, Any]] = {
    "classifier": {"method": "classifier", "target_column": "label", "columns": ["x", "z"]},
    "regressor": {"method": "regressor", "target_column": "y", "columns": ["x", "z"]},
    "kmeans": {"method": "kmeans", "clusters": 2, "columns": ["x", "z"]},
    "pca": {"method": "pca", "components": 1, "columns": ["x", "z"]},
}
TARGETS: dict[str, dict[str, Any]] = {
    "classifier": {"label": {"type": "integer", "categories": ["0", "1"]}},
    "regressor": {"y": {"type": "decimal", "bounds": [-1, 1]}},
}
CLASSES = {"classifier": Classifier, "regressor": Regressor, "kmeans": KMeans, "pca": PCA}
FORBIDDEN = ("labels_", "inertia_", "n_samples_", "class_count_", "class_prior_", "explained_variance_", "n_iter_")


def policy(kind: str, folder: Path) -> dict[str, Any]:
    numbers = {name: {"type": "decimal", "bounds": [-1, 1]} for name in "xz"}
    return {
        "incrowd": 1,
        "dataset": {"name": kind},
        "columns": {**numbers, **TARGETS.get(kind, {})},
        "release": {**RELEASES[kind], **PRICE},
        "ledger": f"sqlite:///{folder}/ledger.sqlite",
    }


def rows(number: int = 2000, seed: int = 1) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    chance = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": chance.uniform(-1, 1, number), "z": chance.uniform(-0.3, 0.3, number)})
    return frame, (frame["x"] > 0).astype(int), 0.9 * frame["x"]


def fitted(kind: str, folder: Path) -> Any:
    frame, label, number = rows()
    return CLASSES[kind](policy(kind, folder)).fit(frame, {"classifier": label, "regressor": number}.get(kind))


def test_a_classifier_learns_and_is_scored_on_fresh_rows(tmp_path: Path) -> None:
    """At ε = 20 with 2,000 rows noise is a hundredth of what is learned: a share of 0.8 is never missed."""
    found = fitted("classifier", tmp_path)
    frame, label, _ = rows(500, seed=2)
    assert found.classes_.tolist() == [0, 1]
    assert found.score(frame, label) > 0.8
    assert found.predict_proba(frame.to_numpy()).shape == (500, 2)
    assert is_classifier(found)


def test_a_regressor_predicts_within_its_bounds(tmp_path: Path) -> None:
    found = fitted("regressor", tmp_path)
    frame, _, number = rows(500, seed=2)
    assert found.score(frame, number) > 0.5
    assert np.abs(found.predict(frame)).max() <= 1
    assert is_regressor(found)


def test_centers_and_components_lie_where_rows_differ(tmp_path: Path) -> None:
    centers = fitted("kmeans", tmp_path / "a")
    assert sorted(np.sign(centers.cluster_centers_[:, 0])) == [-1, 1]
    assert set(centers.predict(rows(50)[0])) == {0, 1}
    assert is_clusterer(centers)
    assert not hasattr(centers, "fit_predict")
    component = fitted("pca", tmp_path / "b")
    assert abs(component.components_[0, 0]) > abs(component.components_[0, 1])
    assert component.transform(rows(50)[0]).shape == (50, 1)


@pytest.mark.parametrize("kind", CLASSES)
def test_nothing_that_betrays_rows_is_kept(kind: str, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    found = fitted(kind, tmp_path)
    assert [name for name in FORBIDDEN if hasattr(found, name)] == []
    fitted_ones = {"model_", "certificate_", "feature_names_in_", "n_features_in_"}
    assert set(vars(found)) == {*found.get_params(), *fitted_ones}
    assert found.n_features_in_ == 2


def test_a_plan_comes_before_a_fit_and_spends_nothing(tmp_path: Path) -> None:
    told = Classifier(policy("classifier", tmp_path)).plan()
    assert 19 < told.epsilon <= 20
    assert not (tmp_path / "ledger.sqlite").exists()


def test_a_fit_is_charged_before_rows_are_read_and_again_or_refused(tmp_path: Path) -> None:
    found = fitted("classifier", tmp_path)
    frame, label, _ = rows(50)
    with pytest.raises(Refused):
        found.fit(frame, label)
    ledger = Ledger.open(f"sqlite:///{tmp_path}/ledger.sqlite")
    assert sum(entry.kind == "charge" for entry in ledger.entries()) == 1


def test_a_clone_knows_the_policy_and_no_rows(tmp_path: Path) -> None:
    found = fitted("classifier", tmp_path)
    copy = clone(found)
    assert copy.policy == found.policy
    with pytest.raises(NotFittedError):
        copy.predict(rows(5)[0])


def test_a_pipeline_ends_in_an_estimator(tmp_path: Path) -> None:
    frame, label, _ = rows()
    whole = make_pipeline(FunctionTransformer(), Classifier(policy("classifier", tmp_path))).fit(frame, label)
    assert whole.score(*rows(200, seed=5)[:2]) > 0.8


@pytest.mark.parametrize(
    ("given", "words"),
    [(None, "needs a policy"), ("regressor", "learns by method: classifier")],
)
def test_a_policy_for_something_else_is_refused(given: str | None, words: str, tmp_path: Path) -> None:
    told = None if given is None else policy(given, tmp_path)
    with pytest.raises(InvalidParameter, match=words):
        Classifier(told).plan()


def test_arrays_have_the_declared_columns(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="X has 5 features, but Classifier is expecting 2"):
        Classifier(policy("classifier", tmp_path)).fit(np.zeros((3, 5)), [0, 1, 0])


_ALONE: tuple[list[Any], ...] = ([1.0, 2.0], [1, 2], [True, False], [1e16, 1e-7], [2**60 + 1, 3], ["1.0", "2"])
_MORE: tuple[Any, ...] = ("b", 2.5, 3, None, float("nan"), True, Decimal("1.25"), date(2025, 1, 31), 2**70)


@pytest.mark.parametrize("listed", [True, False])
def test_no_row_changes_how_another_one_is_read(listed: bool) -> None:
    """NumPy and Arrow would give all values one type: one text more, and every 1.0 would be another class."""

    def as_read(column: list[Any], kind: Type, number: int) -> list[Any]:
        plain = read(target_of(column if listed else np.array(column, object)), kind).values
        return list(plain.to_pylist()[:number])

    for values, more, kind in product(_ALONE, _MORE, Type):
        alone, together = (as_read(column, kind, len(values)) for column in (values, [*values, more]))
        assert alone == together, (values, more, kind)
