"""Histograms against the definition of crowd-blending: every database, every individual, exact laws."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from incrowd.accounting.blending.crowd_losses import with_private
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.coins import Coins
from incrowd.core.loss import Crowd
from incrowd.errors import DoesNotCompose
from incrowd.mechanisms.partition import ClampedSmallCounts
from incrowd.methods.histograms.shared.partition import rounded
from incrowd.workflows.release.tables import release
from tests.coins import law_of
from tests.policies import PEOPLE, changed, people, with_ledger
from tests.theorems.crowd_laws import (
    Database,
    Mechanism,
    clamped_geometric,
    is_crowd_blending,
    mixture,
    noisy_when_small,
    suppressed_histogram,
    sure,
)
from tests.theorems.exact_laws import Law, pair

THREE = {"a": "x", "b": "y", "c": "z"}
SHARED = {"a": "x", "b": "x", "c": "y"}
FALL = Fraction(2, 3)
SIZE = 6


def rounded_to(mechanism: Mechanism, base: int) -> Mechanism:
    """Round every count of an outcome, as a reader could."""

    def release(database: Database) -> Law:
        return mixture(
            (mass, sure(tuple(int(rounded(np.array([count]), base)[0]) for count in outcome)))
            for outcome, mass in mechanism(database).items()
            if isinstance(outcome, tuple)
        )

    return release


@pytest.mark.parametrize("bins", [THREE, SHARED])
@pytest.mark.parametrize("k", [2, 3])
def test_suppressed_counts_blend_everyone_with_k_or_ignore_them(bins: dict[str, str], k: int) -> None:
    release = suppressed_histogram(bins, k)
    assert is_crowd_blending(release, "abc", SIZE, k)
    assert not is_crowd_blending(release, "abc", SIZE, k + 1)


@pytest.mark.parametrize("flagged", [False, True])
@pytest.mark.parametrize("k", [2, 3])
def test_noisy_small_counts_blend_everyone_with_k_at_exactly_their_ratio(k: int, flagged: bool) -> None:
    release = noisy_when_small({"a": "x", "b": "y"}, k, FALL, flagged=flagged)
    assert is_crowd_blending(release, "ab", SIZE, k, 1 / FALL)
    assert not is_crowd_blending(release, "ab", SIZE, k, 1 / FALL - Fraction(1, 10**9))


def test_noise_in_three_bins_blends_as_in_two() -> None:
    assert is_crowd_blending(noisy_when_small(THREE, 2, FALL, flagged=True), "abc", 4, 2, 1 / FALL)


def test_rounding_keeps_the_guarantee() -> None:
    assert is_crowd_blending(rounded_to(noisy_when_small({"a": "x", "b": "y"}, 3, FALL), 5), "ab", SIZE, 3, 1 / FALL)


def test_noise_on_occupied_bins_alone_blends_nobody() -> None:
    def occupied_only(database: Database) -> Law:
        count = len(database)
        return sure(0) if not count else clamped_geometric(count, 2, FALL) if count < 3 else sure(count)

    assert not is_crowd_blending(occupied_only, "a", SIZE, 3, Fraction(10**9))


def test_the_mechanisms_have_the_laws_that_were_checked() -> None:
    def law(count: int) -> dict[int, float]:
        def run(coins: Coins) -> int:
            return int(ClampedSmallCounts(3, Fraction(1, 2)).release(np.array([count]), coins)[0])

        return law_of(run, reach=12)

    fall = Fraction(np.exp(-0.5))
    for count in range(3):
        expected = clamped_geometric(count, 2, fall)
        assert all(abs(law(count)[value] - float(expected[value])) < 1e-9 for value in range(3))
    assert law(4) == {4: 1.0}


def test_beside_a_private_release_the_crowd_pays_twice() -> None:
    def both(database: Database) -> Law:
        crowd = suppressed_histogram({"a": "all", "b": "all"}, 3)(database)
        noisy = [clamped_geometric(database.count(each), SIZE + 1, FALL) for each in "ab"]
        return pair(crowd, pair(noisy[0], noisy[1]))

    assert is_crowd_blending(both, "ab", 4, 3, (1 / FALL) ** 2)
    assert not is_crowd_blending(both, "ab", 4, 3, 1 / FALL)
    assert with_private(Crowd(3), "0.4").epsilon == Fraction(4, 5)


OVERLAPPING: list[Callable[[], dict[str, object]]] = [
    lambda: {"method": "suppressed-histogram", "columns": ["sex"], "k": 5},
    lambda: {
        "method": "blended-histogram",
        "columns": ["sex", "age"],
        "levels": {"age": 2},
        "k": 5,
        "noise_epsilon": 1,
    },
]


@pytest.mark.parametrize("second", OVERLAPPING)
def test_two_overlapping_tables_show_one_person_and_the_ledger_refuses_the_second(
    second: Callable[[], dict[str, object]], tmp_path: Path
) -> None:
    k, v, w = 5, "v", "w"
    together = suppressed_histogram({v: "vw", w: "vw"}, k)
    apart = suppressed_histogram({v: "v", w: "w"}, k)
    with_w, without = (*([v] * k), w), (v,) * k
    assert apart(with_w) == apart(without)
    assert together(with_w) != together(without)
    policy = with_ledger(PEOPLE, tmp_path, budget={"unbounded": "published since 1990"})
    first = changed(
        policy, release={"method": "suppressed-histogram", "columns": ["age"], "levels": {"age": 2}, "k": 5}
    )
    assert len(release(people(200), first).result)
    with pytest.raises(DoesNotCompose, match="one person"):
        release(people(200), changed(policy, release=second()))
    assert Ledger.open(policy["ledger"]).standing("people").totals.charges == 1


def test_a_private_table_may_follow_a_crowd_and_a_crowd_on_a_sample_may_follow_anything(tmp_path: Path) -> None:
    policy = with_ledger(PEOPLE, tmp_path, budget={"unbounded": "published", "epsilon": 5, "delta": "1e-3"})
    crowd = {"method": "suppressed-histogram", "columns": ["sex"], "k": 5}
    sampled = {**crowd, "rate": "1/10", "delta": "1e-6", "k": 10}
    for each in (crowd, {"method": "private-histogram", "columns": ["sex"], "epsilon": 1}, sampled):
        release(people(200), changed(policy, release=each))
