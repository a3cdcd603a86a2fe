"""A folder of ARX hierarchies is attached by one line of the policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.policy import Policy, load_policy
from tests.policies import written

POLICY: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "people"},
    "columns": {
        "id": {"role": "identifier"},
        "Age": {"type": "integer"},
        "town": {},
        "sex": {"hierarchy": {"tree": {"all": ["F", "M"]}}},
    },
    "hierarchies": "arx/",
    "release": {"method": "full-domain", "k": 2},
    "budget": {"unbounded": "a test"},
}


def loaded(tmp_path: Path, **files: str) -> Policy:
    (tmp_path / "arx").mkdir(exist_ok=True)
    for name, text in files.items():
        (tmp_path / "arx" / f"{name}.csv").write_text(text, encoding="utf-8")
    return load_policy(written(POLICY, tmp_path))


FILES = {"age": "1;young;*\n2;young;*\n70;old;*\n", "adult_hierarchy_town": "Paris,France,*\nKyoto,Japan,*\n"}


def test_files_belong_to_the_columns_that_they_are_named_after(tmp_path: Path) -> None:
    policy = loaded(tmp_path, **FILES, sex="F;any\nM;any\n", id="1;*\n", stranger="a;b\n")
    assert policy.schema["Age"].hierarchy.labels(1) == ("young", "old")
    assert policy.schema["town"].hierarchy.labels(1) == ("France", "Japan")
    assert policy.schema["sex"].hierarchy.labels(1) == ("all",)
    assert policy.section.columns["id"].hierarchy is None


def test_a_label_with_commas_does_not_hide_the_delimiter(tmp_path: Path) -> None:
    towns = "Köln, Deutz, rechts, am Rhein;Nordrhein-Westfalen;*\nUlm;Baden-Württemberg;*\n"
    policy = loaded(tmp_path, town=towns)
    assert policy.schema["town"].hierarchy.labels(1) == ("Nordrhein-Westfalen", "Baden-Württemberg")


def test_the_hash_of_a_policy_covers_the_files_of_its_folder(tmp_path: Path) -> None:
    before = loaded(tmp_path, **FILES).hash
    assert loaded(tmp_path, **FILES).hash == before
    assert loaded(tmp_path, age="1;young;*\n2;old;*\n70;old;*\n").hash != before


def test_a_folder_that_is_missing_empty_or_ambiguous_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="no file in arx/ is named after a column"):
        loaded(tmp_path)
    with pytest.raises(InvalidParameter, match="both named after the column 'town'"):
        loaded(tmp_path, a_town="x;y\n", b_town="x;y\n")
    with pytest.raises(InvalidParameter, match="there is no folder"):
        load_policy(written(POLICY | {"hierarchies": "nowhere"}, tmp_path))


def test_bounds_beside_a_file_are_refused_as_everywhere(tmp_path: Path) -> None:
    (tmp_path / "arx").mkdir()
    (tmp_path / "arx" / "Age.csv").write_text(FILES["age"], encoding="utf-8")
    columns = POLICY["columns"] | {"Age": {"type": "integer", "bounds": [0, 99]}}
    with pytest.raises(InvalidParameter, match="lists the values itself"):
        load_policy(written(POLICY | {"columns": columns}, tmp_path))
