"""What the report says about an attacker holds for attackers that were tried."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom

from incrowd.accounting.suppression import tight_delta
from incrowd.core.certificate import Amounts
from incrowd.errors import InvalidParameter
from incrowd.workflows.bounds.odds import PRIORS, Odds, guessing_limit, in_words, one_in

LOSSES = st.floats(0.0, 8.0)
SIZES = {"": 1.0, "million": 1e6, "billion": 1e9, "trillion": 1e12}


def published(k: int, n: int, rate: float) -> NDArray[np.float64]:
    """The law of what is published of a crowd of n: nothing, or how many were drawn."""
    masses = binom.pmf(np.arange(n + 1), n, rate)
    law = np.where(np.arange(n + 1) >= k, masses, 0.0)
    law[0] = masses[:k].sum()
    return law


def percent(text: str) -> float:
    return float(text.removesuffix(" %")) / 100.0


@pytest.mark.parametrize(("k", "rate", "epsilon"), [(2, 0.5, 0.7), (3, 0.5, 1.0), (3, 0.2, 0.5), (5, 0.1, 0.3)])
def test_no_best_guess_on_a_real_crowd_beats_what_is_printed(k: int, rate: float, epsilon: float) -> None:
    odds = Odds(Decimal(repr(epsilon)), Decimal(repr(tight_delta.delta(k, repr(rate), repr(epsilon)))))
    for n in range(1, 30):
        with_you, without = published(k, n, rate), np.append(published(k, n - 1, rate), 0.0)
        right = np.maximum(with_you, without).sum() / 2.0
        assert right <= percent(odds.guess)


@pytest.mark.parametrize(("k", "rate", "epsilon"), [(2, 0.5, 0.7), (3, 0.5, 1.0), (3, 0.2, 0.5)])
@pytest.mark.parametrize("prior", PRIORS)
def test_no_strategy_gains_more_than_the_game_that_is_described(
    k: int, rate: float, epsilon: float, prior: Fraction
) -> None:
    """The game: told the truth with probability δ, else a belief of at most the printed one; for any stakes."""
    delta = tight_delta.delta(k, repr(rate), repr(epsilon))
    factor, before = math.exp(epsilon), float(prior)
    for n in range(1, 25):
        with_you, without = published(k, n, rate), np.append(published(k, n - 1, rate), 0.0)
        for threshold in np.linspace(0.05, 0.95, 10):
            # Win 1 − threshold by saying "in" when it is so, lose threshold when it is not.
            gained = np.maximum(0.0, before * with_you * (1 - threshold) - (1 - before) * without * threshold).sum()
            told = delta * before * (1 - threshold)
            hint = before * factor * (1 - threshold) - (1 - before) * threshold
            other = before * (1 - threshold) - (1 - before) * factor * threshold
            game = told + (1 - delta) / (1 + factor) * (max(0.0, hint) + max(0.0, other))
            assert gained <= game * (1 + 1e-9) + 1e-15


@given(LOSSES, st.sampled_from(PRIORS))
def test_a_printed_belief_is_never_below_the_formula(epsilon: float, prior: Fraction) -> None:
    odds = Odds(Decimal(repr(epsilon)), Decimal("1e-9"))
    factor = math.exp(epsilon)
    true = float(prior) * factor / (1 - float(prior) + float(prior) * factor)
    assert true <= percent(odds.belief(prior)) <= true + 0.00101


def test_the_numbers_of_a_known_guarantee() -> None:
    odds = Odds.of(Amounts("0.5", "0.00000001"))
    assert (odds.guess, odds.times, odds.failure) == ("62.3 %", "1.65", "at most 1 in 100 million")
    assert [odds.belief(prior) for prior in PRIORS] == ["62.3 %", "15.5 %", "1.7 %", "0.2 %"]
    assert odds.numbers == "ε ≤ 0.5, δ ≤ 1e-8"


def test_without_an_epsilon_nothing_is_bounded() -> None:
    assert not Odds.of(Amounts("Infinity", "0")).bounded
    assert not Odds.of(Amounts("1", "1")).bounded


@pytest.mark.parametrize(
    "amounts",
    [
        Amounts("NaN", "0"),
        Amounts("-1", "0"),
        Amounts("1", "2"),
        Amounts("1e999999999", "0"),
        Amounts("", "0"),
        Amounts("1/3", "0"),
    ],
)
def test_amounts_that_cannot_be_read_are_refused(amounts: Amounts) -> None:
    with pytest.raises(InvalidParameter):
        Odds.of(amounts)


def test_an_absurd_epsilon_is_shown_as_certainty() -> None:
    odds = Odds.of(Amounts("1e4000", "0"))
    assert odds.guess == "100 %"
    assert odds.belief(PRIORS[-1]) == "100 %"


@given(
    st.lists(st.floats(0.001, 1.0), min_size=2, max_size=5),
    st.lists(st.floats(0.001, 1.0), min_size=2, max_size=5),
    st.floats(0, 3),
)
def test_no_guess_beats_the_limit(one: list[float], other: list[float], epsilon: float) -> None:
    size = min(len(one), len(other))
    p = [weight / sum(one[:size]) for weight in one[:size]]
    q = [weight / sum(other[:size]) for weight in other[:size]]
    delta = max(
        sum(max(0.0, a - math.exp(epsilon) * b) for a, b in zip(first, second, strict=True))
        for first, second in ((p, q), (q, p))
    )
    best = sum(max(a, b) for a, b in zip(p, q, strict=True)) / 2
    assert best <= guessing_limit(epsilon, delta) + 1e-12


def test_the_limit_is_reached_by_randomized_response() -> None:
    for epsilon, delta in product((0.0, 0.5, 2.0), (0.0, 0.1)):
        truth = math.exp(epsilon) / (1 + math.exp(epsilon))
        assert math.isclose(delta + (1 - delta) * truth, guessing_limit(epsilon, delta))


@given(st.floats(5e-324, 0.999))
def test_a_chance_never_looks_smaller_than_it_is(delta: float) -> None:
    text = one_in(delta)
    if match := re.fullmatch(r"1 in ([\d,]+) ?(\w*)", text):
        assert float(match[1].replace(",", "")) * SIZES[match[2]] <= 1 / delta * (1 + 1e-9)
    else:
        power = int(text.removeprefix("less than 1 in 10^"))
        assert power <= -math.log10(delta) + 1e-9


def test_words_for_a_guarantee_without_delta() -> None:
    assert in_words(0.0, 0.0).endswith("right at most 50 % of the time (50 % is the baseline), without exception.")


def test_an_infinite_epsilon_leaves_no_doubt() -> None:
    assert guessing_limit(math.inf, 0.0) == 1.0
    assert "at most 100 %" in in_words(math.inf, 1e-6)
