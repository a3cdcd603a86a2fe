"""Tests notice when a line that carries a guarantee is broken: the table fits the source, and samples of it are run.

`scripts/sabotage` runs all of it.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.sabotage.command import changed_files, fastest, witness
from tests.sabotage.sabotage import Misfit, Sabotage, applied_in
from tests.sabotage.scratch import ROOT, OutOfTime, Scratch, Unusable, Verdict, scratch
from tests.sabotage.table import SABOTAGES

FEW = 8
SECONDS = 60.0
"""Seconds on the clock after which tests of sabotages are ended without a verdict: on a busy machine fewer are run."""
HERE = Path(__file__).parent
TOY_TESTS = """from incrowd.toy import noisy

def test_zero():
    assert noisy(1, 0) == 1

def test_noise_is_added():
    assert noisy(1, 2) == 3

def test_always_fails():
    assert False
"""
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


def test_a_sabotage_is_noticed_survives_or_is_left_when_the_time_is_over(tmp_path: Path) -> None:
    (tmp_path / "src" / "incrowd").mkdir(parents=True)
    (tmp_path / "src" / "incrowd" / "__init__.py").write_text("")
    (tmp_path / "src" / "incrowd" / "toy.py").write_text("def noisy(count, noise):\n    return count + noise\n")
    (tmp_path / "tests" / "sabotage").mkdir(parents=True)
    (tmp_path / "tests" / "sabotage" / "first_failure.py").write_bytes((HERE / "first_failure.py").read_bytes())
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "tests" / "conftest.py").write_text(
        "from hypothesis import settings\nsettings.register_profile('quick', settings())\n"
    )
    (tmp_path / "tests" / "test_toy.py").write_text(TOY_TESTS)
    copy = Scratch(tmp_path)
    noticing = "tests/test_toy.py::test_noise_is_added"
    assert copy.verdict(replace(TOY, tests=("tests/test_toy.py",))).noticed_by == noticing
    assert copy.verdict(replace(TOY, tests=("tests/test_toy.py",)), "tests/test_toy.py::gone").noticed_by == noticing
    assert copy.verdict(replace(TOY, tests=("tests/test_toy.py", "-k", "zero"))).noticed_by is None
    with pytest.raises(Unusable, match="without a sabotage"):
        copy.verdict(replace(TOY, tests=("tests/test_toy.py", "-k", "always")))
    with pytest.raises(OutOfTime):
        Scratch(tmp_path, deadline=0.0).verdict(TOY)


def test_the_fastest_sabotages_and_those_of_changed_files_are_noticed() -> None:
    files, few = changed_files(), fastest(SABOTAGES)[:FEW]
    changed = [item for item in fastest(SABOTAGES) if f"src/incrowd/{item.file}" in files and item not in few]
    verdicts: list[Verdict] = []
    with scratch(SECONDS) as copy, suppress(OutOfTime):
        verdicts.extend(copy.verdict(item, witness(item)) for item in (*few, *changed))
    assert [verdict.sentence for verdict in verdicts if verdict.noticed_by is None] == []
