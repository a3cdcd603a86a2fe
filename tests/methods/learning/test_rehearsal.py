"""Rehearsals: what noise will leave, from public numbers alone, always the same, and more at a larger ε."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from incrowd.methods.learning.shared.rehearsal import GainBand, rehearse
from incrowd.workflows.plan.forecast import plan, undeclared
from incrowd.workflows.policy.policy import Policy, load_policy
from tests.methods.learning.records import SMALL, small

FEW = {name: {"type": "decimal", "bounds": [-1, 1]} for name in "abcd"}
RELEASES: dict[str, dict[str, Any]] = {
    "classifier": {"method": "classifier", "target_column": "t", "model": "naive-bayes"},
    "regressor": {"method": "regressor", "target_column": "a", "columns": ["b", "c", "d"]},
    "pca": {"method": "pca", "components": 1, "columns": list(FEW)},
    "tuning": {"method": "tuning", "target_column": "t", "bins": [4, 8], "models": ["naive-bayes"]},
}


def read(release: dict[str, Any], epsilon: str) -> Policy:
    columns = {**FEW, "t": {"categories": ["no", "yes"]}}
    told = {**release, "epsilon": epsilon, "delta": "1e-6"}
    return load_policy({"incrowd": 1, "dataset": {"name": "d"}, "columns": columns, "release": told})


@pytest.mark.parametrize("kind", RELEASES)
def test_a_larger_epsilon_leaves_more(kind: str) -> None:
    found = []
    for epsilon in ("0.01", "9"):
        policy = read(RELEASES[kind], epsilon)
        band = rehearse(policy.method, policy.schema, 300)
        assert band is not None
        found.append(band)
    assert found[0].hopeless
    assert found[0].all < 0.5 < found[1].all
    assert not found[1].hopeless


def test_the_figures_are_always_the_same() -> None:
    policy = read(RELEASES["classifier"], "1")
    assert rehearse(policy.method, policy.schema, 300) == rehearse(policy.method, policy.schema, 300)


def test_clusters_and_components_of_categories_are_not_rehearsed() -> None:
    for release in ({"method": "kmeans", "clusters": 2}, {"method": "pca", "components": 1}):
        policy = read({**release, "columns": ["a", "t"]}, "1")
        assert rehearse(policy.method, policy.schema, 100) is None


def test_a_few_hundred_rows_with_thirty_columns_are_hopeless_for_components() -> None:
    columns = {f"c{n}": {"type": "decimal", "bounds": [0, 1]} for n in range(30)}
    release = {"method": "pca", "components": 3, "epsilon": 1, "delta": "1e-6"}
    told = {"incrowd": 1, "dataset": {"name": "d", "rows": 300}, "columns": columns, "release": release}
    band = plan(told).rehearsed
    assert band is not None
    start = "hopeless below ε = 3 with 300 rows and 30 columns, unless nearly all columns matter: most of the model"
    assert band.sentence.startswith(start)


def test_what_is_said_is_what_was_found() -> None:
    band = GainBand(300, 1, Fraction(1, 10), -0.5, 0.25)
    assert band.sentence.startswith("hopeless at ε = 0.1 with 300 rows and 1 column: ")
    assert "keeps 0 % to 25 %" in band.sentence
    assert replace(band, all=1.2).sentence.startswith("on made-up rows")
    assert band.to_json()["hopeless"]


def test_the_plan_says_which_line_is_missing_and_reads_no_row() -> None:
    forecast = plan({**SMALL, "dataset": {"name": "small"}})
    assert forecast.rehearsed is None
    assert "add rows: N under dataset" in (undeclared(forecast.policy) or "")
    assert undeclared(small(expected_rows=100)) is None
    release = {**SMALL["release"], "model": "naive-bayes"}
    declared = plan({**SMALL, "dataset": {"name": "small", "rows": 500}, "release": release})
    assert "made-up rows of this shape" in declared._repr_html_()
