"""What analysts of a few trades ask: most of it is answered, and without noise the answers are what DuckDB says."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from incrowd.core.domain import Categories, Dates, Numbers, Type
from incrowd.core.schema import Column
from incrowd.engines.sql.engine import fields
from incrowd.errors import IncrowdError, InvalidParameter, QueryRefused
from incrowd.noise.system import SystemCoins
from incrowd.queries.combined_measurement import measure
from incrowd.queries.language.interpretation import interpret
from incrowd.queries.query import Interpreted, Query, QueryTerms, Relation
from tests.queries.analysts.trades import STATEMENTS, TRADES

SHARE = Fraction(17, 20)
"""At least this share of the statements is answered."""
SURE = {True: QueryTerms(epsilon=Fraction(10**6)), False: QueryTerms(epsilon=Fraction(10**6), delta=Fraction(1, 10**6))}
"""Where groups are known and where they are not: counts have no noise then, and sums less than is compared."""
PEOPLE = 100
WORDS = ("I21", "J13 sepsis", "J18", "lead Engineer", "developer", "/shop/a", "/home", "spring-5", "J2")
APART = (
    "QUANTILE", "MEDIAN", "PERCENTILE", "MODE(", "MIN(", "MAX(", "HISTOGRAM", "LIMIT", "APPROX", "WIDTH_BUCKET",
    "TO_CHAR", "TRIPS_PER_DAY", "SELECT DAY, ", "CURRENT_DATE", "> 100",
)  # fmt: skip
"""What is picked from a grid, or cut, or of groups of which DuckDB does not know, is another number."""


def _understood(sql: str) -> Interpreted | IncrowdError:
    try:
        return interpret(sql, TRADES)
    except (QueryRefused, InvalidParameter) as refusal:
        return refusal


@pytest.fixture(scope="module")
def asked() -> dict[str, Interpreted | IncrowdError]:
    """Every statement, understood or refused; any other error is a fault."""
    return {sql: _understood(sql) for sql in STATEMENTS}


def _value(column: Column, chance: random.Random) -> Any:
    domain = column.domain
    if column.type is Type.BOOLEAN:
        return chance.choice((True, False))
    match domain:
        case Categories():
            return chance.choice(domain.values)
        case Numbers():
            low, high = (int(end or 0) for end in domain.bounds)
            found = chance.randint(low, high)
            return found if column.type is Type.INTEGER else found / 2 + chance.randint(0, 3) / 4
        case Dates():
            first, last = (end or date.min for end in domain.bounds)
            return first + timedelta(days=chance.randint(0, (last - first).days))
    return chance.choice(WORDS)


def _rows(relation: Relation, chance: random.Random) -> Iterator[tuple[Any, ...]]:
    """Yield rows of people with at most as many as may take part, or one row for each key of a public table."""
    key, *others = relation.schema.columns
    if relation.private:
        for person in range(PEOPLE):
            for _ in range(chance.randint(0, relation.unit.max_rows)):
                yield (person, *(_value(column, chance) for column in others))
    elif isinstance(key.domain, Categories):
        lists = [each.domain.values if isinstance(each.domain, Categories) else range(6) for each in others]
        for place, value in enumerate(key.domain.values):
            yield (value, *(values[place % len(values)] for values in lists))


@pytest.fixture(scope="module")
def tables() -> Iterator[duckdb.DuckDBPyConnection]:
    """The tables of all trades."""
    chance = random.Random(5)
    with duckdb.connect(config={"threads": 1}) as connection:
        for relation in TRADES.relations:
            columns = zip(*_rows(relation, chance), strict=True)
            shape = fields(relation.schema.columns)
            rows = pa.table([pa.array(c, each.type) for c, each in zip(columns, shape, strict=True)], schema=shape)
            connection.register("rows_of_table", rows)
            connection.execute(f'CREATE TABLE "{relation.name}" AS SELECT * FROM rows_of_table')
        yield connection


def _alike(one: Any, other: Any) -> bool:
    """Return whether two values are the same, numbers but for what a grid rounds away."""
    if isinstance(one, date) and isinstance(other, date):
        return one.isoformat()[:10] == other.isoformat()[:10]
    numbers = (int, float, Decimal)
    if not isinstance(one, numbers) or not isinstance(other, numbers) or bool in (type(one), type(other)):
        return bool(one == other)
    return math.isclose(one, other, rel_tol=1e-3, abs_tol=1e-3)


def _untrue(sql: str, question: Interpreted, tables: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    """Return the rows that DuckDB tells and the answer without noise does not."""
    parts = (question,) if isinstance(question, Query) else question.parts
    unit = next(TRADES[name].unit for name in parts[0].tables if TRADES[name].private)
    measured = measure(question, unit, SURE[all(part.public_keys for part in parts)])
    assert measured.plan.claims
    collected = tuple(tables.sql(query.sql("duckdb")).to_arrow_table() for query in measured.statistics)
    answer = measured.answer(collected, SystemCoins()).table
    if any(word in sql.upper() for word in APART):
        return []
    told = list(zip(*(column.to_pylist() for column in answer.columns), strict=True))
    true: list[tuple[Any, ...]] = tables.execute(sql).fetchall()
    assert true
    return [row for row in true if not any(all(map(_alike, row, each)) for each in told)]


def test_most_statements_of_analysts_are_answered(asked: dict[str, Interpreted | IncrowdError]) -> None:
    assert len(asked) == len(STATEMENTS) >= 150
    assert Fraction(sum(not isinstance(each, IncrowdError) for each in asked.values()), len(asked)) >= SHARE


def test_an_answer_without_noise_is_the_truth(
    asked: dict[str, Interpreted | IncrowdError], tables: duckdb.DuckDBPyConnection
) -> None:
    compared = {sql: each for sql, each in asked.items() if not isinstance(each, IncrowdError)}
    assert {sql: untrue[:3] for sql, each in compared.items() if (untrue := _untrue(sql, each, tables))} == {}


def test_a_refusal_says_what_to_do(asked: dict[str, Interpreted | IncrowdError]) -> None:
    for refusal in asked.values():
        assert not isinstance(refusal, IncrowdError) or len(str(refusal).split(": ")) > 1 or ". " in str(refusal)
