"""Coverage: how often the 95 % intervals of answers hold, by kind of query; top-N and capped tables included.

    python -m bench.intervals [ANSWERS]        200 answers to each query, at ε = 1

Rows are those of the shop of `bench.statements`: customers have 1 to 9 orders, of which 4 take part.  Each query is
measured once, and answered again and again with fresh noise; the truth is its answer at ε = 10⁶.  `held` counts every
number that has an interval, `whole table` compares the same intervals with the numbers of all rows, of which no more
than 4 of a customer take part.  A top-N, or HAVING, shows the numbers that noise made large: these hold less often, and
every such answer says so.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.statements.__main__ import SHOP
from incrowd.core.schema import Schema
from incrowd.noise.system import SystemCoins
from incrowd.queries.answer import Answer
from incrowd.queries.combined_measurement import measure
from incrowd.queries.language.interpretation import interpret
from incrowd.queries.query import Catalog, QueryTerms

CUSTOMERS, MOST_ORDERS = 3000, 9
TERMS = QueryTerms(epsilon=Fraction(1), delta=Fraction(1, 10**6))
SURE = replace(TERMS, epsilon=Fraction(10**6))
GROUPED = "FROM orders GROUP BY channel, region"
DAYS = "SELECT day, COUNT(*) AS n FROM orders WHERE day < '2025-02-01' GROUP BY day"
WIDE = "WHERE amount > 250 GROUP BY channel, region"
QUERIES = {
    "counts": f"SELECT channel, region, COUNT(*) AS n {GROUPED}",
    "counts under WHERE": f"SELECT channel, region, COUNT(*) AS n FROM orders {WIDE}",
    "people": f"SELECT channel, region, COUNT(DISTINCT customer) AS n {GROUPED}",
    "sums": f"SELECT channel, region, SUM(amount) AS s {GROUPED}",
    "means": f"SELECT channel, region, AVG(amount) AS m {GROUPED}",
    "deviations": "SELECT channel, STDDEV(amount) AS d FROM orders GROUP BY channel",
    "shares": f"SELECT channel, region, COUNT(*) FILTER (WHERE express) / COUNT(*) AS p {GROUPED}",
    "small groups": DAYS,
    "undeclared groups": "SELECT FLOOR(amount) * pieces AS x, COUNT(*) AS n FROM orders GROUP BY x",
    "joined with a public table": "SELECT land, COUNT(*) AS n FROM orders JOIN regions USING (region) GROUP BY land",
    "people by their orders": (
        "SELECT n, COUNT(*) AS people FROM (SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer) GROUP BY n"
    ),
    "answers below each other": (
        "SELECT channel, COUNT(*) AS n FROM orders GROUP BY channel UNION ALL "
        "SELECT reason, COUNT(*) FROM returns GROUP BY reason"
    ),
    "top 3 of 36 groups": f"SELECT channel, region, COUNT(*) AS n {GROUPED} ORDER BY n DESC LIMIT 3",
    "top 3 of 31 days": f"{DAYS} ORDER BY n DESC LIMIT 3",
    "HAVING": f"{DAYS} HAVING COUNT(*) > 40",
}
"""What is asked; every number that has an interval is counted."""


def catalog(most: int) -> Catalog:
    """Return the shop, of which so many orders of a customer take part."""
    unit = replace(SHOP["orders"].schema.unit, max_rows=most)
    relations = [replace(relation, schema=_protecting(relation.schema, unit)) for relation in SHOP.relations]
    return Catalog(tuple(relations))


def _protecting(schema: Schema, unit: Any) -> Schema:
    return replace(schema, unit=unit) if schema.unit.column is not None else schema


def tables() -> duckdb.DuckDBPyConnection:
    """Return the shop's rows: few customers have most of the orders, and channels and regions differ in size."""
    chance, orders, returns = random.Random(7), list[tuple[Any, ...]](), list[tuple[str, str]]()
    domains: dict[str, Any] = {column.name: column.domain for column in SHOP["orders"].schema.columns}
    channels, regions = domains["channel"].values, domains["region"].values
    for number in range(CUSTOMERS):
        for _ in range(1 + min(MOST_ORDERS - 1, int(chance.expovariate(0.5)))):
            day = date(2025, 1, 1) + timedelta(days=int(365 * chance.random() ** 2))
            orders.append((
                f"c{number}", channels[int(len(channels) * chance.random() ** 2)],
                regions[int(len(regions) * chance.random() ** 1.5)], day, round(chance.uniform(0, 500) ** 0.9, 2),
                chance.randrange(4), chance.random() < 0.3,
            ))  # fmt: skip
        returns += [(f"c{number}", "late" if chance.random() < 0.8 else "broken")] * (chance.random() < 0.2)
    lands = [(region, "DE" if at % 2 else "BR", 1000 * at) for at, region in enumerate(regions)]
    connection = duckdb.connect(config={"threads": 1})
    for name, rows in (("orders", orders), ("returns", returns), ("regions", lands)):
        names = SHOP[name].schema.names
        made = pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))
        connection.register("arriving", made)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM arriving")
        connection.unregister("arriving")
    return connection


def answers(sql: str, shop: Catalog, rows: duckdb.DuckDBPyConnection, terms: QueryTerms) -> Iterator[Answer]:
    """Yield answers to a query, each with noise of its own; the rows are read once."""
    measured = measure(interpret(sql, shop), shop["orders"].unit, terms)
    collected = tuple(rows.sql(query.sql("duckdb")).to_arrow_table() for query in measured.statistics)
    while True:
        yield measured.answer(collected, SystemCoins())


def truth(sql: str, shop: Catalog, rows: duckdb.DuckDBPyConnection) -> dict[tuple[Any, ...], list[Any]]:
    """Return the true numbers of all groups by their keys, also of those that a LIMIT or HAVING would leave out."""
    whole = sql.partition(" ORDER BY ")[0].partition(" HAVING ")[0]
    return dict(_numbers(next(answers(whole, shop, rows, SURE)), "values"))


def _numbers(answer: Answer, part: str) -> Iterator[tuple[tuple[Any, ...], list[Any]]]:
    """Yield for each row of an answer its keys, and its numbers that have intervals, or these."""
    keys = [column.values.to_pylist() for column in answer.columns if column.low is None]
    columns: list[Any] = [column for column in answer.columns if column.low is not None]
    if part == "values":
        numbers = [column.values.to_pylist() for column in columns]
    else:
        numbers = [list(zip(column.low.to_pylist(), column.high.to_pylist(), strict=True)) for column in columns]
    for place in range(answer.table.num_rows):
        yield tuple(key[place] for key in keys), [values[place] for values in numbers]


def held(answer: Answer, true: dict[tuple[Any, ...], list[Any]]) -> tuple[int, int]:
    """Return how many intervals of an answer hold the true numbers, and how many there are."""
    inside = total = 0
    for key, intervals in _numbers(answer, "intervals"):
        for (low, high), number in zip(intervals, true.get(key, [0] * len(intervals)), strict=True):
            if number is not None and low is not None:
                total += 1
                inside += low - 1e-6 * abs(low) <= number <= high + 1e-6 * abs(high)
    return inside, total


def main(many: int = 200) -> int:
    """Print the table; return 1 if intervals that no noise chose hold less often than they say."""
    rows, capped, open_, failed = tables(), catalog(4), catalog(MOST_ORDERS), False
    print("| kind of query | numbers | held | of the whole table | says that noise chose |\n|---|---|---|---|---|")
    for kind, sql in QUERIES.items():
        true, whole = truth(sql, capped, rows), truth(sql, open_, rows)
        counts, chosen = [0, 0, 0, 0], False
        for answer, _ in zip(answers(sql, capped, rows, TERMS), range(many), strict=False):
            counts = [
                count + more for count, more in zip(counts, held(answer, true) + held(answer, whole), strict=True)
            ]
            chosen = chosen or any("chose" in column.note for column in answer.columns)
        share, of_whole = counts[0] / counts[1], counts[2] / max(1, counts[3])
        failed = failed or (not chosen and share < 0.95 - 4 * (0.05 * 0.95 / counts[1]) ** 0.5)
        print(f"| {kind} | {counts[1]:,} | {share:.1%} | {of_whole:.1%} | {'yes' if chosen else 'no'} |", flush=True)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main(*map(int, sys.argv[1:])))
