"""Composition by privacy loss distributions: against laws written out exactly, and beside dp-accounting."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as peer

from incrowd.accounting import additive, distribution
from incrowd.accounting.accountant import delta as delta_of
from incrowd.accounting.accountant import epsilon as epsilon_of
from incrowd.accounting.bound import least_epsilon
from incrowd.accounting.concentrated import delta_of_rho
from incrowd.core.loss import Gaussian, GaussianRounds, Laplace, Sampled, Sequence
from incrowd.core.unit import Adjacency, Unit
from incrowd.methods.learning.shared.streaming import FINE, quietest
from incrowd.verifier.slow_accountant import derive

ADD, REPLACE = Adjacency.ADD_REMOVE, Adjacency.REPLACE
Law = list[mpmath.mpf]
QUARTER = Fraction(1, 4)


def law(noise: Gaussian | Laplace, center: int, reach: int) -> Law:
    """The law of an integer plus noise on −reach … reach, to 40 digits."""
    scale = mpmath.mpf(noise.scale.numerator) / noise.scale.denominator

    def weight(z: int) -> mpmath.mpf:
        return mpmath.exp(-abs(z) / scale) if isinstance(noise, Laplace) else mpmath.exp(-(z * z) / (2 * scale**2))

    total = mpmath.fsum(weight(z) for z in range(-3 * reach, 3 * reach + 1))
    return [weight(z - center) / total for z in range(-reach, reach + 1)]


def sampled(rate: Fraction, absent: Law, present: Law) -> Law:
    share = mpmath.mpf(rate.numerator) / rate.denominator
    return [(1 - share) * one + share * other for one, other in zip(absent, present, strict=True)]


def excess(pairs: list[tuple[Law, Law]], epsilon: float) -> mpmath.mpf:
    """By how much all first laws together exceed e^ε times the second ones, over every joint outcome."""
    losses = {mpmath.mpf(0): mpmath.mpf(1)}
    for first, second in pairs:
        sums: dict[mpmath.mpf, mpmath.mpf] = {}
        for (loss, mass), (one, other) in itertools.product(losses.items(), zip(first, second, strict=True)):
            key = mpmath.mpf(mpmath.nstr(loss + mpmath.log(one / other), 30))
            sums[key] = sums.get(key, mpmath.mpf(0)) + mass * one
        losses = sums
    return mpmath.fsum(mass * (1 - mpmath.exp(epsilon - loss)) for loss, mass in losses.items() if loss > epsilon)


CASES = [
    ((Sampled(QUARTER, Gaussian(Fraction(1))),) * 2, 14),
    ((Gaussian(Fraction(1, 2)),) * 3, 7),
    ((Sampled(QUARTER, Laplace(Fraction(2), 3)),) * 2, 40),
    ((Gaussian(Fraction(3, 2), 2), Sampled(Fraction(1, 10), Laplace(Fraction(1)))), 20),
]


@pytest.mark.parametrize(("parts", "reach"), CASES)
@pytest.mark.parametrize("adjacency", [ADD, REPLACE])
def test_composed_noise_is_the_exact_excess_rounded_up(
    parts: tuple[Gaussian | Laplace | Sampled, ...], reach: int, adjacency: Adjacency
) -> None:
    with mpmath.workdps(40):
        pairs = []
        for part in parts:
            noise = part.inner if isinstance(part, Sampled) else part
            assert isinstance(noise, Gaussian | Laplace)
            absent, present = law(noise, 0, reach), law(noise, noise.sensitivity, reach)
            if isinstance(part, Sampled) and adjacency is ADD:
                present = sampled(part.rate, absent, present)
            elif isinstance(part, Sampled):  # whoever is told that the row was not sampled sees nothing
                share = mpmath.mpf(part.rate.numerator) / part.rate.denominator
                absent, present = ([1 - share, *(share * mass for mass in one)] for one in (absent, present))
            pairs.append((present, absent))
        for epsilon in (0.0, 0.4, 2.0):
            exact = max(excess(pairs, epsilon), excess([(two, one) for one, two in pairs], epsilon))
            bound = distribution.delta(Sequence(parts), epsilon, adjacency)
            assert bound is not None
            assert exact <= bound <= exact * mpmath.mpf("1.002") + mpmath.mpf("1e-14")


@pytest.mark.parametrize("absent", [-9, -1, 0, 2, 9])
def test_a_replaced_row_on_a_sample_is_covered_wherever_the_answer_without_it_lies(absent: int) -> None:
    """Of a replaced row it is known that the answers with either row differ by 2, not how they differ from none."""
    noise, rate = Gaussian(Fraction(1), 2), Fraction(1, 3)
    with mpmath.workdps(40):
        one, other = (sampled(rate, law(noise, absent, 24), law(noise, center, 24)) for center in (0, 2))
        for epsilon in (0.0, 0.5, 1.5):
            single = delta_of(Sampled(rate, noise), epsilon, REPLACE).value
            assert excess([(other, one)], epsilon) <= single
            twice = delta_of(Sequence((Sampled(rate, noise),) * 2), epsilon, REPLACE).value
            assert excess([(other, one)] * 2, epsilon) <= twice <= 2 * delta_of(noise, epsilon, REPLACE).value + single


@pytest.mark.parametrize(
    ("moves", "scale"),
    [((2,), Fraction(1)), ((1, 1, 1, 1), Fraction(1)), ((2,), Fraction(4)), ((1, 1), Fraction(3)), ((5,), Fraction(9))],
)
def test_rounds_of_gaussian_noise_cover_every_split_of_the_move(moves: tuple[int, ...], scale: Fraction) -> None:
    squares = Fraction(sum(move * move for move in moves))
    rounds = GaussianRounds(squares / (2 * scale**2), scale, int(squares))
    with mpmath.workdps(30):
        reach = int(12 * scale)
        pairs = [(law(Gaussian(scale, move), move, reach), law(Gaussian(scale, move), 0, reach)) for move in moves]
        for epsilon in (0.0, 1.0, 3.0):
            exact = excess(pairs, epsilon)
            assert exact <= additive.rounds_delta(rounds, epsilon)
            composed = distribution.delta(rounds, epsilon, ADD)
            assert composed is None or exact <= composed


def test_wide_rounds_cost_what_continuous_noise_costs() -> None:
    rounds = GaussianRounds(Fraction(1, 8), Fraction(500), 100)
    for epsilon in (0.0, 0.5, 2.0, 4.0):
        exact = mpmath.ncdf(0.25 - epsilon / 0.5) - mpmath.exp(epsilon) * mpmath.ncdf(-0.25 - epsilon / 0.5)
        assert exact <= additive.rounds_delta(rounds, epsilon) <= exact * (1 + 1e-3)
    concentrated = delta_of_rho(rounds.rho, 2.0)
    assert additive.rounds_delta(rounds, 2.0) < 0.5 * concentrated


@pytest.mark.parametrize("shift", [1e-7, 0.01, 0.9, 1.5, 30.0])
def test_the_curve_of_continuous_noise_is_exact_to_nine_digits(shift: float) -> None:
    with mpmath.workdps(60):
        mu = mpmath.mpf(shift)
        for least in (-8.0, -1.0, 0.0, 2.0, 9.0):
            epsilon = (least + shift / 2) * shift
            t = mpmath.mpf(epsilon) / mu - mu / 2
            exact = mpmath.ncdf(-t) - mpmath.exp(epsilon) * mpmath.ncdf(-t - mu)
            bound = additive.continuous_delta(shift, epsilon)
            assert exact <= bound
            if least >= -1.0:
                assert bound <= exact * (1 + 1e-8) + mpmath.mpf("1e-290")


@pytest.mark.parametrize(
    ("part", "times", "least", "peer_pair"),
    [
        (Sampled(Fraction(1, 100), Gaussian(Fraction(1))), 1000, 2.12, None),
        (Sampled(Fraction(1, 100), Gaussian(Fraction(1000), 1000)), 1000, 2.12, (1.0, 0.01)),
        (Sampled(Fraction(1, 10), Gaussian(Fraction(64), 32)), 500, 6.0, (2.0, 0.1)),
        (Gaussian(Fraction(1000), 100), 50, 3.0, (10.0, 1.0)),
    ],
)
def test_composition_is_within_two_percent_of_dp_accounting_and_not_below_its_lower_bound(
    part: Gaussian | Sampled, times: int, least: float, peer_pair: tuple[float, float] | None
) -> None:
    epsilon = distribution.epsilon(Sequence((part,) * times), 1e-6, ADD)
    assert epsilon is not None
    assert epsilon >= least
    if peer_pair is None:
        assert epsilon <= 1.02 * 2.1245
        return
    lower, upper = (
        peer.from_gaussian_mechanism(peer_pair[0], sampling_prob=peer_pair[1], pessimistic_estimate=pessimistic)
        .self_compose(times)
        .get_epsilon_for_delta(1e-6)
        for pessimistic in (False, True)
    )
    assert lower * (1 - 1e-9) <= epsilon <= 1.02 * upper


def test_laplace_noise_on_samples_is_composed_no_worse_than_by_dp_accounting() -> None:
    part = Sampled(Fraction(1, 100), Laplace(Fraction(1)))
    ours = distribution.epsilon(Sequence((part,) * 1000), 1e-6, ADD)
    theirs = peer.from_discrete_laplace_mechanism(1.0, 1, sampling_prob=0.01).self_compose(1000)
    assert ours is not None
    assert ours <= 1.001 * theirs.get_epsilon_for_delta(1e-6)


@pytest.mark.parametrize(
    ("rate", "scale", "times", "claimed"),
    [(4, 32, 22, 1e-20), (10, 64, 1344, 1e-6), (10, 64, 1344, 1e-12), (50, 10**7, 500, 1e-9), (10, 4000, 88, 1e-6)],
)
def test_the_slow_accountant_derives_no_more_and_nearly_as_much(
    rate: int, scale: int, times: int, claimed: float
) -> None:
    loss = Sequence((Sampled(Fraction(1, rate), Gaussian(Fraction(scale), 32)),) * times)
    epsilon = distribution.epsilon(loss, claimed, ADD)
    assert epsilon is not None
    derived = derive(loss, Unit(), epsilon, claimed)
    assert derived is not None
    assert derived.whole
    assert derived.delta <= claimed * (1 + 1e-9)
    assert derived.delta >= 0.9 * claimed or epsilon == 0.0


def test_a_tiny_delta_is_composed_as_precisely_as_a_usual_one() -> None:
    many = Sequence((Gaussian(Fraction(1000), 100),) * 100)  # as one answer moved by 1, of scale 1
    for claimed in (1e-12, 1e-30):
        epsilon = distribution.epsilon(many, claimed, ADD)
        assert epsilon is not None
        exact = least_epsilon(lambda x: additive.continuous_delta(1.0, x), claimed)
        assert exact * (1 - 1e-4) <= epsilon <= exact * (1 + 1e-3)


@pytest.mark.parametrize("budget", ["1e-6", "0.35", "25", "1000"])
def test_rounds_on_samples_are_planned_for_every_epsilon(budget: str) -> None:
    rate, rounds, delta = Fraction(1, 10), 88, Fraction(1, 10**6)
    scale = quietest(Fraction(budget), delta, rate, rounds)
    cost = epsilon_of(Sequence((Sampled(rate, Gaussian(scale, FINE)),) * rounds), delta).value
    assert cost <= Fraction(budget)
    assert cost >= 0.95 * float(budget) or scale == FINE


def test_masses_on_the_grid_keep_both_laws() -> None:
    (removed, _) = distribution._sides(Gaussian(Fraction(2)), ADD) or ((), ())
    (single, _) = removed[0]
    places, masses, logarithm = distribution._on_grid(single, 0.01, 0.0)
    assert math.isclose(float(masses.sum()) * math.exp(logarithm), 1.0, rel_tol=1e-12)
    assert math.isclose(float((masses * np.exp(-places * 0.01)).sum()), 1.0, rel_tol=1e-9)
