"""Expressions over answers: as DuckDB computes them, total, and within their ranges."""

from __future__ import annotations

import itertools
import math

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import parse_one

from incrowd.errors import InvalidParameter
from incrowd.queries.language.expressions.table import check_expression, evaluate, range_of

EXPRESSIONS = [
    "a + b",
    "a - b * 2",
    "a / b",
    "a % b",
    "-a",
    "ABS(a)",
    "ROUND(a / 3, 1)",
    "ROUND(b)",
    "FLOOR(a / 4.0)",
    "CEIL(a / 4.0)",
    "SQRT(ABS(b))",
    "SIGN(b)",
    "CASE WHEN a > b THEN a WHEN a = b THEN 0 ELSE b END",
    "CASE b WHEN 0 THEN 1 END",
    "COALESCE(m, a)",
    "NULLIF(a, b)",
    "a BETWEEN b AND 5",
    "a IN (1, 2, 3)",
    "m IN (1)",
    "a IN (1, NULL)",
    "m IS NULL",
    "NOT (a > b) AND b < 3",
    "m > 1 OR a > 0",
    "m > 1 AND a > 0",
    "t = 'x' OR t > 'b'",
]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_values_are_those_of_the_database(text: str) -> None:
    pairs = list(itertools.product((-3, 0, 2, 5), (-2.5, 0.0, 5.0)))
    with duckdb.connect() as database:
        database.execute("CREATE TABLE answer (a DOUBLE, b DOUBLE, m DOUBLE, t VARCHAR)")
        database.executemany("INSERT INTO answer VALUES (?, ?, NULL, 'x')", pairs)
        wanted = [row[0] for row in database.sql(f"SELECT {text} FROM answer ORDER BY rowid").fetchall()]
    tree = parse_one(text, dialect="duckdb")
    for (a, b), expected in zip(pairs, wanted, strict=True):
        found = evaluate(tree, {"a": a, "b": b, "m": None, "t": "x"})
        finite = not isinstance(expected, float) or math.isfinite(expected)
        assert found == (pytest.approx(expected) if finite else None)  # here what has no value is NULL


@pytest.mark.parametrize("text", ["1 / 0", "LN(-1)", "SQRT(-1)", "EXP(1e6)", "1e300 * 1e300", "'x' + 1", "LN(0)"])
def test_nothing_fails(text: str) -> None:
    assert evaluate(parse_one(text, dialect="duckdb"), {}) is None


def test_what_is_not_known_is_refused_beforehand() -> None:
    with pytest.raises(InvalidParameter, match="is not computed on answers"):
        check_expression(parse_one("RANDOM() + a"), frozenset({"a"}))
    with pytest.raises(InvalidParameter, match="not part"):
        check_expression(parse_one("x + a"), frozenset({"a"}))
    check_expression(parse_one("CASE WHEN a > 1 THEN ROUND(a, 2) END"), frozenset({"a"}))


RANGED = ["a + b", "a - b", "a * b", "a / b", "-a", "ABS(a)", "ROUND(a / 3, 1)", "2 * (a + 1) / (b * b)"]
RANGED += ["SQRT(ABS(a))", "LEAST(a, b, 1)", "GREATEST(a, b)", "FLOOR(a)", "CEIL(b)"]
RANGED += ["LN(60 + a)", "EXP(a / 10)", "SIGN(a)", "CAST(a AS INTEGER)", "NULLIF(a, b)", "COALESCE(a, b)"]
RANGED += ["CASE WHEN a > b THEN a WHEN a <= -b THEN 7 ELSE b END", "CASE WHEN a >= 3 THEN 1 / a ELSE NULL END"]
RANGED += ["CASE a WHEN 1 THEN 2 ELSE b END", "IF(a < b, a, 2 * b)", "CASE WHEN NOT a < 1 AND b > 0 THEN a ELSE b END"]
ENDS = st.tuples(st.floats(-50, 50), st.floats(-50, 50)).map(lambda pair: (min(pair), max(pair)))


@given(text=st.sampled_from(RANGED), a=ENDS, b=ENDS, at=st.tuples(st.floats(0, 1), st.floats(0, 1)))
@settings(max_examples=300)
def test_values_lie_in_their_ranges(
    text: str, a: tuple[float, float], b: tuple[float, float], at: tuple[float, float]
) -> None:
    tree = parse_one(text, dialect="duckdb")
    found = range_of(tree, {"a": a, "b": b})
    values = [low + (high - low) * part for (low, high), part in zip((a, b), at, strict=True)]
    value = evaluate(tree, {"a": values[0], "b": values[1]})
    if found is not None and value is not None:
        slack = 1e-9 * (1 + max(map(abs, found)))
        assert found[0] - slack <= value <= found[1] + slack


def test_what_has_no_range_says_so() -> None:
    assert range_of(parse_one("a / b"), {"a": (1.0, 2.0), "b": (-1.0, 1.0)}) is None
    assert range_of(parse_one("a + c"), {"a": (1.0, 2.0)}) is None
    assert range_of(parse_one("LN(a)"), {"a": (0.0, 2.0)}) is None
    assert range_of(parse_one("a % 3"), {"a": (0.0, 2.0)}) is None
    assert range_of(parse_one("CASE WHEN a > 1 THEN c ELSE 1 END"), {"a": (1.0, 2.0)}) is None


def test_a_case_that_is_decided_by_ranges_has_one_branch() -> None:
    known = {"a": (1.0, 2.0), "b": (5.0, 6.0)}
    assert range_of(parse_one("CASE WHEN a > b THEN 100 WHEN b >= a THEN a ELSE 50 END"), known) == (1.0, 2.0)
    assert range_of(parse_one("CASE WHEN a > 1.5 THEN 100 ELSE a END"), known) == (1.0, 100.0)
    assert range_of(parse_one("IF(a < 3, b, 9)"), known) == (5.0, 6.0)
