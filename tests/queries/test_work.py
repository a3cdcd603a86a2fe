"""How much work one person can cause is bounded by the question and the declarations, and held by the engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from functools import cache
from typing import Any

import duckdb
import pytest

from incrowd.core.domain import Categories, Numbers, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.unit import Kind, Unit
from incrowd.errors import QueryRefused
from incrowd.queries.language.understanding import understand
from incrowd.queries.measurement import measurement
from incrowd.queries.query import Catalog, QueryTerms, Relation
from incrowd.queries.work import MOST_STEPS, check_work, unit_steps
from tests.queries.slow import ATTACK, KIN, joined

PEOPLE, ROWS = 5, 6
ONE, OPEN = QueryTerms(epsilon=Fraction(1)), QueryTerms(epsilon=Fraction(1), delta=Fraction(1, 10**6))
UNIT = Unit(Kind.PERSON, column="patient", max_rows=ROWS)
COLUMNS = (
    Column("patient", Role.IDENTIFIER, Type.INTEGER),
    Column("age", type=Type.INTEGER, hierarchy=Flat(Numbers(0, 99))),
    Column("cost", type=Type.DECIMAL, hierarchy=Flat(Numbers(0, 1000, Type.DECIMAL))),
    Column("ward", hierarchy=Flat(Categories(("heart", "lung")))),
    Column("note", max_length=210),
)
CATALOG = Catalog((Relation("visits", Schema(COLUMNS, UNIT), dataset="visits"),))


@cache
def trees(sql: str) -> tuple[Any, ...]:
    question = understand(sql, CATALOG)
    return tuple(measurement(question, UNIT, ONE if question.public_keys else OPEN).statistics)


def steps(sql: str) -> int:
    return sum(unit_steps(tree, CATALOG) for tree in trees(sql))


@pytest.fixture(scope="module")
def worst() -> Iterator[duckdb.DuckDBPyConnection]:
    """Everybody has as many rows as may be, all alike, with texts as long as they may be."""
    with closing(duckdb.connect()) as connection:
        connection.execute(
            "CREATE TABLE visits AS SELECT CAST(p AS BIGINT) AS patient, CAST(50 AS BIGINT) AS age, "
            "CAST(5 AS DOUBLE) AS cost, 'heart' AS ward, repeat('a', 210) AS note "
            f"FROM range({PEOPLE}) t(p), range({ROWS})"
        )
        yield connection


def passed(profile: dict[str, Any]) -> Iterator[int]:
    """Yield how many rows passed each operator."""
    yield int(profile.get("intermediate_rows", 0))
    for child in profile.get("children", profile.get("operator", ())):
        yield from passed(child)


def test_the_question_that_showed_a_person_by_its_duration_is_refused() -> None:
    with pytest.raises(QueryRefused, match="the duration of this query could reveal"):
        check_work(steps(ATTACK))


def test_there_are_more_than_thirty_of_its_kind_and_some_are_answered() -> None:
    found = [steps(sql) <= MOST_STEPS for sql in KIN]
    assert len(KIN) > 30
    assert 10 < sum(found) < len(KIN)


WRITTEN = (
    "SELECT COUNT(*) FROM visits WHERE patient IN (SELECT patient FROM visits WHERE age > 5)",
    "SELECT COUNT(*) FROM visits WHERE NOT patient IN (SELECT patient FROM visits GROUP BY 1 HAVING COUNT(*) > 9)",
    "SELECT ward, COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.patient = v.patient) GROUP BY 1",
    "SELECT COUNT(*) FROM visits a, visits b WHERE a.patient = b.patient AND a.age = b.age",
    "SELECT COUNT(DISTINCT note), COUNT(DISTINCT CASE WHEN age > 5 THEN patient END), CORR(age, cost) FROM visits",
    "SELECT SPLIT_PART(note, 'a', 3) AS k, COUNT(*) FROM (SELECT DISTINCT patient, note FROM visits) GROUP BY k",
    "SELECT RANK() OVER (ORDER BY COUNT(*)) FROM visits WHERE REGEXP_MATCHES(note, '^[ab]{9}') GROUP BY ROLLUP (ward)",
)
"""What analysts write: memberships, joins by comma, different values, parts of texts."""


@pytest.mark.parametrize("sql", [*KIN, *WRITTEN])
def test_no_more_rows_pass_an_operator_than_the_bound_allows(sql: str, worst: duckdb.DuckDBPyConnection) -> None:
    if sql in KIN and steps(sql) > MOST_STEPS:  # it is refused, and so not run
        with pytest.raises(QueryRefused):
            check_work(steps(sql))
        return
    for tree in trees(sql):
        found = worst.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {tree.sql('duckdb')}").fetchall()
        most = max(passed(json.loads(found[0][1])))
        assert 0 < most * 20 <= unit_steps(tree, CATALOG) * PEOPLE


def test_more_pairs_longer_texts_and_more_operations_are_more_work() -> None:
    assert steps(joined(2, "v1.age > 1")) < steps(joined(3, "v1.age > 1"))
    for short, long in (
        ("LENGTH(note) > 1", "LENGTH(note || note) > 1"),
        ("UPPER(LEFT(note, 5)) = 'A'", "UPPER(note) = 'A'"),
        ("note = 'a'", "REPLACE(note, 'a', 'bb') = 'a'"),
        ("REPLACE(note, 'a', 'bb') = 'a'", "REPLACE(REPLACE(note, 'a', 'bb'), 'b', 'cc') = 'a'"),
        ("note = 'a'", "UPPER(note) = 'a'"),
        ("note LIKE 'a%'", "note LIKE '%aaaaaaaaaa%a%'"),
        ("SPLIT_PART(LEFT(note, 5), 'a', 2) = 'b'", "SPLIT_PART(note, 'a', 2) = 'b'"),
        ("POSITION('a' IN note) > 1", "POSITION('aaaaaaaaaa' IN note) > 1"),
        ("note LIKE 'a%'", "note ILIKE 'a%'"),
        ("REGEXP_MATCHES(note, '^[ab]')", "REGEXP_MATCHES(note, '^[ab]{20}')"),
        ("age > 5", "patient IN (SELECT patient FROM visits WHERE age > 5)"),
    ):
        one, other = (f"SELECT COUNT(*) FROM visits WHERE {condition}" for condition in (short, long))
        assert steps(one) < steps(other)


def test_the_bound_knows_declared_lengths_and_rows() -> None:
    def of(length: int, rows: int) -> int:
        columns = (*COLUMNS[:-1], Column("note", max_length=length))
        unit = Unit(Kind.PERSON, column="patient", max_rows=rows)
        catalog = Catalog((Relation("visits", Schema(columns, unit), dataset="visits"),))
        asked = understand("SELECT COUNT(*) FROM visits WHERE UPPER(note) = 'A'", catalog)
        return sum(unit_steps(tree, catalog) for tree in measurement(asked, unit, ONE).statistics)

    assert of(10, 1) < of(100, 1) < of(100, 2) < of(100, 20)
