"""What pyCANON measures on tables that were released here, beside what `check` and the criteria say of them.

Where its definitions differ from those of the papers, the difference is shown:

- entropy l-diversity is rounded down to an integer;
- recursive (c,l)-diversity counts the values from the rarest on, the paper from the most frequent on;
- δ-disclosure takes the natural logarithm, the paper the binary one, and passes over values that a class does not show;
- enhanced β-likeness cuts the largest gain of all at −ln q of the rarest value; the paper cuts each value's own gain.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import incrowd
from incrowd.core.cells import Cells
from incrowd.criteria.criterion import Criterion
from incrowd.criteria.disclosure import PresentDisclosure
from incrowd.criteria.diversity import RecursiveDiversity
from incrowd.criteria.groups import Groups
from incrowd.criteria.likeness import BasicLikeness, EnhancedLikeness
from incrowd.criteria.partition import Partition
from incrowd.engines.local.engine import LOCAL
from incrowd.engines.readers.sources import open_source
from incrowd.workflows.check.check import CheckedColumns, check
from incrowd.workflows.check.criteria import CheckCriteria
from incrowd.workflows.check.raw_cells import as_is
from incrowd.workflows.policy.policy import load_policy
from tests.criteria.names import CROWDS, DISTINCT, ENTROPY, EQUAL, ORDERED

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("pycanon") is None and os.environ.get("CI") != "true",
    reason="pyCANON is not installed: it is in the extra for tests",
)

QUASI = ["age", "sex", "area"]
METHODS: dict[str, dict[str, Any]] = {
    "full-domain, k": {"method": "full-domain", "k": 4, "suppression": "0.05"},
    "full-domain, k and l": {"method": "full-domain", "k": 3, "l": 3, "suppression": "0.1"},
    "full-domain, t": {"method": "full-domain", "k": 2, "t": "0.35"},
    "mondrian, k": {"method": "mondrian", "k": 5},
    "mondrian, l": {"method": "mondrian", "k": 3, "l": 2},
    "mondrian, entropy": {"method": "mondrian", "k": 3, "entropy_l": "2.2"},
    "mondrian, t": {"method": "mondrian", "k": 4, "t": "0.3"},
}
each_method = pytest.mark.parametrize("name", METHODS)


def policy_of(name: str, folder: Path) -> Path:
    return folder / f"{name}.yaml"


@cache
def released(name: str, folder: Path) -> pa.Table:
    """Return an invented table of 200 people as a method releases it."""
    chance = np.random.default_rng(6)
    areas, ills = [f"{area}{place}" for area in "NS" for place in range(4)], ["cough", "flu", "gout", "stroke"]
    table = pa.table(
        {
            "age": chance.integers(18, 90, 200),
            "sex": chance.choice(["F", "M"], 200),
            "area": chance.choice(areas, 200, p=[0.3, 0.2, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05]),
            "ill": chance.choice(ills, 200, p=[0.4, 0.3, 0.2, 0.1]),
            "visits": chance.integers(0, 6, 200),
        }
    )
    policy = {
        "incrowd": 1,
        "dataset": {"name": "people"},
        "columns": {
            "age": {"type": "integer", "bounds": [0, 99], "hierarchy": {"intervals": [10, 50]}},
            "sex": {"categories": ["F", "M"]},
            "area": {"hierarchy": {"tree": {"north": areas[:4], "south": areas[4:]}}},
            "ill": {"role": "sensitive", "categories": ills},
            "visits": {"role": "sensitive", "type": "integer", "bounds": [0, 9], "hierarchy": {"intervals": [5]}},
        },
        "release": METHODS[name],
        "budget": {"unbounded": "an invented table"},
    }
    file = policy_of(name, folder)
    file.write_text(json.dumps(policy))
    return incrowd.release(table, file).result.to_arrow()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("peers")


@pytest.fixture(scope="module")
def pycanon() -> ModuleType:
    from pycanon import anonymity

    found: ModuleType = anonymity
    return found


def plain(table: pa.Table) -> Any:
    """Return the table as pyCANON takes it: text and numbers."""
    frame = table.to_pandas()
    return frame.astype(dict.fromkeys((*QUASI, "ill"), str))


def groups(table: pa.Table, sensitive: str) -> Groups:
    rows = open_source(table)
    cells: Cells = as_is(rows, [*QUASI, sensitive], LOCAL)
    return Groups.of(LOCAL.count(rows, cells), QUASI, sensitive)


def holds(criterion: Criterion, found: Groups) -> bool:
    return bool(criterion.met(Partition(found.sizes, {"ill": found})).all())


@each_method
@pytest.mark.parametrize("sensitive", ["ill", "visits"])
def test_k_l_and_t_of_a_release_are_what_pycanon_measures(
    name: str, sensitive: str, folder: Path, pycanon: ModuleType
) -> None:
    table = released(name, folder)
    frame, asked = plain(table), CheckedColumns(tuple(QUASI), (sensitive,))
    policy, wanted = load_policy(policy_of(name, folder)), CheckCriteria(k=1, l=1, entropy_l=1, t=1)
    told = {each.criterion: each.value for each in check(open_source(table), wanted, asked, policy).findings}
    assert told[CROWDS] == pycanon.k_anonymity(frame, QUASI)
    assert told[DISTINCT] == pycanon.l_diversity(frame, QUASI, [sensitive])
    ordered = sensitive == "visits"
    close = told[ORDERED if ordered else EQUAL]
    assert close == pytest.approx(pycanon.t_closeness(frame, QUASI, [sensitive]), abs=1e-12)
    entropy = told[ENTROPY]
    assert entropy is not None
    assert pycanon.entropy_l_diversity(frame, QUASI, [sensitive]) in {int(entropy - 1e-9), int(entropy + 1e-9)}


@each_method
def test_what_a_method_guarantees_pycanon_finds(name: str, folder: Path, pycanon: ModuleType) -> None:
    given, frame = METHODS[name], plain(released(name, folder))
    sensitive = ["ill", "visits"]
    assert pycanon.k_anonymity(frame, QUASI) >= given["k"]
    assert pycanon.l_diversity(frame, QUASI, sensitive) >= given.get("l", 1)
    assert pycanon.entropy_l_diversity(frame, QUASI, sensitive) >= math.floor(float(given.get("entropy_l", 1)))
    assert pycanon.t_closeness(frame, QUASI, sensitive) <= float(given.get("t", 1)) + 1e-12


@each_method
def test_likeness_and_disclosure_begin_where_pycanon_says(name: str, folder: Path, pycanon: ModuleType) -> None:
    table = released(name, folder)
    frame, found = plain(table), groups(table, "ill")
    beta = pycanon.basic_beta_likeness(frame, QUASI, ["ill"])
    assert holds(BasicLikeness("ill", beta + 1e-9), found)
    assert not holds(BasicLikeness("ill", beta - 1e-9), found)
    bits = pycanon.delta_disclosure(frame, QUASI, ["ill"]) / math.log(2)
    assert holds(PresentDisclosure("ill", bits + 1e-9), found)
    assert not holds(PresentDisclosure("ill", bits - 1e-9), found)
    assert not holds(EnhancedLikeness("ill", pycanon.enhanced_beta_likeness(frame, QUASI, ["ill"]) - 1e-9), found)


def invented(*classes: dict[str, int]) -> pa.Table:
    """Return a table of classes that differ in the age alone, each with so many people of each illness."""
    rows = [(str(age), ill) for age, ills in enumerate(classes) for ill, times in ills.items() for _ in range(times)]
    ages, ills = (list(column) for column in zip(*rows, strict=True))
    return pa.table({"age": ages, "sex": ["F"] * len(rows), "area": ["N0"] * len(rows), "ill": ills})


def test_pycanon_counts_recursive_diversity_from_the_rarest_value_on(pycanon: ModuleType) -> None:
    table = invented({"flu": 8, "gout": 1, "cough": 1}, {"flu": 4, "gout": 3, "cough": 3})
    assert pycanon.recursive_c_l_diversity(table.to_pandas(), QUASI, ["ill"]) == (1, 3)
    found = groups(table, "ill")
    assert not holds(RecursiveDiversity("ill", 1, 3), found)
    assert not holds(RecursiveDiversity("ill", 8, 3), found)  # eight have the flu, one the rarest: 8 < c·1 is asked for
    assert holds(RecursiveDiversity("ill", "8.01", 3), found)


def test_pycanon_gives_a_beta_where_none_is_enhanced(pycanon: ModuleType) -> None:
    table = invented({"flu": 10}, {"flu": 4, "gout": 3, "cough": 3})
    assert pycanon.enhanced_beta_likeness(table.to_pandas(), QUASI, ["ill"]) == pytest.approx(1)
    # The flu has a share of 0.7, and in the first class all of it: the gain 1/0.7 − 1 is above −ln 0.7 for every beta.
    assert not holds(EnhancedLikeness("ill", 1000), groups(table, "ill"))
