"""Each value is brought into what was declared about its column, exactly as the column's rules say."""

from __future__ import annotations

import math
from collections import Counter
from datetime import date
from typing import Any

import duckdb
import pytest

from incrowd.core.domain import Categories, Dates, Numbers, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import OTHER, Column, Missing, Outside, Role, Schema
from incrowd.core.unit import Kind, Unit
from incrowd.queries.language.understanding import understand
from incrowd.queries.query import Catalog, Relation
from tests.queries.language.hospital import TYPES, WORST

COLUMNS = [
    Column("x", type=kind, hierarchy=Flat(domain), missing=missing, outside=outside)
    for kind, domain, fill in (
        (Type.INTEGER, Numbers(0, 50), "7"),
        (Type.INTEGER, Numbers(low=5), "7"),
        (Type.INTEGER, Numbers(high=5), "1"),
        (Type.INTEGER, Numbers(), "7"),
        (Type.INTEGER, Categories(("1", "7", "42")), "7"),
        (Type.DECIMAL, Numbers(0, 1, Type.DECIMAL), "0.5"),
        (Type.DECIMAL, Numbers(type=Type.DECIMAL), "0.5"),
        (Type.DATE, Dates("2024-01-01", "2024-12-31"), "2024-02-29"),
        (Type.DATE, Dates(), "2024-02-29"),
        (Type.BOOLEAN, Categories(("false", "true")), "true"),
        (Type.BOOLEAN, Categories(("true",)), "true"),
        (Type.TEXT, Categories(("heart", "lung")), "lung"),
    )
    for missing in (Missing.CLASS, Missing.DROP, fill)
    for outside in (None, Outside.OTHER, Outside.DROP)
]
DROPPED = object()


def connection(kind: Type) -> duckdb.DuckDBPyConnection:
    """One row for each of the worst values of a type."""
    found = duckdb.connect()
    found.execute(f"CREATE TABLE t (x {TYPES[kind]})")
    for value in WORST[kind]:
        found.execute(f"INSERT INTO t SELECT CAST(? AS {TYPES[kind]})", [value])
    return found


def written(value: Any, kind: Type) -> Any:
    """A declared text as a value."""
    read = {
        Type.INTEGER: int,
        Type.DECIMAL: float,
        Type.DATE: date.fromisoformat,
        Type.BOOLEAN: lambda text: text == "true",
    }
    return read.get(kind, str)(value)  # type: ignore[operator]


def decided(column: Column, value: Any) -> Any:
    """The slow, obvious rule for one value; the engine's infinite dates arrive as missing here."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        if column.missing == Missing.DROP:
            return DROPPED
        return None if column.fill is None else written(column.fill, column.type)
    domain = column.domain
    low: Any = None
    high: Any = None
    if isinstance(domain, Categories):
        inside = value in [written(each, column.type) for each in domain.values]
    elif isinstance(domain, Numbers | Dates):
        low, high = domain.bounds
        inside = (low is None or value >= low) and (high is None or value <= high)
    else:
        inside = True
    if inside:
        return value
    match column.rule_outside:
        case Outside.DROP:
            return DROPPED
        case Outside.OTHER:
            return OTHER if column.type is Type.TEXT else None
    return low if low is not None and value < low else high


@pytest.mark.parametrize(
    "column", COLUMNS, ids=lambda column: f"{column.type} {column.domain} {column.missing} {column.outside}"
)
def test_a_value_is_treated_as_its_column_says(column: Column) -> None:
    question = understand(
        "SELECT x, COUNT(*) FROM t GROUP BY x", Catalog((Relation("t", Schema((column,)), dataset="t"),))
    )
    engine = connection(column.type)
    inside = "CASE WHEN x BETWEEN '0001-01-01' AND '9999-12-31' THEN x END" if column.type is Type.DATE else "x"
    raw = [row[0] for row in engine.execute(f"SELECT {inside} FROM t").fetchall()]
    wanted = Counter(treated for value in raw if (treated := decided(column, value)) is not DROPPED)
    found = Counter(row[0] for row in engine.execute(question.rows.sql("duckdb")).fetchall())
    assert found == wanted
    values = question.keys[0].values
    assert values is None or set(found) <= set(values)


def test_columns_that_leave_out_rows_do_so_in_every_question() -> None:
    schema = Schema((Column("x", type=Type.INTEGER, hierarchy=Flat(Numbers(0, 50)), outside=Outside.DROP), Column("y")))
    question = understand("SELECT COUNT(*) FROM t", Catalog((Relation("t", schema, dataset="t"),)))
    engine = duckdb.connect()
    engine.execute("CREATE TABLE t AS SELECT * FROM (VALUES (1::BIGINT, 'a'), (99, 'b'), (NULL, 'c')) AS v(x, y)")
    assert len(engine.execute(question.rows.sql("duckdb")).fetchall()) == 2


def test_names_are_quoted_wherever_they_stand() -> None:
    """Names of tables and columns may be words of the language, or hold anything."""
    odd = 'a "b" select; --'
    schema = Schema(
        (
            Column("order", Role.IDENTIFIER),
            Column(odd, type=Type.INTEGER, hierarchy=Flat(Numbers(0, 9))),
            Column("Group"),
        ),
        Unit(Kind.PERSON, column="order"),
    )
    catalog = Catalog((Relation("Select", schema, dataset="d"),))
    quoted = '"' + odd.replace('"', '""') + '"'
    question = understand(f'SELECT "group", AVG({quoted}) FROM "select" GROUP BY 1', catalog)
    engine = duckdb.connect()
    engine.execute(f'CREATE TABLE "Select" ("order" VARCHAR, {quoted} BIGINT, "Group" VARCHAR)')
    engine.execute("INSERT INTO \"Select\" VALUES ('p', 5, 'g')")
    assert engine.execute(question.rows.sql("duckdb")).fetchall() == [("g", 5, "p")]
    assert question.outputs[0].name == "Group"
