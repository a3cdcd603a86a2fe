"""Whatever rows hold, the query of a question does not fail, and its values lie where the question says."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.core.domain import Type
from incrowd.errors import IncrowdError
from incrowd.queries.language.normal import normal_text
from incrowd.queries.language.understanding import understand
from incrowd.queries.query import PERSON, Key, Query, Value
from tests.queries.language.hospital import CATALOG, hostile, opened

EPOCH = date(1970, 1, 1)
KINDS = {Type.INTEGER: int, Type.DECIMAL: float, Type.TEXT: str, Type.DATE: date, Type.BOOLEAN: bool}
TABLES = ("visits", "tests", "rows", "swapped")
HOSPITAL = opened({name: hostile(name) for name in TABLES})


def rows_of(question: Query, connection: duckdb.DuckDBPyConnection = HOSPITAL) -> list[dict[str, Any]]:
    """The rows of a question, through the real engine."""
    found = connection.execute(question.rows.sql("duckdb"))
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def check_value(value: Value, cell: Any) -> None:
    """Hold one cell against what the question says of it."""
    if cell is None:
        assert value.optional
        return
    number = (cell - EPOCH).days if isinstance(cell, date) else cell
    if value.choices is not None:
        assert cell in value.choices
    if value.low is not None and value.high is not None:
        assert not math.isnan(number)
        spare = 1e-9 * max(1.0, abs(float(value.low)), abs(float(value.high)))
        assert float(value.low) - spare <= number <= float(value.high) + spare


def check_key(key: Key, cell: Any) -> None:
    """Hold one cell against the groups that are answered."""
    if key.values is not None:
        assert cell in key.values
        assert cell is None or type(cell) is KINDS[key.type]


def check(question: Query) -> int:
    """Hold all rows of a question against what it says, and return how many there are."""
    rows = rows_of(question)
    values = {aggregate.value for aggregate in question.aggregates if aggregate.value is not None}
    for row in rows:
        for value in values:
            check_value(value, row[value.name])
        for key in question.keys:
            check_key(key, row[key.name])
        if PERSON in row:
            assert row[PERSON] is not None
    return len(rows)


NUMBERS = st.sampled_from(
    (
        "age",
        "cost",
        "code",
        "0",
        "1",
        "7",
        "0.5",
        "1000000",
        "LENGTH(note)",
        "CAST(note AS DOUBLE)",
        "CAST(note AS INTEGER)",
    )
)
TEXTS = st.sampled_from(
    ("ward", "note", "'a'", "''", "'%'", "CAST(age AS TEXT)", "CAST(cost AS TEXT)", "CAST(day AS TEXT)")
)
DATES = st.sampled_from(("day", "DATE '2024-02-29'", "CAST(note AS DATE)", "DATE_TRUNC('month', day)"))
CONDITIONS = st.sampled_from(("smoker", "ward IS NULL", "ward = 'heart'", "TRUE", "code > 5", "note LIKE '%a_'"))


def _filled(patterns: list[str], **parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def fill(pattern: str) -> st.SearchStrategy[str]:
        slots = {name: part for name, part in parts.items() if "{" + name + "}" in pattern}
        return st.fixed_dictionaries(slots).map(lambda chosen: pattern.format(**chosen))

    return st.sampled_from(patterns).flatmap(fill)


def _numbers(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return _filled(
        [
            "({a} + {b})", "({a} - {b})", "({a} * {b})", "({a} / {b})", "({a} % {b})", "({a} // {b})", "-({a})",
            "ABS({a})",
            "ROUND({a})", "ROUND({a}, 2)", "ROUND({a}, -1)", "FLOOR({a})", "CEIL({a})", "SQRT({a})", "LN({a})",
            "EXP({a})",
            "SIGN({a})", "POWER({a}, 2)", "POWER({a}, 3)", "CLAMP({a}, -10, 10)", "CLAMP({a}, 0.5, 3)",
            "LEAST({a}, {b})",
            "GREATEST({a}, {b})", "COALESCE({a}, {b})", "NULLIF({a}, {b})", "CAST({a} AS INTEGER)",
            "CAST({a} AS DOUBLE)",
            "CASE WHEN {c} THEN {a} ELSE {b} END", "CASE {a} WHEN 7 THEN {b} END", "IF({c}, {a}, {b})", "LENGTH({t})",
            "YEAR({d})", "MONTH({d})", "DAY({d})", "QUARTER({d})", "DAYOFWEEK({d})", "({d} - {e})",
            "DATE_DIFF('day', {d}, {e})",
            "CAST({c} AS INTEGER)", "EXTRACT(year FROM {d})",
            "LOG({a})", "LOG2({a})", "LOG(3, {a})", "TRUNC({a})", "WIDTH_BUCKET({a}, -1, 9.5, 7)",
            "POSITION('a' IN {t})",
            "WEEK({d})", "DAYOFYEAR({d})", "ISODOW({d})", "DATE_DIFF('month', {d}, {e})", "DATE_DIFF('week', {d}, {e})",
            "DATE_DIFF('quarter', {e}, {d})", "CAST({a} AS DECIMAL(9, 1))",
        ],
        a=children, b=children, c=CONDITIONS, t=_texts(TEXTS), d=_dates(DATES), e=DATES,
    )  # fmt: skip


def _texts(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return _filled(
        [
            "UPPER({a})", "LOWER({a})", "TRIM({a})", "LEFT({a}, 3)", "RIGHT({a}, 2)", "SUBSTRING({a}, 2, 3)",
            "({a} || {b})",
            "CONCAT({a}, {b})", "REPLACE({a}, 'a', 'bb')", "COALESCE({a}, {b})", "CASE WHEN {c} THEN {a} ELSE {b} END",
            "SPLIT_PART({a}, 'a', 2)", "SPLIT_PART({a}, '-', 1)", "STRFTIME(day, '%Y-%m')", "DAYNAME(day)",
            "MONTHNAME(day)",
        ],
        a=children, b=children, c=CONDITIONS,
    )  # fmt: skip


def _dates(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return _filled(
        [
            "({a} + 30)", "({a} - 400)", "({a} + INTERVAL 2 WEEK)", "({a} + age)",
            "({a} + CLAMP(code, -4000000, 4000000))",
            "DATE_TRUNC('year', {a})", "DATE_TRUNC('week', {a})", "DATE_TRUNC('quarter', {a})", "LEAST({a}, {b})",
            "CLAMP({a}, '2024-03-01', '2024-04-01')", "COALESCE({a}, {b})",
            "({a} + INTERVAL 1 MONTH)", "({a} - INTERVAL 13 MONTH)", "({a} + INTERVAL 999 YEAR)",
            "({a} - INTERVAL 999 YEAR)",
        ],
        a=children, b=children,
    )  # fmt: skip


EXPRESSIONS = st.recursive(NUMBERS, _numbers, max_leaves=6)
LOGIC = _filled(
    [
        "{c}", "{a} > {b}", "{a} = {b}", "{a} BETWEEN {b} AND 5", "{a} IN (1, 2, 7)", "NOT {c}", "{c} AND {a} < 3",
        "{c} OR {t} = 'x'", "{t} LIKE '%a%'", "STARTS_WITH({t}, 'h')", "CONTAINS({t}, 'e')", "{d} > '2024-05-05'",
        "{a} IS NULL", "{a} IS NOT DISTINCT FROM {b}", "{t} > 'b'", "{t} ILIKE '%A_'",
        "REGEXP_MATCHES({t}, '^[a-h]{{2}}')",
        "REGEXP_FULL_MATCH({t}, 'a.*|2024-.*')",
    ],
    a=EXPRESSIONS, b=NUMBERS, c=CONDITIONS, t=_texts(TEXTS), d=_dates(DATES),
)  # fmt: skip
QUESTIONS = _filled(
    [
        "SELECT SUM({a}), COUNT({b}) FROM {f} WHERE {l}",
        "SELECT {a} AS g, AVG({b}) FROM {f} GROUP BY {a}",
        "SELECT {t} AS g, COUNT(*) FILTER (WHERE {l}) FROM {f} GROUP BY g",
        "SELECT {d} AS g, MEDIAN({a}) FROM {f} GROUP BY g",
        "SELECT {l} AS g, MAX({d}), MODE({t}) FROM {f} GROUP BY g",
        "SELECT AVG(x), MIN(y) FROM (SELECT {a} AS x, {d} AS y FROM {f} WHERE {l})",
        ("SELECT AVG(x), SUM(n) FROM (SELECT patient, SUM({a}) AS x, COUNT(*) AS n, AVG({b}) AS m FROM visits "
         "GROUP BY patient) WHERE m > 1"),
    ],
    a=EXPRESSIONS, b=EXPRESSIONS, l=LOGIC, t=_texts(TEXTS), d=_dates(DATES), f=st.sampled_from(("visits", "rows")),
)  # fmt: skip


@given(QUESTIONS)
def test_no_row_makes_a_question_fail_or_leave_its_bounds(sql: str) -> None:
    try:
        question = understand(sql, CATALOG)
    except IncrowdError:
        return
    check(question)
    assert normal_text(question.text) == question.text


ANSWERED = (
    "SELECT ward, COUNT(*), SUM(cost), AVG(age) FROM visits GROUP BY ward",
    "SELECT score, grade, kind, COUNT(*), AVG(rate) FROM tests GROUP BY ALL",
    "SELECT YEAR(seen), COUNT(*) FROM tests GROUP BY 1",
    "SELECT floor, COUNT(*) FROM visits JOIN wards ON visits.ward = wards.ward GROUP BY floor",
    "SELECT doctor, COUNT(*) FROM visits LEFT JOIN doctors USING (ward) GROUP BY doctor",
    "SELECT AVG(v.age * t.score) FROM visits v JOIN tests t ON v.patient = t.patient",
    "SELECT AVG(x) FROM (SELECT patient, age AS x FROM visits UNION ALL SELECT patient, rate FROM tests)",
    (
        "SELECT n, AVG(total) FROM (SELECT patient, COUNT(*) AS n, SUM(cost) AS total FROM visits GROUP BY patient) "
        "GROUP BY n"
    ),
    "SELECT COUNT(*), COUNT(DISTINCT patient) FROM (SELECT * FROM visits)",
    "SELECT HISTOGRAM(cost, 100) FROM rows",
    "SELECT MODE(ward), MODE(smoker), MODE(age), MODE(MONTH(day)) FROM rows",
)


@pytest.mark.parametrize("sql", ANSWERED)
def test_rows_of_typical_questions_lie_in_their_bounds(sql: str) -> None:
    assert check(understand(sql, CATALOG)) > 0
