from __future__ import annotations

from fractions import Fraction

import pytest

from incrowd.accounting import accountant
from incrowd.accounting.blending import robust
from incrowd.accounting.suppression import tight_delta
from incrowd.core.loss import THE_ROWS, Crowd, RobustlySampled
from incrowd.core.schema import Column, Schema
from incrowd.core.table import Table
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.engines.local.engine import LocalEngine
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.methods.anonymity.safe import Safe
from incrowd.methods.shared.robust import Robust, degradation, solve_robust
from incrowd.methods.shared.sampling import Target
from incrowd.noise.system import SystemCoins
from incrowd.workflows.policy.policy import load_policy
from tests.policies import PEOPLE, changed, people

LOW, HIGH, DELTA = Fraction(1, 20), Fraction(1, 10), Fraction(1, 10**6)
SCHEMA = Schema((Column("sex"), Column("zip")))
RELEASE = {"method": "safe", "levels": {"age": 2, "zip": 1}, "k": 30, "delta": "1e-6"}


def safe(**robust_rates: object) -> Safe:
    rates = {"low": "0.05", "high": "0.1", **robust_rates}
    policy = load_policy(changed(PEOPLE, release={**RELEASE, "robust": rates}))
    assert isinstance(policy.method, Safe)
    return policy.method


def test_the_loss_says_that_the_rows_are_the_sample() -> None:
    schema = load_policy(PEOPLE).schema
    guarantee = safe(irregular=2).plan(schema).guarantee
    assert guarantee.loss == RobustlySampled(LOW, HIGH, 2, Fraction(1), Crowd(30), THE_ROWS)
    assert any("nobody chose to be sampled" in text for text in map(str, guarantee.assumes))


def test_without_irregular_people_the_guarantee_is_that_of_an_even_sample_at_the_highest_rate() -> None:
    found = safe().parameters(Unit())
    assert tight_delta.delta(30, HIGH, found.epsilon) == pytest.approx(1e-6, rel=1e-6)


def test_every_row_is_read() -> None:
    schema = load_policy(PEOPLE).schema
    rows = LocalEngine().open(people(900))
    released = safe().release(Table(schema, rows, LocalEngine()), SystemCoins())
    assert len(released) == 900  # eight tuples of about a hundred, none below 30


def test_k_is_solved_as_the_least_that_keeps_the_target() -> None:
    rates, target = Robust(LOW, HIGH, 2, Fraction(1, 2)), Target(DELTA, Fraction(1, 2))
    found = solve_robust(None, rates, target, Unit())
    assert found.solved == "k"
    assert robust.delta(found.k, 0, rates.bias, "0.5") <= 1e-6
    assert robust.delta(found.k - 1, 0, rates.bias, "0.5") > 1e-6


def test_replaced_people_cost_more() -> None:
    rates = Robust(LOW, HIGH)
    replaced = solve_robust(30, rates, Target(DELTA), Unit(adjacency=Adjacency.REPLACE))
    assert replaced.epsilon > solve_robust(30, rates, Target(DELTA), Unit()).epsilon


def test_the_claim_degrades_with_bias_and_with_people_who_are_known_to_be_in() -> None:
    rows = degradation(Robust(LOW, HIGH, 3), 30, DELTA, Unit())
    table = {(row.ratio, row.irregular): row.epsilon for row in rows}
    assert sorted({people for _, people in table}) == [0, 1, 3]
    for ratio in (Fraction(1), Fraction(3, 2), Fraction(2)):
        found = [table[ratio, people] for people in (0, 1, 3)]
        assert found == sorted(found, key=lambda epsilon: epsilon or 0)
    assert table[Fraction(2), 3] == accountant.charge_of(Robust(LOW, HIGH, 3).loss(30), DELTA).epsilon


@pytest.mark.parametrize(
    "release",
    [
        {**RELEASE, "rate": "0.1"},
        {**RELEASE, "weights": "true"},
        {**RELEASE, "delta": None},
    ],
)
def test_a_biased_sample_goes_with_no_rate_no_weights_and_a_target(release: dict[str, object]) -> None:
    given = {name: value for name, value in release.items() if value is not None}
    with pytest.raises(InvalidParameter):
        load_policy(changed(PEOPLE, release={**given, "robust": {"low": "0.05", "high": "0.1"}}))


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ({"low": "0.2"}, "low ≤ high"),
        ({"high": "1"}, "high < 1"),
        ({"max_rate": "1"}, "leave it out"),
        ({"irregular": "2", "max_rate": "0.01"}, "max_rate"),
    ],
)
def test_rates_that_mean_nothing_are_refused(rates: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        safe(**rates)


def test_people_with_several_rows_and_too_many_unknowns_are_refused() -> None:
    people = Unit(Kind.PERSON, column="id", max_rows=2)
    with pytest.raises(InvalidParameter, match="one row"):
        solve_robust(30, Robust(LOW, HIGH), Target(DELTA), people)
    for k, target in ((None, Target(DELTA)), (30, Target(DELTA, Fraction(1)))):
        with pytest.raises(InvalidParameter, match="one of epsilon and k"):
            solve_robust(k, Robust(LOW, HIGH), target, Unit())
    with pytest.raises(Infeasible, match="raise k"):
        solve_robust(3, Robust(LOW, HIGH, 1), Target(Fraction(1, 10**9)), Unit())
