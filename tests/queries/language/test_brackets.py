"""Brackets that mean something stay in the normal form: it asks for what was asked."""

from __future__ import annotations

import itertools

import duckdb
import pytest

from incrowd.queries.language.normal import normal_text

CONDITIONS = (
    "(p AND q) IS DISTINCT FROM r",
    "p IS NOT DISTINCT FROM (q OR r)",
    "((p OR q) IS DISTINCT FROM (q AND r)) IS NULL",
    "(NOT p) IS DISTINCT FROM (NOT (q = r))",
    "(p = q) = (q IS DISTINCT FROM r)",
    "(p IS DISTINCT FROM q) OR r",
    "NOT (p IS DISTINCT FROM q) AND r",
    "(p = (q = r)) <> (NOT (p AND NOT q))",
    "(CASE WHEN p THEN 1 ELSE 2 END - (3 - (2 - 1))) * (-(1 + 1)) < -4",
    "(CAST(p AS TEXT) || CAST(q AS TEXT)) LIKE 't%'",
)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_normal_form_of_a_condition_holds_for_the_same_rows(condition: str) -> None:
    base = duckdb.connect()
    base.execute("CREATE TABLE t (p BOOLEAN, q BOOLEAN, r BOOLEAN)")
    base.executemany("INSERT INTO t VALUES (?, ?, ?)", [*itertools.product((True, False, None), repeat=3)])
    sql = f"SELECT p, q, r, COUNT(*) FROM t WHERE {condition} GROUP BY p, q, r"
    normal = normal_text(sql)
    assert set(base.execute(normal).fetchall()) == set(base.execute(sql).fetchall())
    assert normal_text(normal) == normal


def test_conditions_that_differ_in_their_brackets_alone_are_different_questions() -> None:
    one, other = "(p AND q) IS DISTINCT FROM r", "p AND (q IS DISTINCT FROM r)"
    assert normal_text(f"SELECT COUNT(*) FROM t WHERE {one}") != normal_text(f"SELECT COUNT(*) FROM t WHERE {other}")
