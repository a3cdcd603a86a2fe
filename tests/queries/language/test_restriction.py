"""WHERE on a key leaves the groups that are possible, by what is declared; on every small table no row is lost."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from itertools import cycle, product

import duckdb
import pytest

from incrowd.core.calendar import Every, PeriodCalendar
from incrowd.core.domain import Categories, Dates, Numbers, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.unit import Kind, Unit
from incrowd.errors import IncrowdError, QueryRefused
from incrowd.queries.language.understanding import understand
from incrowd.queries.query import Block, Catalog, Relation

CHANNELS, DAYS = ("app", "web", "Geschäft"), Dates(date(2025, 2, 26), date(2025, 3, 4))
COLUMNS = (
    Column("channel", hierarchy=Flat(Categories(CHANNELS))),
    Column("pieces", type=Type.INTEGER, hierarchy=Flat(Numbers(0, 5))),
    Column("day", type=Type.DATE, hierarchy=Flat(DAYS)),
    Column("express", type=Type.BOOLEAN),
)
WIDE = (
    Column("born", type=Type.DATE, hierarchy=Flat(Dates(date(1905, 1, 1), date(2025, 12, 31)))),
    Column("zip", type=Type.INTEGER, hierarchy=Flat(Numbers(1000, 99_999))),
    Column("amount", type=Type.DECIMAL, hierarchy=Flat(Numbers(0, 100_000, Type.DECIMAL))),
    Column("city"),
)
ORDERS = Relation("orders", Schema((*COLUMNS, *WIDE)), dataset="orders")
LANDS = Relation(
    "lands",
    Schema((COLUMNS[0], Column("land", hierarchy=Flat(Categories(("DE", "JP")))))),
    most={frozenset({"channel"}): 1},
)
CATALOG = Catalog((ORDERS, LANDS))


def _values(sql: str) -> tuple[object, ...] | None:
    return understand(sql, CATALOG).keys[0].values


def _groups(where: str, key: str) -> tuple[object, ...] | None:
    return _values(f"SELECT {key} AS k, COUNT(*) FROM orders WHERE {where} GROUP BY {key}")


@pytest.mark.parametrize(
    ("where", "key", "groups"),
    [
        ("channel = 'web'", "channel", ("web",)),
        ("channel IN ('web', 'app') AND pieces > 2", "channel", ("app", "web")),
        ("NOT channel IN ('web', 'app')", "channel", ("Geschäft", "other")),
        ("channel LIKE 'w%'", "channel", ("web",)),
        ("channel IS NULL OR channel = 'app'", "channel", ("app", None)),
        ("channel IS NULL", "CASE WHEN channel IS NULL THEN 'none' ELSE channel END", ("none",)),
        ("COALESCE(channel, 'none') <> 'web'", "COALESCE(channel, 'none')", ("Geschäft", "app", "none", "other")),
        ("pieces BETWEEN 2 AND 3 OR pieces = 5", "pieces", (2, 3, 5)),
        ("pieces > 3", "CASE WHEN pieces > 2 THEN 'many' ELSE 'few' END", ("many",)),
        ("day >= DATE '2025-03-01' AND day < '2025-03-03'", "day", (date(2025, 3, 1), date(2025, 3, 2))),
        ("EXTRACT(MONTH FROM day) = 3", "DATE_TRUNC('month', day)", (date(2025, 3, 1),)),
        ("pieces > 3", "pieces % 2", (0, 1)),
        ("4 NOT BETWEEN pieces AND 3", "pieces", (0, 1, 2, 3, 4, 5, None)),
        ("4 NOT BETWEEN pieces AND 3 AND pieces IN (1, 3)", "pieces", (1, 3)),
        ("express", "express", (True,)),
        ("born BETWEEN '2025-03-01' AND '2025-03-02'", "born", (date(2025, 3, 1), date(2025, 3, 2))),
        ("born >= '2025-11-01' AND '2025-12-01' > born", "DATE_TRUNC('month', born)", (date(2025, 11, 1),)),
        ("zip = 10115 OR zip IN (1, 10117)", "zip", (10115, 10117)),
        ("amount >= 2000 AND amount < 2500", "FLOOR(amount / 1000)", (2,)),
        ("city IN ('Łódź', '東京')", "city", ("Łódź", "東京")),
        ("(channel = 'web' AND pieces = 1) OR (channel = 'app' AND express)", "channel", ("app", "web")),
        ("(channel, pieces) IN (('web', 1), ('app', 2))", "pieces", (1, 2)),
        ("NOT (channel = 'web' OR pieces = 1)", "channel", ("Geschäft", "app", "other")),
        ("NOT (channel <> 'web' AND pieces = 1)", "channel", ("Geschäft", "app", "other", "web", None)),
        (
            "(channel IS NOT NULL AND express) OR (channel = 'web' AND pieces = 1)",
            "channel",
            ("Geschäft", "app", "other", "web"),
        ),
    ],
)
def test_a_condition_on_a_key_leaves_its_groups(where: str, key: str, groups: tuple[object, ...]) -> None:
    assert _groups(where, key) == groups


@pytest.mark.parametrize(
    ("rows", "key", "groups"),
    [
        ("(SELECT * FROM orders WHERE channel = 'web') AS t", "channel", ("web",)),
        ("(SELECT channel AS c FROM orders WHERE pieces = 1) AS t WHERE c LIKE 'a%'", "c", ("app",)),
        ("(SELECT pieces + 1 AS p FROM orders WHERE pieces > 3) AS t WHERE p <> 6", "p", (5,)),
        ("orders AS o JOIN lands AS l ON o.channel = l.channel WHERE l.channel = 'web'", "o.channel", ("web",)),
        ("orders AS o JOIN lands AS l ON o.channel = l.channel AND l.land = 'JP'", "l.land", ("JP",)),
        ("orders AS o LEFT JOIN lands AS l ON o.channel = l.channel WHERE l.land = 'JP'", "l.land", ("JP",)),
        (
            (
                "(SELECT channel FROM orders WHERE channel = 'web' UNION ALL SELECT channel FROM orders "
                "WHERE channel IS NULL) AS t"
            ),
            "channel",
            ("web", None),
        ),
    ],
)
def test_conditions_in_subqueries_and_joins_leave_their_groups(rows: str, key: str, groups: tuple[object, ...]) -> None:
    assert _values(f"SELECT {key} AS k, COUNT(*) FROM {rows} GROUP BY {key}") == groups


@pytest.mark.parametrize("where", ["channel = 'web' OR pieces = 1", "channel = 'web' OR 1 = 1", "pieces > 3"])
def test_what_restricts_nothing_for_sure_leaves_all_groups(where: str) -> None:
    assert _groups(where, "channel") == ("Geschäft", "app", "other", "web", None)


@pytest.mark.parametrize(("where", "key"), [("channel = 'nix'", "channel"), ("pieces > 20", "pieces")])
def test_conditions_that_no_declared_value_fits_are_refused(where: str, key: str) -> None:
    with pytest.raises(QueryRefused, match="no declared value fits"):
        _groups(where, key)


def test_a_value_that_is_written_otherwise_is_refused_with_the_declared_one() -> None:
    with pytest.raises(QueryRefused, match="Did you mean 'Geschäft'"):
        _groups("channel = 'Geschaft'", "channel")


LEAVES = {
    "channel": (
        "channel = 'web'", "channel <> 'app'", "channel IS NULL", "channel IN ('app', 'Geschäft')", "channel > 'app'",
        "COALESCE(channel, 'web') = 'web'", "UPPER(channel) = 'WEB'", "channel LIKE '_e%'", "NOT channel = 'web'",
        "channel NOT LIKE 'w%'", "channel IS NOT NULL", "channel NOT LIKE '%e%'", "CONCAT(channel, 'x') = 'x'",
        "NULLIF(channel, 'web') IS NULL", "CASE WHEN channel = 'web' THEN FALSE ELSE TRUE END",
    ),
    "pieces": (
        "pieces > 2", "NOT pieces BETWEEN 1 AND 4", "GREATEST(pieces, 0) = 0", "LEAST(pieces, 3) = 3", "pieces IN (0)",
        "pieces IS DISTINCT FROM 2", "COALESCE(pieces, 9) > 3", "pieces % 2 = 1", "5 <= pieces", "pieces <> pieces",
    ),
    "day": (
        "day > '2025-03-01'", "EXTRACT(MONTH FROM day) = 2", "day IS NULL", "DATE_TRUNC('week', day) < '2025-03-03'",
        "day + INTERVAL 1 DAY = DATE '2025-03-01'", "COALESCE(day, DATE '2025-03-01') = '2025-03-01'",
    ),
}  # fmt: skip
KEYS = {
    "channel": ("channel", "COALESCE(channel, 'none')", "CASE WHEN channel IS NULL THEN 'x' ELSE channel END"),
    "pieces": ("pieces", "GREATEST(pieces, 2)", "COALESCE(pieces % 2, 7)", "pieces > 2 AND pieces < 5"),
    "day": ("day", "DATE_TRUNC('month', day)", "COALESCE(EXTRACT(DAY FROM day), 0)"),
}
HELD = {
    "channel": "VALUES ('app'), ('web'), ('Geschäft'), ('other'), (NULL)",
    "pieces": "VALUES (0), (1), (2), (3), (4), (5), (NULL)",
    "day": ", ".join(["VALUES (NULL)", *(f"(DATE '{DAYS.bounds[0] + timedelta(days=n)}')" for n in range(7))]),  # type: ignore[operator]
}


def _conditions(column: str) -> Iterator[str]:
    for one, two, word in product(LEAVES[column], LEAVES[column], ("AND", "OR", "AND NOT")):
        yield f"({one}) {word} ({two})"


@pytest.mark.parametrize("column", LEAVES)
def test_no_row_is_lost_whatever_the_condition(column: str) -> None:
    """For every pair of conditions, keys in turn, and every value, DuckDB finds rows in shown groups alone."""
    checked = 0
    for where, key in zip(_conditions(column), cycle(KEYS[column])):
        try:
            shown = _groups(where, key)
        except IncrowdError:
            continue
        rows = f"(SELECT column0 AS {column} FROM ({HELD[column]}) AS t(column0))"
        held = duckdb.execute(f"SELECT {key} FROM {rows} WHERE {where}").fetchall()
        assert {value.date() if hasattr(value, "hour") else value for (value,) in held} <= set(shown or ()), where
        checked += 1
    assert checked > 50


def test_no_row_is_lost_by_conditions_on_several_columns() -> None:
    rows = f"(SELECT * FROM ({HELD['channel']}) AS c(channel), ({HELD['pieces']}) AS p(pieces)) AS orders"
    pairs = zip(LEAVES["channel"], cycle(LEAVES["pieces"]), cycle(LEAVES["channel"][3:]), cycle(LEAVES["pieces"][1:]))
    forms = ("({0} AND {1}) OR ({2} AND {3})", "NOT ({0} OR {1}) AND {2}", "({0} OR {1}) AND NOT ({2} AND {3})")
    for form, leaves, key in zip(cycle(forms), pairs, cycle(("channel", "pieces"))):
        where = form.format(*(f"({leaf})" for leaf in leaves))
        held = duckdb.execute(f"SELECT DISTINCT {key} FROM {rows} WHERE {where}").fetchall()
        assert {value for (value,) in held} <= set(_groups(where, key) or ()), where


PEOPLE = Relation(
    "orders",
    Schema((Column("who", role=Role.IDENTIFIER), *COLUMNS), unit=Unit(Kind.PERSON, column="who", max_rows=2)),
    dataset="orders",
    calendar=PeriodCalendar("day", Every.MONTH, "2025-02", "2025-03"),
)
READ = (
    "SELECT COUNT(*) FROM orders WHERE day < '2025-03-01'",
    "SELECT COUNT(*) FROM orders WHERE (day < '2025-02-28' AND pieces = 1) OR (day = '2025-03-02' AND channel = 'web')",
    "SELECT COUNT(*) FROM orders WHERE NOT (day > '2025-03-01' OR pieces = 1)",
    "SELECT channel, COUNT(*) FROM orders WHERE EXTRACT(MONTH FROM day) = 3 AND pieces > 1 GROUP BY channel",
    "SELECT COUNT(*) FROM (SELECT day AS d, who FROM orders WHERE pieces < 5) AS t WHERE d = '2025-03-01'",
    "SELECT COUNT(*) FROM orders AS a JOIN orders AS b ON a.who = b.who AND a.day = b.day WHERE b.day < '2025-02-28'",
    (
        "SELECT COUNT(*) FROM orders AS a LEFT JOIN (SELECT who, pieces FROM orders WHERE day = '2025-03-02') AS b "
        "ON a.who = b.who WHERE a.day IN ('2025-03-01', '2025-03-03')"
    ),
    (
        "SELECT n, COUNT(*) FROM (SELECT who, COUNT(*) AS n FROM orders WHERE day > '2025-03-02' GROUP BY who) AS t "
        "GROUP BY n"
    ),
    (
        "SELECT COUNT(*) FROM orders WHERE day < '2025-03-01' AND who NOT IN (SELECT who FROM orders WHERE "
        "day = '2025-03-04')"
    ),
    (
        "SELECT COUNT(*) FROM (SELECT who FROM orders WHERE day = '2025-02-27' UNION ALL "
        "SELECT who FROM orders WHERE day = '2025-03-04') AS t"
    ),
)


@pytest.mark.parametrize("sql", READ)
def test_people_without_a_row_on_the_days_that_a_query_reads_change_nothing(sql: str) -> None:
    query = understand(sql, Catalog((PEOPLE,)))
    days = frozenset[object]().union(*(block.days or () for block in query.blocks))
    assert all(block.days is not None for block in query.blocks)
    assert 0 < len(days) < 7
    assert None not in days
    with duckdb.connect() as connection:
        listed = ", ".join(f"('{day}'::DATE)" for day in days)
        connection.execute(
            """CREATE TABLE everybody AS SELECT h // 3 AS who, ['app', 'web', 'x', NULL][1 + h % 4] AS channel,
            h % 7 AS pieces, DATE '2025-02-26' + CAST(hash(h) % 7 AS INTEGER) AS day, h % 2 = 0 AS express
            FROM range(600) AS t(h)"""
        )
        found = []
        for rows in ("everybody", f"everybody WHERE who IN (SELECT who FROM everybody WHERE day IN ({listed}))"):
            connection.execute(f"CREATE OR REPLACE TABLE orders AS SELECT * FROM {rows}")
            found.append(sorted(map(repr, connection.execute(query.rows.sql("duckdb")).fetchall())))
        assert found[0] == found[1]
        assert found[0]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM orders",
        "SELECT COUNT(*) FROM orders WHERE day < '2025-03-01' OR pieces = 1",
        "SELECT COUNT(*) FROM orders WHERE NOT (day >= '2025-03-01' AND pieces = 1)",
        "SELECT COUNT(*) FROM (SELECT who, MAX(day) AS day FROM orders GROUP BY who) AS t WHERE day < '2025-03-01'",
        "SELECT COUNT(*) FROM orders AS a JOIN orders AS b ON a.who = b.who WHERE a.day < '2025-03-01'",
        "SELECT COUNT(*) FROM orders WHERE day < '2025-03-01' AND who IN (SELECT who FROM orders)",
        "SELECT COUNT(*) FROM orders AS a LEFT JOIN orders AS b ON a.who = b.who AND a.day < '2025-03-01'",
        (
            "SELECT COUNT(*) FROM (SELECT day, who FROM orders UNION ALL SELECT day, who FROM orders) AS t "
            "WHERE day < '2025-03-01'"
        ),
    ],
)
def test_a_query_that_reads_other_days_anywhere_is_not_taken_for_one_of_some_days(sql: str) -> None:
    assert Block("orders") in understand(sql, Catalog((PEOPLE,))).blocks
