"""Estimates from reports: intervals that hold, means, ranges and common words."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from incrowd.errors import InvalidParameter
from incrowd.methods.local.choice import numeric
from incrowd.methods.local.estimates import (
    POPULATION,
    THESE,
    Support,
    estimates_of,
    mean_interval,
    projected,
    range_estimate,
)
from incrowd.methods.local.mechanisms.randomizer import Family
from incrowd.methods.local.mechanisms.ratio import Weights
from incrowd.methods.local.survey.questions import OrderedQuestion, WordQuestion
from incrowd.methods.local.tallies import tallies_of
from tests.coins import SeededCoins
from tests.statistics.alarm import FALSE_ALARM
from tests.surveys import MANY, survey, survey_file


def law(support: Support, having: int) -> Any:
    n, p, q = support.people, float(support.p), float(support.q)
    mine, rest = (binom.pmf(np.arange(k + 1), k, c) for k, c in ((having, p), (n - having, q)))
    return np.convolve(mine, rest)


@pytest.mark.parametrize(("people", "p", "q"), [(1, "3/4", "1/4"), (40, "3/4", "1/4"), (90, "1/2", "1/9")])
def test_exact_intervals_cover_every_true_number(people: int, p: str, q: str) -> None:
    support = Support(people, Fraction(p), Fraction(q))
    low, high = support.intervals(np.arange(people + 1), Fraction(1, 10))
    for having in range(people + 1):
        share = having / people
        inside = (low <= share + 1e-9) & (share - 1e-9 <= high)
        assert float(law(support, having)[inside].sum()) >= 0.9


def test_intervals_of_many_people_cover_and_are_little_wider() -> None:
    support = Support(6000, Fraction(3, 5), Fraction(1, 5))
    counts = np.arange(1000, 3700)
    low, high = support.intervals(counts)
    for having in (0, 600, 3000):
        chances, share = law(support, having)[counts], having / 6000
        covered = float(chances[(low <= share + 1e-9) & (share - 1e-9 <= high)].sum())
        assert 0.95 <= covered < 0.97 + 0.03 * (having == 0)


def test_intervals_for_a_population_are_those_of_clopper_and_pearson() -> None:
    low, high = Support(50, Fraction(1), Fraction(0)).rates(np.array([0, 25, 50]))
    assert low.tolist() == pytest.approx([0.0, 0.355, 0.929], abs=1e-3)
    assert high.tolist() == pytest.approx([0.071, 0.645, 1.0], abs=1e-3)


def test_no_report_has_no_interval() -> None:
    with pytest.raises(InvalidParameter, match="no report yet"):
        Support(0, Fraction(3, 4), Fraction(1, 4))
    with pytest.raises(InvalidParameter, match="no report yet"):
        mean_interval(0.0, 0, 1.0, 2.0)
    with pytest.raises(InvalidParameter, match="no report yet"):
        estimates_of(survey_file(MANY).survey, [])
    with pytest.raises(InvalidParameter, match="likelier supported"):
        Support(5, Fraction(1, 4), Fraction(1, 4))


def test_a_projection_is_never_further_from_the_truth_than_the_estimates() -> None:
    chance = np.random.default_rng(2)
    for _ in range(200):
        true, noisy = chance.dirichlet(np.ones(6)), chance.normal(0, 0.3, 6)
        near = projected(true + noisy)
        assert near.sum() == pytest.approx(1.0)
        assert near.min() >= 0.0
        assert np.linalg.norm(near - true) <= np.linalg.norm(noisy) + 1e-12


@pytest.mark.parametrize(
    "mechanism", ["response", "symmetric-unary", "optimal-unary", "local-hashing", "hadamard", "subset"]
)
def test_shares_are_estimated_within_what_their_variance_allows(mechanism: str) -> None:
    """Each of 12 values misses six deviations with a chance below 2e-9 (nearly normal counts of 8,000 reports)."""
    labels = [f"v{number}" for number in range(12)]
    asked = survey({"a": {"categories": labels, "mechanism": mechanism}}, "2")
    people = 8000
    answers = [labels[min(11, number % 20)] for number in range(people)]
    (found,) = estimates_of(asked, asked.randomize({"a": answers}, SeededCoins(11)))
    assert (found.about, found.people) == (THESE, people)
    for each in found.estimates:
        share = answers.count(each.value) / people
        deviation = math.sqrt(float(asked.questions[0].randomizer.variance(Fraction(share))) / people)
        assert abs(each.estimate - share) < 6 * deviation
        assert each.low <= max(0.0, each.estimate) <= each.high + 1e-9
    assert FALSE_ALARM > 12 * 6 * 2e-9


@pytest.mark.parametrize("mechanism", ["duchi", "window", "mixture"])
def test_a_mean_lies_in_its_interval(mechanism: str) -> None:
    """At a confidence of 1 − 1e-7 the interval misses with that chance at most."""
    asked = survey({"a": {"low": "0", "high": "10", "cells": "100", "mechanism": mechanism}}, "2")
    answers = [f"{number % 97 / 10:.2f}" for number in range(5000)]
    true = sum(map(float, answers)) / len(answers)
    (found,) = estimates_of(asked, asked.randomize({"a": answers}, SeededCoins(5)), Fraction(1, 10**7))
    (mean,) = found.estimates
    assert mean.low <= true <= mean.high
    assert mean.high - mean.low < 2.0


@pytest.mark.parametrize(
    ("epsilon", "mechanism"), [("8", "mixture"), ("8", "window"), ("4", "mixture"), ("1", "mixture")]
)
def test_the_interval_of_a_mean_covers_that_of_the_population(epsilon: str, mechanism: str) -> None:
    """Half of the people are at −1, half at 1.  If each of 100 intervals misses with 0.05, 23 do with less than 1e-6.

    P[Bin(100, 0.05) ≥ 23] = 1.7e-7, tested four times.
    """
    asked = {"low": "-1", "high": "1", "cells": "20", "mechanism": mechanism}
    two, missed = survey({"a": asked, "b": asked}, epsilon), 0
    for run in range(100):
        chance = np.random.default_rng([run, 1])  # not the words of the coins
        answers = ["-1" if each else "1" for each in chance.random(200) < 0.5]
        found, _ = estimates_of(two, two.randomize({"a": answers, "b": answers}, SeededCoins(run)))
        (mean,) = found.estimates
        missed += not mean.low <= 0.0 <= mean.high
    assert missed < 23
    assert 4 * float(binom.sf(22, 100, 0.05)) < FALSE_ALARM


@pytest.mark.parametrize("family", [Family.DUCHI, Family.WINDOW, Family.MIXTURE])
@pytest.mark.parametrize("epsilon", ["1/2", "2", "8"])
def test_no_estimate_varies_more_than_its_bound_says(family: Family, epsilon: str) -> None:
    """Every law is written out, for fixed numbers, halves at both ends, and numbers that are rounded by a coin."""
    made = numeric(family, 6, Weights.below(Fraction(epsilon)))
    laws = {value: made.law(value) for value in range(-6, 7)}

    def moment(value: int, power: int) -> Fraction:
        return sum((chance * made.worth(each) ** power for each, chance in laws[value].items()), Fraction(0))

    for value, law in laws.items():
        assert moment(value, 1) == Fraction(value, 6)
        assert moment(value, 2) - Fraction(value, 6) ** 2 <= made.fixed_variance
        assert max(abs(made.worth(each)) for each in law) <= made.largest_estimate
    assert made.largest_estimate in {abs(made.worth(each)) for each in laws[6]}
    halves = (moment(6, 2) + moment(-6, 2)) / 2
    assert made.sampled_variance - made.fixed_variance <= 1
    assert halves <= made.sampled_variance <= halves * Fraction(101, 100)
    between = (moment(5, 2) + moment(6, 2)) / 2  # the number 11/12, rounded to 5/6 or 1
    assert between - Fraction(11, 12) ** 2 <= made.fixed_variance


def test_a_survey_of_several_questions_speaks_of_the_population() -> None:
    asked, coins = survey_file(MANY).survey, SeededCoins(4)
    people = 12_000
    answers = {
        "travel": ["bike" if number % 4 else "car" for number in range(people)],
        "hours": ["30"] * people,
        "age": [str(20 + number % 40) for number in range(people)],
        "pet": ["dog" if number % 3 else "cat" for number in range(people)],
    }
    reports = asked.randomize(answers, coins)
    found = {each.question: each for each in estimates_of(asked, reports, Fraction(1, 10**7))}
    assert {each.about for each in found.values()} == {POPULATION}
    assert sum(each.people for each in found.values()) == people
    shares = {each.value: each for each in found["travel"].estimates}
    assert shares["bike"].low <= 0.75 <= shares["bike"].high
    assert [each.value for each in found["pet"].estimates][:2] == ["dog", "cat"]
    ages, words = asked.question("age"), asked.question("pet")
    assert isinstance(ages, OrderedQuestion)
    assert isinstance(words, WordQuestion)
    part = tallies_of(asked, reports)["age"]
    one = range_estimate(ages, part, 20, 59, Fraction(1, 10**7))
    assert one.low <= 1.0 <= one.high
    assert range_estimate(ages, part, 64, 99, Fraction(1, 10**7)).low == 0.0
    assert words.word(int(words.codes(["dog"])[0]), 4) == "dog"
