from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import Approximate, Crowd, Gaussian, Laplace, Loss, Pure, Sampled, Syntactic, ZeroConcentrated
from incrowd.core.terms import Theorem, joined
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.errors import Infeasible, InvalidParameter, MixedUnits
from incrowd.workflows.bounds import calculators as bounds
from incrowd.workflows.bounds.composition import guarantee_of, solve_composition
from incrowd.workflows.bounds.parameters import missing_one

LOSSES: list[Loss] = [
    Pure(Fraction(1, 4)),
    Approximate(Fraction(1, 2), Fraction(1, 10**8)),
    ZeroConcentrated(Fraction(1, 100)),
    Laplace(Fraction(8)),
    Sampled(Fraction(1, 10), Crowd(20)),
]


def guarantee(loss: Loss, unit: Unit | None = None) -> Guarantee:
    return Guarantee(loss, unit or Unit(), (Theorem("a-test", "a test"),))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(LOSSES), min_size=1, max_size=4), st.sampled_from(LOSSES))
def test_one_more_release_never_makes_it_cheaper(losses: list[Loss], more: Loss) -> None:
    before = solve_composition(tuple(map(guarantee, losses)), delta="1e-5").epsilon
    assert solve_composition(tuple(map(guarantee, [*losses, more])), delta="1e-5").epsilon >= before * (1 - 1e-3)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(LOSSES), min_size=1, max_size=4))
def test_the_answer_is_the_least_of_all_rules(losses: list[Loss]) -> None:
    found = solve_composition(tuple(map(guarantee, losses)), delta="1e-5")
    assert found.epsilon == min(bound.value for bound in found.rules)
    assert found.rule == joined(found.rules[0].rule)


def test_guarantees_to_different_units_are_refused() -> None:
    with pytest.raises(MixedUnits):
        solve_composition((guarantee(LOSSES[0]), guarantee(LOSSES[0], Unit(Kind.PERSON, column="id"))), delta=0)


def test_what_has_no_epsilon_at_all_is_infeasible() -> None:
    with pytest.raises(Infeasible, match="none at all"):
        solve_composition((guarantee(Syntactic("k-anonymity")),), delta="1e-6")


def test_too_many_releases_are_refused_before_any_work() -> None:
    with pytest.raises(InvalidParameter, match="at most 10,000"):
        solve_composition((guarantee(LOSSES[0]),) * 10_001, delta=0)


def test_a_guarantee_is_read_from_its_json() -> None:
    assert guarantee_of(guarantee(LOSSES[4]).to_json()) == guarantee(LOSSES[4])


def test_exactly_one_parameter_must_be_missing() -> None:
    assert missing_one({"epsilon": 1, "delta": None}) == "delta"
    with pytest.raises(InvalidParameter, match="omit one"):
        missing_one({"epsilon": 1, "delta": 0})
    with pytest.raises(InvalidParameter, match="none given"):
        missing_one({"epsilon": None, "delta": None})


def test_losses_are_composed_as_they_are_documented() -> None:
    assert bounds.compose([Laplace(Fraction(2)), Laplace(Fraction(4), 2)], delta=0).epsilon == 1
    stated = guarantee(Pure(Fraction(1)), Unit(adjacency=Adjacency.REPLACE))
    assert bounds.compose([stated, bounds.Pure(0.5)], delta=0).epsilon == 1.5  # type: ignore[arg-type]  # as people write
    with pytest.raises(InvalidParameter, match=r"Laplace\(2\)"):
        bounds.compose([1.0], delta=0)  # type: ignore[list-item]  # what is refused


def test_a_loss_distribution_answers_both_ways() -> None:
    answers = bounds.pld([Gaussian(Fraction(10))] * 4)
    epsilon = answers.epsilon("1e-6")
    assert answers.delta(epsilon) <= 1e-6 < answers.delta(epsilon * 0.99)
    replaced = bounds.pld([Sampled(Fraction(1, 10), Gaussian(Fraction(10)))] * 4, replace=True)
    assert replaced.epsilon("1e-6") < epsilon
