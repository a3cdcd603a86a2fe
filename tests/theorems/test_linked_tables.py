"""Theorem Z, linked tables: how far one person moves a table, by enumeration and through the real code."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import combinations_with_replacement, product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from incrowd.methods.synthesis.linked.levels import WHOLE, Level, caps, class_of, weighted_rows, weights_of
from incrowd.methods.synthesis.linked.method import Linked
from incrowd.methods.synthesis.linked.rows import read_levels
from incrowd.methods.synthesis.marginals.evaluation import WeightedRows
from incrowd.workflows.policy.linked_tables import linked_schema
from incrowd.workflows.policy.policy import Policy
from tests.coins import SeededCoins
from tests.linked import Tables, example, hospital, opened, with_person

VECTORS = json.loads((Path(__file__).parent / "vectors_linked.json").read_text(encoding="utf-8"))["l2_squared"]


def contents(most: int, cells: int) -> Iterator[list[int]]:
    """Return how many rows of a person are in each cell, in every way."""
    for rows in range(most + 1):
        for chosen in combinations_with_replacement(range(cells), rows):
            yield [chosen.count(cell) for cell in range(cells)]


@pytest.mark.parametrize(("name", "most", "cells"), [("m=3,B=2", 3, 2), ("m=4,B=3", 4, 3), ("m=6,B=3", 6, 3)])
def test_what_a_person_moves_is_as_computed(name: str, most: int, cells: int) -> None:
    """Raw counts, counts cut at c per cell, who has any, and weights by the class of the number of rows."""

    def weight(counts: list[int]) -> int:
        number = sum(counts)
        return int(weights_of(class_of(np.array([number]), most), most)[0]) if number else 0

    ways = list(contents(most, cells))
    squares = {
        "raw": max(sum(n**2 for n in way) for way in ways),
        **{f"cap{c}": max(sum(min(n, c) ** 2 for n in way) for way in ways) for c in (1, 2, 3)},
        "presence": max(sum(n > 0 for n in way) for way in ways),
        "weight": max(sum((n * weight(way)) ** 2 for n in way) for way in ways),
    }
    assert squares == VECTORS[name]


def test_transitions_and_two_levels_are_as_computed() -> None:
    """The first row of a sequence has a cell of its own; two stays of two items move items by four."""
    squares = []
    for sequence in product("ab", repeat=5):
        pairs = Counter(zip(("first", *sequence), sequence, strict=False))
        squares.append(sum(n**2 for n in pairs.values()))
    assert max(squares) == VECTORS["transitions m=5"]
    assert VECTORS["two levels 2x2"] == (2 * 2) ** 2


@pytest.mark.parametrize("most", [1, 2, 3, 5, 8, 20, 100, 1000])
def test_all_rows_of_a_person_weigh_the_whole_at_most(most: int) -> None:
    numbers = np.arange(1, most + 1)
    classes = class_of(numbers, most)
    assert (numbers <= np.array(caps(most))[classes]).all()
    totals = numbers * weights_of(classes, most)
    assert totals.max() <= WHOLE
    assert totals[0] == WHOLE  # a single row weighs all
    assert (totals >= WHOLE // 2 - most).all()  # and nobody's rows much less than half of it


class PlaceCoins(SeededCoins):
    """Coins of which each is a function of its call and its place: one more row at the end changes no other's."""

    def __init__(self) -> None:
        super().__init__(1)
        self.calls = 0

    def below(self, bound: int, size: int) -> NDArray[np.int64]:
        self.calls += 1
        return np.random.default_rng(self.calls).integers(0, bound, size, dtype=np.int64)


def models(policy: Policy, tables: Tables) -> list[tuple[Level, WeightedRows]]:
    """Return the rows of every table as its model sees them, through the code of a release."""
    method, schema = policy.method, linked_schema(policy)
    assert isinstance(method, Linked)
    rows = read_levels(opened(policy, tables), tuple(method.classes(schema).values()), PlaceCoins())
    return [(work.level, weighted_rows(work.level, rows)) for work in method.works(schema)]


def cells_of(rows: WeightedRows) -> Counter[tuple[int, ...]]:
    """Return the weight in each cell of the finest table of a model."""
    cells: Counter[tuple[int, ...]] = Counter()
    for code, weight in zip(rows.codes.T.tolist(), rows.times.tolist(), strict=True):
        cells[tuple(code)] += weight
    return cells


WARDS, CODES = "AB", ("", "uv")
PEOPLE = [
    (sex, [(day, ward, True, codes) for day, (ward, codes) in enumerate(stays)])
    for sex in "FM"
    for number in range(3)
    for stays in product(product(WARDS, CODES), repeat=number)
    if sex == "F" or number < 2
]
CROWDED = [("M", [(day, "A", True, "uuuuuuuuu") for day in range(7)]), ("F", [(1, "B", False, "")] * 9)]


@pytest.mark.parametrize("name", ["two levels", "two levels by row ID", "people with more are left out"])
def test_adding_any_person_to_any_other_moves_every_table_by_its_weight_at_most(name: str) -> None:
    """Of two people, each of every kind: what the second adds is nonnegative and at most the weight, in all.

    A sum over columns that are left out keeps the sum of absolute values, and that is at least the Euclidean norm: so
    it holds for every table of a model.  Somebody reaches it, for every table.
    """
    policy, reached = example(name), Counter[str]()
    for other in (None, PEOPLE[-1], CROWDED[0]):
        base = hospital(0) if other is None else _renamed(with_person(hospital(0), *other))
        before = [cells_of(rows) for _, rows in models(policy, base)]
        for person in (*PEOPLE, *CROWDED):
            for (level, rows), own in zip(models(policy, with_person(base, *person)), before, strict=True):
                after = cells_of(rows)
                assert not own - after, "somebody else's rows changed"
                added = sum((after - own).values())
                assert added <= level.weight
                reached[level.name] += added == level.weight
    assert all(reached[level.name] for level, _ in models(policy, hospital(0)))


def _renamed(tables: Tables) -> Tables:
    """Return tables in which you are somebody else, with other stays."""
    return {
        name: table.from_pydict(
            {
                column: [str(value).replace("you", "other").replace("x", "y") for value in values.to_pylist()]
                if column in ("patient", "stay")
                else values
                for column, values in zip(table.column_names, table.columns, strict=True)
            },
            schema=table.schema,
        )
        for name, table in tables.items()
    }
