"""Caps keep rows and groups of each person by a hash of that person's own rows: no value is preferred by all."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from incrowd.core.domain import Categories, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.unit import Kind, Unit
from incrowd.errors import InvalidParameter
from incrowd.queries.language.understanding import understand
from incrowd.queries.query import Catalog, Query, Relation
from tests.queries.language.hospital import CATALOG, opened

PEOPLE = 3000
COUNTRIES = ("DE", "FR", "IT", "PL")
NEAR = 250
"""Far beyond what a fair coin strays in 3,000 throws: its deviation is 27."""


def visit(patient: int, note: str, age: int = 30) -> tuple[Any, ...]:
    return (patient, age, 1.0, "heart", "2024-05-05", True, note, 1)


def kept(question: Query, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the rows that take part; the first column is the key or value that is asked about."""
    base = opened({})
    columns = [column.name for column in CATALOG["visits"].schema.columns]
    base.register("given", pa.table(dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))))
    base.execute("INSERT INTO visits SELECT * FROM given")
    return base.execute(question.rows.sql("duckdb")).fetchall()


def test_of_four_equal_groups_each_keeps_its_share() -> None:
    """Version 1 kept the same two groups of everybody: the others showed nobody at all."""
    question = understand("SELECT note, COUNT(*) FROM visits GROUP BY note", _wide(4), max_groups=2)
    found = Counter(row[0] for row in kept(question, [visit(p, c) for p in range(PEOPLE) for c in COUNTRIES]))
    assert found.total() == 2 * PEOPLE
    for country in COUNTRIES:
        assert abs(found[country] - PEOPLE / 2) < NEAR


def test_of_four_equal_rows_each_has_the_same_chance() -> None:
    question = understand("SELECT note, COUNT(*) FROM visits GROUP BY note", _wide(1))
    found = Counter(row[0] for row in kept(question, [visit(p, c) for p in range(PEOPLE) for c in COUNTRIES]))
    assert found.total() == PEOPLE
    for country in COUNTRIES:
        assert abs(found[country] - PEOPLE / 4) < NEAR


def test_a_row_that_occurs_three_times_is_kept_three_times_as_often() -> None:
    question = understand("SELECT note, COUNT(*) FROM visits GROUP BY note", _wide(1))
    rows = [visit(p, c) for p in range(PEOPLE) for c in ("DE", "FR", "FR", "FR")]
    found = Counter(row[0] for row in kept(question, rows))
    assert abs(found["FR"] - PEOPLE * 3 / 4) < NEAR


@pytest.mark.parametrize("max_groups", [None, 1, 2])
def test_what_is_kept_of_a_person_depends_on_nobody_else_and_on_no_order(max_groups: int | None) -> None:
    question = understand("SELECT note, SUM(age) FROM visits GROUP BY note", _wide(3), max_groups)
    chance = random.Random(7)
    rows = [visit(p, chance.choice(COUNTRIES), chance.randrange(3)) for p in range(40) for _ in range(6)]
    whole = Counter(kept(question, rows))
    assert whole == Counter(kept(question, chance.sample(rows, len(rows))))
    alone = [Counter(kept(question, [row for row in rows if row[0] == p])) for p in range(40)]
    assert whole == sum(alone, Counter())


def test_whoever_has_few_rows_keeps_them_all() -> None:
    question = understand("SELECT note, COUNT(*) FROM visits GROUP BY note", _wide(4), max_groups=2)
    rows = [visit(p, COUNTRIES[p % 4]) for p in range(40)] * 2
    assert len(kept(question, rows)) == len(rows)


def test_a_question_knows_its_caps() -> None:
    both = understand("SELECT COUNT(*) FROM visits JOIN tests ON visits.patient = tests.patient", CATALOG).caps
    assert both.rows == {"tests": 3, "visits": 2}
    assert "capped tables: at most 3 rows of each person in tests, and at most 2 rows" in both.sentence
    assert understand("SELECT COUNT(*) FROM rows", CATALOG).caps.sentence == ""
    limited = understand("SELECT ward, COUNT(*) FROM visits GROUP BY ward", CATALOG, max_groups=1).caps
    assert limited.groups == 1
    assert limited.sentence.endswith("and at most 1 group of each person.")
    open_to_all = understand("SELECT ward, COUNT(*) FROM visits GROUP BY ward", CATALOG, max_groups=2).caps
    assert open_to_all.groups is None, "two rows lie in two groups at most: nothing is limited"


def test_people_told_apart_by_another_type_are_not_put_together() -> None:
    def named(name: str, kind: Type) -> Relation:
        patient = Column("patient", Role.IDENTIFIER, kind)
        ward = Column("ward", hierarchy=Flat(Categories(("heart", "lung"))))
        return Relation(name, Schema((patient, ward), Unit(Kind.PERSON, column="patient")), dataset=name)

    catalog = Catalog((named("one", Type.INTEGER), named("two", Type.TEXT)))
    with pytest.raises(InvalidParameter, match="different types"):
        understand("SELECT COUNT(*) FROM (SELECT ward FROM one UNION ALL SELECT ward FROM two)", catalog)


def _wide(max_rows: int) -> Catalog:
    visits = CATALOG["visits"]
    unit = Unit(Kind.PERSON, column="patient", max_rows=max_rows)
    return Catalog((Relation("visits", Schema(visits.schema.columns, unit), dataset="visits"),))
