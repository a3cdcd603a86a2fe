"""From SQL to statistics through the real engine, on tables full of bad values: one unit moves them as guaranteed."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from incrowd.core.unit import Adjacency, Kind
from incrowd.queries.language.understanding import understand
from incrowd.queries.measurement import Measurement, measurement
from incrowd.queries.measuring.groups import collect_groups, names_in
from tests.queries.asked import terms
from tests.queries.language.hospital import CATALOG, fill, hostile, opened

QUESTIONS = [
    "SELECT COUNT(*), SUM(cost), AVG(age), VARIANCE(cost), COUNT(note) FROM visits",
    "SELECT ward, COUNT(*), COUNT(DISTINCT patient), SUM(age) FROM visits GROUP BY ward",
    "SELECT smoker, COUNT(DISTINCT patient) FROM visits GROUP BY smoker",
    "SELECT ward, SUM(age * cost), COUNT(*) FROM rows WHERE age > 3 GROUP BY ward",
    "SELECT COUNT(*), SUM(floor) FROM visits JOIN wards ON visits.ward = wards.ward",
    "SELECT COUNT(*), SUM(v.age) FROM visits AS v JOIN tests AS t ON v.patient = t.patient",
    "SELECT COUNT(*), SUM(age) FROM (SELECT age FROM visits UNION ALL SELECT age FROM visits) AS both_of_them",
    "SELECT AVG(most), COUNT(*) FROM (SELECT patient, MAX(age) AS most FROM visits GROUP BY patient) AS each_one",
    "SELECT COUNT(*), SUM(cost), SUM(age) FROM swapped",
]


def vectors(measured: Measurement, tables: dict[str, list[tuple[Any, ...]]], base: Any) -> NDArray[np.int64]:
    for name, rows in tables.items():
        fill(base, name, rows)
    table = base.sql(measured.statistics[0].sql("duckdb")).to_arrow_table()
    assert len(set(names_in(measured.question, table))) == table.num_rows
    return collect_groups(measured.question, table, tuple(f"_s{i}" for i in range(len(measured.sums.all)))).vectors


def norm(change: NDArray[np.int64], measured: Measurement) -> float:
    return float((np.abs(change) / np.array(measured.sums.widths)).max(axis=1).sum())


@pytest.mark.parametrize("sql", QUESTIONS)
def test_one_unit_fewer_moves_the_vectors_by_its_rows_at_most(sql: str) -> None:
    question = understand(sql, CATALOG)
    unit = CATALOG[question.tables[0]].unit
    measured = measurement(question, unit, terms(epsilon=1))
    chance, base = random.Random(sql), opened({})
    used = [name for name in question.tables if CATALOG[name].private]
    for _ in range(3):
        tables = {name: chance.sample(hostile(name, (1, 1, 1, 1, 2, 3, None)), 8) for name in used}
        before = vectors(measured, tables, base)
        for fewer in _fewer(tables, unit.kind):
            change = vectors(measured, fewer, base) - before
            # A replaced unit is one removed and one added: each side has half of the rows.
            sides = 2 if unit.adjacency is Adjacency.REPLACE else 1
            assert norm(change, measured) <= measured.sums.rows / sides


def _fewer(tables: dict[str, list[tuple[Any, ...]]], kind: Kind) -> list[dict[str, list[tuple[Any, ...]]]]:
    """Return the tables without one row, or without all rows of one person."""
    if kind is Kind.ROW:
        ((name, rows),) = tables.items()
        return [{name: rows[:i] + rows[i + 1 :]} for i in range(len(rows))]
    people = sorted({row[0] for row in itertools.chain(*tables.values()) if row[0] is not None})
    return [{name: [row for row in rows if row[0] != one] for name, rows in tables.items()} for one in people]
