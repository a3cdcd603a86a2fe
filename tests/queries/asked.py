"""Questions written by hand, and a database that answers them."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import pyarrow as pa
from sqlglot import exp, parse_one

from incrowd.core.coins import Coins
from incrowd.core.domain import Type
from incrowd.core.rounding import Number, exact
from incrowd.core.unit import Kind, Unit
from incrowd.queries.answer import Answer
from incrowd.queries.measurement import Measurement, measurement
from incrowd.queries.query import (
    Aggregate,
    AggregateKind,
    Contribution,
    Key,
    OutputColumn,
    Query,
    QueryTerms,
    Value,
)

AGE = Value("age", Type.INTEGER, Fraction(0), Fraction(4), optional=True)
SEX = Key("sex", Type.TEXT, ("F", "M", None))
WARD = Key("ward", Type.TEXT, None)
ROW = Unit()
PERSON = Unit(Kind.PERSON, column="person", max_rows=2)

EVERY = (
    Aggregate("n", AggregateKind.ROWS),
    Aggregate("present", AggregateKind.COUNT, AGE),
    Aggregate("total", AggregateKind.SUM, AGE),
    Aggregate("mean", AggregateKind.MEAN, AGE),
    Aggregate("variance", AggregateKind.VARIANCE, AGE),
    Aggregate("deviation", AggregateKind.DEVIATION, AGE),
)


def tree(text: str) -> exp.Expression:
    """Return an expression over an answer."""
    parsed = parse_one(text, dialect="duckdb")
    assert isinstance(parsed, exp.Expression)
    return parsed


def terms(**given: Number) -> QueryTerms:
    """Return terms from numbers as people write them."""
    return QueryTerms(**{name: exact(value) for name, value in given.items()})


def asked(
    aggregates: tuple[Aggregate, ...],
    keys: tuple[Key, ...] = (SEX,),
    unit: Unit = ROW,
    outputs: dict[str, str] | None = None,
    rest: str = "",
) -> Query:
    """Return a question about visits(person, sex, ward, age); `rest` is HAVING, ORDER BY and LIMIT in SQL."""
    shown = [OutputColumn(key.name, tree(key.name)) for key in keys]
    shown += [OutputColumn(each.name, tree(each.name), each.name) for each in aggregates]
    shown += [OutputColumn(name, tree(text)) for name, text in (outputs or {}).items()]
    rows = "SELECT sex, ward, age FROM visits"
    reach = Contribution(1, 1)
    if unit.kind is Kind.PERSON:
        ranked = "ROW_NUMBER() OVER (PARTITION BY person ORDER BY sex, ward, age) AS place"
        rows = (
            f"SELECT sex, ward, age, person AS _person FROM (SELECT *, {ranked} FROM visits) AS ranked "
            f"WHERE place <= {unit.max_rows}"
        )
        reach = Contribution(unit.max_rows, unit.max_rows)
    after = parse_one(f"SELECT 1 FROM t GROUP BY 1 {rest}", dialect="duckdb")
    having, order, limit, offset = (after.args.get(part) for part in ("having", "order", "limit", "offset"))
    return Query(
        "SELECT …",
        parse_one(rows, dialect="duckdb", into=exp.Select),
        keys,
        aggregates,
        tuple(shown),
        reach,
        ("visits",),
        ("visits",),
        having.this if having else None,
        tuple(order.expressions) if order else (),
        int(limit.expression.this) if limit else None,
        int(offset.expression.this) if offset else 0,
    )


Visit = tuple[int | None, str | None, str | None, float | None]


def collected(measured: Measurement, visits: list[Visit]) -> tuple[pa.Table, ...]:
    """Return what DuckDB collects for a measurement."""
    with duckdb.connect() as database:
        database.execute("CREATE TABLE visits (person BIGINT, sex VARCHAR, ward VARCHAR, age DOUBLE)")
        if visits:
            database.executemany("INSERT INTO visits VALUES (?, ?, ?, ?)", visits)
        return tuple(database.sql(query.sql("duckdb")).to_arrow_table() for query in measured.statistics)


def answered(question: Query, paid: QueryTerms, visits: list[Visit], coins: Coins, unit: Unit = ROW) -> Answer:
    """Return the answer to a question about some visits."""
    measured = measurement(question, unit, paid)
    return measured.answer(collected(measured, visits), coins)
