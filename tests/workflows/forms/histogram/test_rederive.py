"""The second derivation against the accountants, and against obvious limits."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from incrowd.accounting.blending import sampled_crowd
from incrowd.accounting.noise import additive, concentrated
from incrowd.core.loss import Gaussian
from incrowd.workflows.forms.histogram.noise import concentrated_delta, gaussian_delta
from incrowd.workflows.forms.histogram.rederive import blended_delta, clamped

TENTH = Fraction(1, 10)


@pytest.mark.parametrize("k", [1, 2, 5, 20])
@pytest.mark.parametrize("rate", [TENTH, Fraction(1, 2)])
@pytest.mark.parametrize("epsilon", [0.2, 0.75, 1.5])
def test_written_out_laws_never_exceed_the_bound_and_meet_it_where_noise_is_free(
    k: int, rate: Fraction, epsilon: float
) -> None:
    found = blended_delta(k, rate, epsilon, 1.0)
    bound = sampled_crowd.histogram_delta(k, rate, epsilon, 1)
    assert found is not None
    assert found <= bound * (1 + 1e-9)
    if epsilon >= max(math.log1p(float(rate) * math.expm1(1.0)), -math.log1p(-float(rate))):
        assert math.isclose(found, bound, rel_tol=1e-6)


def test_too_many_people_to_try_are_left_undecided() -> None:
    assert blended_delta(300, Fraction(1, 1000), 0.01, 1.0) is None
    assert blended_delta(500, TENTH, 1.0, 1.0) is None


def test_clamped_laws_sum_to_one_and_neighbors_are_within_their_ratio() -> None:
    law = clamped(6, 0.5)
    assert abs(law.sum(axis=1) - 1).max() < 1e-12
    assert (law[1:] / law[:-1]).max() <= math.exp(0.5) * (1 + 1e-12)
    assert (law[:-1] / law[1:]).max() <= math.exp(0.5) * (1 + 1e-12)


@pytest.mark.parametrize("scale", [1.5, 4.0, 30.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_gaussian_laws_agree_with_the_accountant(scale: float, epsilon: float) -> None:
    bound = additive.gaussian_delta(Gaussian(Fraction(scale)), epsilon)
    assert math.isclose(gaussian_delta(scale, epsilon), bound, rel_tol=1e-6)


@pytest.mark.parametrize("rho", [0.05, 0.5])
@pytest.mark.parametrize("epsilon", [1.0, 6.0])
def test_concentrated_deltas_agree_with_the_accountant(rho: float, epsilon: float) -> None:
    assert math.isclose(concentrated_delta(rho, epsilon), concentrated.delta_of_rho(rho, epsilon), rel_tol=1e-6)
