"""Answers of answers: what becomes of released rows, which of their numbers keep intervals, and that no row is read."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from incrowd.noise.system import SystemCoins
from incrowd.queries.answer import Answer
from incrowd.queries.language.understanding import understand
from incrowd.queries.measurement import Measurement, measurement
from incrowd.queries.measuring.columns import CHOSEN, SEVERAL, TOTALED
from incrowd.queries.query import QueryTerms
from tests.queries.language.hospital import CATALOG, opened

VISITS = [(place, place % 100, 1.5, ("heart", "lung")[place % 3 == 0], None, True, "n", 1) for place in range(90)]
TERMS = QueryTerms(epsilon=Fraction(1))


@pytest.fixture(scope="module")
def hospital() -> duckdb.DuckDBPyConnection:
    """A hospital with a few visits."""
    return opened({"visits": VISITS})


def planned(sql: str) -> Measurement:
    return measurement(understand(sql, CATALOG), CATALOG["visits"].unit, TERMS)


def asked(sql: str, hospital: duckdb.DuckDBPyConnection) -> Answer:
    measured = planned(sql)
    found = tuple(hospital.sql(query.sql("duckdb")).to_arrow_table() for query in measured.statistics)
    return measured.answer(found, SystemCoins())


def test_an_outer_query_reads_and_costs_what_its_inner_one_does() -> None:
    inner = "SELECT ward, smoker, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY ward, smoker"
    outer = f"SELECT ward, SUM(n) AS n FROM ({inner}) WHERE a > 5 GROUP BY ward HAVING COUNT(*) > 1 ORDER BY n LIMIT 2"
    plain, further = planned(inner), planned(outer)
    assert further.statistics == plain.statistics
    assert further.loss == plain.loss
    assert further.question.text == outer
    assert [step.to_json() for step in further.steps[1:-1]] == [step.to_json() for step in plain.steps[1:-1]]


def test_a_number_of_one_group_keeps_its_interval_and_one_of_several_has_none(
    hospital: duckdb.DuckDBPyConnection,
) -> None:
    inner = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    answer = asked(f"SELECT UPPER(ward) AS w, n, 2 * n AS twice, n / SUM(n) OVER () AS share FROM ({inner})", hospital)
    name, number, twice, share = answer.columns
    assert (name.low, name.note) == (None, "")
    assert number.low is not None
    assert not number.note
    assert twice.low is not None
    assert np.allclose(np.array(twice.values.to_pylist()), 2 * np.array(number.values.to_pylist()))
    assert (share.low, share.note) == (None, SEVERAL)
    assert sum(share.values.to_pylist()) == pytest.approx(1.0)
    expected = {
        each.output: each for each in planned(f"SELECT ward, n, RANK() OVER (ORDER BY n) AS r FROM ({inner})").expected
    }
    assert (expected["n"].half_width, expected["r"].note) == (planned(inner).expected[0].half_width, SEVERAL)


def test_what_holds_no_noise_says_nothing_of_noise(hospital: duckdb.DuckDBPyConnection) -> None:
    inner = "SELECT ward, smoker, COUNT(*) AS n FROM visits GROUP BY ward, smoker"
    for sql, notes in (
        (f"SELECT ward, SUM(n) AS s, COUNT(*) AS groups FROM ({inner}) GROUP BY ward", ["", SEVERAL, ""]),
        (f"SELECT ward, COUNT(*) AS groups FROM ({inner}) WHERE n > 1 GROUP BY ward", ["", SEVERAL]),
        (f"SELECT n > 1 AS many, COUNT(*) AS groups FROM ({inner}) GROUP BY many", [SEVERAL, SEVERAL]),
        ("SELECT ward, ROW_NUMBER() OVER (ORDER BY ward) AS r FROM visits GROUP BY ward", ["", ""]),
        ("SELECT ward, ROW_NUMBER() OVER (ORDER BY COUNT(*)) AS r FROM visits GROUP BY ward", ["", SEVERAL]),
    ):
        assert [column.note for column in asked(sql, hospital).columns] == notes, sql


def test_who_is_chosen_by_noise_is_said_to_be(hospital: duckdb.DuckDBPyConnection) -> None:
    inner = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    for rest, chosen in (("WHERE n > 1", True), ("WHERE ward = 'heart'", False), ("ORDER BY n LIMIT 1", True)):
        answer = asked(f"SELECT ward, n FROM ({inner}) {rest}", hospital)
        assert (CHOSEN in answer.columns[1].note) is chosen, rest
    answer = asked(f"{inner} QUALIFY RANK() OVER (ORDER BY COUNT(*) DESC) = 1", hospital)
    assert CHOSEN in answer.columns[1].note


def test_the_type_of_a_column_hangs_on_the_question_alone(hospital: duckdb.DuckDBPyConnection) -> None:
    sql = (
        "SELECT ward, LAG(n) OVER (ORDER BY ward) AS lag, RANK() OVER (ORDER BY n) AS r, n > 5 AS many, "
        "MAX(ward) OVER () AS last FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) WHERE n > {least}"
    )
    for least in (-1, 10**9):
        kinds = [str(column.values.type) for column in asked(sql.format(least=least), hospital).columns]
        assert kinds[:3] == ["string", "double", "int64"]
        assert kinds[4] == "string"


def test_totals_are_the_sums_of_the_released_groups(hospital: duckdb.DuckDBPyConnection) -> None:
    sql = (
        "SELECT ward, smoker, COUNT(*) AS n, SUM(age) AS s, GROUPING(ward) AS gw, GROUPING(smoker) AS gs "
        "FROM visits GROUP BY CUBE (ward, smoker)"
    )
    answer = asked(sql, hospital)
    rows: list[dict[str, Any]] = answer.table.to_pylist()
    finest = [row for row in rows if (row["gw"], row["gs"]) == (0, 0)]
    assert len(finest) == 4 * 3
    assert len(rows) == 12 + 4 + 3 + 1
    for name in ("n", "s"):
        column = next(each for each in answer.columns if each.name == name)
        assert TOTALED in column.note
        assert column.low is not None
        assert [low is None for low in column.low.to_pylist()] == [bool(row["gw"] or row["gs"]) for row in rows]
    measured = planned(sql)
    assert (
        measured.loss
        == planned(
            sql.replace("CUBE (ward, smoker)", "ward, smoker").replace(
                ", GROUPING(ward) AS gw, GROUPING(smoker) AS gs", ""
            )
        ).loss
    )
    assert {rows[place]["gw"] + rows[place]["gs"] for place in answer.undeclared} <= {0, 1}
    assert all("finest" in each.note for each in measured.expected)


def test_totals_add_noisy_vectors_and_nothing_else() -> None:
    from incrowd.queries.measuring.groups import total_groups

    names = tuple((ward, smoker) for ward in ("h", "l", None) for smoker in (True, False))
    noisy = np.arange(12, dtype=np.int64).reshape(6, 2) - 5
    found = total_groups(names, noisy, ((0, 1), (0,), (1,), ()), 2)
    assert np.array_equal(found.vectors[:6], noisy)
    assert np.array_equal(found.vectors[-1], noisy.sum(axis=0))
    assert np.array_equal(found.vectors[6:9].sum(axis=0), found.vectors[9:11].sum(axis=0))
    assert found.groups.tolist() == [1] * 6 + [2] * 3 + [3] * 2 + [6]
    assert found.names[6:9] == (("h", None), ("l", None), (None, None))
    assert found.over[8].tolist() == [False, True]
    assert pa.array(found.several).to_pylist() == [False] * 6 + [True] * 6
