from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.errors import InvalidParameter, QueryRefused
from incrowd.queries.language.normal import normal_text
from incrowd.queries.language.reading import bind_parameters

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00\ue000"), max_size=40)
VALUES = st.one_of(
    TEXTS,
    st.integers(-(10**15), 10**15),
    st.floats(-1e12, 1e12).map(lambda x: round(x, 6)),
    st.decimals(-1000, 1000, places=3),
    st.booleans(),
    st.dates(),
)
AROUND = ("{}", "-{}", "1 -{}", "1 - {}", "2*-{}", "({})", "- -{}", "-(-{})")


def alone(text: str) -> Any:
    """Return what DuckDB makes of one expression."""
    return duckdb.execute(f"SELECT {text} AS x").fetchall()[0][0]


@given(VALUES)
def test_a_value_is_read_back_as_itself(value: Any) -> None:
    sql = bind_parameters("SELECT COUNT(*) FROM t WHERE x = ?", [value])
    found = alone(sql.partition(" = ")[2])
    assert type(found) is type(value) or isinstance(found, int | float | Decimal)
    assert float(found) == float(value) if isinstance(value, int | float | Decimal) else found == value
    assert normal_text(sql) == normal_text(normal_text(sql))


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("value", [-5, 5, -0.5, 1e-7, Decimal("-1.5"), 0])
def test_no_sign_before_a_mark_makes_a_comment_of_it(around: str, value: Any) -> None:
    """A negative number behind a minus sign once began a comment: another question was asked and charged."""
    sql = bind_parameters(f"SELECT COUNT(*) FROM t WHERE x > {around.format('?')} AND y = 1", [value])
    assert sql.endswith(" AND y = 1")
    wanted = alone(around.format(f"({value})"))
    for text in (sql, normal_text(sql)):
        number = text.partition("x > ")[2].partition(" AND ")[0]
        assert float(alone(number)) == float(wanted)


def test_marks_are_counted_in_the_order_of_the_text() -> None:
    sql = (
        "SELECT QUANTILE(x, ?), COUNT(*) FILTER (WHERE a = ?), CASE WHEN MAX(b) = ? THEN ? ELSE ? END "
        "FROM (SELECT * FROM t WHERE z = ?) WHERE a BETWEEN ? AND ? AND c IN (?, ?) LIMIT ?"
    )
    values = [0.25, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    pieces = sql.split("?")
    expected = "".join(piece + str(value) for piece, value in zip(pieces, [*values, ""], strict=True))
    assert normal_text(bind_parameters(sql, values)) == normal_text(expected)


def test_marks_in_quotes_and_comments_are_left_alone() -> None:
    sql = "SELECT '?', \"a?\" /* ? */ -- ?\n, ? FROM t"
    assert bind_parameters(sql, [1]) == "SELECT '?', \"a?\", 1 FROM t"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM ?",
        "SELECT COUNT(*) AS ? FROM t",
        "SELECT t.? FROM t",
        "SELECT ?(x) FROM t",
        "SELECT COUNT(*) FROM t WHERE d = DATE ?",
        "SELECT COUNT(*) FROM t WHERE x ? 'a'",
        "SELECT COUNT(*) FROM t GROUP BY ?",
        "SELECT COUNT(*) FROM t ORDER BY ?",
        "DROP TABLE ?",
        "SELECT COUNT(*) FROM t WHERE x = '?",
    ],
)
def test_a_mark_stands_for_a_value_alone(sql: str) -> None:
    with pytest.raises((InvalidParameter, QueryRefused)):
        bind_parameters(sql, [1])


@pytest.mark.parametrize("values", [[], [1, 2]])
def test_there_is_one_value_for_each_mark(values: list[int]) -> None:
    with pytest.raises(InvalidParameter, match="one parameter for each question mark"):
        bind_parameters("SELECT COUNT(*) FROM t WHERE x = ?", values)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Decimal("NaN"), "\ue0000"])
def test_what_is_no_value_is_no_parameter(value: Any) -> None:
    with pytest.raises(InvalidParameter):
        bind_parameters("SELECT COUNT(*) FROM t WHERE x = ?", [value])


def test_a_day_is_a_date() -> None:
    sql = bind_parameters("SELECT COUNT(*) FROM t WHERE d < ?", [date(2020, 1, 2)])
    assert sql == "SELECT COUNT(*) FROM t WHERE d < CAST('2020-01-02' AS DATE)"
