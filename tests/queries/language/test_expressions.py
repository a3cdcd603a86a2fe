"""Rewriting makes expressions total and changes nothing else: on plain rows they mean what the engine says."""

from __future__ import annotations

import math
from datetime import date
from fractions import Fraction
from typing import Any

import pytest

from incrowd.core.domain import Type
from incrowd.queries.language.domain import ExpressionDomain, among, hull, listed, whole
from incrowd.queries.language.trees import fixed
from incrowd.queries.language.understanding import understand
from incrowd.queries.query import AggregateKind
from tests.queries.language.hospital import CATALOG, opened
from tests.queries.language.test_rows import HOSPITAL as WORST
from tests.queries.language.test_rows import check

PLAIN: list[tuple[Any, ...]] = [
    (30, 10.25, "heart", "2024-01-01", True, " Ab ", 1),
    (7, 999.5, "lung", "2024-12-31", False, "x-ray", 12),
    (0, 0.5, "heart", "2025-05-04", True, "", -3),
    (99, 1000.0, "lung", "2024-02-29", False, "42.5", 0),
    (18, 0.0, None, None, None, None, None),
]
ROWS = opened({"rows": PLAIN})

SAME = (
    "age + 1", "age - cost",
    "age * 3 - 2", "cost / 4", "cost / (age + 1)", "age % 7", "-age", "ABS(age - 50)", "ROUND(cost)",
    "ROUND(cost, 1)",
    "FLOOR(cost / 100)", "CEIL(cost)", "SQRT(cost)", "LN(cost + 1)", "EXP(age / 10)", "SIGN(age - 30)",
    "POWER(age, 2)", "LEAST(age, 20)", "GREATEST(age, 20, 50)", "COALESCE(ward, 'none')", "NULLIF(ward, 'lung')",
    "CASE WHEN age < 18 THEN 'child' WHEN smoker THEN 'smoker' END", "CASE ward WHEN 'lung' THEN 1 ELSE 0 END",
    "IF(smoker, age, 0)",
    "UPPER(note)", "LOWER(note)", "TRIM(note)", "LTRIM(note)", "RTRIM(note)", "LENGTH(note)",
    "SUBSTRING(note, 2, 2)", "LEFT(note, 2)", "RIGHT(note, 3)", "note || '!'", "CONCAT(ward, '-', note)",
    "REPLACE(note, 'x', 'yy')",
    "STARTS_WITH(note, 'x')",
    "CONTAINS(note, 'a')", "note LIKE '%b%'", "note NOT LIKE '4_._'",
    "YEAR(day)", "MONTH(day)", "DAY(day)", "QUARTER(day)", "DAYOFWEEK(day)", "EXTRACT(month FROM day)",
    "DATE_PART('year', day)", "CAST(DATE_TRUNC('month', day) AS DATE)", "CAST(DATE_TRUNC('week', day) AS DATE)",
    "DATE_DIFF('day', DATE '2024-01-01', day)", "day - DATE '2024-06-01'", "day + 40", "day - 3",
    "CAST(day + INTERVAL 2 WEEK AS DATE)", "CAST(age AS TEXT)", "CAST(day AS TEXT)", "CAST(smoker AS INTEGER)",
    "CAST(age AS DOUBLE)", "TRY_CAST(note AS DOUBLE)", "age BETWEEN 5 AND 30", "ward IN ('heart', 'x')", "ward IS NULL",
    "smoker IS TRUE", "NOT smoker", "smoker OR age > 20", "age = 7 AND cost > 5", "ward IS NOT DISTINCT FROM 'lung'",
    "day > '2024-06-01'", "code > 0.5", "age <> 7",
)  # fmt: skip


@pytest.mark.parametrize("expression", SAME)
def test_an_expression_means_what_the_engine_says(expression: str) -> None:
    question = understand(f"SELECT {expression} AS g, COUNT(*) FROM rows GROUP BY g", CATALOG)
    mine = [row[0] for row in ROWS.execute(question.rows.sql("duckdb")).fetchall()]
    theirs = [row[0] for row in ROWS.execute(f"SELECT {expression} FROM rows").fetchall()]
    assert mine == pytest.approx(theirs) if isinstance(theirs[0], float) and None not in theirs else mine == theirs


DEFINED = {
    "1 / (age - 7)": [1 / 23, None, -1 / 7, 1 / 92, 1 / 11],
    "age % (age - 30)": [None, 7, 0, 30, 6],
    "cost / 0": [None] * 5,
    "SQRT(cost - 1000)": [None, None, None, 0.0, None],
    "LN(cost)": [math.log(10.25), math.log(999.5), math.log(0.5), math.log(1000), None],
    "CLAMP(code, 0, 5)": [1, 5, 0, 0, None],
    "CLAMP(age, 10, 20.5)": [20.5, 10.0, 10.0, 20.5, 18.0],
    "CAST(cost AS INTEGER)": [10, 1000, 1, 1000, 0],
    "CAST(note AS INTEGER)": [None, None, None, 43, None],
    "age // 4": [7, 1, 0, 24, 4],
}


@pytest.mark.parametrize("expression", DEFINED)
def test_what_the_engine_leaves_open_is_defined(expression: str) -> None:
    question = understand(f"SELECT {expression} AS g, COUNT(*) FROM rows GROUP BY g", CATALOG)
    assert [row[0] for row in ROWS.execute(question.rows.sql("duckdb")).fetchall()] == pytest.approx(
        DEFINED[expression]
    )


GROUPS = {
    "ward": ("heart", "lung", "other", None),
    "smoker": (False, True, None),
    "FLOOR(age / 25) * 25": (0, 25, 50, 75, None),
    "UPPER(LEFT(ward, 1))": ("H", "L", "O", None),
    "YEAR(day)": (2024, 2025, None),
    "DATE_TRUNC('year', day)": (date(2024, 1, 1), date(2025, 1, 1), None),
    "CASE WHEN age < 18 THEN 'child' ELSE 'adult' END": ("adult", "child"),
    "COALESCE(smoker, FALSE)": (False, True),
    "LENGTH(ward)": (4, 5, None),
    "SIGN(age)": (0, 1, None),
    "ROUND(cost, -3)": (0, 1000, None),
    "note": None,
    "cost": None,
    "code": None,
}


@pytest.mark.parametrize("expression", GROUPS)
def test_groups_are_listed_from_the_declarations(expression: str) -> None:
    question = understand(f"SELECT {expression} AS g, COUNT(*) FROM rows GROUP BY g", CATALOG)
    assert question.keys[0].values == GROUPS[expression]


BOUNDS = {
    "age": (0, 99),
    "age - 100": (-100, -1),
    "age * -2": (-198, 0),
    "cost / 8": (0, 125),
    "cost / (age + 1)": (0, 1000),
    "age / (age - 50)": (-99, 99),
    "ABS(age - 90)": (0, 90),
    "age % 10": (0, 9),
    "CLAMP(code, -3, 4)": (-3, 4),
    "GREATEST(age, 18)": (18, 99),
    "IF(smoker, cost, -1)": (-1, 1000),
    "LENGTH(note)": (0, 1000),
    "day - DATE '2024-01-01'": (0, 730),
    "POWER(age - 50, 2)": (0, 2500),
}


@pytest.mark.parametrize("expression", BOUNDS)
def test_bounds_follow_from_the_declarations(expression: str) -> None:
    value = understand(f"SELECT SUM({expression}) FROM rows", CATALOG).aggregates[0].value
    assert value is not None
    assert (float(value.low or 0), float(value.high or 0)) == pytest.approx(BOUNDS[expression], rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    "expression",
    [
        "SQRT(-4)", "LN(0)", "LN(age - 200)", "1 / 0", "5 % 0", "age // 0", "cost / 1e-300", "EXP(-100000)",
        "NULLIF(1, 1)",        "YEAR(DATE '0001-01-01' - 400)", "DATE '9999-12-31' + 1 - day", "MONTH(day + 4000000)",
        "CEIL(999999999999999.9)",
    ],
)  # fmt: skip
def test_what_never_has_a_value_is_missing_and_fails_nowhere(expression: str) -> None:
    check(understand(f"SELECT SUM({expression}) FROM rows", CATALOG))
    check(understand(f"SELECT {expression} AS g, COUNT(*) FROM rows GROUP BY g", CATALOG))


def test_statistics_of_one_expression_are_about_one_column() -> None:
    question = understand("SELECT SUM(age), AVG(age), COUNT(age), SUM(age) AS again, COUNT(*) FROM rows", CATALOG)
    assert {each.value.name for each in question.aggregates if each.value is not None} == {"v1"}
    assert [each.kind for each in question.aggregates] == [
        AggregateKind.SUM,
        AggregateKind.MEAN,
        AggregateKind.COUNT,
        AggregateKind.ROWS,
    ]
    assert [output.aggregate for output in question.outputs] == ["a1", "a2", "a3", "a1", "a4"]


def test_a_count_of_what_is_never_missing_counts_rows() -> None:
    question = understand("SELECT COUNT(score), COUNT(grade), COUNT(rate) FROM tests", CATALOG)
    assert [each.kind for each in question.aggregates] == [AggregateKind.ROWS, AggregateKind.COUNT, AggregateKind.COUNT]


def test_values_outside_a_domain_follow_the_rules_of_their_column() -> None:
    found = understand("SELECT score, grade, kind, COUNT(*), AVG(rate) FROM tests GROUP BY ALL", CATALOG)
    rows = WORST.execute(found.rows.sql("duckdb")).fetchall()
    assert rows
    assert {row[0] for row in rows} <= {1, 2, 3, 4, 5}  # outside and missing: left out
    assert {row[1] for row in rows} <= {1, 2, 3, None}  # missing: 2; outside: missing
    assert {row[2] for row in rows} <= {"x", "y", None}  # outside: left out
    assert all(row[3] is None or -1 <= row[3] <= 1 for row in rows)  # outside: missing


def test_extents_join_and_map() -> None:
    assert hull([whole(1, 2), ExpressionDomain(Type.DECIMAL, Fraction(1, 2), Fraction(3))], optional=True).ends == (
        Fraction(1, 2),
        Fraction(3),
    )
    assert hull([whole(1, None), whole(0, 5)], optional=False).high is None
    assert among(Type.DATE, [date(1970, 1, 3), date(1970, 1, 1)], optional=False).ends == (Fraction(0), Fraction(2))
    halves = listed(whole(0, 9), (fixed(4, Type.INTEGER), fixed(3, Type.INTEGER)), lambda x, y: x // y or None)
    assert (halves.values, halves.optional) == ((1,), False)
    assert listed(whole(0, 9), (fixed(4, Type.INTEGER),), lambda _: None).optional
