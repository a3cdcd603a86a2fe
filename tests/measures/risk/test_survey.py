from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.criteria.individual_risk import individual_risk
from incrowd.errors import InvalidParameter
from incrowd.measures.risk.population import expected_links


def slow(f: int, p: float) -> float:
    with mpmath.workdps(50):
        q = 1 - mpmath.mpf(p)
        return float(mpmath.mpf(p) ** f / f * mpmath.hyp2f1(f, f, f + 1, q))


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 200), st.floats(1e-4, 1.0))
def test_the_risk_is_that_of_fifty_digits_everywhere(f: int, p: float) -> None:
    assert individual_risk([f], [f / p])[0] == pytest.approx(slow(f, min(1.0, f / (f / p))), rel=1e-10)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 60), st.floats(1e-3, 0.99))
def test_more_rows_or_more_people_are_never_more_risk(f: int, p: float) -> None:
    here, more, wider = individual_risk([f, f + 1, f], [f / p, (f + 1) / p, 2 * f / p])
    assert more <= here
    assert wider <= here
    assert 0 < here <= 1 / f + 1e-12


def test_a_census_has_the_risk_of_its_classes() -> None:
    assert individual_risk([1, 4], [1, 4]).tolist() == [1.0, 0.25]


@pytest.mark.parametrize("weights", [[0.0, 1.0], [-1.0, 1.0], [np.nan, 1.0]])
def test_weights_of_nothing_are_refused(weights: list[float]) -> None:
    with pytest.raises(InvalidParameter, match="above 0"):
        individual_risk([1, 1], weights)


def test_links_are_expected_without_an_interval_that_would_not_cover() -> None:
    found = expected_links(np.array([1, 2]), np.array([1.0, 40.0]))
    assert found.value == pytest.approx(1.0 + 2 * slow(2, 0.05))
    assert found.low is None
