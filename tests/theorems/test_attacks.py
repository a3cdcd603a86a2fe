"""Attacks and audits: the figures of their papers, computed apart and written down in `vectors_attacks.json`."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom, norm

from incrowd.attacks.answers import Ask, Bits, hadamard, reconstruction
from incrowd.attacks.audit import AuditCounts, ceiling, gaussian, gaussian_epsilon, one_run, two_worlds
from incrowd.attacks.finding import Finding, Rate, Risk
from incrowd.attacks.histories import eccentricity, rarity
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.records.membership import log_ratios, power
from incrowd.attacks.records.minimality import credibility
from incrowd.attacks.records.several_releases import intersection

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "vectors_attacks.json").read_text(encoding="utf-8"))


def counting(bits: Bits, error: float, chance: np.random.Generator) -> Ask:
    """Answer with counts that are off by at most an error."""
    return lambda subset: float(bits[subset].sum() + chance.uniform(-error, error))


@pytest.mark.parametrize("case", VECTORS["Q_lp"], ids=lambda case: f"{case['queries']} within {case['noise']}")
def test_linear_programming_gets_the_bits_that_it_should(case: dict[str, Any]) -> None:
    right = []
    for seed in range(3):
        chance = np.random.default_rng(seed)
        bits = chance.integers(0, 2, case["n"])
        found = reconstruction(counting(bits, case["noise"], chance), bits, case["queries"], seed)
        right.append(found.success.estimate)
    assert np.mean(right) == pytest.approx(case["fraction_right"], abs=case["tol"])


@pytest.mark.parametrize("people", [64, 50])
@pytest.mark.parametrize("error", [0.0, 0.4, 1.0])
def test_as_many_questions_as_people_leave_few_bits_wrong(people: int, error: float) -> None:
    chance = np.random.default_rng(people)
    for _ in range(20):
        bits = chance.integers(0, 2, people)
        guess = hadamard(counting(bits, error, chance), people)
        assert (guess != bits).sum() <= 16 * error**2 + 1


def test_averaging_takes_this_many_answers() -> None:
    """By the central limit theorem: the noise's standard deviation is sqrt(2) times the scale."""
    known = VECTORS["Q_averaging"]
    needed = (2.0 * norm.isf(0.025) * known["laplace_scale"] * math.sqrt(2.0)) ** 2
    assert math.ceil(needed) == known["repeats_for_95pc"]
    assert known["repeats_for_95pc"] / known["laplace_scale"] == known["eps_spent"]


@pytest.mark.parametrize("case", VECTORS["Q_membership"], ids=lambda case: f"{case['m']} of {case['n']}")
def test_membership_has_the_power_of_its_formula(case: dict[str, Any]) -> None:
    n, m, alarm = case["n"], case["m"], case["alpha"]
    assert power(m, n, alarm) == pytest.approx(case["formula"], abs=1e-7)
    chance, members, others = np.random.default_rng(m * n), [], []
    for _ in range(60):
        share = chance.uniform(0.05, 0.95, m)
        pool, outside = ((chance.random((n, m)) < share).astype(float) for _ in range(2))
        members.append(log_ratios(pool, pool.mean(axis=0), share)[:20])
        others.append(log_ratios(outside, pool.mean(axis=0), share)[:20])
    inside, outside_scores = np.concatenate(members), np.concatenate(others)
    assert inside.mean() == pytest.approx(m / (2 * n), rel=0.25)
    limit = np.quantile(outside_scores, 1 - alarm)
    assert (inside > limit).mean() == pytest.approx(case["formula"], abs=case["tol"] + 0.03)


def homer(records: Any, pool: Any, reference: Any) -> Any:
    """How much nearer each record lies to the pool's frequencies than to the reference's, in all."""
    return (np.abs(records - reference) - np.abs(records - pool)).sum(axis=1)


def test_homers_distance_lies_higher_for_members() -> None:
    chance = np.random.default_rng(4)
    share = chance.uniform(0.1, 0.9, 2000)
    pool, outside = ((chance.random((50, 2000)) < share).astype(float) for _ in range(2))
    assert homer(pool, pool.mean(axis=0), share).min() > homer(outside, pool.mean(axis=0), share).max()


def test_similarity_scores_weigh_rare_items_and_stand_out_by_so_much() -> None:
    known = VECTORS["Q_ns"]
    a, b, c = rarity(np.array(list(known["supports"].values())))
    scores = np.array([[a + b + c, a + b, a, 0.0]])
    assert scores[0].tolist() == pytest.approx(list(known["scores"].values()), abs=1e-12)
    assert eccentricity(scores)[0] == pytest.approx(known["eccentricity"], abs=1e-12)


def test_two_independent_partitions_name_a_secret_that_each_hides() -> None:
    chance = np.random.default_rng(5)
    people, k = 500, 5
    keys = np.array([f"{n:03d}" for n in range(people)])
    secrets = chance.choice([f"s{n}" for n in range(50)], people)
    original = pa.table({"key": keys, "ill": secrets})
    releases = []
    for _ in range(2):
        order = chance.permutation(people)
        labels = np.empty(people, object)
        for start in range(0, people, k):
            labels[order[start : start + k]] = "{" + ", ".join(sorted(keys[order[start : start + k]])) + "}"
        releases.append(pa.table({"key": labels.tolist(), "ill": secrets}))
    published = PublishedTable(releases[0], earlier=(PublishedTable(releases[1]),))
    found = intersection(published, Knowledge(original, ("key",), "ill"))
    assert found.success.low > found.baseline.high
    assert found.success.estimate > 0.5
    assert len(found.story) == 4


@pytest.mark.parametrize("case", VECTORS["Q_audit"], ids=lambda case: f"{case['tp']} against {case['fp']}")
def test_an_audit_of_two_worlds_shows_this_epsilon(case: dict[str, Any]) -> None:
    seen = AuditCounts(case["tp"], case["n1"], case["fp"], case["n0"])
    assert two_worlds(seen, case["delta"], case["conf"]) == pytest.approx(case["eps_at_least"], abs=1e-9)


def test_an_audit_can_show_no_more_than_its_ceiling() -> None:
    for trials, most in VECTORS["Q_audit_ceiling"].items():
        assert ceiling(int(trials)) == pytest.approx(most, abs=1e-9)


def test_an_audit_is_wrong_no_more_often_than_it_says() -> None:
    """Randomized response with epsilon 1, all outcomes weighed by their exact chance."""
    known = VECTORS["Q_audit_coverage"]
    n, epsilon = known["n"], known["eps"]
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    law = [binom.pmf(np.arange(n + 1), n, p) for p in (truth, 1 - truth)]
    fine = sum(
        law[0][tp] * law[1][fp]
        for tp in range(n + 1)
        for fp in range(n + 1)
        if two_worlds(AuditCounts(tp, n, fp, n)) <= epsilon
    )
    assert fine == pytest.approx(known["coverage"], abs=1e-9)
    assert fine >= 0.95


def test_the_best_of_many_useless_attacks_seems_to_work() -> None:
    """The reason why the findings of one run are corrected for their number."""
    known = VECTORS["Q_many_attacks"]
    n = known["n"]
    law = binom.pmf(np.arange(n + 1), n, 0.5)
    high = {fp: AuditCounts(0, n, fp, n).bounds(known["conf"])[1] for fp in range(n + 1)}
    low = {tp: AuditCounts(tp, n, 0, n).bounds(known["conf"])[0] for tp in range(n + 1)}
    one = sum(law[tp] * law[fp] for tp in range(n + 1) for fp in range(n + 1) if low[tp] > high[fp])
    assert one == pytest.approx(known["one"], abs=1e-9)
    assert 1 - (1 - one) ** 100 == pytest.approx(known["best_of_100"], abs=1e-6)
    assert 1 - (1 - one) ** 1000 == pytest.approx(known["best_of_1000"], abs=1e-6)


@pytest.mark.parametrize("case", VECTORS["Q_one_run"], ids=lambda case: f"{case['v']} of {case['r']}")
def test_one_run_shows_this_epsilon(case: dict[str, Any]) -> None:
    found = one_run(case["m"], case["r"], case["v"], case["delta"], case["conf"])
    assert found == pytest.approx(case["eps_at_least"], abs=1e-7)


def test_one_run_can_show_no_more_than_its_ceiling() -> None:
    for guesses, most in VECTORS["Q_one_run_ceiling"].items():
        assert one_run(int(guesses), int(guesses), int(guesses)) == pytest.approx(most, abs=1e-7)


def test_a_gaussian_claim_is_tested_by_its_own_curve() -> None:
    known = VECTORS["Q_gdp"]
    mu = gaussian(AuditCounts(known["tp"], known["n"], known["fp"], known["n"]), known["conf"])
    assert mu == pytest.approx(known["mu_at_least"], abs=1e-9)
    assert gaussian_epsilon(mu, 1e-5) == pytest.approx(known["eps_at_delta_1e5"], abs=1e-6)


def test_the_excess_over_outsiders_agrees_with_anonymeter() -> None:
    """Anonymeter moves rates toward a half (Wilson) and adds errors; ours is exact, and its interval is the wider."""
    known = VECTORS["Q_anonymeter"]
    n, z = known["n"], norm.isf((1 - known["conf"]) / 2)
    rates = [(hits + z * z / 2) / (n + z * z) for hits in (known["attack"], known["control"])]
    assert rates == pytest.approx([known["attack_rate"], known["control_rate"]], abs=1e-9)
    assert (rates[0] - rates[1]) / (1 - rates[1]) == pytest.approx(known["risk"], abs=1e-9)
    ours = Finding("x", Risk.INFERENCE, "", Rate(known["attack"], n), Rate(0, n), Rate(known["control"], n)).excess
    assert ours.estimate == pytest.approx(known["risk"], abs=0.002)
    assert ours.low <= known["risk"] - known["error"]
    assert ours.high >= known["risk"] + known["error"]


def test_minimality_tells_which_group_broke_the_rule() -> None:
    """Wong, Fu, Wang & Pei 2007: by counting every way to spread the ill over the groups."""
    from itertools import combinations

    for sizes, number, diversity in (([2, 5], 2, 2), ([2, 3, 3], 3, 2), ([4, 4], 2, 3)):
        groups = np.repeat(np.arange(len(sizes)), sizes)
        hits, ways = np.zeros(len(sizes)), 0
        for chosen in combinations(range(sum(sizes)), number):
            held = np.bincount(groups[list(chosen)], minlength=len(sizes))
            if (held * diversity > np.array(sizes)).any():
                hits, ways = hits + held, ways + 1
        expected = hits / ways / sizes
        assert [float(each) for each in credibility(sizes, number, diversity) or ()] == pytest.approx(expected.tolist())
