"""What each method released, checked against its own policy: it passes, and what was not anonymized does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyarrow import csv

from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from tests.cli.running import Runner
from tests.contract.examples import POLICIES, rows
from tests.policies import written

RELEASED: list[tuple[str, str, tuple[str, ...]]] = [
    ("local-recoding", "rounds", ("",)),
    ("local-recoding", "some left out, of people", ("",)),
    ("cell-suppression", "missing is a value", ("",)),
    ("cell-suppression", "subsets", ("",)),
    ("itemsets", "beside others", ("",)),
    ("itemsets", "alone, some left out", ("",)),
    ("slicing", "k solved", ("data.1.csv", "data.2.csv")),
    ("slicing", "one release, split", ("data.1.csv", "data.2.csv")),
]


def released(policy: dict[str, Any], folder: Path) -> None:
    file = written(policy, folder)
    release_to(rows(), file, Destination(folder / "out", "csv"))
    csv.write_csv(rows(), folder / "rows.csv")


@pytest.mark.parametrize(("method", "name", "files"), RELEASED)
def test_a_release_passes_the_check_of_its_policy_and_its_rows_do_not(
    run: Runner, tmp_path: Path, method: str, name: str, files: tuple[str, ...]
) -> None:
    released(POLICIES[method][name], tmp_path)
    for file in files:
        found = run(f"check out/{file} --policy policy.yaml")
        assert found.code == 0, found.out + found.err
        assert found.out.startswith("passed")
    assert run("check rows.csv --policy policy.yaml").code == 1


def test_of_several_tables_one_is_named(run: Runner, tmp_path: Path) -> None:
    released(POLICIES["slicing"]["k solved"], tmp_path)
    found = run("check out --policy policy.yaml")
    assert found.code == 2
    assert "2 data files: give the file of one table" in found.err


def test_rows_that_match_are_not_counted_here_and_that_is_said(run: Runner, tmp_path: Path) -> None:
    released(POLICIES["cell-suppression"]["missing matches"], tmp_path)
    found = run("check out --policy policy.yaml")
    assert found.code == 2
    assert "use incrowd verify" in found.err
    assert run("check out --policy policy.yaml --k 1").code == 0
