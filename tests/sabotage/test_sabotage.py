"""Tests notice when a line that carries a guarantee is broken: the table fits the source, and samples of it are run.

`scripts/sabotage` runs all of it.
"""

from __future__ import annotations

import time
from collections import Counter

import pytest

from tests.sabotage.command import changed_files, fastest
from tests.sabotage.sabotage import Misfit, Sabotage, applied_in
from tests.sabotage.scratch import ROOT, scratch
from tests.sabotage.table import SABOTAGES

FEW = 8
LIMIT = 100
"""Seconds after which no further sabotage is begun: on a busy machine fewer are run."""
TOY = Sabotage("toy", "toy.py", "return count + noise", "return count", ())


@pytest.mark.parametrize("sabotage", SABOTAGES, ids=lambda item: item.name)
def test_every_sabotage_fits_the_source_once_and_compiles(sabotage: Sabotage) -> None:
    assert applied_in(sabotage, ROOT)


@pytest.mark.parametrize("sabotage", SABOTAGES, ids=lambda item: item.name)
def test_every_file_of_tests_of_a_sabotage_exists(sabotage: Sabotage) -> None:
    paths = [word for word in sabotage.tests if word.startswith("tests/")]
    assert paths
    assert all((ROOT / path).exists() for path in paths)


def test_the_table_is_large_and_names_no_sabotage_twice() -> None:
    names = Counter(item.name for item in SABOTAGES)
    assert len(names) == len(SABOTAGES) >= 80


@pytest.mark.parametrize("source", ["def f():\n    return 0\n", "return count + noise\n" * 2])
def test_a_line_that_is_gone_or_not_unique_is_a_misfit(source: str) -> None:
    with pytest.raises(Misfit, match="Change the table"):
        TOY.applied(source)


def test_a_line_is_sought_within_the_definition_that_is_named() -> None:
    source = "def f():\n    return count + noise\n\n\nclass G:\n    def h():\n        return count + noise\n"
    inside = Sabotage(TOY.area, TOY.file, TOY.line, TOY.instead, (), within="G.h")
    assert inside.applied(source) == source[: source.index("class")] + "class G:\n    def h():\n        return count\n"


def test_the_fastest_sabotages_and_those_of_changed_files_are_noticed() -> None:
    files, start = changed_files(), time.monotonic()
    few = fastest(SABOTAGES)[:FEW]
    changed = [item for item in fastest(SABOTAGES) if f"src/incrowd/{item.file}" in files and item not in few]
    with scratch() as copy:
        verdicts = [copy.verdict(item) for item in (*few, *changed) if time.monotonic() - start < LIMIT]
    assert verdicts
    assert [verdict.sentence for verdict in verdicts if verdict.noticed_by is None] == []
