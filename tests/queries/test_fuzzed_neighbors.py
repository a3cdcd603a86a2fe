"""Questions and neighboring databases at random: one unit moves nothing further than was guaranteed.

This is a short run; `scripts/fuzz` makes long ones.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import cast

import pytest
from sqlglot import exp

from tests.queries.fuzz.pairs import Pair, complaints, pairs, queries_of, several_complaints, several_pairs

PAIRS, RUNS, SEVERAL = 300, 6, 8


@cache
def tried(seed: int) -> tuple[Pair, ...]:
    return tuple(islice(pairs(seed), PAIRS // RUNS))


@pytest.mark.parametrize("seed", range(RUNS))
def test_one_unit_moves_nothing_further_than_was_guaranteed(seed: int) -> None:
    for pair in tried(seed):
        assert complaints(pair) == [], (pair.sql, pair.max_groups)


def test_where_several_answers_meet_one_unit_moves_no_part_further_than_was_guaranteed() -> None:
    shapes = Counter[str]()
    for pair in islice(several_pairs(0), SEVERAL):
        assert several_complaints(pair) == [], pair.parts[0].sql
        shapes.update(shape for shape in ("UNION ALL", "JOIN", "/ (SELECT") if shape in pair.parts[0].sql)
    assert min(shapes.values()) >= 1
    assert len(shapes) == 3


def test_every_kind_of_question_is_among_them() -> None:
    """Joins, unions, people's own aggregates, several datasets, caps on groups, people who are replaced."""
    found: Counter[str] = Counter()
    for pair in (pair for seed in range(RUNS) for pair in tried(seed)):
        question = pair.measured.question
        marks = {"JOIN", "UNION ALL", "GROUP BY patient", "LEFT JOIN", "swapped", "rows"}
        found.update(mark for mark in marks if mark in pair.sql)
        found.update(["datasets"] * (len(question.datasets) > 1) + ["caps"] * (question.caps.groups is not None))
        found.update(["unknown groups"] * (not question.public_keys) + ["changed"] * (pair.here != pair.there))
    assert min(found[mark] for mark in (*marks, "datasets", "caps", "unknown groups")) >= 9, found
    assert found["changed"] > PAIRS / 2


@pytest.mark.parametrize("forgotten", ["rows", "groups"])
def test_the_fuzz_sees_a_cap_that_is_forgotten(forgotten: str) -> None:
    kind = exp.RowNumber if forgotten == "rows" else exp.DenseRank
    every = (pair for seed in range(RUNS) for pair in tried(seed))
    seen = (pair for pair in every if pair.max_groups == 1 or forgotten == "rows")
    assert any(complaints(_without(pair, kind)) for pair in seen)


def _without(pair: Pair, kind: type[exp.Expression]) -> Pair:
    """Return a pair whose question takes all rows, or all groups, of everybody."""

    def change(node: exp.Expression) -> exp.Expression:
        first = isinstance(node, exp.LTE) and "_place" in node.this.sql()
        return exp.true() if first and node.find_ancestor(exp.Select).find(kind) else node  # type: ignore[union-attr]

    rows = cast(exp.Query, pair.measured.question.rows.transform(change))
    measured = replace(pair.measured, question=replace(pair.measured.question, rows=rows))
    return replace(pair, measured=measured, queries=queries_of(measured))
