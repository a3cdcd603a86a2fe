"""One guarantee read at another delta."""

from fractions import Fraction

import mpmath
from hypothesis import given
from hypothesis import strategies as st

from incrowd.accounting.bound import delta_at, epsilon_at, shares_of
from incrowd.core.loss import Approximate

epsilons = st.fractions(min_value=0, max_value=10, max_denominator=1000)
deltas = st.fractions(min_value=0, max_value=Fraction(99, 100), max_denominator=10**6)


def worst_pair(guarantee: Approximate, epsilon: float) -> "mpmath.mpf":
    """The hockey stick of the worst pair, over its four outcomes."""
    e0, d0 = mpmath.exp(mpmath.mpf(guarantee.epsilon.numerator) / guarantee.epsilon.denominator), guarantee.delta
    small = mpmath.mpf(d0.numerator) / d0.denominator
    left = [small, (1 - small) * e0 / (1 + e0), (1 - small) / (1 + e0), 0]
    right = [0, (1 - small) / (1 + e0), (1 - small) * e0 / (1 + e0), small]
    return sum(max(mpmath.mpf(0), p - mpmath.exp(epsilon) * q) for p, q in zip(left, right, strict=True))


@given(epsilons, deltas, st.floats(min_value=0, max_value=12))
def test_the_claim_is_the_worst_pair_rounded_up(epsilon: Fraction, delta: Fraction, at: float) -> None:
    guarantee = Approximate(epsilon, delta)
    with mpmath.workdps(40):
        truth = worst_pair(guarantee, at)
        claimed = delta_at(guarantee, at)
        assert truth * (1 - mpmath.mpf(10) ** -30) <= claimed <= truth * (1 + mpmath.mpf(10) ** -9) + 1e-14


@given(epsilons, deltas, deltas)
def test_epsilon_at_a_larger_delta_is_honest(epsilon: Fraction, delta: Fraction, more: Fraction) -> None:
    guarantee = Approximate(epsilon, delta)
    target = min(delta + more, Fraction(999, 1000))
    found = epsilon_at(guarantee, target)
    assert found <= float(epsilon) * (1 + 1e-12) + 1e-15
    with mpmath.workdps(40):
        assert worst_pair(guarantee, found) <= mpmath.mpf(target.numerator) / target.denominator * (
            1 + mpmath.mpf(10) ** -9
        )


@given(deltas, st.lists(deltas, min_size=1, max_size=6))
def test_shares_of_delta_add_up_and_respect_the_floors(delta: Fraction, floors: list[Fraction]) -> None:
    shares = shares_of(delta, tuple(floors))
    if shares is None:
        assert sum(floors) > delta
    else:
        assert sum(shares) == delta
        assert all(share >= floor for share, floor in zip(shares, floors, strict=True))
