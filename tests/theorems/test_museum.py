"""Algorithms that keep the letter of a definition and protect nobody, each with the attack that breaks it.

Li, Qardaji & Su 2010, §3, show them as warnings.  They are not part of the product and must never be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from itertools import product

import pytest

Row = tuple[int, int]
Box = tuple[tuple[int, int], ...]


def duplicated(rows: list[Row], k: int) -> list[Row]:
    """k-duplication: publish every row k times."""
    return [row for row in rows for _ in range(k)]


def clustered(rows: list[Row], k: int) -> list[Box]:
    """Clustering with local recoding: sort, put k neighbors together, publish the ranges that they span."""
    ordered, found = sorted(rows), list[Box]()
    ends = [*range(0, len(ordered) - len(ordered) % k, k)]
    for place, start in enumerate(ends):
        group = ordered[start:] if place == len(ends) - 1 else ordered[start : start + k]
        box = tuple((min(column), max(column)) for column in zip(*group, strict=True))
        found += [box] * len(group)
    return found


def sampled_output(rows: list[Row], delta: Fraction) -> dict[frozenset[Row], Fraction]:
    """δ-sampling: publish every row, as it is, with chance δ; the exact law of what is published."""
    law: dict[frozenset[Row], Fraction] = {}
    for coins in product((False, True), repeat=len(rows)):
        chance = Fraction(1)
        for coin in coins:
            chance *= delta if coin else 1 - delta
        shown = frozenset(row for row, coin in zip(rows, coins, strict=True) if coin)
        law[shown] = law.get(shown, Fraction(0)) + chance
    return law


def smallest_class(published: Iterable[object]) -> int:
    return min(Counter(published).values())


@pytest.mark.parametrize("k", [2, 5, 20])
def test_k_duplication_is_k_anonymous_and_publishes_everybody(k: int) -> None:
    rows = [(29, 2139), (34, 2138), (71, 94110)]
    published = duplicated(rows, k)
    assert smallest_class(published) >= k
    assert {row for row, times in Counter(published).items() for _ in range(times // k)} == set(rows), "the attack"


def test_clustering_with_local_recoding_is_k_anonymous_and_shows_the_extremes() -> None:
    """Who knows that the oldest patient is the mayor reads her age, and the salary range's end is somebody's."""
    rows = [(29, 31), (34, 40), (52, 45), (58, 900)]
    published = clustered(rows, 2)
    assert smallest_class(published) >= 2
    ages, salaries = zip(*published, strict=True)
    assert max(high for _, high in ages) == 58
    assert max(high for _, high in salaries) == 900


def test_clustering_with_local_recoding_shows_whether_one_person_is_there() -> None:
    """Two tables that differ in one row: an attacker who knows all the others reads off which it is, with certainty."""
    others = [(29, 31), (34, 40), (52, 45)]
    for you in ((58, 900), (57, 46)):
        published = clustered([*others, you], 2)
        assert tuple(max(high for _, high in column) for column in zip(*published, strict=True)) == you, "the attack"


@pytest.mark.parametrize("delta", [Fraction(1, 10), Fraction(1, 100)])
def test_delta_sampling_is_private_with_epsilon_0_and_still_publishes_whole_rows(delta: Fraction) -> None:
    rows = [(29, 2139), (34, 2138), (71, 94110)]
    you = rows[-1]
    with_you, without = sampled_output(rows, delta), sampled_output(rows[:-1], delta)
    for one, other in ((with_you, without), (without, with_you)):
        distance = sum((max(Fraction(0), p - other.get(shown, Fraction(0))) for shown, p in one.items()), Fraction(0))
        assert distance == delta, "(0, δ)-differential privacy holds, exactly"
    assert sum((p for shown, p in with_you.items() if you in shown), Fraction(0)) == delta
    betrayed = 1 - (1 - delta) ** len(rows)
    assert sum((p for shown, p in with_you.items() if shown), Fraction(0)) == betrayed, "somebody, as often as this"


def test_delta_must_lie_far_below_one_over_the_population() -> None:
    """With δ = 1/n, δ-sampling betrays somebody in most releases: the reason for the warning that `plan` prints."""
    people = 1000
    assert 1 - (1 - 1 / people) ** people > 0.63
    assert 1 - (1 - 1 / (1000 * people)) ** people < 0.0011
