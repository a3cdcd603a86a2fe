"""The second route to every number agrees with the first, and the first is never below it."""

from __future__ import annotations

import ast
import inspect
import math
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from incrowd.accounting import accountant
from incrowd.accounting.suppression import tight_delta
from incrowd.accounting.suppression.smooth import theorem6_delta
from incrowd.accounting.suppression.theorem1 import theorem1_delta
from incrowd.core.loss import Crowd, Grouped, Sampled
from incrowd.core.unit import Adjacency
from incrowd.workflows import consistency, forms, rederive

ks = st.integers(1, 40)
rates = st.fractions(Fraction(1, 50), Fraction(3, 4), max_denominator=50)
epsilons = st.floats(0.01, 4.0)
CLOSE = 1e-9


def agree(slow: float | None, fast: float) -> None:
    """The slow route is a float computation; the fast one is rounded up."""
    assert slow is not None
    assert fast == pytest.approx(slow, rel=1e-8, abs=1e-300)
    assert slow <= fast * (1 + CLOSE)


def few_crowds(k: int, rate: Fraction, epsilon: float) -> bool:
    """Whether the slow route can try every crowd: just below −ln(1 − rate) those that adding shows have no bound."""
    adding = float(rate) - float(1 - rate) * math.expm1(epsilon)
    return adding <= 0.0 or k / adding < 9_000


@given(ks, rates, epsilons)
@settings(deadline=None, max_examples=60)
def test_the_delta_of_sampled_suppression(k: int, rate: Fraction, epsilon: float) -> None:
    assume(few_crowds(k, rate, epsilon))
    agree(rederive.suppression_delta(k, rate, epsilon), tight_delta.delta(k, rate, epsilon))


@given(ks, rates, st.floats(0.02, 3.0))
@settings(deadline=None, max_examples=40)
def test_the_delta_of_theorem_1(k: int, rate: Fraction, above: float) -> None:
    epsilon = -math.log1p(-float(rate)) + above
    agree(rederive.theorem1_delta(k, rate, epsilon), theorem1_delta(k, rate, Fraction(epsilon)))


@given(ks, rates, st.floats(0.02, 3.0))
@settings(deadline=None)
def test_the_delta_of_theorem_6(k: int, rate: Fraction, above: float) -> None:
    epsilon = -math.log1p(-float(rate)) + above
    agree(rederive.smooth_delta(k, rate, epsilon), theorem6_delta(k, rate, Fraction(epsilon)))


@given(ks, rates, st.floats(0.1, 6.0), st.integers(2, 5))
@settings(deadline=None, max_examples=30)
def test_the_delta_of_people_with_several_rows(k: int, rate: Fraction, epsilon: float, rows: int) -> None:
    """The accountant may read the curve at a smaller epsilon where that is better; one row is a person's least."""
    assume(few_crowds(k, rate, epsilon / rows) and few_crowds(k, rate, epsilon))
    slow, single = rederive.person_delta(k, rate, epsilon, rows), rederive.suppression_delta(k, rate, epsilon)
    assert slow is not None
    assert single is not None
    fast = accountant.delta(Grouped(rows, Sampled(rate, Crowd(k))), epsilon).value
    assert single * (1 - CLOSE) <= fast <= min(1.0, slow) * (1 + 1e-8)


@pytest.mark.parametrize("rows", [2, 3])
def test_the_epsilon_of_people_with_several_rows_is_confirmed(rows: int) -> None:
    rate, delta = Fraction(1, 10), Fraction(1, 10**6)
    found = accountant.charge_of(Grouped(rows, Sampled(rate, Crowd(30))), delta).epsilon
    slow = rederive.person_delta(30, rate, float(found), rows)
    assert slow == pytest.approx(float(delta), rel=1e-6)


@pytest.mark.parametrize(("k", "rate"), [(2, "1/2"), (3, "1/4"), (5, "1/10"), (4, "1/3")])
@pytest.mark.parametrize("above", [1.01, 2.0, 4.0])
def test_no_replaced_row_that_was_tried_is_worse_than_the_accountant_says(k: int, rate: str, above: float) -> None:
    epsilon = -math.log1p(-float(Fraction(rate))) * above
    tried = rederive.replaced_delta(k, Fraction(rate), epsilon, 1)
    assert tried is not None
    bound = tight_delta.delta(k, Fraction(rate), epsilon, Adjacency.REPLACE)
    assert tight_delta.delta(k, Fraction(rate), epsilon) <= bound
    assert tried <= bound * (1 + CLOSE)
    assert bound <= 1.5 * tried


@given(ks, rates, epsilons)
@settings(deadline=None, max_examples=60)
def test_the_worst_sizes_alone_never_say_more_than_all(k: int, rate: Fraction, epsilon: float) -> None:
    whole, part = rederive.suppression_delta(k, rate, epsilon), rederive.suppression_floor(k, rate, epsilon)
    assert whole is not None
    assert part <= whole * (1 + CLOSE)
    assert part >= whole * 0.999


@pytest.mark.parametrize(
    ("k", "rate", "epsilon"),
    [(20, "1/10000", 1e-6), (300, "1/1000", 0.0005), (5000, "1/10", 0.15), (10**6, "1/100", 0.011), (3, "1e-12", 1.0)],
)
def test_where_there_are_too_many_crowds_the_worst_sizes_agree_with_the_accountant(
    k: int, rate: str, epsilon: float
) -> None:
    fast = tight_delta.delta(k, Fraction(rate), epsilon)
    part = rederive.suppression_floor(k, Fraction(rate), epsilon)
    assert part <= fast * (1 + 1e-7)
    assert part == pytest.approx(fast, rel=1e-3)


def test_what_cannot_be_tried_is_said() -> None:
    assert rederive.suppression_floor(10**6 + 1, Fraction(1, 10), 0.2) == 0.0
    assert rederive.suppression_delta(10**6, Fraction(1, 100), 0.01) is None
    assert rederive.suppression_delta(1, Fraction(1, 10**18), 0.0) is None
    assert rederive.theorem1_delta(20, Fraction(1, 10), 1e-4) is None
    assert rederive.replaced_delta(60, Fraction(1, 10), 0.2, 1) is None
    assert rederive.replaced_delta(3, Fraction(1, 10), 1.0, 2) is None


def imported(source: str) -> set[str]:
    """The names of all modules that a file imports when it is loaded or when its functions run."""
    tree = ast.parse(source)
    named = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return named | {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}


def test_the_second_route_imports_nothing_from_the_accountants() -> None:
    assert not any("accounting" in name or "methods" in name for name in imported(inspect.getsource(rederive)))
    checks = [path for folder in forms.__path__ for path in Path(folder).rglob("*.py")]
    assert len(checks) > 5
    for path in checks:
        assert not any("accounting" in name for name in imported(path.read_text(encoding="utf-8"))), path.name
    named = {name.rpartition(".")[2] for name in imported(inspect.getsource(consistency)) if "accounting" in name}
    assert named <= {"datasets", "ledger", "standing"}, "only what reads the ledger"
