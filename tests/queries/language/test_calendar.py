"""Months, weeks, names and dates in writing are what DuckDB says they are, for every day of two years and more."""

from __future__ import annotations

from datetime import date, timedelta

import duckdb
import pytest

from incrowd.queries.language.expressions.dates import later_by_months
from incrowd.queries.language.understanding import understand
from tests.queries.language.hospital import CATALOG

DAYS = [date(2023, 12, 20) + timedelta(days=number) for number in range(800)]
EDGES = [date(1, 1, 1), date(1, 2, 1), date(9999, 11, 30), date(9999, 12, 31), date(1999, 12, 31), date(2000, 2, 29)]
SAME = {
    "WEEK(seen)": "WEEK(seen)",
    "EXTRACT(week FROM seen)": "WEEK(seen)",
    "DAYOFYEAR(seen)": "DAYOFYEAR(seen)",
    "DATE_PART('isodow', seen)": "ISODOW(seen)",
    "ISODOW(seen)": "ISODOW(seen)",
    "DAYNAME(seen)": "DAYNAME(seen)",
    "MONTHNAME(seen)": "MONTHNAME(seen)",
    "STRFTIME(seen, '%Y-%m')": "STRFTIME(seen, '%Y-%m')",
    "STRFTIME(seen, '%d/%m in %Y')": "STRFTIME(seen, '%d/%m in %Y')",
    "seen + INTERVAL 1 MONTH": "seen + INTERVAL 1 MONTH",
    "seen - INTERVAL '14 months'": "seen - INTERVAL 14 MONTH",
    "seen + INTERVAL 3 YEAR": "seen + INTERVAL 3 YEAR",
    "DATE_DIFF('month', DATE '2024-03-31', seen)": "DATE_DIFF('month', DATE '2024-03-31', seen)",
    "DATE_DIFF('week', seen, DATE '2024-03-31')": "DATE_DIFF('week', seen, DATE '2024-03-31')",
    "DATE_DIFF('quarter', DATE '2024-03-31', seen)": "DATE_DIFF('quarter', DATE '2024-03-31', seen)",
    "DATE_DIFF('year', DATE '2024-03-31', seen)": "DATE_DIFF('year', DATE '2024-03-31', seen)",
}


@pytest.fixture(scope="module")
def days() -> duckdb.DuckDBPyConnection:
    """A table of days."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t1 (seen DATE)")
    connection.executemany("INSERT INTO t1 VALUES (?)", [(day,) for day in (*DAYS, *EDGES)])
    return connection


@pytest.mark.parametrize("sql", SAME)
def test_an_expression_of_dates_is_what_duckdb_computes(sql: str, days: duckdb.DuckDBPyConnection) -> None:
    """Beyond the calendar, years 1 to 9999, there is no day."""
    key = understand(f"SELECT {sql} AS k, COUNT(*) FROM tests GROUP BY k", CATALOG).rows.expressions[0].this
    inside = "seen BETWEEN '0004-01-01' AND '9996-12-31'"
    native = f"CASE WHEN {inside} OR NOT contains($${sql}$$, 'INTERVAL') THEN {SAME[sql]} END"
    kind = "DATE" if "INTERVAL" in sql else "VARCHAR"
    wrong = days.execute(
        f"SELECT seen FROM t1 WHERE CAST({key.sql('duckdb')} AS {kind}) IS DISTINCT FROM CAST({native} AS {kind}) "
        f"AND ({inside} OR NOT contains($${sql}$$, 'INTERVAL'))"
    ).fetchall()
    assert wrong == []
    days.execute(f"SELECT {key.sql('duckdb')} FROM t1").fetchall()


@pytest.mark.parametrize("sql", SAME)
def test_every_value_lies_where_the_declarations_say(sql: str, days: duckdb.DuckDBPyConnection) -> None:
    question = understand(f"SELECT {sql.replace('seen', 'day')} AS k, COUNT(*) FROM visits GROUP BY k", CATALOG)
    key, tree = question.keys[0], question.rows.expressions[0].this.sql("duckdb").replace('"day"', "seen")
    assert key.values is not None
    inside = "seen BETWEEN '2024-01-01' AND '2025-12-31'"
    found = {value for (value,) in days.execute(f"SELECT {tree} FROM t1 WHERE {inside}").fetchall()}
    assert found <= set(key.values)


def test_a_month_more_never_comes_before_a_month_more_of_an_earlier_day() -> None:
    moved = [later_by_months(day, months) for months in (1, -1, 12, 25) for day in DAYS]
    assert all(each is not None for each in moved)
    for start in range(0, len(moved), len(DAYS)):
        part = [each for each in moved[start : start + len(DAYS)] if each is not None]
        assert part == sorted(part)
