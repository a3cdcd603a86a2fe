"""Checks of tables with a set of items in each row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

from incrowd.engines.local.engine import LOCAL
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.itemsets.method import WrittenSets
from incrowd.workflows.check.check import CheckedColumns, check
from incrowd.workflows.check.criteria import CheckCriteria
from incrowd.workflows.hierarchies.check import outside
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.tables import release
from tests.methods.anonymity.itemsets.cuts import rarest
from tests.policies import changed, with_ledger
from tests.workflows.release.test_itemsets import NAMES, POLICY, rows

LOADED = changed(POLICY, columns__age=None, release__levels={})


def slowly(table: pa.Table, k_over: list[str], m: int) -> int:
    """Return the support of the rarest combination by definition."""
    groups: dict[object, int] = {}
    plain = []
    for row in table.to_pylist():
        group = groups.setdefault(tuple(row[name] for name in k_over), len(groups))
        items = row["bought"].split(";") if isinstance(row["bought"], str) else row["bought"] or []
        plain.append((group, frozenset(NAMES.index(item) for item in items)))
    return rarest(plain, range(len(NAMES)), m)


@pytest.mark.parametrize("lists", [True, False])
def test_a_table_is_checked_as_it_is(*, lists: bool) -> None:
    table = rows(lists=lists).select(["sex", "bought"])
    verdict = check(LOCAL.open(table), CheckCriteria(), CheckedColumns(), load_policy(LOADED))
    found = {finding.criterion: finding for finding in verdict.findings}
    assert verdict.rows == len(table)
    assert found["columns"].passed
    assert (found["k^m-anonymity"].value, found["k^m-anonymity"].expected) == (slowly(table, ["sex"], 2), 4)
    assert verdict.passed == (slowly(table, ["sex"], 2) >= 4)


def test_a_released_table_passes_and_others_with_a_rare_combination_fail(tmp_path: Path) -> None:
    policy = changed(LOADED, release__k=30)
    made = release(rows(), with_ledger(policy, tmp_path)).result.to_arrow()
    pyarrow.csv.write_csv(made, tmp_path / "made.csv")
    passed = check(LOCAL.open(str(tmp_path / "made.csv")), CheckCriteria(), CheckedColumns(), load_policy(policy))
    assert passed.passed
    assert passed.findings[1].value is not None
    assert passed.findings[1].value >= 30
    assert not check(
        LOCAL.open(rows().drop(["zip", "age"])), CheckCriteria(), CheckedColumns(), load_policy(policy)
    ).passed


def test_recoded_items_outside_the_domain_are_one_item() -> None:
    table = pa.table({"sex": ["F", "F"], "bought": ["soap", "salt"]})
    plain = check(LOCAL.open(table), CheckCriteria(), CheckedColumns(), load_policy(LOADED))
    recoded = check(LOCAL.open(table), CheckCriteria(), CheckedColumns(recoded=True), load_policy(LOADED))
    assert [finding.value for finding in plain.findings] == [0, 1]
    assert [finding.value for finding in recoded.findings] == [2]


def test_summaries_of_parts_come_to_the_same() -> None:
    table = rows().select(["sex", "bought"])
    parts = [WrittenSets(("sex", "bought"), ";") for _ in range(3)]
    for place, batch in enumerate(table.to_batches(max_chunksize=40)):
        parts[place % 3].add(batch)
    parts[0].merge(parts[1])
    parts[0].merge(parts[2])
    sets, classes = parts[0].sets()
    assert len(sets) == len(table) == len(classes)
    assert sorted(sets.lengths.tolist()) == sorted(
        len((each or ";").split(";")) if each else 0 for each in table["bought"].to_pylist()
    )


@pytest.mark.parametrize("lists", [True, False])
def test_items_that_are_not_declared_are_named_one_by_one(*, lists: bool) -> None:
    bought = load_policy(LOADED).schema["bought"]
    sets = [["tea", "Milk"], ["soap"], ["soap", "rice"]]
    array = pa.array(sets) if lists else pa.array([";".join(each) for each in sets])
    found = outside(LOCAL.open(pa.table({"bought": array})), [bought])
    assert [(problem.value, problem.rows) for problem in found] == [("soap", 2), ("Milk", 1)]


def test_without_rows_nothing_is_found() -> None:
    empty = pa.table({"sex": pa.array([], pa.string()), "bought": pa.array([], pa.string())})
    verdict = check(LOCAL.open(empty), CheckCriteria(), CheckedColumns(), load_policy(LOADED))
    assert verdict.findings[1].value is None
    assert verdict.passed


@pytest.mark.parametrize(
    ("wanted", "asked"), [({"k": 3}, {}), ({}, {"quasi": ("sex",)}), ({}, {"sensitive": ("sex",)})]
)
def test_other_criteria_are_refused(wanted: dict[str, Any], asked: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match="its own k and m"):
        check(LOCAL.open(rows()), CheckCriteria(**wanted), CheckedColumns(**asked), load_policy(LOADED))
