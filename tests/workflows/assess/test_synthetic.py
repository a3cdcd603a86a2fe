"""Synthetic rows beside their original: errors by column and pair, models trained on them, attacks beside outsiders."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from incrowd.cli.main import main
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter
from incrowd.workflows.assess.assess import assess
from incrowd.workflows.assess.released import read_release
from incrowd.workflows.attack.inputs import ControlGroup, attacked
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import ReleaseTerms, release_to, share_of
from incrowd.workflows.report.render import render_internal
from tests.policies import with_ledger, written

POLICY: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "habits"},
    "columns": {
        "sex": {"role": "quasi", "categories": ["F", "M"]},
        "age": {"role": "quasi", "type": "integer", "bounds": [0, 99], "hierarchy": {"intervals": [20]}},
        "height": {"type": "decimal", "bounds": [1, 2], "hierarchy": {"intervals": ["0.25"]}},
        "smokes": {"role": "sensitive", "categories": ["no", "yes"]},
    },
    "release": {
        "method": "tree",
        "epsilon": 3,
        "delta": "1e-6",
        "levels": {"age": 1, "height": 1},
    },
}
NAMES = tuple(POLICY["columns"])


def habits() -> pa.Table:
    chance = np.random.default_rng(8)
    sex, age = chance.integers(0, 2, 800), chance.integers(0, 100, 800)
    smokes = np.where(chance.random(800) < 0.8, sex, 1 - sex)
    return pa.table(
        {
            "sex": [("F", "M", None)[code if place % 50 else 2] for place, code in enumerate(sex)],
            "age": age.astype(str),
            "height": (1 + chance.integers(0, 100, 800) / 100).round(2).astype(str),
            "smokes": [("no", "yes")[code] for code in smokes],
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of which a quarter of the people was held out, and its data."""
    place = tmp_path_factory.mktemp("habits")
    csv.write_csv(habits(), place / "rows.csv")
    policy = load_policy(written(with_ledger(POLICY, place), place))
    release_to(str(place / "rows.csv"), policy, Destination(place / "out", "csv"), None, ReleaseTerms(share_of("25%")))
    return place


@pytest.fixture(scope="module")
def policy(folder: Path) -> Policy:
    return load_policy(folder / "policy.yaml")


def _classes(row: dict[str, Any]) -> tuple[Any, ...]:
    """Classes of the model, the slow way; an empty cell of a file is a missing value."""
    age = None if row["age"] in (None, "") else int(float(row["age"])) // 20
    height = None if row["height"] in (None, "") else int((float(row["height"]) - 1) // 0.25)
    return row["sex"] or None, age, height, row["smokes"] or None


def test_errors_are_those_of_counting_every_table(folder: Path, policy: Policy) -> None:
    found = assess(read_release(folder / "out"), open_source(habits()), policy).quality
    assert found is not None
    drawn = csv.read_csv(folder / "out" / "data.csv", convert_options=_texts())
    sides = [[_classes(row) for row in table.to_pylist()] for table in (habits(), drawn)]
    for size, distances in ((1, found.columns), (2, found.pairs)):
        for columns, distance in zip(combinations(range(4), size), distances, strict=True):
            before, after = (Counter(tuple(row[c] for c in columns) for row in side) for side in sides)
            away = sum(abs(before[cell] / before.total() - after[cell] / after.total()) for cell in {*before, *after})
            assert distance.columns == tuple(NAMES[column] for column in columns)
            assert distance.variation == pytest.approx(away / 2)
    assert found.worst[0].variation == max(each.variation for each in found.pairs)
    assert found.mean == pytest.approx(sum(each.variation for each in found.pairs) / 6)


def _texts() -> csv.ConvertOptions:
    return csv.ConvertOptions(column_types={name: pa.string() for name in NAMES}, strings_can_be_null=True)


def test_other_methods_have_no_such_errors(policy: Policy, folder: Path) -> None:
    plain = json.loads((folder / "policy.yaml").read_text(encoding="utf-8"))
    safe = {"method": "safe", "levels": {"age": 1, "height": 1}, "k": 2, "rate": "1/2", "delta": "1/2"}
    other = load_policy({**plain, "release": safe})
    assert assess(open_source(habits().slice(0, 0)), open_source(habits()), other).quality is None


def test_the_lab_runs_beside_those_who_were_held_out(folder: Path, policy: Policy) -> None:
    lab = attacked(folder / "out", policy, str(folder / "rows.csv"), ControlGroup(held_out=True))
    assert lab is not None
    found = {each.finding.attack: each.finding for each in lab.runs}
    assert {"membership", "linkage", "inference"} <= set(found)
    assert all(each.control is not None for each in found.values())
    assert attacked(folder / "out", policy, None, ControlGroup()) is None
    with pytest.raises(InvalidParameter, match="one of the two"):
        ControlGroup("others.csv", held_out=True)


def test_all_of_it_stands_in_the_internal_report_and_in_what_assess_says(
    folder: Path, policy: Policy, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = str(folder / "rows.csv")
    page = render_internal(folder / "out", policy, data, folder / "report.html", ControlGroup(held_out=True))
    text = page.read_text(encoding="utf-8")
    for words in (
        "Error of synthetic rows, by column",
        "by pair",
        "sex × smokes",
        "AUC",
        "membership",
        "control group",
    ):
        assert words in text
    monkeypatch.setenv("COLUMNS", "100")
    asked = ["assess", str(folder / "out"), "--policy", str(folder / "policy.yaml"), "--against", data, "--held-out"]
    assert main(asked) == 0
    shown = capsys.readouterr().out
    for words in ("by column", "pairs with the largest error", "AUC", "Attacks, with control group"):
        assert words in shown
    assert main([*asked, "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert len(plain["quality"]["pairs"]) == 6
    assert plain["attacks"]["inference"]


def test_the_public_report_runs_no_attack(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(folder / "out"), "--held-out"]) == 2
    assert "--internal" in capsys.readouterr().err
