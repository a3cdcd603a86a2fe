"""Classes in numpy's order: what scikit-learn reads off a private classifier is what it reads off its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, roc_auc_score
from sklearn.model_selection import cross_val_score

from incrowd.errors import InvalidParameter
from incrowd.learn import Classifier, PrivacyWarning
from incrowd.methods.learning.shared.models import LearnedModel
from incrowd.workflows.export.onnx_model import onnx_of

WORDS = {"type": "text", "categories": ["yes", "maybe", "no"]}
TARGETS: dict[str, tuple[dict[str, Any], Callable[[NDArray[Any]], NDArray[Any]]]] = {
    "words": ({"type": "text", "categories": ["sick", "healthy"]}, lambda high: np.where(high, "sick", "healthy")),
    "numbers": ({"type": "integer", "categories": ["10", "9"]}, lambda high: np.where(high, 10, 9)),
    "truth values": ({"type": "boolean", "categories": ["true", "false"]}, lambda high: high),
}


def policy(target: dict[str, Any], folder: Path) -> dict[str, Any]:
    numbers = {name: {"type": "decimal", "bounds": [-1, 1]} for name in "xz"}
    release = {"method": "classifier", "target_column": "label", "columns": ["x", "z"], "epsilon": 20, "delta": "1e-6"}
    return {
        "incrowd": 1,
        "dataset": {"name": "order"},
        "columns": {**numbers, "label": target},
        "release": release,
        "budget": {"epsilon": 200, "delta": "1e-4"},
        "ledger": f"sqlite:///{folder}/ledger.sqlite",
    }


def rows(number: int = 1000, seed: int = 1) -> tuple[pd.DataFrame, NDArray[Any]]:
    chance = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": chance.uniform(-1, 1, number), "z": chance.uniform(-1, 1, number)})
    return frame, (frame["x"] > 0).to_numpy()


@pytest.mark.parametrize("kind", TARGETS)
def test_the_area_under_the_curve_is_that_of_the_larger_class(kind: str, tmp_path: Path) -> None:
    """At ε = 20 with 1,000 rows noise is a hundredth of what is learned: an area of 0.8 is never missed."""
    target, labels = TARGETS[kind]
    frame, high = rows()
    found = Classifier(policy(target, tmp_path)).fit(frame, labels(high))
    fresh, high = rows(300, seed=2)
    plain = LogisticRegression().fit(frame, labels(rows()[1]))
    assert found.classes_.tolist() == plain.classes_.tolist() == sorted(set(labels(high).tolist()))
    assert found.classes_.dtype.kind == plain.classes_.dtype.kind
    truth = labels(high) == found.classes_[1]
    assert roc_auc_score(truth, found.predict_proba(fresh)[:, 1]) > 0.8
    assert get_scorer("roc_auc")(found, fresh, labels(high)) > 0.8
    assert found.score(fresh, labels(high)) > 0.8


def test_cross_validation_and_calibration_read_the_same_order(tmp_path: Path) -> None:
    """As above; there are ten charges of ε = 20, within the budget of 200."""
    target, labels = TARGETS["words"]
    frame, high = rows()
    made = Classifier(policy(target, tmp_path))
    with pytest.warns(PrivacyWarning, match="2 fits for epsilon 40 in total"):
        areas = cross_val_score(made, frame, labels(high), scoring="roc_auc", cv=2)
    assert areas.min() > 0.8
    calibrated = CalibratedClassifierCV(made, cv=2).fit(frame, labels(high))
    fresh, high = rows(300, seed=2)
    assert roc_auc_score(labels(high) == calibrated.classes_[1], calibrated.predict_proba(fresh)[:, 1]) > 0.8


def test_a_vote_beside_a_plain_model_adds_up_the_same_classes(tmp_path: Path) -> None:
    """As above; a voter numbers the labels, so that they are declared as numbers, the larger first."""
    target = {"type": "integer", "categories": ["1", "0"]}
    frame, high = rows()
    voters = [("private", Classifier(policy(target, tmp_path))), ("plain", LogisticRegression())]
    vote = VotingClassifier(voters, voting="soft").fit(frame, high.astype(int))
    fresh, high = rows(300, seed=2)
    assert vote.score(fresh, high.astype(int)) > 0.8


@pytest.mark.parametrize("labels", [[0, 1], [0.0, 1.0], [False, True], np.array([0, 1], dtype=object)])
def test_labels_of_another_kind_than_the_declared_words_are_refused_before_the_charge(
    labels: Any, tmp_path: Path
) -> None:
    frame = rows(2)[0]
    with pytest.raises(InvalidParameter, match="'yes', 'maybe', 'no'"):
        Classifier(policy(WORDS, tmp_path)).fit(frame, labels)
    with pytest.raises(InvalidParameter, match="Nothing was charged"):
        Classifier(policy(WORDS, tmp_path)).fit(frame.assign(label=labels))
    assert not (tmp_path / "ledger.sqlite").exists()


def test_numbers_fit_where_digits_are_declared_as_text(tmp_path: Path) -> None:
    target = {"type": "text", "categories": ["1", "0"]}
    frame, high = rows()
    found = Classifier(policy(target, tmp_path)).fit(frame, high.astype(int))
    assert found.classes_.tolist() == ["0", "1"]
    fresh, high = rows(300, seed=2)
    assert found.score(fresh, high.astype(int).astype(str)) > 0.8


def test_a_saved_model_and_its_onnx_file_name_their_own_order(tmp_path: Path) -> None:
    """File and ONNX keep the declared order, and name it; the estimator alone puts it in numpy's."""
    target, labels = TARGETS["words"]
    frame, high = rows()
    found = Classifier(policy(target, tmp_path)).fit(frame, labels(high))
    (tmp_path / "model.json").write_text(found.model_.to_text(), encoding="utf-8")
    saved, sorted_chances = LearnedModel.load(tmp_path / "model.json"), found.predict_proba(frame)
    assert list(saved.outputs) == ["sick", "healthy"]
    assert found.classes_.tolist() == ["healthy", "sick"]
    assert np.allclose(saved.chances(pa.Table.from_pandas(frame)), sorted_chances[:, ::-1])
    session = onnxruntime.InferenceSession(onnx_of(saved).SerializeToString(), providers=["CPUExecutionProvider"])
    inputs = {name: frame[name].to_numpy(np.float64) for name in "xz"}
    prediction, chances = session.run(["prediction", "probabilities"], inputs)
    assert np.allclose(chances, sorted_chances[:, ::-1], atol=1e-5)
    assert (prediction.ravel() == found.predict(frame)).all()
