"""Zero-concentration: what it adds up to and what it becomes."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.accounting.accountant import delta as delta_of
from incrowd.accounting.accountant import epsilon as epsilon_of
from incrowd.accounting.concentrated import approximate_rho_of, delta_of_rho, epsilon_of_rho, largest_rho, rho_of
from incrowd.core.loss import (
    Approximate,
    Crowd,
    Gaussian,
    Grouped,
    Laplace,
    Loss,
    Parallel,
    Pure,
    Sampled,
    Sequence,
    ZeroConcentrated,
)
from incrowd.core.unit import Adjacency
from incrowd.errors import InvalidParameter

rhos = st.fractions(min_value=Fraction(1, 10**6), max_value=5, max_denominator=10**6)
deltas = st.floats(min_value=1e-15, max_value=0.1)


@given(rhos, deltas)
@settings(deadline=None)
def test_the_conversion_is_never_worse_than_the_textbook_one(rho: Fraction, delta: float) -> None:
    textbook = float(rho) + 2.0 * math.sqrt(float(rho) * math.log(1.0 / delta))
    assert 0.0 <= epsilon_of_rho(rho, delta) <= textbook * (1 + 1e-9)


@given(rhos, deltas)
@settings(deadline=None)
def test_epsilon_and_delta_agree(rho: Fraction, delta: float) -> None:
    epsilon = epsilon_of_rho(rho, delta)
    if epsilon > 0.0:
        assert delta_of_rho(rho, epsilon) <= delta * (1 + 1e-6)
        assert delta_of_rho(rho, epsilon * 0.98) >= delta * (1 - 1e-9)


@given(rhos, st.floats(min_value=0.01, max_value=5.0))
@settings(deadline=None, max_examples=30)
def test_the_true_gaussian_curve_stays_below(rho: Fraction, epsilon: float) -> None:
    """A continuous Gaussian of parameter ρ = 1/(2σ²) has a known curve (Balle & Wang 2018, Theorem 8)."""
    mu = math.sqrt(2.0 * float(rho))

    def upper(x: float) -> float:
        return 0.5 * math.erfc(x / math.sqrt(2.0))

    truth = upper(epsilon / mu - mu / 2) - math.exp(epsilon) * upper(epsilon / mu + mu / 2)
    assert truth <= delta_of_rho(rho, epsilon) + 1e-12


@given(st.floats(min_value=0.05, max_value=8.0), deltas)
@settings(deadline=None, max_examples=25)
def test_the_carved_out_rho_fits_and_nearly_fills(epsilon: float, delta: float) -> None:
    rho = largest_rho(epsilon, delta)
    assert epsilon_of_rho(rho, delta) <= Fraction(repr(epsilon))
    assert epsilon_of_rho(rho * Fraction(1001, 1000), delta) > epsilon * 0.999


@pytest.mark.parametrize(
    ("loss", "rho"),
    [
        (Pure(Fraction(2)), Fraction(2)),
        (Laplace(Fraction(2), 4), Fraction(2)),
        (Gaussian(Fraction(10)), Fraction(1, 200)),
        (Gaussian(Fraction(10), 4), Fraction(2, 25)),
        (Sequence((Gaussian(Fraction(10)), Pure(Fraction(1)))), Fraction(101, 200)),
        (Parallel((Gaussian(Fraction(10)), Pure(Fraction(1)))), Fraction(1, 2)),
        (Grouped(3, ZeroConcentrated(Fraction(1, 10))), Fraction(9, 10)),
        (Sampled(Fraction(1, 2), ZeroConcentrated(Fraction(1, 10))), Fraction(1, 10)),
    ],
)
def test_rho_adds_up(loss: Loss, rho: Fraction) -> None:
    assert rho_of(loss) == rho


@pytest.mark.parametrize(
    "loss",
    [
        Approximate(Fraction(1), Fraction(1, 10**6)),
        Crowd(20),
        Sampled(Fraction(1, 10), Crowd(20)),
        Sequence((Pure(Fraction(1)), Sampled(Fraction(1, 10), Crowd(20)))),
        Sampled(Fraction(1, 10), Sequence((Grouped(2, Pure(Fraction(1))),))),
    ],
)
def test_what_has_no_rho_has_none(loss: Loss) -> None:
    assert rho_of(loss) is None


def test_a_partition_has_no_rho_when_rows_are_replaced() -> None:
    assert rho_of(Parallel((Pure(Fraction(1)),)), Adjacency.REPLACE) is None


def test_a_replaced_person_with_several_rows_has_no_rho() -> None:
    assert rho_of(Grouped(3, Gaussian(Fraction(10))), Adjacency.REPLACE) is None
    assert rho_of(Sequence((Grouped(3, Gaussian(Fraction(10))),)), Adjacency.REPLACE) is None


@pytest.mark.parametrize(("rho", "delta"), [(-1, "1e-6"), (1, 0), (1, 1), ("nan", "1e-6")])
def test_bad_parameters_are_refused(rho: str | int, delta: str | int) -> None:
    with pytest.raises(InvalidParameter):
        epsilon_of_rho(rho, delta)


def test_a_delta_beside_rho_is_kept_apart_and_adds_up() -> None:
    small = Fraction(1, 10**7)
    loss = Sequence((ZeroConcentrated(Fraction(1, 50)), Sequence((Approximate(Fraction(1, 5), small),) * 2)))
    assert approximate_rho_of(loss) == (Fraction(1, 50) + Fraction(1, 25), 2 * small)
    assert approximate_rho_of(Sequence((loss, Sampled(Fraction(1, 2), Crowd(5))))) is None


@given(rhos, st.floats(min_value=0.01, max_value=5.0), st.integers(0, 4), st.fractions(0, Fraction(1, 5)))
@settings(deadline=None, max_examples=60)
def test_noise_beside_thresholds_is_never_worse_than_stated(
    rho: Fraction, epsilon: float, hidden: int, small: Fraction
) -> None:
    """Gaussian noise of parameter ρ beside chances to show everything: their exact curve stays below what is said."""
    mu = math.sqrt(2.0 * float(rho))

    def upper(x: float) -> float:
        return 0.5 * math.erfc(x / math.sqrt(2.0))

    gaussian = upper(epsilon / mu - mu / 2) - math.exp(epsilon) * upper(epsilon / mu + mu / 2)
    nothing = (1.0 - float(small)) ** hidden
    parts: list[Loss] = [ZeroConcentrated(rho), *[Approximate(Fraction(0), small)] * hidden]
    stated = delta_of(Sequence(tuple(parts)), epsilon).value
    assert 1.0 - nothing + nothing * max(0.0, gaussian) <= stated + 1e-12
    if stated < 1.0:
        assert epsilon_of(Sequence(tuple(parts)), min(stated * (1 + 1e-9), 0.999)).value <= epsilon * (1 + 1e-6)


def test_rho_is_converted_at_the_delta_that_stated_guarantees_leave() -> None:
    stated = Approximate(Fraction(0), Fraction(9, 10**7))
    together = epsilon_of(Sequence((ZeroConcentrated(Fraction(1, 9)), stated)), Fraction(1, 10**6)).value
    assert together >= epsilon_of_rho(Fraction(1, 9), Fraction(1, 10**7)) * (1 - 1e-12)
    assert together > epsilon_of_rho(Fraction(1, 9), Fraction(1, 10**6))
