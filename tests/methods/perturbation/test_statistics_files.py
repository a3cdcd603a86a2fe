"""Masks of files of Stata, SPSS and SAS, in and out: labels stand for codes, and the files are verified."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import pyreadstat
import pytest

from incrowd.cli.main import main
from incrowd.engines.readers.sources import open_source
from tests.policies import changed, written

POLICY: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "panel"},
    "columns": {
        "sex": {"categories": ["male", "female"], "label": "Sex of the person"},
        "region": {"role": "strata", "categories": ["north", "south é"]},
        "age": {"type": "integer", "bounds": [0, 99], "missing": "drop", "label": "Age in years"},
        "income": {"role": "sensitive", "type": "decimal", "missing": "drop"},
    },
    "release": [
        {"method": "rank-swap", "columns": ["income"], "within": "strata"},
        {"method": "local-suppression", "threshold": "1/3", "importance": {"sex": 2}},
    ],
    "budget": {"unbounded": "the tests need it"},
}
LABELS = {"sex": {1: "male", 2: "female"}, "region": {1: "north", 2: "south é"}}
WRITERS: dict[str, Any] = {".dta": pyreadstat.write_dta, ".sav": pyreadstat.write_sav}
READERS: dict[str, Any] = {"dta": pyreadstat.read_dta, "sav": pyreadstat.read_sav, "xpt": pyreadstat.read_xport}


def source(folder: Path, ending: str) -> Path:
    """Write ninety rows of codes with labels, as such programs do."""
    frame = import_module("pandas").DataFrame(
        {
            "sex": [1.0 + n % 2 for n in range(90)],
            "region": [1.0 + n // 45 for n in range(90)],
            "age": [20.0 + n % 3 for n in range(84)] + [70.0 + n for n in range(6)],
            "income": [1000.5 + 7 * n for n in range(90)],
        }
    )
    path = folder / f"panel{ending}"
    WRITERS[ending](frame, str(path), variable_value_labels=LABELS)
    return path


def run(tmp_path: Path, *arguments: str, policy: dict[str, Any] = POLICY, ending: str = ".sav") -> int:
    rows, file = source(tmp_path, ending), written(policy, tmp_path)
    return main(["release", str(rows), "--policy", str(file), "--out", str(tmp_path / "out"), *arguments])


@pytest.mark.parametrize(("ending", "form"), [(".sav", "dta"), (".dta", "sav"), (".sav", "xpt")])
def test_labels_go_in_and_come_out(tmp_path: Path, ending: str, form: str) -> None:
    assert run(tmp_path, "--format", form, ending=ending) == 0
    file = tmp_path / "out" / f"data.{form}"
    values, about = READERS[form](str(file), output_format="dict")
    assert about.column_names_to_labels["sex"] == "Sex of the person"
    if form != "xpt":
        assert set(about.variable_value_labels["sex"].values()) == {"male", "female"}
        assert set(about.variable_value_labels["region"].values()) == {"north", "south é"}
        assert {value for value in values["sex"] if value is not None} == {1.0, 2.0}
    rows = [row for batch in open_source(file).batches(["sex", "region", "age"]) for row in batch.to_pylist()]
    before = Counter((1 + n % 2, 1 + n // 45) for n in range(90))
    after = Counter((row["sex"], row["region"]) for row in rows)
    assert after == {(LABELS["sex"][s], LABELS["region"][r]): number for (s, r), number in before.items()}
    assert sum(row["age"] is None for row in rows) == 6
    assert main(["verify", str(tmp_path / "out"), "--policy", str(tmp_path / "policy.yaml")]) == 0


def test_a_changed_file_fails(tmp_path: Path) -> None:
    assert run(tmp_path, "--format", "sav") == 0
    file = tmp_path / "out" / "data.sav"
    file.write_bytes(file.read_bytes()[:-8])
    assert main(["verify", str(tmp_path / "out"), "--policy", str(tmp_path / "policy.yaml")]) == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"release": {"method": "cell-suppression", "k": 2}}, "sav is for masks"),
        ({"columns__income the second": {"role": "plain", "type": "decimal"}}, "cannot have these columns"),
    ],
)
def test_what_such_a_file_cannot_hold_is_refused_before_the_charge(
    tmp_path: Path, changes: dict[str, Any], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "--format", "sav", policy=changed(POLICY, **changes)) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert words in said
    assert "charge" not in said
