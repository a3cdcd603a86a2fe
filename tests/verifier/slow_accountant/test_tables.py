"""The second route to the loss of several tables: at least the truth, at most what is claimed."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from incrowd.accounting.accountant import charge_of, delta
from incrowd.core.loss import Crowd, Pure, Sampled, Sequence
from incrowd.verifier.slow_accountant.crowds import TOLERANCE, suppression_delta
from incrowd.verifier.slow_accountant.noise import NOTHING, LossSpread, spread_of
from incrowd.verifier.slow_accountant.tables import tables_delta
from tests.audit.auditing import Claim, Law, distance, published

CASES = [
    (8, "1/10", 2, "1e-6"),
    (30, "1/2", 3, "1e-6"),
    (21, "1/2", 2, "1e-4"),
    (5, "1/20", 4, "1e-3"),
]


def beside(choosing: str) -> LossSpread:
    return (spread_of(Pure(Fraction(choosing))) or NOTHING) if choosing != "0" else NOTHING


@pytest.mark.parametrize("choosing", ["0", "1/5"])
@pytest.mark.parametrize(("k", "rate", "tables", "at"), CASES)
def test_what_the_accountant_charges_is_confirmed_and_a_little_less_is_not(
    k: int, rate: str, tables: int, at: str, choosing: str
) -> None:
    chosen = (Pure(Fraction(choosing)),) if choosing != "0" else ()
    loss = Sequence((*chosen, *(Sampled(Fraction(rate), Crowd(k)),) * tables))
    epsilon = float(charge_of(loss, at).epsilon)
    found = tables_delta(k, Fraction(rate), tables, epsilon, beside(choosing))
    assert found is not None
    assert found <= float(at) * TOLERANCE
    less = tables_delta(k, Fraction(rate), tables, 0.97 * epsilon, beside(choosing))
    assert less is not None
    assert less > float(at) * TOLERANCE


@pytest.mark.parametrize(
    ("k", "rate", "epsilon"), [(2, "1/2", 1.0), (3, "1/4", 0.4), (4, "1/2", 0.7), (2, "1/10", 0.2)]
)
def test_it_is_never_below_the_distance_of_two_crowds_that_were_tried(k: int, rate: str, epsilon: float) -> None:
    """Every pair of crowds up to 24, in both tables the one person more."""
    claim = Claim(k, Fraction(rate), epsilon)
    laws = [published(claim, n) for n in range(25)]
    pairs = [(laws[n], laws[n - 1]) for n in range(1, 25)]
    worst = 0.0
    for one, without in pairs[::3]:
        for other, fewer in pairs[::3]:
            left: Law = {(a, b): p * q for a, p in one.items() for b, q in other.items()}
            right: Law = {(a, b): p * q for a, p in without.items() for b, q in fewer.items()}
            worst = max(worst, distance(left, right, epsilon), distance(right, left, epsilon))
    found = tables_delta(k, Fraction(rate), 2, epsilon)
    assert found is not None
    assert worst * (1 - 1e-9) <= found
    assert found <= delta(Sequence((Sampled(Fraction(rate), Crowd(k)),) * 2), repr(epsilon)).value * TOLERANCE


def test_one_table_is_what_trying_every_crowd_gives() -> None:
    for epsilon in np.linspace(0.1, 1.5, 5):
        single = suppression_delta(9, Fraction(1, 5), float(epsilon))
        found = tables_delta(9, Fraction(1, 5), 1, float(epsilon))
        assert single is not None
        assert found is not None
        assert single * (1 - 1e-9) <= found
        assert math.isclose(found, single, rel_tol=1e-3)


def test_crowds_of_one_betray_whoever_is_drawn() -> None:
    found = tables_delta(1, Fraction(1, 9), 2, 0.5)
    assert found is not None
    assert math.isclose(found, 1 - (8 / 9) ** 2, rel_tol=1e-9)


def test_what_is_too_much_to_try_is_not_answered() -> None:
    assert tables_delta(100, Fraction(1, 1000), 2, 0.1) is None
    assert tables_delta(5, Fraction(19, 20), 2, 1.0) is None
