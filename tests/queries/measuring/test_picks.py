"""Picks: exact quantiles of tied values, scores that one unit moves as far as said, and notes that count rows truly."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from incrowd.core.domain import Categories, Numbers, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.rounding import Number
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.noise.system import SystemCoins
from incrowd.queries.language.understanding import understand
from incrowd.queries.measurement import Measurement, measurement
from incrowd.queries.measuring import picks
from incrowd.queries.measuring.picks import NUMBER, PLACE, Pick
from incrowd.queries.query import Aggregate, AggregateKind, Catalog, Relation, Value
from tests.queries.asked import ROW, asked, terms
from tests.statistics.alarm import FALSE_ALARM

PLACES = (Fraction(0), Fraction(1, 10), Fraction(1, 4), Fraction(1, 2), Fraction(9, 10), Fraction(1))
COINS = SystemCoins()
Counts = NDArray[np.int64]


def pick_of(at: Fraction, highest: int, epsilon: Number) -> tuple[Measurement, Pick]:
    value = Value("age", Type.INTEGER, Fraction(0), Fraction(highest), optional=True)
    question = asked((Aggregate("q", AggregateKind.QUANTILE, value, at),), keys=())
    measured = measurement(question, ROW, terms(epsilon=epsilon))
    return measured, measured.picks[0]


def picked(measured: Measurement, counts: Counts) -> int:
    """Return what is picked from a table with so many rows at each value, as the engine would collect it."""
    table = pa.table({PLACE: pa.array(np.arange(len(counts))), NUMBER: pa.array(counts)})
    found = measured.answer((table.filter(pa.array(counts > 0)),), COINS).table.column("q").to_pylist()
    return int(found[0])


def exact(counts: Counts, at: Fraction) -> set[int]:
    """Return all quantiles: #{x < v} ≤ n · at ≤ #{x ≤ v}; of 0 and 1 the least and the greatest value."""
    present = np.flatnonzero(counts)
    if at in (0, 1):
        return {int(present[0] if at == 0 else present[-1])}
    rank = at * int(counts.sum())
    return {v for v in range(len(counts)) if int(counts[:v].sum()) <= rank <= int(counts[: v + 1].sum())}


def wrong(counts: Counts, at: Fraction, epsilon: float) -> float:
    """Return the chance that the exponential mechanism picks no exact quantile; a minimum is of rank `off`, here 1."""
    n, odds = int(counts.sum()), (at.denominator - at.numerator, at.numerator)
    gaps = []
    for v in range(len(counts)):
        below, at_most = int(counts[:v].sum()), int(counts[: v + 1].sum())
        wanted = {0: (Fraction(0), Fraction(1)), 1: (Fraction(n - 1), Fraction(n))}.get(at, (at * n, at * n))  # type: ignore[call-overload]
        gaps.append(float(at.denominator * max(Fraction(0), below - wanted[0], wanted[1] - at_most)))
    weights = np.exp(-np.array(gaps) * epsilon / 2.0 / max(odds))
    good = exact(counts, at)
    return float(sum(weights[v] for v in range(len(counts)) if v not in good) / weights.sum())


def test_the_median_of_mostly_zeros_is_zero() -> None:
    measured, _ = pick_of(Fraction(1, 2), 4, 50)
    counts = np.array([5500, 500, 4000, 0, 0])
    assert wrong(counts, Fraction(1, 2), 50.0) * 100 < FALSE_ALARM
    assert {picked(measured, counts) for _ in range(100)} == {0}


def test_quantiles_of_200_tied_tables_are_exact_at_a_generous_epsilon() -> None:
    """Tables are drawn with a seed; those whose ranks are within a fraction of a row of another value are left out."""
    rng = np.random.default_rng(17)
    tried = failing = 0.0
    while tried < 200:
        values = int(rng.integers(2, 9))
        counts = rng.multinomial(int(rng.integers(20, 4000)), rng.dirichlet(np.full(values, 0.4)))
        chances = {at: wrong(counts, at, 50.0) for at in PLACES}
        if max(chances.values()) > FALSE_ALARM / 2000:
            continue
        tried, failing = tried + 1, failing + sum(chances.values())
        for at in PLACES:
            assert picked(pick_of(at, values - 1, 50)[0], counts) in exact(counts, at), (at, counts)
    assert failing < FALSE_ALARM


@pytest.mark.parametrize("at", PLACES, ids=str)
def test_a_score_is_zero_exactly_where_a_candidate_is_the_quantile(at: Fraction) -> None:
    pick = pick_of(at, 3, 50)[1]
    assert pick.off == (1 if at in (0, 1) else pick.off)
    for counts in itertools.product(range(4), repeat=4):
        if sum(counts):
            scores = pick._scores(np.array([counts]))[0]
            assert set(np.flatnonzero(scores == 0)) == exact(np.array(counts), at), counts


@pytest.mark.parametrize("epsilon", ["0.05", "0.5", "5"])
@pytest.mark.parametrize("at", PLACES, ids=str)
def test_the_note_counts_rows_truly(at: Fraction, epsilon: str) -> None:
    """The chance of each candidate is computed; what the note excludes has 5 % at most, on tied and skewed tables."""
    pick = pick_of(at, 20, epsilon)[1]
    worst = 0.0
    for counts in tables_of(21, pick.off):
        scores = pick._scores(counts[None])[0]
        weights = np.exp((scores - scores.max()) / float(pick.mechanism.scale))
        at_most, n = np.cumsum(counts), int(counts.sum())
        below, above, rank = at_most - counts, n - at_most, float(at) * n
        if at == 0:
            bad = (below > 2 * pick.off - 2) | (at_most < 1)
        elif at == 1:
            bad = (above > 2 * pick.off - 2) | (n - below < 1)
        else:
            bad = (below > rank + pick.off) | (above > n - rank + pick.off)
        worst = max(worst, float(weights[bad].sum() / weights.sum()))
    assert worst <= 0.05
    assert f"{(2 * pick.off - 2 if at in (0, 1) else pick.off):,} rows" in pick.note
    assert pick.note.startswith("no interval of values: in 95 % of groups")


def tables_of(values: int, off: int) -> list[Counts]:
    """Return tables with at least `off` rows: even, tied at one value, skewed, and with one row far from all others."""
    each = -(-off // values) + 1
    even = np.full(values, each)
    tied = np.zeros(values, dtype=np.int64)
    tied[5] = off + 3
    skewed = np.maximum(1, off >> np.arange(values))
    far = tied.copy()
    far[-1] = 1
    return [even, tied, skewed, skewed[::-1], far, 50 * even]


SCHEMA = (
    Column("person", Role.IDENTIFIER, Type.INTEGER),
    Column("ward", hierarchy=Flat(Categories(("a", "b")))),
    Column("score", type=Type.INTEGER, hierarchy=Flat(Numbers(0, 2))),
)
SINGLE = ((), (("a", 0),), (("a", 2),))
BAGS = ((), (("a", 0),), (("a", 2), ("a", 2)), (("a", 0), ("b", 2)), (("a", 0), ("a", 1), ("b", 2)))
UNITS: dict[str, tuple[Unit, tuple[tuple[tuple[str, int], ...], ...], int]] = {
    "row": (Unit(), SINGLE, 4),
    "replaced row": (Unit(adjacency=Adjacency.REPLACE), SINGLE, 4),
    "person": (Unit(Kind.PERSON, column="person", max_rows=2), BAGS, 3),
    "replaced person": (Unit(Kind.PERSON, Adjacency.REPLACE, "person", 2), BAGS, 3),
}


@pytest.mark.parametrize("name", UNITS)
def test_no_unit_moves_scores_or_chances_further_than_guaranteed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From SQL to the scores, through the real engine, on all tables of a few people with a few rows each."""
    unit, bags, people = UNITS[name]
    catalog = Catalog((Relation("t", Schema(SCHEMA, unit), dataset="t"),))
    wanted = ", ".join(f"QUANTILE(score, {float(at)})" for at in PLACES)
    question = understand(f"SELECT ward, {wanted}, MODE(score) FROM t GROUP BY ward", catalog)
    measured = measurement(question, unit, terms(epsilon=7))
    seen: list[Any] = []

    def first(mechanism: object, found: Counts, coins: object) -> Counts:
        seen.append(found)
        return np.zeros(len(found), dtype=np.int64)

    monkeypatch.setattr(picks, "select_each", first)
    scores = {}
    with duckdb.connect() as database:
        database.execute("CREATE TABLE t (person BIGINT, ward VARCHAR, score BIGINT)")
        texts = [query.sql("duckdb") for query in measured.statistics]
        same = {text: texts.index(text) for text in texts}
        for bag in itertools.product(range(len(bags)), repeat=people):
            rows = [(person, *row) for person, which in enumerate(bag) for row in bags[which]]
            database.execute("DELETE FROM t")
            if rows:
                database.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
            found = {place: database.sql(texts[place]).to_arrow_table() for place in set(same.values())}
            seen.clear()
            measured.answer(tuple(found[same[text]] for text in texts), COINS)
            scores[bag] = list(seen)
    pairs = [pair for bag in scores for pair in neighbors(bag, len(bags), unit.adjacency)]
    for place, pick in enumerate(measured.picks):
        moved = [np.abs(scores[a][place] - scores[b][place]).max(axis=1).sum() for a, b in pairs]
        assert max(moved) <= pick.mechanism.sensitivity
        assert max(moved) >= pick.mechanism.sensitivity / 2
        if pick.aggregate.kind is AggregateKind.QUANTILE:
            losses = [loss(scores[a][place], scores[b][place], float(pick.mechanism.scale)) for a, b in pairs]
            assert max(losses) <= float(pick.epsilon) * (1 + 1e-9)


def neighbors(bag: tuple[int, ...], kinds: int, adjacency: Adjacency) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return this table beside those with one person fewer, or with another bag of rows in a person's place."""
    others = (range(1, kinds) if adjacency is Adjacency.REPLACE else (0,)) if any(bag) else ()
    places = [place for place, which in enumerate(bag) if which]
    return [(bag, (*bag[:p], other, *bag[p + 1 :])) for p in places for other in others if other != bag[p]]


def loss(one: Counts, other: Counts, scale: float) -> float:
    """Return the largest log ratio of chances over the picks of all groups, in either direction."""
    logs = [each / scale - np.logaddexp.reduce(each / scale, axis=1, keepdims=True) for each in (one, other)]
    change = logs[0] - logs[1]
    return max(float(change.max(axis=1).sum()), float((-change).max(axis=1).sum()))


def test_a_note_says_that_values_are_rounded_where_they_are() -> None:
    value = Value("age", Type.DECIMAL, Fraction(0), Fraction(1), optional=True)
    question = asked((Aggregate("q", AggregateKind.QUANTILE, value, Fraction(1, 2)),), keys=())
    pick = measurement(question, ROW, terms(epsilon=1)).picks[0]
    assert pick.note.endswith(f"values are rounded to {pick.candidates.number:,} even steps first")
    assert "rounded" not in pick_of(Fraction(1, 2), 20, 1)[1].note
    assert math.isfinite(pick.off)
