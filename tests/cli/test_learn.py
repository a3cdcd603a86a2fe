"""`incrowd learn` and `incrowd predict`: from a policy to a model in a folder, and from there to predictions."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from incrowd.cli.main import main
from incrowd.workflows.verify.verify import verify

POLICY = """\
incrowd: 1
dataset: {name: incomes}
columns:
  age: {type: integer, bounds: [0, 99]}
  sex: {categories: [F, M]}
  income: {categories: [low, high]}
release: {method: classifier, target_column: income, epsilon: 2, delta: 1e-6}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("policy.yaml").write_text(POLICY, encoding="utf-8")
    lines = [f"{20 + n % 60},{'FM'[n % 2]},{'low' if n % 60 < 30 else 'high'}" for n in range(1200)]
    Path("data.csv").write_text("\n".join(["age,sex,income", *lines]) + "\n", encoding="utf-8")
    return tmp_path


def test_a_model_is_learned_verified_and_used(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learn", "data.csv", "--policy", "policy.yaml", "--target", "income", "--out", "model"]) == 0
    assert "incrowd predict model" in capsys.readouterr().out
    assert verify(folder / "model").passed
    assert main(["predict", "model", "data.csv", "--out", "said.csv", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["rows"] == 1200
    assert "private" in told["notes"][0]
    with Path("said.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 1200
    assert set(lines[0]) == {"prediction", "p_low", "p_high"}
    assert {line["prediction"] for line in lines} <= {"low", "high"}


def test_strange_rows_get_a_line_each(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learn", "data.csv", "--policy", "policy.yaml", "--out", "model", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["certificate"]["method"]["name"] == "classifier"
    (folder / "odd.csv").write_text("sex,age,more\nX,1000,1\n,,2\nF,old,3\n", encoding="utf-8")
    assert main(["predict", "model/model.json", "odd.csv", "--out", "said.csv"]) == 0
    assert len((folder / "said.csv").read_text(encoding="utf-8").splitlines()) == 4
    assert "nothing: the model was charged before" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["learn", "data.csv", "--policy", "policy.yaml", "--target", "sex", "--out", "m"], "predicts income, not sex"),
        (["predict", "nowhere", "data.csv", "--out", "said.csv"], "cannot be read as a model"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_does_not_fit_is_refused(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert message in capsys.readouterr().err


def test_a_table_without_the_columns_of_the_model_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learn", "data.csv", "--policy", "policy.yaml", "--out", "model"]) == 0
    (folder / "other.csv").write_text("age\n3\n", encoding="utf-8")
    assert main(["predict", "model", "other.csv", "--out", "said.csv"]) != 0
    assert "sex" in capsys.readouterr().err
    (folder / "said.csv").write_text("", encoding="utf-8")
    assert main(["predict", "model", "data.csv", "--out", "said.csv"]) == 2
