"""Tables that others measured: the lecture's eleven patients; Adult beside ARX (not part of the project)."""

from __future__ import annotations

import csv
import os
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from incrowd.engines.local.engine import LOCAL
from incrowd.measures.coded import Coded
from incrowd.measures.risk.classes import groups_of, homogeneity
from incrowd.workflows.assess.assess import assess
from incrowd.workflows.assess.released import read_release
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.policy.rows import open_rows
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from tests.policies import with_ledger, written

LECTURE = Path(__file__).parents[3] / "examples" / "lecture" / "medical.csv"
COLUMNS = ("ethnicity", "birth", "gender", "condition")
FOLDER = os.environ.get("INCROWD_ADULT")
ADULT = ("age", "education", "marital-status", "native-country", "race", "salary-class", "sex", "workclass")


Patient = tuple[str, ...]


def patients() -> list[Patient]:
    with LECTURE.open(newline="", encoding="utf-8") as file:
        return [tuple(row[name] for name in COLUMNS) for row in csv.DictReader(file)]


def conditions(rows: list[Patient]) -> dict[Patient, dict[str, Fraction]]:
    """Return the distribution of conditions in each class, by counting."""
    classes, cells = Counter(row[:3] for row in rows), Counter(rows)
    return {
        key: {row[3]: Fraction(n, size) for row, n in cells.items() if row[:3] == key} for key, size in classes.items()
    }


def test_the_lectures_table_gives_two_conditions_away() -> None:
    rows = patients()
    columns = [np.unique(column, return_inverse=True) for column in zip(*rows, strict=True)]
    codes = np.stack([places for _, places in columns]).astype(np.int32)
    table = Coded(COLUMNS, codes, np.ones(11), tuple(len(values) for values, _ in columns), (None,) * 4)
    found, groups, counted = homogeneity(table, (0, 1, 2), 3), groups_of(table, (0, 1, 2), 3), conditions(rows)
    assert found is not None
    assert found.l == 1
    assert found.homogeneous == pytest.approx(4 / 11)
    alike = sorted(key for key, each in counted.items() if len(each) == 1)
    assert alike == [("Black", "1965", "F"), ("White", "1967", "M")]
    assert counted["Black", "1965", "F"] == {"hypertension": Fraction(1)}
    assert sorted(groups.sizes.tolist()) == [2, 2, 2, 2, 3]
    shares = sorted(float(share) for each in counted.values() for share in each.values())
    assert sorted(groups.shares().tolist()) == pytest.approx(shares)


@pytest.mark.skipif(FOLDER is None, reason="INCROWD_ADULT names no folder with adult.csv")
def test_adult_loses_what_arx_says(tmp_path: Path) -> None:
    folder = Path(str(FOLDER))
    files = {name: str(folder / "hierarchies" / f"adult_hierarchy_{name}.csv") for name in ADULT}
    plain: dict[str, Any] = {
        "incrowd": 1,
        "dataset": {"name": "adult"},
        "source": {"path": str(folder / "adult.csv"), "delimiter": ";"},
        "columns": {name: {"role": "quasi", "hierarchy": {"file": file}} for name, file in files.items()},
        "release": {"method": "full-domain", "k": 5, "suppression": "1/20"},
        "budget": {"unbounded": "compared"},
    }
    policy = load_policy(written(with_ledger(plain, tmp_path), tmp_path))
    source = open_rows(None, policy, engine=LOCAL)
    release_to(None, policy, Destination(tmp_path / "out", "parquet"))
    found = assess(read_release(tmp_path / "out"), source, policy)
    assert found.rows - found.released == 1346
    assert found.loss == pytest.approx(0.1783389956, abs=1e-9)
    assert [column.level for column in found.columns] == [3, 2, 0, 1, 0, 0, 0, 1]
