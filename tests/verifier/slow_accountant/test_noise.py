"""Noise with its law written out: it agrees with the accountant, and finite losses compose as its package says."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from incrowd.accounting import accountant, additive, concentrated
from incrowd.core.loss import Approximate, Gaussian, Grouped, Laplace, Loss, Parallel, Pure, Sampled, Sequence
from incrowd.verifier.slow_accountant.noise import (
    NOTHING,
    concentrated_delta,
    gaussian_delta,
    spread_of,
    stated,
    stated_delta,
)


@pytest.mark.parametrize("scale", [1.5, 4.0, 30.0])
@pytest.mark.parametrize("sensitivity", [1, 3])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_gaussian_laws_agree_with_the_accountant(scale: float, sensitivity: int, epsilon: float) -> None:
    bound = additive.gaussian_delta(Gaussian(Fraction(scale), sensitivity), epsilon)
    assert gaussian_delta(Fraction(scale), sensitivity, epsilon) == pytest.approx(bound, rel=1e-6)


def test_a_law_that_is_too_wide_is_not_written_out() -> None:
    assert gaussian_delta(Fraction(10**6), 1, 1.0) is None


@pytest.mark.parametrize("rho", ["1/20", "1/2"])
@pytest.mark.parametrize("epsilon", [1.0, 6.0])
def test_concentrated_deltas_agree_with_the_accountant(rho: str, epsilon: float) -> None:
    found = concentrated_delta(Fraction(rho), epsilon)
    assert math.isclose(found, concentrated.delta_of_rho(rho, epsilon), rel_tol=1e-6)
    assert concentrated_delta(Fraction(0), epsilon) == 0.0


@pytest.mark.parametrize("scale", ["1/2", "3", "10"])
@pytest.mark.parametrize("sensitivity", [1, 2, 7])
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.6])
def test_laplace_losses_are_those_of_its_law(scale: str, sensitivity: int, epsilon: float) -> None:
    spread = spread_of(Laplace(Fraction(scale), sensitivity))
    assert spread is not None
    assert math.fsum(mass for _, mass in spread.masses) == pytest.approx(1.0)
    bound = additive.laplace_delta(Laplace(Fraction(scale), sensitivity), epsilon)
    assert spread.delta(epsilon) == pytest.approx(bound, rel=1e-8, abs=1e-15)


def test_finite_losses_together_are_at_most_what_the_accountant_s_distribution_says() -> None:
    parts: tuple[Loss, ...] = (
        Laplace(Fraction(2), 3),
        Pure(Fraction(1, 3)),
        Approximate(Fraction(1, 2), Fraction(1, 99)),
    )
    whole = NOTHING
    for part in parts:
        single = spread_of(part)
        assert single is not None
        both = whole.beside(single)
        assert both is not None
        whole = both
    for epsilon in ("0.3", "1", "2"):
        bound = accountant.delta(Sequence(parts), epsilon).value
        assert whole.delta(float(epsilon)) == pytest.approx(bound, rel=1e-3)
        assert whole.delta(float(epsilon)) <= bound * (1 + 1e-6)


def test_losses_that_are_too_many_are_not_composed() -> None:
    many = spread_of(Laplace(Fraction(7, 3), 1000))
    assert many is not None
    assert many.beside(many) is None


@pytest.mark.parametrize(
    ("loss", "epsilon", "delta"),
    [
        (Sequence((Pure(Fraction(1, 10)),) * 10), 1, 0),
        (Parallel((Pure(Fraction(1)), Approximate(Fraction(1, 2), Fraction(1, 10)))), 1, Fraction(1, 10)),
        (Grouped(3, Laplace(Fraction(2))), Fraction(3, 2), 0),
        (Laplace(Fraction(2), 5), Fraction(5, 2), 0),
    ],
)
def test_stated_guarantees_are_exact(loss: Loss, epsilon: Fraction, delta: Fraction) -> None:
    assert stated(loss) == Approximate(Fraction(epsilon), Fraction(delta))


def test_a_sample_makes_a_stated_guarantee_smaller_and_curves_state_nothing() -> None:
    found = stated(Sampled(Fraction(1, 10), Pure(Fraction(1))))
    assert found is not None
    assert float(found.epsilon) == pytest.approx(math.log1p(0.1 * math.expm1(1)))
    assert stated(Gaussian(Fraction(1))) is None
    assert stated(Sequence((Pure(Fraction(1)), Gaussian(Fraction(1))))) is None
    assert stated(Grouped(2, Approximate(Fraction(1), Fraction(1, 10)))) is None


def test_a_guarantee_read_below_its_epsilon_has_the_delta_of_one_bit() -> None:
    guarantee = Approximate(Fraction(1), Fraction(1, 100))
    assert stated_delta(guarantee, Fraction(1)) == 0.01
    assert stated_delta(guarantee, Fraction(1, 2)) == pytest.approx(accountant.delta(guarantee, "0.5").value, rel=1e-9)
