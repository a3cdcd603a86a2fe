"""Crowd-blending by its definition, on universes small enough to try everything."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import pytest

from incrowd.accounting.blending import robust, sampled_crowd
from tests.theorems.crowd_laws import (
    ONE,
    Database,
    Mechanism,
    blend,
    clamped_geometric,
    delta,
    is_crowd_blending,
    mixture,
    noisy_when_small,
    on_sample,
    response,
    suppressed_histogram,
    sure,
)
from tests.theorems.exact_laws import Law, binomial, e_to_the, pair

BINS = {"a": "low", "b": "low", "c": "high"}
RATE = Fraction(3, 10)
SLACK = 1 + 1e-10


def count_and_bit(k: int, ratio: Fraction) -> Mechanism:
    """The worst mechanism: how many there are, from k on, and a noisy answer to whether t is among them."""

    def release(database: Database) -> Law:
        shown = len(database) if len(database) >= k else 0
        return pair(sure(shown), response("t" in database, ratio))

    return release


def counts(rates: Sequence[Fraction]) -> dict[int, Fraction]:
    """How many of the people are drawn, if each has an own rate."""
    law = {0: ONE}
    for rate in rates:
        law = {n: law.get(n, 0) * (1 - rate) + law.get(n - 1, 0) * rate for n in range(len(law) + 1)}
    return law


def worst_release(k: int, others: dict[int, Fraction], member: Fraction, crowd: Fraction) -> tuple[Law, Law]:
    """The laws of the worst mechanism with t in the population and without, given the law of the others' number."""

    def shown(extra: int) -> Law:
        return mixture((mass, sure(n + extra if n + extra >= k else 0)) for n, mass in others.items())

    absent = pair(shown(0), response(False, crowd))
    return mixture([(member, pair(shown(1), response(True, crowd))), (1 - member, absent)]), absent


def test_a_suppressed_histogram_blends_everyone_with_exactly_k() -> None:
    release = suppressed_histogram(BINS, k=3)
    assert is_crowd_blending(release, "abc", size=5, k=3)
    assert not is_crowd_blending(release, "abc", size=5, k=4)


def test_an_exact_histogram_blends_nobody_with_two() -> None:
    assert is_crowd_blending(suppressed_histogram(BINS, k=1), "abc", size=4, k=1)
    assert not is_crowd_blending(suppressed_histogram(BINS, k=1), "abc", size=4, k=2, ratio=Fraction(10**6))


@pytest.mark.parametrize("flagged", [False, True])
def test_noise_on_small_counts_blends_at_its_own_ratio_and_no_better(flagged: bool) -> None:
    release = noisy_when_small(BINS, 3, Fraction(1, 2), flagged=flagged)
    assert is_crowd_blending(release, "abc", size=5, k=3, ratio=Fraction(2))
    assert not is_crowd_blending(release, "abc", size=5, k=3, ratio=Fraction(19, 10))
    assert not is_crowd_blending(release, "abc", size=5, k=4, ratio=Fraction(2))


def test_no_condition_joins_the_last_noisy_count_and_the_first_exact_one() -> None:
    last_noisy, first_exact = clamped_geometric(2, 2, Fraction(1, 2)), sure(3)
    assert delta(last_noisy, first_exact, Fraction(10**9)) == 1
    assert is_crowd_blending(noisy_when_small({"a": "x"}, 3, Fraction(1, 2)), "a", size=6, k=3, ratio=Fraction(2))


def test_leaving_empty_bins_without_noise_betrays_a_lone_person() -> None:
    noisy = noisy_when_small({"a": "x"}, 3, Fraction(1, 2))

    def skips_empty(database: Database) -> Law:
        return noisy(database) if database else sure((0,))

    assert not is_crowd_blending(skips_empty, "a", size=4, k=3, ratio=Fraction(10**9))


def test_the_worst_mechanism_is_crowd_blending() -> None:
    release = count_and_bit(3, Fraction(2))
    assert is_crowd_blending(release, "tu", size=5, k=3, ratio=Fraction(2))
    assert not is_crowd_blending(release, "tu", size=5, k=3, ratio=Fraction(3, 2))
    assert blend(release, "tu", 5, Fraction(2))("t", "u")


def test_the_law_by_counts_is_the_law_by_subsets() -> None:
    people = [("u", RATE)] * 4
    released = on_sample(count_and_bit(3, Fraction(2)), [*people, ("t", RATE)])
    by_counts, absent = worst_release(3, counts([RATE] * 4), RATE, Fraction(2))
    assert released == by_counts
    assert on_sample(count_and_bit(3, Fraction(2)), people) == absent


@pytest.mark.parametrize("rate", ["0.3", "0.6", "0.95"])
@pytest.mark.parametrize("crowd", ["0", "0.2", "1"])
@pytest.mark.parametrize("epsilon", ["0", "0.1", "0.5", "1.5"])
def test_the_worst_mechanism_attains_the_exact_delta(rate: str, crowd: str, epsilon: str) -> None:
    k, share = 3, Fraction(rate)
    truth = max(
        delta(
            *worst_release(k, counts([share] * others), share, e_to_the(Fraction(crowd))), e_to_the(Fraction(epsilon))
        )
        for others in range(26)
    )
    assert truth <= sampled_crowd.delta(k, crowd, rate, epsilon) <= float(truth) * SLACK


def random_close_law(chance: random.Random, law: list[float], epsilon: float) -> list[float]:
    """Return a random law within e^±epsilon of `law`: tilt by half of epsilon, the norm takes the other half."""
    tilted = [mass * math.exp(chance.choice((-0.5, 0.5)) * epsilon) for mass in law]
    return [mass / sum(tilted) for mass in tilted]


def random_law(chance: random.Random, outcomes: int) -> list[float]:
    raw = [chance.random() ** 4 for _ in range(outcomes)]
    return [mass / sum(raw) for mass in raw]


def random_blending_laws(
    chance: random.Random, k: int, others: int, epsilon: float
) -> tuple[list[list[float]], list[list[float]]]:
    """Laws with t and without, given 0..others sampled members, tied only as a (k, epsilon) guarantee ties them."""
    absent, present = [random_law(chance, 5)], []
    for sampled in range(others + 1):
        ignored = sampled <= k - 2
        present.append(random_close_law(chance, absent[sampled], epsilon) if ignored else random_law(chance, 5))
        absent.append(random_close_law(chance, present[sampled], epsilon))
    return present, absent[: others + 1]


@pytest.mark.parametrize("seed", range(60))
def test_no_random_crowd_blending_mechanism_exceeds_the_exact_delta(seed: int) -> None:
    chance = random.Random(seed)
    k, others, crowd = chance.randint(2, 4), chance.randint(0, 7), chance.choice((0.1, 0.5, 1.0))
    rate, epsilon = chance.choice((0.2, 0.5, 0.8)), chance.choice((0.0, 0.05, 0.2, 0.7))
    for _ in range(20):
        present, absent = random_blending_laws(chance, k, others, crowd)
        weights = [float(binomial(others, m, Fraction(rate))) for m in range(others + 1)]
        without = [sum(w * law[o] for w, law in zip(weights, absent, strict=True)) for o in range(5)]
        drawn = [sum(w * law[o] for w, law in zip(weights, present, strict=True)) for o in range(5)]
        released = [rate * a + (1 - rate) * b for a, b in zip(drawn, without, strict=True)]
        bound = sampled_crowd.delta(k, crowd, rate, epsilon)
        for one, other in ((released, without), (without, released)):
            found = sum(max(0.0, a - math.exp(epsilon) * b) for a, b in zip(one, other, strict=True))
            assert found <= bound * (1 + 1e-12) + 1e-15


def test_random_mechanisms_come_close_enough_to_the_bound_to_test_it() -> None:
    chance, best = random.Random(1), 0.0
    for _ in range(300):
        present, absent = random_blending_laws(chance, 2, 0, 1.0)
        best = max(best, sum(max(0.0, a - b) for a, b in zip(present[0], absent[0], strict=True)))
    assert best > 0.8 * math.tanh(0.25)  # half of ε tilts the law, the other half its norm


@pytest.mark.parametrize("epsilon", ["0.05", "0.2", "0.5", "1"])
@pytest.mark.parametrize("flagged", [False, True])
def test_noise_on_small_counts_stays_below_its_histogram_delta(epsilon: str, flagged: bool) -> None:
    k, rate, fall = 3, Fraction(2, 5), Fraction(3, 4)
    release = noisy_when_small({"a": "x"}, k, fall, flagged=flagged)
    truth = Fraction(0)
    for others in range(13):
        laws = [
            mixture((binomial(others, m, rate), release(("a",) * (m + extra))) for m in range(others + 1))
            for extra in (0, 1)
        ]
        with_t = mixture([(rate, laws[1]), (1 - rate, laws[0])])
        truth = max(truth, delta(with_t, laws[0], e_to_the(Fraction(epsilon))))
    noise = -math.log(fall)
    found = sampled_crowd.histogram_delta(k, rate, epsilon, noise)
    assert truth <= found <= sampled_crowd.delta(k, noise, rate, epsilon)
    if float(epsilon) > -math.log(1 - rate):
        assert found <= float(truth) * SLACK  # there it is exact: the noise costs nothing


BIAS = robust.Bias(Fraction(1, 5), Fraction(2, 5), 1, Fraction(1))


@pytest.mark.parametrize("epsilon", ["0", "0.3", "1.2"])
@pytest.mark.parametrize("crowd", ["0", "0.4"])
def test_biased_samples_never_exceed_the_robust_delta_and_attain_it(epsilon: str, crowd: str) -> None:
    k, ratio, tilt = 4, e_to_the(Fraction(epsilon)), e_to_the(Fraction(crowd))
    bound = robust.delta(k, crowd, BIAS, epsilon)
    grid = (Fraction(0), BIAS.low, Fraction(3, 10), BIAS.high)
    for rates in product(grid, repeat=4):
        if list(rates) == sorted(rates):
            for known, member in ((Fraction(1, 2), BIAS.high), (ONE, BIAS.low), (Fraction(0), BIAS.max_rate)):
                assert delta(*worst_release(k, counts([*rates, known]), member, tilt), ratio) <= bound
    regular = [delta(*worst_release(k, counts([BIAS.high] * n + [ONE]), BIAS.high, tilt), ratio) for n in range(16)]
    irregular = [delta(*worst_release(k, counts([BIAS.high] * n), BIAS.max_rate, tilt), ratio) for n in range(16)]
    truth = float(max(*regular, *irregular))
    assert truth <= bound <= truth * SLACK


def test_an_even_sample_is_a_biased_one_without_bias() -> None:
    even = robust.Bias(RATE, RATE, 0, RATE)
    assert robust.delta(7, "0.2", even, "0.4") == sampled_crowd.delta(7, "0.2", RATE, "0.4")
