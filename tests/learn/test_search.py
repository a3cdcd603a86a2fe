"""Searches of scikit-learn around a private model: their total comes first, and their choice is said to have no ε."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.claims.claim import Status
from incrowd.core.steps.around import CHOICE, ChosenByScores
from incrowd.core.steps.step import ONCE
from incrowd.errors import InvalidParameter, Refused
from incrowd.learn import Classifier, KMeans, PrivacyWarning
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.verify.verify import verify
from tests.learn.test_estimators import policy as bare
from tests.learn.test_estimators import rows

GRID: dict[str, list[object]] = {"model": ["naive-bayes", "additive"], "bins": [4, 8]}


def policy(folder: Path, epsilon: float = 200.0) -> dict[str, Any]:
    return {**bare("classifier", folder), "budget": {"epsilon": epsilon, "delta": "1e-3"}}


def charges(folder: Path) -> int:
    path = folder / "ledger.sqlite"
    if not path.exists():
        return 0
    return sum(entry.kind == "charge" for entry in Ledger.open(f"sqlite:///{path}").entries())


def test_a_grid_says_its_total_before_it_starts_and_its_certificates_that_the_choice_has_no_epsilon(
    tmp_path: Path,
) -> None:
    frame, label, _ = rows(300)
    search = GridSearchCV(Classifier(policy(tmp_path), epsilon=2), GRID, cv=2)
    with pytest.warns(PrivacyWarning, match=r"9 fits for epsilon 1[78]\.?\d* in total.*tuning") as caught:
        search.fit(frame, label)
    assert sum(item.category is PrivacyWarning for item in caught) == 1
    assert charges(tmp_path) == 9
    best = search.best_estimator_
    assert best.bins in GRID["bins"]
    assert 1.9 < float(best.budget_spent_.epsilon) <= 2
    certificate = best.certificate_
    assert ChosenByScores() in certificate.steps
    assert "tuning" in ChosenByScores().sentence
    for claim in certificate.claims:
        assert CHOICE in claim.not_protected
        assert [item.status for item in claim.preconditions if item.term == ONCE] in ([], [Status.NOT_MET])
    assert any(item.term == ONCE for item in certificate.claims[0].preconditions)
    (tmp_path / "certificate.json").write_text(certificate.to_text(), encoding="utf-8")
    assert verify(tmp_path / "certificate.json").passed


def test_a_plain_fit_assumes_that_it_was_not_selected(tmp_path: Path) -> None:
    frame, label, _ = rows(300)
    certificate = Classifier(policy(tmp_path)).fit(frame, label).certificate_
    assert ChosenByScores() not in certificate.steps
    assert [item.status for item in certificate.claims[0].preconditions if item.term == ONCE] == [Status.ASSUMED]


def test_each_candidate_is_counted_at_its_own_epsilon(tmp_path: Path) -> None:
    frame, label, _ = rows(300)
    search = GridSearchCV(Classifier(policy(tmp_path), model="naive-bayes"), {"epsilon": [1, 4]}, cv=2)
    with pytest.warns(PrivacyWarning, match=r"5 fits for epsilon 1[34]"):
        search.fit(frame, label)


def test_a_search_beyond_the_budget_is_refused_before_its_first_charge(tmp_path: Path) -> None:
    frame, label, _ = rows(300)
    pipeline = make_pipeline(FunctionTransformer(), Classifier(policy(tmp_path, 15.0), epsilon=2))
    names = {f"classifier__{name}": values for name, values in GRID.items()}
    with pytest.raises(Refused, match=r"9 fits .* Nothing was charged"):
        GridSearchCV(pipeline, names, cv=2).fit(frame, label)
    with pytest.raises(Refused, match="at least 9 fits"):
        RandomizedSearchCV(pipeline, names, n_iter=4, cv=2).fit(frame, label)
    with pytest.raises(Refused, match=r"10 fits .* Nothing was charged"):
        cross_val_score(pipeline, frame, label, cv=10)
    assert charges(tmp_path) == 0


def test_parameters_take_the_place_of_those_of_the_policy(tmp_path: Path) -> None:
    made = Classifier(policy(tmp_path), epsilon=0.5, delta=1e-7, model="additive", columns=["x"], bins=4)
    settings = made.plan()
    assert float(settings.epsilon) <= 0.5
    assert float(settings.delta) <= 1e-7
    assert "additive" in settings.parameters["model"]
    assert clone(made).get_params() == made.get_params()
    assert KMeans(bare("kmeans", tmp_path), clusters=5).plan().parameters["clusters"] == 5
    schema_alone = {name: part for name, part in policy(tmp_path).items() if name != "release"}
    assert Classifier(schema_alone, epsilon=1, delta=1e-6, target_column="label").plan().allowed
    with pytest.raises(InvalidParameter, match="was read already"):
        Classifier(load_policy(policy(tmp_path)), epsilon=1).plan()


def test_a_score_of_the_rows_that_were_learned_from_warns(tmp_path: Path) -> None:
    frame, label, _ = rows(300)
    made = Classifier(policy(tmp_path)).fit(frame, label)
    with pytest.warns(PrivacyWarning, match="learned from"):
        made.score(frame.copy(), label)
    made.score(rows(300, seed=9)[0], label)  # a warning would be an error


def test_an_array_of_objects_reads_like_the_frame_that_it_came_from(tmp_path: Path) -> None:
    declared = policy(tmp_path)
    declared["columns"]["town"] = {"categories": ["Łódź", "Örebro"]}
    declared["release"] |= {"columns": ["x", "town"]}
    frame, label, _ = rows(300)
    both = pd.DataFrame({"x": frame["x"], "town": np.where(frame["z"] > 0, "Łódź", "Örebro")}).astype(object)
    both.loc[::7, "town"] = np.nan
    both.loc[3::7, "x"] = np.nan
    made = Classifier(declared).fit(both.to_numpy(), label.to_numpy())
    assert np.array_equal(made.predict_proba(both.to_numpy()), made.predict_proba(both))
