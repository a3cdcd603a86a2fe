"""Windows over an answer are what DuckDB computes, with ties, missing numbers and every frame."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from sqlglot import parse_one

from incrowd.core.domain import Type
from incrowd.errors import QueryRefused
from incrowd.queries.language.outputs import WindowRegister
from incrowd.queries.measuring.windows import total, window_values
from incrowd.queries.operations import Function

TYPES = {"k": Type.TEXT, "n": Type.DECIMAL, "m": Type.INTEGER}
ORDERED = ("", "PARTITION BY k ORDER BY n", "ORDER BY n DESC NULLS FIRST, m", "PARTITION BY k")
FRAMES = (
    "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING",
)
RANKS = ("ROW_NUMBER()", "RANK()", "DENSE_RANK()", "PERCENT_RANK()", "CUME_DIST()", "NTILE(3)")
NEIGHBORS = ("LAG(n)", "LEAD(n, 2)", "LAG(n, 1, -5)")
TOTALS = ("COUNT(*)", "COUNT(n)", "SUM(n)", "AVG(n)", "MIN(n)", "MAX(k)", "FIRST_VALUE(n)", "LAST_VALUE(n)")
LAST = "n, m, p"
WINDOWS = (
    *(f"{name} OVER (PARTITION BY k ORDER BY {LAST})" for name in (*RANKS, *NEIGHBORS, *TOTALS)),
    *(f"{name} OVER (ORDER BY n)" for name in ("RANK()", "DENSE_RANK()", "PERCENT_RANK()", "CUME_DIST()", "SUM(m)")),
    *(f"{name} OVER ({order})" for name in TOTALS[:6] for order in ORDERED),
    *(f"{name} OVER (PARTITION BY k ORDER BY {LAST} {frame})" for name in TOTALS for frame in FRAMES),
)


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """Rows with ties and missing numbers."""
    chance = random.Random(7)
    return [
        {"k": chance.choice("ab"), "n": chance.choice((None, 1, 2, 2, 3.5)), "m": chance.randint(0, 3), "p": place}
        for place in range(40)
    ]


def test_windows_are_those_of_duckdb(rows: list[dict[str, Any]]) -> None:
    answer = pa.Table.from_pylist(rows)  # noqa: F841 - DuckDB finds it by its name
    items = ", ".join(f"{sql} AS w{place}" for place, sql in enumerate(WINDOWS))
    true = duckdb.execute(f"SELECT {items} FROM answer ORDER BY p").fetchall()
    for place, sql in enumerate(WINDOWS):
        register = WindowRegister()
        register.plain(parse_one(sql, dialect="duckdb"), {**TYPES, "p": Type.INTEGER})
        (window,) = register.columns.values()
        assert window_values(window, rows) == pytest.approx([row[place] for row in true]), sql


def test_equal_windows_are_one_and_their_types_are_known() -> None:
    register = WindowRegister()
    tree = parse_one("RANK() OVER (ORDER BY n) + RANK() OVER (ORDER BY n) + MAX(k) OVER ()", dialect="duckdb")
    assert register.plain(tree, TYPES).sql() == "w1 + w1 + w2"
    assert register.types == {"w1": Type.INTEGER, "w2": Type.TEXT}


@pytest.mark.parametrize("sql", ["MODE(n) OVER ()", "SUM(n) OVER w", "SUM(n) OVER (ORDER BY n GROUPS 1 PRECEDING)"])
def test_other_windows_are_refused(sql: str) -> None:
    with pytest.raises(QueryRefused):
        WindowRegister().plain(parse_one(sql, dialect="duckdb"), TYPES)


def test_numbers_beyond_all_numbers_are_missing() -> None:
    assert total(Function.SUM, [1e308, 1e308]) is None
    assert total(Function.AVG, [10**400, 10**400]) is None
