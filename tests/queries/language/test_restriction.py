"""WHERE on a key leaves the groups that are possible, by what is declared; on every small table no row is lost."""

from __future__ import annotations

from datetime import date
from itertools import product

import duckdb
import pytest

from incrowd.core.domain import Categories, Dates, Numbers, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import Column, Schema
from incrowd.errors import IncrowdError
from incrowd.queries.language.understanding import understand
from incrowd.queries.query import Catalog, Relation

CHANNELS, DAYS = ("app", "web", "Geschäft"), Dates(date(2025, 2, 26), date(2025, 3, 4))
ORDERS = Relation(
    "orders",
    Schema(
        (
            Column("channel", hierarchy=Flat(Categories(CHANNELS))),
            Column("pieces", type=Type.INTEGER, hierarchy=Flat(Numbers(0, 5))),
            Column("day", type=Type.DATE, hierarchy=Flat(DAYS)),
            Column("express", type=Type.BOOLEAN),
        )
    ),
    dataset="orders",
)
CATALOG = Catalog((ORDERS,))


def _groups(where: str, key: str) -> tuple[object, ...] | None:
    return understand(f"SELECT {key} AS k, COUNT(*) FROM orders WHERE {where} GROUP BY {key}", CATALOG).keys[0].values


@pytest.mark.parametrize(
    ("where", "key", "groups"),
    [
        ("channel = 'web'", "channel", ("web",)),
        ("channel IN ('web', 'app') AND pieces > 2", "channel", ("app", "web")),
        ("NOT channel IN ('web', 'app')", "channel", ("Geschäft", "other")),
        ("channel LIKE 'w%'", "channel", ("web",)),
        ("channel IS NULL OR channel = 'app'", "channel", ("app", None)),
        ("pieces BETWEEN 2 AND 3 OR pieces = 5", "pieces", (2, 3, 5)),
        ("day >= DATE '2025-03-01' AND day < '2025-03-03'", "day", (date(2025, 3, 1), date(2025, 3, 2))),
        ("EXTRACT(MONTH FROM day) = 3", "DATE_TRUNC('month', day)", (date(2025, 3, 1),)),
        ("pieces > 3", "pieces % 2", (0, 1)),
        ("express", "express", (True,)),
    ],
)
def test_a_condition_on_a_key_leaves_its_groups(where: str, key: str, groups: tuple[object, ...]) -> None:
    assert _groups(where, key) == groups


@pytest.mark.parametrize(
    "where", ["channel = 'web' OR pieces = 1", "channel = 'web' OR 1 = 1", "pieces > 3", "channel = 'nix'"]
)
def test_what_restricts_nothing_for_sure_leaves_all_groups(where: str) -> None:
    assert _groups(where, "channel") == ("Geschäft", "app", "other", "web", None)


LEAVES = (
    "channel = 'web'", "channel <> 'app'", "channel IS NULL", "channel IN ('app', 'Geschäft')", "channel > 'app'",
    "COALESCE(channel, 'web') = 'web'", "UPPER(channel) = 'WEB'", "channel LIKE '_e%'", "NOT channel = 'web'",
    "channel NOT LIKE 'w%'", "channel IS NOT NULL",
    "channel NOT LIKE '%e%'",
)  # fmt: skip


def test_no_row_is_lost_whatever_the_condition() -> None:
    """For every pair of conditions, and every value, DuckDB finds rows in shown groups alone."""
    for one, two, word in product(LEAVES, LEAVES, ("AND", "OR", "AND NOT")):
        where = f"({one}) {word} ({two})"
        try:
            shown = _groups(where, "channel")
        except IncrowdError:
            continue
        values = "VALUES ('app'), ('web'), ('Geschäft'), ('other'), (NULL)"
        held = duckdb.execute(f"SELECT channel FROM ({values}) AS t(channel) WHERE {where}").fetchall()
        assert {value for (value,) in held} <= set(shown or ()), where
