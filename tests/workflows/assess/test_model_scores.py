"""How right a model is about rows whose truth is known: figures as scikit-learn has them, and internal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv
from sklearn import metrics

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.cli.main import main
from incrowd.engines.readers.sources import open_source
from incrowd.engines.settings import open_table
from incrowd.errors import InvalidParameter
from incrowd.methods.learning.shared.models import LearnedModel
from incrowd.workflows.assess.model_scores import is_model, model_scores
from incrowd.workflows.policy.policy import Policy, load_policy
from tests.coins import SeededCoins

COLUMNS: dict[str, Any] = {
    "x": {"type": "decimal", "bounds": [-1, 1]},
    "t": {"categories": ["a", "b", "c"]},
    "s": {"categories": ["no", "yes"]},
    "y": {"type": "decimal", "bounds": [-2, 2]},
}
WAYS: dict[str, dict[str, Any]] = {
    "three": {"method": "classifier", "target_column": "t", "model": "naive-bayes"},
    "two": {"method": "classifier", "target_column": "s", "model": "naive-bayes"},
    "tuned": {"method": "tuning", "target_column": "s", "models": ["naive-bayes"], "bins": [4, 8]},
    "number": {"method": "regressor", "target_column": "y"},
    "clusters": {"method": "kmeans", "clusters": 2},
}


def table(number: int) -> pa.Table:
    chance = np.random.default_rng(3)
    x = chance.uniform(-1, 1, number)
    classes = np.where(x + chance.normal(0, 0.3, number) > 0.3, "c", np.where(x > -0.2, "b", "a"))
    flags = np.where(x + chance.normal(0, 0.3, number) > 0, "yes", "no")
    return pa.table({"x": x, "t": [*classes[:-1], "other"], "s": flags, "y": [*(1.5 * x)[:-1], None]})


def made(way: str, folder: Path) -> Policy:
    """Learn a model into a folder, without a ledger."""
    columns = [] if way == "clusters" else ["x"]
    release = {"epsilon": 4, "delta": "1e-6", "columns": columns or ["x", "y"], **WAYS[way]}
    release |= {"column_sets": {"x": ["x"]}} if way == "tuned" else {}
    told = {key: value for key, value in release.items() if not (way == "tuned" and key == "columns")}
    policy = load_policy({"incrowd": 1, "dataset": {"name": "scores"}, "columns": COLUMNS, "release": told})
    opened = open_table(table(400), policy.schema, policy.options)
    folder.mkdir()
    text = policy.plan.draw(opened, SeededCoins(2)).model.to_text()
    (folder / "model.json").write_text(text, encoding="utf-8")
    return policy


@pytest.mark.parametrize("way", ["three", "two", "tuned"])
def test_scores_of_classes_are_those_of_scikit_learn(way: str, tmp_path: Path) -> None:
    policy = made(way, tmp_path / "model")
    rows = table(300)
    found = model_scores(tmp_path / "model", open_source(rows), policy)
    model = LearnedModel.load(tmp_path / "model")
    truth = np.array(rows[model.target].to_pylist())
    known = truth != "other"
    chances, truth = model.chances(rows)[known], truth[known]
    said = np.array(model.outputs)[chances.argmax(axis=1)]
    assert found.rows == len(truth) == 300 - (way == "three")
    assert found.figures["accuracy"] == pytest.approx(float((said == truth).mean()))
    assert found.figures["log loss"] == pytest.approx(metrics.log_loss(truth, chances, labels=model.outputs))
    assert sum(number for number, _, _ in found.calibration) == found.rows
    assert found.confusion is not None
    assert found.confusion["no" if way != "three" else "a"] == {
        name: int(((truth == ("no" if way != "three" else "a")) & (said == name)).sum()) for name in model.outputs
    }
    if way == "two":
        assert found.figures["AUC"] == pytest.approx(metrics.roc_auc_score(truth == "yes", chances[:, 1]), abs=2e-3)
        assert found.curve[0] == (0.0, 0.0)
        assert found.curve[-1] == (1.0, 1.0)


def test_scores_of_numbers_leave_out_what_is_missing(tmp_path: Path) -> None:
    policy = made("number", tmp_path / "model")
    rows = table(200)
    found = model_scores(tmp_path / "model", open_source(rows), policy)
    truth = np.array(rows["y"].to_pylist()[:-1])
    said = LearnedModel.load(tmp_path / "model").numbers(rows)[:-1]
    assert found.rows == 199
    assert found.figures["R²"] == pytest.approx(metrics.r2_score(truth, said))
    assert found.figures["mean absolute error"] == pytest.approx(metrics.mean_absolute_error(truth, said))


def test_a_model_without_a_target_and_another_policy_are_refused(tmp_path: Path) -> None:
    clusters, two = made("clusters", tmp_path / "clusters"), made("two", tmp_path / "two")
    with pytest.raises(InvalidParameter, match="its accuracy cannot be measured"):
        model_scores(tmp_path / "clusters", open_source(table(9)), clusters)
    with pytest.raises(InvalidParameter, match="name the model's own policy"):
        model_scores(tmp_path / "two", open_source(table(9)), clusters)
    empty = table(9).slice(0, 0)
    with pytest.raises(InvalidParameter, match="no row has a declared class"):
        model_scores(tmp_path / "two", open_source(empty), two)
    assert not is_model(tmp_path)


def test_the_command_records_a_look_and_says_that_it_is_internal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    address = "sqlite:///ledger.sqlite"
    made("two", tmp_path / "model")
    csv.write_csv(table(100), "rows.csv")
    release = {**WAYS["two"], "epsilon": 1, "delta": "1e-6"}
    told = {"incrowd": 1, "dataset": {"name": "scores"}, "columns": COLUMNS, "release": release, "ledger": address}
    Path("policy.yaml").write_text(json.dumps(told), encoding="utf-8")
    Ledger.create(address)
    words = ["assess", "model", "--policy", "policy.yaml", "--against", "rows.csv"]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "keep it apart from what is published" in shown
    assert "observed" in shown
    assert main([*words, "--json", "--write", "scores.json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 100
    assert json.loads(Path("scores.json").read_text(encoding="utf-8"))["internal"].startswith("made from")
    assert [entry.kind for entry in Ledger.open(address).entries()].count("look") == 2
    assert main([*words, "--held-out"]) == 2
