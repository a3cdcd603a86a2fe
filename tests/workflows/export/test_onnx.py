"""ONNX files say of any row what the model says of it, and are made from the released model alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pyarrow as pa
import pytest

from incrowd.cli.main import main
from incrowd.engines.settings import open_table
from incrowd.errors import InvalidParameter
from incrowd.methods.learning.shared.models import LearnedModel
from incrowd.workflows.export import formats
from incrowd.workflows.export.onnx_model import onnx_of
from incrowd.workflows.policy.policy import load_policy
from tests.coins import SeededCoins

COLUMNS: dict[str, Any] = {
    "age": {"type": "integer", "bounds": [0, 99]},
    "size": {"type": "decimal", "bounds": ["-1.5", "2.5"], "outside": "ends"},
    "sex": {"categories": ["F", "M", "é"]},
    "smoker": {"type": "boolean"},
    "since": {"type": "integer", "categories": ["1", "2", "30"], "missing": "drop"},
    "income": {"categories": ["low", "middle", "high"]},
    "paid": {"type": "decimal", "bounds": [0, 10]},
}
INPUTS = ["age", "size", "sex", "smoker", "since"]
RELEASES: dict[str, dict[str, Any]] = {
    "naive-bayes": {"method": "classifier", "model": "naive-bayes", "target_column": "income"},
    "pure": {"method": "classifier", "target_column": "income", "delta": None},
    "additive": {"method": "classifier", "model": "additive", "target_column": "income"},
    "gradient": {"method": "classifier", "model": "gradient", "target_column": "income"},
    "two classes": {"method": "classifier", "model": "gradient", "target_column": "smoker"},
    "moments": {"method": "classifier", "model": "moments", "target_column": "income"},
    "regressor": {"method": "regressor", "target_column": "paid"},
    "kmeans": {"method": "kmeans", "clusters": 3},
    "pca": {"method": "pca", "components": 2},
}


def learned(release: dict[str, Any]) -> LearnedModel:
    chance = np.random.default_rng(7)
    rows = pa.table(
        {
            "age": chance.integers(0, 100, 300),
            "size": chance.uniform(-2, 3, 300),
            "sex": chance.choice(["F", "M", "é"], 300),
            "smoker": chance.choice([True, False], 300),
            "since": chance.choice([1, 2, 30], 300),
            "income": chance.choice(["low", "middle", "high"], 300),
            "paid": chance.uniform(0, 10, 300),
        }
    )
    inputs = [name for name in INPUTS if name != release.get("target_column")]
    told = {"epsilon": 3, "delta": "1e-6", "columns": inputs} | release
    policy = {
        "incrowd": 1,
        "dataset": {"name": "rows"},
        "columns": COLUMNS,
        "release": {key: value for key, value in told.items() if value is not None},
    }
    read = load_policy(policy)
    opened = open_table(rows, read.schema, read.options)
    model: LearnedModel = read.plan.draw(opened, SeededCoins(1)).model
    return model


def strange() -> tuple[pa.Table, dict[str, Any]]:
    """Return rows at, between and beyond all bounds, missing ones, and the same as tensors."""
    ages = [0.0, 5.0, 6.0, 6.2, 99.0, 100.0, -1.0, None, 2.0**62, 49.0]
    sizes = [-1.5, -1.6, 2.5, 2.500001, None, 0.0, 1e300, 0.5, float("inf"), float("-inf")]
    texts = ["F", "M", "é", "X", None, "F", "f", "M", "é", "F"]
    flags = ["true", "false", None, "perhaps", "true", "false", "true", "true", "false", "true"]
    since = ["1", "2", "30", "3", None, "1", "2", "30", "0", "1"]
    table = pa.table({"age": ages, "size": sizes, "sex": texts, "smoker": flags, "since": since})
    numbers = {"age": ages, "size": sizes}
    tensors: dict[str, Any] = {
        name: np.array([np.nan if each is None else each for each in values]) for name, values in numbers.items()
    }
    for name, texts_ in (("sex", texts), ("smoker", flags), ("since", since)):
        tensors[name] = np.array(["" if each is None else each for each in texts_], object)
    return table, tensors


@pytest.mark.parametrize("kind", RELEASES)
def test_it_says_of_strange_rows_what_the_model_says(kind: str) -> None:
    model = learned(RELEASES[kind])
    table, tensors = strange()
    names = [each.name for each in model.columns]
    session = onnxruntime.InferenceSession(onnx_of(model).SerializeToString(), providers=["CPUExecutionProvider"])
    found = session.run(None, {name: tensors[name] for name in names})
    said = model.predicted(table.select(names))
    if kind == "pca":
        assert np.array_equal(found[0], np.stack([each.to_numpy() for each in said.columns], axis=1))
        return
    if kind == "regressor":
        assert np.array_equal(found[0], said["prediction"].to_numpy())
        return
    assert found[0].tolist() == said["prediction"].to_pylist()
    if kind != "kmeans":
        np.testing.assert_allclose(found[1], model.chances(table.select(names)), rtol=1e-12, atol=1e-15)


def test_the_command_reads_the_model_alone_and_overwrites_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, file = tmp_path / "model", tmp_path / "model.onnx"
    folder.mkdir()
    (folder / "model.json").write_text(learned(RELEASES["naive-bayes"]).to_text(), encoding="utf-8")
    words = ["export", str(folder), "--to", "onnx", "--out", str(file)]
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["format"] == "onnx"
    first = file.read_bytes()
    assert main(words) == 2
    assert "is not overwritten" in capsys.readouterr().err
    assert file.read_bytes() == first
    assert main([*words[:-1], str(tmp_path / "again.onnx")]) == 0
    assert (tmp_path / "again.onnx").read_bytes() == first
    assert "Made from the" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("source", "to", "out", "message"),
    [
        ("model", "pickle", "x", "not an export format"),
        ("nowhere", "onnx", "x", "cannot be read as a model"),
        ("nowhere", "onnx", "no/x", "is not a folder"),
    ],
)
def test_what_cannot_be_exported_is_refused(source: str, to: str, out: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match=message):
        formats.export(tmp_path / source, to, tmp_path / out)
    assert not list(tmp_path.iterdir())


def test_a_column_cannot_be_called_like_an_output() -> None:
    model = learned(RELEASES["pca"]).to_json()
    model["columns"][0]["name"] = "prediction"
    with pytest.raises(InvalidParameter, match="what an ONNX file calls its outputs"):
        onnx_of(LearnedModel.from_json(model))
