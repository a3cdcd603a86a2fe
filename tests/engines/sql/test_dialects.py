"""Trees for other engines: what differs between them is written out, and what cannot be is refused."""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from incrowd.engines.sql import dialects
from incrowd.engines.sql.dialects import in_postgres, in_spark, replace_tables, rewrite
from incrowd.errors import QueryRefused


def query(text: str) -> exp.Query:
    result = parse_one(text, dialect="duckdb")
    assert isinstance(result, exp.Query)
    return result


@pytest.mark.parametrize(
    ("duckdb", "spark"),
    [
        ("SELECT DAYOFWEEK(d)", "SELECT (DAYOFWEEK(d) - 1)"),
        ("SELECT DATE_TRUNC('month', d)", "SELECT TRUNC((d), 'MONTH')"),
        ("SELECT DATE_TRUNC('day', d)", "SELECT (d)"),
        ("SELECT 'it''s \\n'", "SELECT 'it\\'s \\\\n'"),
        (
            "SELECT SUM(x)",
            (
                "SELECT (CAST(SUM(SHIFTRIGHT(x, 20)) AS DECIMAL(38, 0)) * 1048576"
                " + CAST(SUM((x) & 1048575) AS DECIMAL(38, 0)))"
            ),
        ),
        ("SELECT ROUND(x, -2)", "SELECT (ROUND((x) / CAST(100.0 AS DOUBLE)) * CAST(100.0 AS DOUBLE))"),
    ],
)
def test_spark_is_told_what_it_would_do_otherwise(duckdb: str, spark: str) -> None:
    assert in_spark(query(duckdb)).sql("spark") == spark


@pytest.mark.parametrize(
    ("duckdb", "postgres"),
    [
        ("SELECT DAYOFWEEK(d)", "SELECT EXTRACT(DOW FROM d)"),
        ("SELECT SUM(x)", "SELECT SUM(CAST(x AS BIGINT))"),
        ("SELECT ROUND(x)", "SELECT CAST(ROUND(CAST(CAST(x AS TEXT) AS DECIMAL)) AS DOUBLE PRECISION)"),
        ("SELECT d + CAST(CAST(30 AS BIGINT) AS INT)", "SELECT d + CAST(CAST(30 AS BIGINT) AS INT)"),
        (
            "SELECT t.d + CAST(t.n AS INT)",
            (
                "SELECT CASE WHEN (((t.d) - CAST('1970-01-01' AS DATE)) + CAST(t.n AS INT)) BETWEEN -719163 AND 2932897"
                " THEN t.d + CAST(t.n AS INT) END"
            ),
        ),
    ],
)
def test_postgresql_is_told_what_it_would_do_otherwise(duckdb: str, postgres: str) -> None:
    assert in_postgres(query(duckdb)).sql("postgres") == postgres


def test_decimals_are_multiplied_in_postgresql_without_vanishing_and_whole_numbers_as_they_are() -> None:
    typed = "(SELECT CAST(a AS {0}) AS a FROM base) AS t"
    assert "1e-140" in in_postgres(query("SELECT t.a * t.a FROM " + typed.format("DOUBLE"))).sql("postgres")
    assert "t.a * t.a" in in_postgres(query("SELECT t.a * t.a FROM " + typed.format("BIGINT"))).sql("postgres")


def test_numbers_that_vanish_are_flooded_and_others_stay_what_they_are() -> None:
    flood = 1e-140
    for number in (1e-120, 1.0, -3.7e14, 1e-124):
        assert (number + flood) - flood == number
    for number in (5e-324, -1e-300, 1e-160, 3e-150, 1.1e-140):
        left = (number + flood) - flood
        assert left == 0 or abs(left) > 1e-157


@pytest.mark.parametrize("text", ["SELECT TRY_CAST(x AS BIGINT)", "SELECT CAST(CAST(x AS DOUBLE) AS VARCHAR)"])
def test_what_engines_read_or_spell_differently_is_refused(text: str) -> None:
    for translate in (in_spark, in_postgres):
        with pytest.raises(QueryRefused, match="only the local engine"):
            translate(query(text))


def test_a_question_that_would_grow_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialects, "_MOST_NODES", 2000)

    def twice(node: exp.Expr) -> exp.Expr:
        return exp.Add(this=node.this.copy(), expression=node.this)

    with pytest.raises(QueryRefused, match="too long"):
        rewrite(query("SELECT " + "ABS(" * 11 + "x" + ")" * 11), {exp.Abs: twice})


def test_a_table_is_replaced_under_the_name_it_had() -> None:
    result = replace_tables(query("SELECT people.x FROM people"), {"people": exp.to_table("view_1")})
    assert result.sql("spark") == "SELECT people.x FROM view_1 AS `people`"
