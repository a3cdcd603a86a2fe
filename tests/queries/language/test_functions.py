"""The table of SQL functions: each is answered wherever the table says so, under each of its names."""

from __future__ import annotations

from datetime import date

import pytest
from sqlglot import exp, parse_one

from incrowd.engines.sql.dialects import in_postgres
from incrowd.errors import InvalidParameter, QueryRefused
from incrowd.queries.language.expressions.table import (
    ANSWER_NAMES,
    FUNCTIONS,
    NAMES,
    OPERATORS,
    check_expression,
    evaluate,
    function_of,
)
from incrowd.queries.language.understanding import understand
from tests.queries.language.hospital import CATALOG

ON_ROWS = {
    "ABS": "ABS(age)",
    "SIGN": "SIGN(cost)",
    "FLOOR": "FLOOR(cost)",
    "CEIL": "CEIL(cost)",
    "CEILING": "CEILING(cost)",
    "ROUND": "ROUND(cost, 1)",
    "MOD": "MOD(age, 7)",
    "TRUNC": "TRUNC(cost)",
    "SQRT": "SQRT(cost)",
    "LN": "LN(cost)",
    "LOG": "LOG(cost)",
    "LOG10": "LOG10(cost)",
    "LOG2": "LOG2(cost)",
    "EXP": "EXP(age / 10)",
    "POWER": "POWER(age, 2)",
    "POW": "POW(age, 2)",
    "WIDTH_BUCKET": "WIDTH_BUCKET(cost, 0, 100, 5)",
    "IF": "IF(smoker, 1, 2)",
    "COALESCE": "COALESCE(age, 5)",
    "IFNULL": "IFNULL(age, 5)",
    "NULLIF": "NULLIF(age, 5)",
    "LEAST": "LEAST(age, 5)",
    "GREATEST": "GREATEST(age, 5)",
    "CLAMP": "CLAMP(code, 0, 5)",
    "UPPER": "UPPER(note)",
    "UCASE": "UCASE(note)",
    "LOWER": "LOWER(note)",
    "LCASE": "LCASE(note)",
    "TRIM": "TRIM(note)",
    "LTRIM": "LTRIM(note)",
    "RTRIM": "RTRIM(note)",
    "LENGTH": "LENGTH(note)",
    "LEN": "LEN(note)",
    "CHAR_LENGTH": "CHAR_LENGTH(note)",
    "CHARACTER_LENGTH": "CHARACTER_LENGTH(note)",
    "SUBSTRING": "SUBSTRING(note, 2, 3)",
    "SUBSTR": "SUBSTR(note, 2, 3)",
    "LEFT": "LEFT(note, 3)",
    "RIGHT": "RIGHT(note, 3)",
    "CONCAT": "CONCAT(ward, note)",
    "REPLACE": "REPLACE(note, 'a', 'ö')",
    "STARTS_WITH": "STARTS_WITH(note, 'a')",
    "CONTAINS": "CONTAINS(note, 'a')",
    "SPLIT_PART": "SPLIT_PART(note, '-', 2)",
    "POSITION": "POSITION('a' IN note)",
    "STRPOS": "STRPOS(note, 'a')",
    "INSTR": "INSTR(note, 'a')",
    "YEAR": "YEAR(day)",
    "QUARTER": "QUARTER(day)",
    "MONTH": "MONTH(day)",
    "WEEK": "WEEK(day)",
    "WEEKOFYEAR": "WEEKOFYEAR(day)",
    "DAY": "DAY(day)",
    "DAYOFYEAR": "DAYOFYEAR(day)",
    "DAYOFWEEK": "DAYOFWEEK(day)",
    "ISODOW": "ISODOW(day)",
    "DAYNAME": "DAYNAME(day)",
    "MONTHNAME": "MONTHNAME(day)",
    "EXTRACT": "EXTRACT(year FROM day)",
    "DATE_PART": "DATE_PART('year', day)",
    "DATEPART": "DATEPART('year', day)",
    "DATE_TRUNC": "DATE_TRUNC('month', day)",
    "DATETRUNC": "DATETRUNC('month', day)",
    "DATE_DIFF": "DATE_DIFF('day', day, DATE '2025-01-01')",
    "DATEDIFF": "DATEDIFF('day', day, DATE '2025-01-01')",
    "DATE_ADD": "DATE_ADD(day, INTERVAL 3 DAY)",
    "STRFTIME": "STRFTIME(day, '%Y-%m')",
    "TO_CHAR": "TO_CHAR(day, 'YYYY-MM')",
    "REGEXP_MATCHES": "REGEXP_MATCHES(note, '^J1[0-8]')",
    "REGEXP_LIKE": "REGEXP_LIKE(note, '^J1[0-8]')",
    "REGEXP_FULL_MATCH": "REGEXP_FULL_MATCH(note, 'J1[0-8]')",
    "CAST": "CAST(cost AS INTEGER)",
    "TRY_CAST": "TRY_CAST(note AS INTEGER)",
}
"""An expression over rows for each name."""

OPERATED = {
    "+": "age + 1",
    "-": "age - 1",
    "*": "age * 2",
    "/": "age / 2",
    "//": "age // 2",
    "=": "age = 1",
    "<>": "age <> 1",
    "<": "age < 1",
    "<=": "age <= 1",
    ">": "age > 1",
    ">=": "age >= 1",
    "IS NOT DISTINCT FROM": "age IS NOT DISTINCT FROM 1",
    "IS DISTINCT FROM": "age IS DISTINCT FROM 1",
    "BETWEEN": "age BETWEEN 1 AND 5",
    "day number": "DATE_FROM_UNIX_DATE(7) < day",
    "IN": "ward IN ('heart', 'lung')",
    "IS NULL": "age IS NULL",
    "LIKE": "note LIKE 'a%'",
    "ILIKE": "note ILIKE 'a%'",
    "AND": "smoker AND age > 1",
    "OR": "smoker OR age > 1",
    "NOT": "NOT smoker",
    "CASE": "CASE WHEN smoker THEN 1 ELSE 0 END",
    "||": "ward || note",
}

ON_ANSWERS = {"note": "ward", "smoker": "(AVG(age) > 5)", "cost": "AVG(age)", "code": "AVG(age)", "age": "AVG(age)"}
"""What stands on an answer by ward and day for each column of the rows."""

ROW = {"k1": "lung", "k2": date(2024, 5, 17), "a1": 20.0}


def _on_answer(expression: str) -> str:
    for column, stands in ON_ANSWERS.items():
        if column in expression:
            return expression.replace(column, stands)
    return expression


def _over_rows(expression: str) -> exp.Query:
    return understand(f"SELECT COUNT(*) FROM rows WHERE ({expression}) IS NULL", CATALOG).rows


def _over_answer(expression: str) -> exp.Expression:
    asked = understand(f"SELECT ward, day, {_on_answer(expression)} AS x FROM rows GROUP BY ward, day", CATALOG)
    return asked.outputs[-1].expression


def test_no_name_stands_for_two_functions_and_no_node_for_two_of_the_table() -> None:
    assert len(set(NAMES)) == len(NAMES)
    nodes = [node for function in (*FUNCTIONS, *OPERATORS) for node in function.nodes if node is not exp.Anonymous]
    assert len(set(nodes)) == len(nodes)


def test_every_name_of_the_table_is_asked_below() -> None:
    assert sorted(ON_ROWS) == sorted(NAMES)
    assert sorted(OPERATED) == sorted({function.name for function in OPERATORS})


@pytest.mark.parametrize("expression", [*ON_ROWS.values(), *OPERATED.values()])
def test_every_function_is_answered_on_rows(expression: str) -> None:
    assert _over_rows(expression).find(exp.Where) is not None


@pytest.mark.parametrize("name", ANSWER_NAMES)
def test_every_function_that_the_table_has_for_answers_is_computed_from_them(name: str) -> None:
    tree = _over_answer(ON_ROWS[name].replace("note AS INTEGER", "ward AS TEXT"))
    check_expression(tree, frozenset(ROW))
    assert evaluate(tree, ROW) is not None


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(ANSWER_NAMES)))
def test_every_other_function_is_refused_on_answers_with_those_that_are_not(name: str) -> None:
    with pytest.raises(QueryRefused) as refused:
        _over_answer(ON_ROWS[name])
    assert all(other in str(refused.value) for other in ANSWER_NAMES)


def test_a_function_that_is_not_in_the_table_is_refused_with_all_that_are() -> None:
    with pytest.raises(QueryRefused) as refused:
        _over_rows("HYPOT(age, cost)")
    assert str(refused.value).endswith(f"There are: {', '.join(NAMES)}.")


@pytest.mark.parametrize("name", [*ON_ROWS, *OPERATED])
def test_postgresql_computes_what_the_table_says_and_refuses_the_rest(name: str) -> None:
    function = next(function for function in (*FUNCTIONS, *OPERATORS) if name in function.names)
    query = _over_rows((ON_ROWS | OPERATED)[name])
    if function.in_postgres:
        assert in_postgres(query).sql("postgres")
    else:
        with pytest.raises(QueryRefused, match=r"in PostgreSQL|only the local engine"):
            in_postgres(query)


def test_the_table_is_found_by_kinds_of_nodes_and_by_names() -> None:
    assert all(function_of(parse_one(sql, dialect="duckdb")) is not None for sql in OPERATED.values())
    call = parse_one("clamp(age, 0, 5)", dialect="duckdb")
    assert function_of(call) is next(function for function in FUNCTIONS if function.name == "CLAMP")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("LTRIM(note)", "lung  "),
        ("RTRIM(note)", "  lung"),
        ("TRIM(note)", "lung"),
        ("TRIM(BOTH FROM note)", "lung"),
        ("TRIM(LEADING FROM note)", "lung  "),
    ],
)
def test_a_text_of_an_answer_is_trimmed_on_the_side_that_is_asked_for(expression: str, expected: str) -> None:
    assert evaluate(_over_answer(expression), {**ROW, "k1": "  lung  "}) == expected
    assert evaluate(_over_answer(expression), {**ROW, "k1": None}) is None
    assert _over_rows(expression).find(exp.Trim) is not None


@pytest.mark.parametrize(
    "expression",
    ["TRIM(note, 'g')", "LTRIM(note, 'l')", "TRUNC(cost, 2)", "CEIL(cost, 1)", "CONCAT_WS('-', note, note)"],
)
def test_arguments_that_are_not_computed_with_are_refused_on_rows_and_on_answers(expression: str) -> None:
    with pytest.raises(QueryRefused, match=r"write its plain form|is not among the functions"):
        _over_rows(expression)
    with pytest.raises(QueryRefused, match=r"write its plain form|is not computed on noisy answers"):
        _over_answer(expression)


@pytest.mark.parametrize(
    ("expression", "needed"),
    [
        ("SUBSTR(note)", "SUBSTRING takes at least 2 arguments"),
        ("REPLACE(note, 'a')", "REPLACE takes at least 3 arguments"),
        ("SPLIT_PART(note, 'a')", "SPLIT_PART takes at least 3 arguments"),
        ("WIDTH_BUCKET(cost, 1)", "WIDTH_BUCKET takes at least 4 arguments"),
    ],
)
def test_a_function_with_too_few_arguments_says_how_many_it_takes(expression: str, needed: str) -> None:
    with pytest.raises(InvalidParameter, match=needed):
        _over_rows(expression)
    with pytest.raises(InvalidParameter, match=needed):
        _over_answer(expression)
