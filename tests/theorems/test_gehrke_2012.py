"""Gehrke, Hay, Lui & Pass 2012, "Crowd-Blending Privacy": every number, every closure rule, every counterexample."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from incrowd.accounting.blending import robust, sampled_crowd
from incrowd.accounting.blending.crowd_losses import with_private
from incrowd.accounting.blending.worst_crowd import SuppressedCount
from incrowd.accounting.suppression.theorems import theorem1_delta as li_delta
from incrowd.core.loss import Crowd
from tests.theorems import gehrke_2012
from tests.theorems.crowd_laws import (
    Database,
    Mechanism,
    blend,
    clamped_geometric,
    close,
    is_crowd_blending,
    mixture,
    response,
    suppressed_histogram,
    sure,
)
from tests.theorems.exact_laws import Law, pair

VECTORS: dict[str, Any] = json.loads(Path(__file__).with_name("vectors_gehrke.json").read_text())
TIGHT = 1e-10


def rounded_up(found: float, truth: str, excess: float = TIGHT) -> bool:
    """Whether a loss is not below the truth, known to 25 digits, and above it by no more than `excess`."""
    return 0 <= Fraction(found) / Fraction(truth) - 1 <= excess


def bias_of(row: dict[str, Any]) -> robust.Bias:
    return robust.Bias(Fraction(row["p"]), Fraction(row["p2"]), row["l"], Fraction(row["pmax"]))


@pytest.mark.parametrize("row", VECTORS["theorem1"], ids=lambda row: f"{row['k']}-{row['p']}-{row['eps']}")
def test_theorem_1_holds_with_the_exact_delta_and_both_closed_forms(row: dict[str, Any]) -> None:
    k, rate, crowd = row["k"], row["p"], row["eps"]
    assert rounded_up(sampled_crowd.zero_knowledge_epsilon(crowd, rate), row["eps_zk"], 1e-11)
    assert rounded_up(sampled_crowd.delta(k, crowd, rate, row["eps_zk"]), row["delta_exact"])
    assert rounded_up(sampled_crowd.theorem1_delta(k, rate), row["delta_closed_kl"])
    assert rounded_up(gehrke_2012.chernoff_delta(k, crowd, rate, row["eps_zk"]), row["delta_closed_kl"])
    assert rounded_up(sampled_crowd.theorem1_simple_delta(k, rate), row["delta_closed_simple"])
    for point in row["at"].values():
        assert rounded_up(sampled_crowd.delta(k, crowd, rate, point["eps1"]), point["delta_exact"])
        closed = gehrke_2012.chernoff_delta(k, crowd, rate, point["eps1"])
        assert rounded_up(closed, point["delta_closed_kl"], 2e-10)


@pytest.mark.parametrize("row", VECTORS["low_epsilon"], ids=lambda row: f"{row['k']}-{row['p']}-{row['eps']}")
def test_the_exact_delta_holds_below_the_published_epsilon(row: dict[str, Any]) -> None:
    assert rounded_up(sampled_crowd.delta(row["k"], row["eps"], row["p"], row["eps1"]), row["delta_exact"])


@pytest.mark.parametrize("row", VECTORS["lemmas"], ids=lambda row: f"{row['n']}-{row['k']}-{row['p']}")
def test_both_lemmas_have_explicit_constants(row: dict[str, Any]) -> None:
    rate = row["p"]
    assert rounded_up(gehrke_2012.lemma1_delta(row["n"], rate), row["lemma1_kl"])
    assert rounded_up(gehrke_2012.lemma1_simple_delta(row["n"], rate), row["lemma1_simple"])
    assert rounded_up(gehrke_2012.lemma2_delta(row["k"], rate), row["lemma2_kl"])
    assert rounded_up(gehrke_2012.lemma2_simple_delta(row["k"], rate), row["lemma2_simple"])


@pytest.mark.parametrize("row", VECTORS["per_size"], ids=lambda row: f"{row['k']}-{row['p']}-{row['n']}")
def test_at_every_size_the_exact_delta_is_below_both_lemmas_routes(row: dict[str, Any]) -> None:
    k, p, others, tilt = row["k"], float(row["p"]), row["n"], math.exp(float(row["eps"]))
    alpha = 1.0 + math.expm1(float(row["eps1"])) / p

    def removed(threshold: int) -> float:
        count = SuppressedCount(threshold, p, 1.0 - p)
        tilted = tilt * math.exp(count.log_excess(others, alpha / tilt))
        return p * (tilted + math.exp(count.log_excess(others, alpha * tilt))) / (1.0 + tilt)

    ignoring = p * sum(math.comb(others, m) * p**m * (1 - p) ** (others - m) for m in range(k - 1, others + 1))
    assert removed(k) == pytest.approx(float(row["remove"]), rel=1e-12, abs=0)
    assert removed(1) == pytest.approx(float(row["route_lemma1"]), rel=1e-12)
    assert ignoring == pytest.approx(float(row["route_lemma2"]), rel=1e-12, abs=0)
    assert removed(k) <= min(removed(1), ignoring) * (1 + 1e-12)


@pytest.mark.parametrize("row", VECTORS["theorem2_closed"], ids=lambda row: f"{row['k']}-{row['l']}-{row['p']}")
def test_theorem_2_has_explicit_constants(row: dict[str, Any]) -> None:
    bias = bias_of(row)
    assert rounded_up(robust.zero_knowledge_epsilon(row["eps"], bias), row["eps_zk"], 1e-11)
    assert rounded_up(robust.theorem2_delta(row["k"], bias), row["delta_closed_kl"])
    assert rounded_up(robust.theorem2_simple_delta(row["k"], bias), row["delta_closed_simple"])
    assert robust.delta(row["k"], row["eps"], bias, row["eps_zk"]) < float(row["delta_closed_kl"])


@pytest.mark.parametrize("row", VECTORS["theorem2_exact"], ids=lambda row: f"{row['k']}-{row['l']}-{row['eps1']}")
def test_theorem_2_holds_with_the_exact_delta(row: dict[str, Any]) -> None:
    found = robust.delta(row["k"], row["eps"], bias_of(row), row["eps1"])
    assert found == pytest.approx(float(row["delta"]), rel=float(row["rel_tol"]))


def test_an_irregular_person_has_one_irregular_neighbor_less() -> None:
    bias = robust.Bias(Fraction(1, 10), Fraction(3, 25), 5, Fraction(1))
    epsilon = robust.zero_knowledge_epsilon("0.1", bias)
    one_more = robust.Bias(bias.low, bias.high, 6, bias.max_rate)
    assert f"{robust.delta(50, '0.1', bias, epsilon):.3e}" == "3.851e-09"
    assert f"{robust.delta(50, '0.1', one_more, epsilon):.3e}" == "5.326e-09"


def test_the_theorem_strengthens_the_notion_of_li_and_others_but_not_their_numbers() -> None:
    epsilon = -math.log1p(-0.1) * (1 + 1e-14)
    closed, li, exact = (
        sampled_crowd.theorem1_delta(20, "0.1"),
        li_delta(20, "0.1", epsilon),
        sampled_crowd.delta(20, 0, "0.1", epsilon),
    )
    assert [f"{value:.2g}" for value in (closed, li, exact)] == ["0.021", "0.0036", "4e-05"]


def test_two_crowd_blending_histograms_of_overlapping_bins_betray_one_person() -> None:
    expected = VECTORS["composition_counterexample"]
    k = expected["k"]
    together, apart = suppressed_histogram({"v": "vx", "x": "vx"}, k), suppressed_histogram({"v": "v", "x": "x"}, k)
    assert is_crowd_blending(together, "vx", 6, k)
    assert is_crowd_blending(apart, "vx", 6, k)

    def both(database: Database) -> Law:
        return pair(together(database), apart(database))

    full, left = ("v",) * k + ("x",), ("v",) * k
    counts_of = [
        [count for table in outcome for _, count in table]  # type: ignore[attr-defined]
        for release in (both(full), both(left))
        for outcome in release
    ]
    assert counts_of == [expected["out"], expected["out_without_x0"]]
    assert not is_crowd_blending(both, "vx", 6, 2, Fraction(10**9))


def test_post_processing_keeps_crowds_together_even_with_fresh_coins() -> None:
    release = suppressed_histogram({"a": "x", "b": "x", "c": "y"}, 3)

    def processed(database: Database) -> Law:
        return mixture(
            (mass, response(sum(count for _, count in outcome) >= 4, Fraction(3)))  # type: ignore[attr-defined]
            for outcome, mass in release(database).items()
        )

    assert is_crowd_blending(processed, "abc", 5, 3)


def beside_noisy_counts(k: int, fall: Fraction, top: int) -> Mechanism:
    """A suppressed count of everyone, beside a noisy histogram of v and w."""
    suppressed = suppressed_histogram({"v": "all", "w": "all"}, k)

    def release(database: Database) -> Law:
        noisy = [clamped_geometric(database.count(name), top, fall) for name in "vw"]
        return pair(suppressed(database), pair(*noisy))

    return release


def test_a_private_release_beside_a_crowd_costs_twice_its_epsilon_and_not_once() -> None:
    fall = Fraction(1, 2)
    release = beside_noisy_counts(3, fall, top=5)
    once, twice = 1 / fall, 1 / fall**2
    assert is_crowd_blending(release, "vw", 5, 3, ratio=twice)
    assert not is_crowd_blending(release, "vw", 5, 3, ratio=once)
    assert not is_crowd_blending(release, "vw", 5, 3, ratio=twice - Fraction(1, 100))
    assert with_private(Crowd(3), "0.5").epsilon == 1


def test_a_count_that_no_replacement_moves_costs_once_beside_a_crowd() -> None:
    suppressed = suppressed_histogram({"v": "all", "w": "all"}, 3)

    def release(database: Database) -> Law:
        return pair(suppressed(database), clamped_geometric(database.count("v"), 5, Fraction(1, 2)))

    assert is_crowd_blending(release, "vw", 5, 3, ratio=Fraction(2))
    assert with_private(Crowd(3), "0.5", replaced_epsilon="0.5").epsilon == Fraction(1, 2)


def test_proposition_1_is_false_for_privacy_of_replaced_people() -> None:
    def size(database: Database) -> Law:
        return sure(len(database))

    assert all(close(size((one,)), size((other,)), Fraction(1)) for one in "ab" for other in "ab")
    assert not is_crowd_blending(size, "ab", 3, 2, Fraction(10**9))


def test_proposition_1_holds_for_people_added_or_removed() -> None:
    def noisy_size(database: Database) -> Law:
        return clamped_geometric(len(database), 5, Fraction(1, 2))

    assert all(is_crowd_blending(noisy_size, "ab", 4, k, Fraction(2)) for k in (1, 2, 3, 50))


def test_a_scheme_chosen_at_random_beside_its_release_leaves_nobody_to_blend_with() -> None:
    schemes = ({"v": "1", "w": "1", "u": "2"}, {"v": "1", "u": "1", "w": "2"})

    def release(database: Database) -> Law:
        return mixture(
            (Fraction(1, 2), pair(sure(number), suppressed_histogram(scheme, 2)(database)))
            for number, scheme in enumerate(schemes)
        )

    ratio = Fraction(10**9)
    assert not any(blend(release, "uvw", 3, ratio)("v", other) for other in "uw")
    assert not is_crowd_blending(release, "uvw", 3, 2, ratio)


def noisy_pair(k: int, chances: list[float], fall: float, lone: int) -> dict[int, Any]:
    """A suppressed count and noisy counts of v and w, `lone` of them w: a table of the noisy ones per shown count."""
    noise = (1 - fall) / (1 + fall) * fall ** np.abs(np.arange(-60, 61))
    reach = len(chances) + 1
    tables: dict[int, Any] = {}
    for drawn, chance in enumerate(chances):
        shown = drawn + lone if drawn + lone >= k else 0
        table = np.outer(np.pad(noise, (drawn, reach - drawn)), np.pad(noise, (lone, 1 - lone)))
        tables[shown] = tables.get(shown, 0.0) + chance * table
    return tables


def noisy_pair_delta(k: int, rate: float, private: float, epsilon: float) -> float:
    """The truth for t = w among others who are all v, at the worst number of others up to 12."""
    fall, alpha, best = math.exp(-private), 1.0 + math.expm1(epsilon) / rate, 0.0
    for others in range(13):
        chances = [math.comb(others, m) * rate**m * (1 - rate) ** (others - m) for m in range(others + 1)]
        present, absent = noisy_pair(k, chances, fall, 1), noisy_pair(k, chances, fall, 0)
        gaps = (table - alpha * absent.get(shown, 0.0) for shown, table in present.items())
        best = max(best, rate * float(sum(np.maximum(gap, 0.0).sum() for gap in gaps)))
    return best


def test_the_factor_of_two_is_real_after_sampling_too() -> None:
    truth = noisy_pair_delta(3, 0.3, 0.5, 0.5)
    once, twice = sampled_crowd.delta(3, "0.5", "0.3", "0.5"), sampled_crowd.delta(3, 1, "0.3", "0.5")
    assert once < truth < twice
    assert [f"{value:.4f}" for value in (truth, once, twice)] == ["0.0425", "0.0398", "0.0627"]
