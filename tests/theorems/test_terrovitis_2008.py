"""The running example of Terrovitis, Mamoulis & Kalnis 2008: four transactions over four items in two groups."""

from __future__ import annotations

import pyarrow as pa

from incrowd.core.hierarchy.tree import tree
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.table import Table
from incrowd.engines.local.engine import LOCAL
from incrowd.methods.anonymity.itemsets.method import Itemsets
from tests.coins import ScriptedCoins

TRANSACTIONS = ["a1;b1;b2", "a2;b1", "a2;b1;b2", "a1;a2;b2"]
ITEMS = Column("items", Role.QUASI, hierarchy=tree({"A": ["a1", "a2"], "B": ["b1", "b2"]}), separator=";")


def released(k: int, m: int) -> list[str]:
    table = Table(Schema((ITEMS,)), LOCAL.open(pa.table({"items": TRANSACTIONS})), LOCAL)
    found: list[str] = Itemsets(k, m).release(table, ScriptedCoins([])).to_arrow().column("items").to_pylist()
    return found


def test_two_items_known_and_two_rows_needed_join_the_first_group_only() -> None:
    assert released(2, 2) == ["A;b1", "A;b1;b2", "A;b1;b2", "A;b2"]


def test_one_item_known_needs_no_generalization_at_all() -> None:
    assert released(2, 1) == sorted(TRANSACTIONS)


def test_three_items_known_ask_for_no_more_here() -> None:
    assert released(2, 3) == released(2, 2)


def test_four_rows_are_had_only_by_joining_both_groups() -> None:
    assert released(4, 2) == ["A;B"] * 4
