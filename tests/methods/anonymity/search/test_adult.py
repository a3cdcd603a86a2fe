"""The optimum on UCI Adult beside that of ARX 3.9.2; the data is not part of the project.

Runs where the environment variable INCROWD_ADULT names a folder with adult.csv and hierarchies/.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from incrowd.core.cells import Cells
from incrowd.core.counts import Counts
from incrowd.core.hierarchy.tree import parse_arx
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.table import SourceOptions
from incrowd.criteria.average_risk import AverageRisk
from incrowd.criteria.closeness import EqualCloseness, HierarchicalCloseness
from incrowd.criteria.criterion import Criterion
from incrowd.criteria.diversity import DistinctDiversity
from incrowd.criteria.k_anonymity import KAnonymity
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.readers.sources import open_source
from incrowd.methods.anonymity.search.lattice import Lattice, Task
from incrowd.methods.anonymity.search.optimal import optimal

FOLDER = os.environ.get("INCROWD_ADULT")
QUASI = ("age", "education", "marital-status", "native-country", "race", "salary-class", "sex", "workclass")
DIVERSE = KAnonymity(5) & DistinctDiversity("occupation", 3)
EQUAL = KAnonymity(5) & EqualCloseness("occupation", "0.2")
HIERARCHICAL = KAnonymity(5) & HierarchicalCloseness("occupation", "0.2")
ROWS = (
    (KAnonymity(5), "0", (4, 3, 2, 2, 1, 0, 0, 0), 0, 0.625),
    (KAnonymity(5), "0.05", (3, 2, 0, 1, 0, 0, 0, 1), 1346, 0.1783389956),
    (KAnonymity(5), "1", (3, 1, 0, 1, 0, 0, 0, 0), 2848, 0.16901981715),
    (DIVERSE, "0", (4, 3, 2, 2, 1, 0, 0, 0), 0, 0.625),
    (DIVERSE, "0.05", (3, 2, 0, 1, 0, 0, 0, 1), 1400, 0.1798769039),
)

pytestmark = pytest.mark.skipif(FOLDER is None, reason="INCROWD_ADULT names no folder with adult.csv")


@cache
def counted() -> Counts:
    folder = Path(str(FOLDER))
    files = {name: folder / "hierarchies" / f"adult_hierarchy_{name}.csv" for name in (*QUASI, "occupation")}
    trees = {name: parse_arx(file.read_text()).hierarchy() for name, file in files.items()}
    schema = Schema(tuple(Column(name, Role.QUASI, hierarchy=hierarchy) for name, hierarchy in trees.items()))
    return LocalEngine().count(open_source(folder / "adult.csv", SourceOptions(delimiter=";")), Cells.of(schema, {}))


@pytest.mark.parametrize(("criterion", "limit", "levels", "suppressed", "score"), ROWS)
def test_the_optimum_is_that_of_arx(
    criterion: Criterion, limit: str, levels: tuple[int, ...], suppressed: int, score: float
) -> None:
    found = optimal(Lattice.of(counted(), QUASI, criterion.sensitive), Task(criterion, limit=limit))
    assert found.complete
    assert found.best is not None
    assert (found.best.levels, found.best.suppressed) == (levels, suppressed)
    assert found.best.score == pytest.approx(score, abs=1e-9)


@pytest.mark.parametrize(
    ("criterion", "levels", "suppressed", "score", "most"),
    [
        (EQUAL, (2, 3, 0, 0, 0, 1, 1, 2), 8156, 0.6434940714083344, 2100),
        (HIERARCHICAL, (3, 3, 0, 0, 0, 1, 0, 2), 7271, 0.5438723485769438, 2300),
    ],
)
def test_rows_that_no_finer_node_can_release_rule_out_half_of_the_nodes(
    criterion: Criterion, levels: tuple[int, ...], suppressed: int, score: float, most: int
) -> None:
    found = optimal(Lattice.of(counted(), QUASI, criterion.sensitive), Task(criterion, limit=1))
    assert found.complete
    assert found.best is not None
    assert (found.best.levels, found.best.suppressed) == (levels, suppressed)
    assert found.best.score == pytest.approx(score, abs=1e-9)
    assert found.judged <= most


def test_an_average_risk_costs_as_many_rows_as_with_arx() -> None:
    criterion = KAnonymity(2) & AverageRisk("0.02")
    found = optimal(Lattice.of(counted(), QUASI), Task(criterion, limit="0.03"))
    assert found.best is not None
    assert found.best.suppressed == 773
