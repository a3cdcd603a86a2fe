"""The primitives as taught in lectures: the right statements derived, and the wrong ones refuted by a number."""

from __future__ import annotations

import json
import math
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import mpmath as mp
import pytest

from tests.theorems.crowd_laws import clamped_geometric, close, delta, response, sure
from tests.theorems.exact_laws import Law, pair

VECTORS: dict[str, Any] = json.loads(Path(__file__).with_name("vectors_lectures.json").read_text())
DIGITS = mp.mpf(10) ** -20


@pytest.fixture(autouse=True)
def _forty_digits() -> Any:
    with mp.workdps(40):
        yield


def near(found: Any, reference: str) -> bool:
    truth = mp.mpf(reference)
    return bool(abs(mp.mpf(found) - truth) <= DIGITS * max(1, abs(truth)))


# Laplace noise


def test_laplace_noise_of_scale_sensitivity_over_epsilon_costs_epsilon_and_over_its_square_costs_the_square() -> None:
    def loss(scale: float, sensitivity: float) -> float:
        places = [x / 10 for x in range(-50, 51)]
        return max(abs(abs(x - sensitivity) - abs(x)) / scale for x in places)  # log of the ratio of densities

    for epsilon in (0.5, 2.0):
        assert loss(3 / epsilon, 3) == pytest.approx(epsilon)
        assert loss(3 / epsilon**2, 3) == pytest.approx(epsilon**2)
    assert loss(1 / 2.0**2, 1) > 2.0  # more than guaranteed as soon as epsilon exceeds 1


def test_a_laplace_density_without_its_norm_is_no_density() -> None:
    scale = mp.mpf(3)
    assert near(2 * mp.quad(lambda z: mp.exp(-z / scale), [0, mp.inf]) / (2 * scale), "1")
    assert not near(2 * mp.quad(lambda z: mp.exp(-z / scale) / 2, [0, mp.inf]), "1")


def test_the_largest_of_several_laplace_draws_stays_below_the_union_bound() -> None:
    row = VECTORS["laplace_tail"]
    draws, failing, epsilon = row["k"], mp.mpf(row["delta"]), mp.mpf(row["eps"])
    bound = mp.log(draws / failing) / epsilon
    assert near(bound, row["bound"])
    assert near(mp.exp(-epsilon * bound), row["delta"])  # one draw: exact
    assert 1 - (1 - mp.exp(-epsilon * mp.log(7 / failing) / epsilon)) ** 7 <= failing  # seven: a bound


@pytest.mark.parametrize("row", VECTORS["discrete_laplace"], ids=lambda row: row["eps"])
def test_discrete_laplace_moments_are_those_of_its_masses(row: dict[str, Any]) -> None:
    fall = mp.exp(-mp.mpf(row["eps"]))
    masses = {z: (1 - fall) / (1 + fall) * fall ** abs(z) for z in range(-1000, 1001)}
    assert near(masses[0], row["pmf0"])
    assert near(masses[3], row["pmf3"])
    assert near(mp.fsum(mass for z, mass in masses.items() if abs(z) >= 5), row["tail_ge5"])
    assert near(mp.fsum(z * z * mass for z, mass in masses.items()), row["var"])
    assert near(mp.fsum(abs(z) * mass for z, mass in masses.items()), row["absmean"])
    assert near(2 * fall**5 / (1 + fall), row["tail_ge5"])
    assert near(2 * fall / (1 - fall) ** 2, row["var"])
    assert near(2 * fall / (1 - fall**2), row["absmean"])


# Randomized response


def estimates(truths: tuple[int, ...], flip: Fraction) -> dict[Fraction, Fraction]:
    """The law of the estimator (yeses − N·flip)/(N(1 − 2·flip)), answer by answer."""
    law: dict[Fraction, Fraction] = Counter()  # type: ignore[assignment]
    for flips in product((0, 1), repeat=len(truths)):
        yes = sum(truth ^ flipped for truth, flipped in zip(truths, flips, strict=True))
        law[(yes - len(truths) * flip) / (len(truths) * (1 - 2 * flip))] += flip ** sum(flips) * (1 - flip) ** (
            len(flips) - sum(flips)
        )
    return law


def variance(law: dict[Fraction, Fraction]) -> Fraction:
    mean = sum((value * mass for value, mass in law.items()), Fraction(0))
    return sum(((value - mean) ** 2 * mass for value, mass in law.items()), Fraction(0))


def test_the_estimator_of_randomized_response_is_unbiased_with_the_variance_given_the_data() -> None:
    flip, truths = Fraction(1, 4), (1, 1, 0, 0, 0)
    law = estimates(truths, flip)
    assert sum((value * mass for value, mass in law.items()), Fraction(0)) == Fraction(2, 5)
    assert variance(law) == flip * (1 - flip) / (len(truths) * (1 - 2 * flip) ** 2)


def test_people_drawn_at_random_add_their_own_variance() -> None:
    flip, share, people = Fraction(1, 4), Fraction(3, 10), 4
    mixed: dict[Fraction, Fraction] = Counter()  # type: ignore[assignment]
    for truths in product((0, 1), repeat=people):
        chance = share ** sum(truths) * (1 - share) ** (people - sum(truths))
        for value, mass in estimates(truths, flip).items():
            mixed[value] += chance * mass
    yes = flip + share - 2 * flip * share
    assert variance(mixed) == yes * (1 - yes) / (people * (1 - 2 * flip) ** 2)
    assert variance(mixed) == (flip * (1 - flip) / (1 - 2 * flip) ** 2 + share * (1 - share)) / people


@pytest.mark.parametrize("row", VECTORS["rr_flip"], ids=lambda row: row["p"])
def test_randomized_response_has_the_reference_values(row: dict[str, Any]) -> None:
    flip, people, share = Fraction(row["p"]), row["N"], Fraction(row["f"])
    yes = flip + share - 2 * flip * share
    given, drawn = (x * (1 - x) / (people * (1 - 2 * flip) ** 2) for x in (flip, yes))
    assert near(mp.log((1 - mp.mpf(row["p"])) / mp.mpf(row["p"])), row["eps"])
    assert (given, drawn) == (Fraction(row["var_given_data"]), Fraction(row["var_iid"]))
    stated = 1 / (math.sqrt(people) * float(1 - 2 * flip))
    assert math.isclose(stated / 2, float(row["std_upper"]))
    assert math.sqrt(drawn) <= stated / 2  # what the lecture calls a variance bounds the standard deviation, twofold


def test_the_lectures_variance_of_the_yeses_is_a_standard_deviation() -> None:
    people, flip = 100, Fraction(1, 4)
    true_variance = people * flip * (1 - flip)
    assert true_variance > math.sqrt(people) > math.sqrt(true_variance)


def test_two_coins_make_a_response_of_epsilon_ln_3() -> None:
    row = VECTORS["rr_coin"]
    yes_if_yes, yes_if_no = Fraction(1, 2) + Fraction(1, 4), Fraction(1, 4)
    assert near(mp.log(mp.mpf(yes_if_yes.numerator) / yes_if_yes.denominator / mp.mpf("0.25")), row["eps"])
    for truth, chance in ((1, yes_if_yes), (0, yes_if_no)):
        assert 2 * chance - Fraction(1, 2) == truth  # the estimator 2P − 1/2 is unbiased
    assert 4 * yes_if_yes * (1 - yes_if_yes) / 100 == Fraction(row["var_value_N100"]) == Fraction(3, 400)


# Choosing: report noisy max and the exponential mechanism


def overtaking(gap: float, scale: float) -> float:
    """P[the smaller of two counts wins] when both get Laplace noise and differ by `gap`."""
    quad = mp.quad(lambda z: mp.exp(-abs(z) / scale) / (2 * scale) * mp.exp(-(gap + z) / scale) / 2, [-gap, 0, mp.inf])
    below = mp.quad(
        lambda z: mp.exp(-abs(z) / scale) / (2 * scale) * (1 - mp.exp((gap + z) / scale) / 2), [-mp.inf, -gap]
    )
    return float(quad + below)


def test_noisy_max_of_scale_one_over_epsilon_needs_counts_that_move_together() -> None:
    assert overtaking(12, 1) == pytest.approx(math.exp(-12) * (1 + 6) / 2)
    against = math.log(overtaking(10, 1) / overtaking(12, 1))  # (0, 12) becomes (1, 11)
    together = math.log(overtaking(11, 1) / overtaking(12, 1))  # (0, 12) becomes (1, 12)
    assert f"{against:.2f}" == "1.85"
    assert together <= 1.0 < against
    assert math.log(overtaking(10, 2) / overtaking(12, 2)) <= 1.0  # twice the scale is enough for any utilities


def test_the_winning_noisy_count_is_not_free() -> None:
    def density(value: float, counts: list[int]) -> Any:
        others = [mp.exp(value - count) / 2 for count in counts[1:]]  # far below all counts
        return mp.exp(-abs(value - counts[0])) / 2 * mp.fprod(others)

    ten, moved = [5] * 10, [6] * 10
    assert near(mp.log(density(-40, ten) / density(-40, moved)), "10")  # ten counters: ten times epsilon = 1


def exponential(utilities: list[float], epsilon: float) -> list[float]:
    weights = [math.exp(epsilon * (utility - max(utilities))) for utility in utilities]
    return [weight / sum(weights) for weight in weights]


def worst_loss(before: list[float], after: list[float]) -> float:
    return max(abs(math.log(one / other)) for one, other in zip(before, after, strict=True))


def test_the_exponential_mechanism_needs_its_factor_of_two() -> None:
    before, after = [-9.0, 9.0], [-8.0, 8.0]
    assert worst_loss(exponential(before, 1.0), exponential(after, 1.0)) > 1.99
    assert worst_loss(exponential(before, 0.5), exponential(after, 0.5)) <= 1.0


def test_the_exponential_mechanism_does_without_if_utilities_move_one_way_or_by_a_narrow_range() -> None:
    before = [0.0, 1.0, 3.0]
    for moves in product((0.0, 0.5, 1.0), repeat=3):
        after = [utility + move for utility, move in zip(before, moves, strict=True)]
        loss = worst_loss(exponential(before, 1.0), exponential(after, 1.0))
        assert loss <= max(moves) - min(moves) + 1e-12


def test_the_exponential_mechanism_has_the_reference_probabilities() -> None:
    row = VECTORS["exp_mechanism"]
    for key, factor in (("probs_half", 2), ("probs_monotone", 1)):
        weights = [mp.exp(mp.mpf(row["eps"]) * utility / (factor * row["du"])) for utility in row["u"]]
        assert all(near(w / mp.fsum(weights), p) for w, p in zip(weights, row[key], strict=True))


# Composition and sensitivity


def counted(database: tuple[str, ...], names: str) -> Law:
    """Each record's own count with geometric noise of ratio 2."""
    laws = [clamped_geometric(database.count(name), 4, Fraction(1, 2)) for name in names]
    return pair(laws[0], laws[1])


def test_releases_on_parts_cost_the_largest_for_added_people_and_two_for_replaced_ones() -> None:
    whole, less, moved = ("a", "a", "b"), ("a", "b"), ("a", "b", "b")
    assert close(counted(whole, "ab"), counted(less, "ab"), Fraction(2))
    assert not close(counted(whole, "ab"), counted(moved, "ab"), Fraction(399, 100))
    assert close(counted(whole, "ab"), counted(moved, "ab"), Fraction(4))


def test_releases_on_parts_that_protect_replaced_people_only_protect_nobody() -> None:
    sizes = [tuple(Counter(database)[name] for name in "ab") for database in (("a", "b"), ("b", "b"))]
    assert delta(sure(sizes[0]), sure(sizes[1]), Fraction(10**9)) == 1


def test_parts_that_depend_on_the_data_do_not_compose_in_parallel() -> None:
    # Everyone is put into the part of the parity of all: one newcomer moves everyone.
    def release(people: int) -> Law:
        parts = (people, 0) if people % 2 == 0 else (0, people)
        return pair(*(clamped_geometric(count, 9, Fraction(1, 2)) for count in parts))

    assert not close(release(4), release(5), Fraction(2) ** 8)


def test_a_histogram_moves_by_one_for_added_people_and_by_two_for_replaced_ones() -> None:
    tables = {people: list(combinations_with_replacement("abc", people)) for people in range(4)}

    def distance(one: tuple[str, ...], other: tuple[str, ...]) -> int:
        return sum(abs(one.count(name) - other.count(name)) for name in "abc")

    added = {distance(one, tuple(sorted((*one, new)))) for one in tables[2] for new in "abc"}
    replaced = {distance((*one, old), (*one, new)) for one in tables[2] for old in "abc" for new in "abc"}
    assert (max(added), max(replaced)) == (1, 2)


def test_a_mean_moves_by_one_over_n_only_if_n_is_public() -> None:
    people = 4
    rows = list(product((0, 1), repeat=people))
    replaced = max(
        abs(Fraction(sum(one), people) - Fraction(sum(other), people))
        for one in rows
        for other in rows
        if sum(a != b for a, b in zip(one, other, strict=True)) == 1
    )
    added = max(
        abs(Fraction(sum(row) + new, size + 1) - Fraction(sum(row), size))
        for size in (1, 2, 3)
        for row in product((0, 1), repeat=size)
        for new in (0, 1)
    )
    assert replaced == Fraction(1, people)
    assert added == Fraction(1, 2)


# Frequency oracles


def probabilities(row: dict[str, Any]) -> tuple[Any, Any]:
    """P[a report supports a value], for its holder and for anybody else."""
    grow, values, range_ = mp.exp(mp.mpf(row["eps"])), row["d"], row["g"]
    half = mp.exp(mp.mpf(row["eps"]) / 2)
    return {
        "GRR": lambda: (grow / (grow + values - 1), 1 / (grow + values - 1)),
        "SUE": lambda: (half / (half + 1), 1 / (half + 1)),
        "OUE": lambda: (mp.mpf(1) / 2, 1 / (grow + 1)),
        "OLH": lambda: (grow / (grow + range_ - 1), mp.mpf(1) / range_),
        "HR": lambda: (grow / (grow + 1), mp.mpf(1) / 2),
    }[row["kind"]]()


def variance_of_frequency(p: Any, q: Any, people: int, share: Any) -> Any:
    """Var of (support/n − q)/(p − q), the support being share·n coins of p and the rest of q."""
    return (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (people * (p - q) ** 2)


ORACLES = VECTORS["frequency_oracles"]


@pytest.mark.parametrize("row", ORACLES, ids=lambda row: f"{row['kind']}-{row['eps']}-{row['d']}")
def test_frequency_oracles_have_the_reference_variances(row: dict[str, Any]) -> None:
    p, q = probabilities(row)
    assert near(p, row["p"])
    assert near(q, row["q"])
    assert near(variance_of_frequency(p, q, row["n"], mp.mpf(0)), row["var_f0"])
    assert near(variance_of_frequency(p, q, row["n"], mp.mpf("0.2")), row["var_f02"])
    grow, half = mp.exp(mp.mpf(row["eps"])), mp.exp(mp.mpf(row["eps"]) / 2)
    closed = {
        "GRR": (grow + row["d"] - 2) / (grow - 1) ** 2,
        "SUE": half / (half - 1) ** 2,
        "OUE": 4 * grow / (grow - 1) ** 2,
        "OLH": (grow + (row["g"] or 2) - 1) ** 2 / ((grow - 1) ** 2 * ((row["g"] or 2) - 1)),
        "HR": ((grow + 1) / (grow - 1)) ** 2,
    }[row["kind"]]
    assert near(closed / row["n"], row["var_f0"])


@pytest.mark.parametrize("row", ORACLES, ids=lambda row: f"{row['kind']}-{row['eps']}-{row['d']}")
def test_frequency_oracles_spend_all_of_epsilon_and_no_more(row: dict[str, Any]) -> None:
    p, q = probabilities(row)
    ratio = {
        "GRR": lambda: p / q,
        "SUE": lambda: p * (1 - q) / (q * (1 - p)),  # two bits differ
        "OUE": lambda: p * (1 - q) / (q * (1 - p)),
        "OLH": lambda: p / ((1 - p) / (row["g"] - 1)),  # the hash given, one of g answers
        "HR": lambda: p / (1 - p),
    }[row["kind"]]()
    assert near(mp.log(ratio), row["eps"])


def test_direct_response_beats_unary_encoding_below_three_e_plus_two_values() -> None:
    for epsilon in (0.5, 1.0, 2.0, 3.0):
        grow = math.exp(epsilon)
        for values in range(2, 100):
            direct, unary = (grow + values - 2) / (grow - 1) ** 2, 4 * grow / (grow - 1) ** 2
            assert (direct < unary) == (values < 3 * grow + 2)


def test_hashing_is_best_at_one_of_the_two_integers_around_e_plus_one() -> None:
    for epsilon in (0.5, 1.0, 2.0, 3.0):
        grow = math.exp(epsilon)
        best = min(range(2, 200), key=lambda g: (grow + g - 1) ** 2 / (g - 1))
        assert best in {math.floor(grow) + 1, math.ceil(grow) + 1}


def test_one_bit_of_response_has_two_outcomes_within_the_ratio() -> None:
    assert close(response(True, Fraction(3)), response(False, Fraction(3)), Fraction(3))
    assert not close(response(True, Fraction(3)), response(False, Fraction(3)), Fraction(299, 100))
