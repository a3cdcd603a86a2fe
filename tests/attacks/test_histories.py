"""A few known events find a person among pseudonyms, and nobody in what incrowd releases of the same events."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import incrowd
from incrowd.attacks.finding import AttackVerdict
from incrowd.attacks.histories import baskets, similarity
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.workflows.attack.publication import lookup_of
from tests.attacks.crowds import pseudonymized, ratings, table_of
from tests.policies import with_ledger
from tests.statistics.alarm import FALSE_ALARM

PEOPLE, OUTSIDERS = ratings(1000, 300, 1), ratings(400, 300, 2, "q")
KNOWLEDGE = Knowledge(
    PEOPLE, ("film", "rating", "day"), person="who", item="film", slack={"rating": 1, "day": 14}, trials=300
)
COLUMNS = {
    "who": {"role": "identifier"},
    "film": {"hierarchy": {"tree": {f"genre {g}": [f"f{n}" for n in range(g, 300, 3)] for g in range(3)}}},
    "rating": {"type": "integer", "bounds": [0, 5], "hierarchy": {"intervals": [3]}},
    "day": {"type": "integer", "bounds": [0, 1999], "hierarchy": {"intervals": [1000]}},
}
RELEASES = {
    "safe": {
        "method": "safe",
        "levels": {"film": 1, "rating": 1, "day": 1},
        "rate": "1/2",
        "epsilon": 1,
        "delta": "1e-4",
    },
    "points": {
        "method": "points",
        "columns": ["rating", "day"],
        "s": 5,
        "rate": "1/2",
        "epsilon": 1,
        "delta": "1e-4",
    },
}


def test_eight_ratings_known_about_find_nine_of_ten_among_pseudonyms() -> None:
    found = similarity(PublishedTable(pseudonymized(PEOPLE, "who", 3)), KNOWLEDGE, OUTSIDERS).at(1 - FALSE_ALARM)
    assert found.success.low > 0.9
    assert found.control is not None
    assert found.control.hits == 0
    assert found.verdict is AttackVerdict.LEAK
    assert "8 events" in found.story[2]


def changed_ratings(table: pa.Table, days: int, stars: int) -> pa.Table:
    """Return ratings with days shifted and stars changed at random, up to so many, and a part of the rows left out."""
    chance = np.random.default_rng(9)
    day = table["day"].to_numpy() + chance.integers(-days, days + 1, table.num_rows)
    rating = np.clip(table["rating"].to_numpy() + chance.integers(-stars, stars + 1, table.num_rows), 1, 5)
    table = table.set_column(3, "day", pa.array(day)).set_column(2, "rating", pa.array(rating))
    return table.filter(pa.array(chance.random(table.num_rows) < 0.9))


@pytest.mark.parametrize(("days", "stars", "slack"), [(14, 1, {"day": 14, "rating": 1}), (60, 1, {}), (365, 4, {})])
def test_shifted_days_and_changed_ratings_protect_nobody(days: int, stars: int, slack: dict[str, float]) -> None:
    knowledge = replace(KNOWLEDGE, slack=slack, trials=200)
    table = pseudonymized(changed_ratings(PEOPLE, days, stars), "who", 3)
    found = similarity(PublishedTable(table), knowledge, OUTSIDERS).at(1 - FALSE_ALARM)
    assert found.success.estimate > (0.5 if stars == 4 else 0.95)  # ratings at random and days off by a year: .70
    assert found.control is not None
    assert found.control.estimate < 0.05
    assert found.verdict is AttackVerdict.LEAK


@pytest.mark.parametrize("method", RELEASES)
def test_they_find_nobody_in_a_release_of_the_same_ratings(tmp_path: Path, method: str) -> None:
    policy = {
        "incrowd": 1,
        "dataset": {"name": "ratings", "unit": {"column": "who", "max_rows": 1}},
        "columns": COLUMNS,
        "release": RELEASES[method],
    }
    loaded = incrowd.load_policy(with_ledger(policy, tmp_path))
    table = table_of(loaded, PEOPLE, 5)
    assert table.num_rows > 200
    if "film" not in table.column_names:
        table = table.append_column("film", pa.repeat("*", table.num_rows))
    found = similarity(PublishedTable(table, {"film": lookup_of(loaded.schema["film"])}), KNOWLEDGE, OUTSIDERS).at(
        1 - FALSE_ALARM
    )
    assert found.success.hits == 0
    assert found.verdict is AttackVerdict.NOT_FOUND


def words(people: int, seed: int, prefix: str) -> pa.Table:
    """Return searches of several words each, of people who each have a few favorite words."""
    chance = np.random.default_rng(seed)
    rows = []
    for person in range(people):
        own = chance.integers(0, 400, 6)
        rows += [(f"{prefix}{person}", " ".join(f"w{each}" for each in chance.choice(own, 3))) for _ in range(8)]
    who, searched = zip(*rows, strict=True)
    return pa.table({"who": who, "search": searched})


def test_a_few_search_words_find_a_searcher() -> None:
    people, outsiders = words(300, 1, "p"), words(200, 2, "q")
    knowledge = Knowledge(people, ("search",), person="who", item="search", separator=" ", few=3)
    found = baskets(PublishedTable(pseudonymized(people, "who", 4)), knowledge, outsiders).at(1 - FALSE_ALARM)
    assert found.verdict is AttackVerdict.LEAK
    assert "exactly one has all" in found.story[1]


def test_items_made_coarse_enough_find_nobody(tmp_path: Path) -> None:
    """Released by `itemsets` with m = 2, two known items fit at least k rows; as they were, they single people out."""
    tree = {f"group {n}": [f"i{n}{m}" for m in range(5)] for n in range(8)}
    items = [item for group in tree.values() for item in group]

    def goods(people: int, seed: int) -> pa.Table:
        chance = np.random.default_rng(seed)
        return pa.table({"goods": [";".join(chance.choice(items, 5, replace=False)) for _ in range(people)]})

    people, outsiders = goods(400, 1), goods(400, 2)
    policy = {
        "incrowd": 1,
        "dataset": {"name": "goods"},
        "columns": {"goods": {"role": "quasi", "separator": ";", "hierarchy": {"tree": tree}}},
        "release": {"method": "itemsets", "k": 5, "m": 2},
        "budget": {"unbounded": "a test"},
    }
    loaded = incrowd.load_policy(with_ledger(policy, tmp_path))
    table = incrowd.release(people, loaded).result.to_arrow()
    lookups = {"goods": lookup_of(loaded.schema["goods"])}
    for few, leaks in ((2, False), (4, True)):
        knowledge = Knowledge(people, ("goods",), item="goods", separator=";", few=few)
        raw = baskets(PublishedTable(people), knowledge, outsiders).at(1 - FALSE_ALARM)
        made = baskets(PublishedTable(table, lookups), knowledge, outsiders).at(1 - FALSE_ALARM)
        assert raw.success.hits > made.success.hits
        assert (raw.verdict is AttackVerdict.LEAK) >= leaks
        assert made.success.hits == 0 or few > 2
