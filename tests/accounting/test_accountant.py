"""The accountant: the tightest sound number wins, what is not understood is refused, nothing is under-reported."""

import itertools
import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.accounting import accountant
from incrowd.accounting.accountant import charge_of, delta, epsilon
from incrowd.accounting.bound import LossBound
from incrowd.accounting.suppression import tight_delta
from incrowd.core.loss import (
    Approximate,
    Crowd,
    Gaussian,
    Grouped,
    Laplace,
    Loss,
    LossRule,
    Parallel,
    Profile,
    Pure,
    RobustlySampled,
    Sampled,
    Sequence,
    Syntactic,
    ZeroConcentrated,
)
from incrowd.core.unit import Adjacency
from incrowd.errors import DoesNotCompose, InvalidParameter, SampleReused, UnknownLoss

TENTH = Fraction(1, 10)
SMALL = Fraction(1, 10**6)
SDGS = Sampled(TENTH, Crowd(20))


@pytest.mark.parametrize(
    ("loss", "value", "rule"),
    [
        (Pure(Fraction(1)), 1.0, [LossRule.STATED]),
        (Approximate(Fraction(1), SMALL), 1.0, [LossRule.STATED]),
        (Profile(((Fraction(2), Fraction(0)), (Fraction(1), SMALL))), 1.0, [LossRule.STATED]),
        (SDGS, 0.18299, [LossRule.SUPPRESSION]),
        (Grouped(2, SDGS), 0.403, [LossRule.SUPPRESSION, LossRule.GROUPED]),
        (Parallel((SDGS, Pure(Fraction(1)))), 1.0, [LossRule.STATED]),
    ],
)
def test_known_losses_at_one_in_a_million(loss: Loss, value: float, rule: list[LossRule]) -> None:
    found = epsilon(loss, SMALL)
    assert found.rule == tuple(rule)
    assert found.value == pytest.approx(value, rel=1e-3)


@pytest.mark.parametrize("loss", [Crowd(20), Syntactic("k-anonymity"), Sampled(TENTH, Syntactic("x"))])
def test_guarantees_without_an_epsilon_cost_infinity(loss: Loss) -> None:
    assert math.isinf(epsilon(loss, SMALL).value)
    assert delta(loss, 10).value >= float(TENTH)
    assert charge_of(loss, SMALL).epsilon == Decimal("Infinity")


@pytest.mark.parametrize("other", [Pure(Fraction(1)), SDGS, Gaussian(Fraction(5))])
@pytest.mark.parametrize("bad", [Crowd(20), Syntactic("k-anonymity")])
def test_one_infinite_part_makes_the_whole_infinite(bad: Loss, other: Loss) -> None:
    assert math.isinf(epsilon(Sequence((other, bad)), SMALL).value)
    assert math.isinf(epsilon(Parallel((other, bad)), SMALL).value)
    assert math.isinf(epsilon(Grouped(2, Sequence((other, bad))), SMALL).value)


def test_the_rule_that_wins_is_named() -> None:
    many = Sequence((Laplace(Fraction(20)),) * 100)
    assert epsilon(many, SMALL).rule == (LossRule.DISTRIBUTION,)
    assert epsilon(many, SMALL).value == pytest.approx(2.2, abs=0.05)
    assert epsilon(many, 0) == LossBound(5.0, (LossRule.SUMS,))
    mixed = Sequence((ZeroConcentrated(Fraction(1, 100)), Gaussian(Fraction(10)), ZeroConcentrated(Fraction(1, 50))))
    assert epsilon(mixed, SMALL).rule == (LossRule.CONCENTRATED,)
    releases = Sequence((SDGS,) * 8)
    assert epsilon(releases, SMALL).rule == (LossRule.COMPOSED_SUPPRESSION,)
    assert delta(releases, 1).value == pytest.approx(3.867e-14, rel=1e-3)


def test_a_tiny_delta_is_composed_as_any_other() -> None:
    many = Sequence((Gaussian(Fraction(20)),) * 10)
    assert epsilon(many, Fraction(1, 10**15)).rule == (LossRule.DISTRIBUTION,)


losses = st.one_of(
    st.builds(Pure, st.fractions(min_value=0, max_value=2, max_denominator=20)),
    st.builds(Approximate, st.fractions(min_value=0, max_value=2, max_denominator=20), st.just(Fraction(1, 10**7))),
    st.builds(Laplace, st.fractions(min_value=1, max_value=20, max_denominator=4), st.integers(1, 3)),
    st.builds(Gaussian, st.fractions(min_value=1, max_value=20, max_denominator=4), st.integers(1, 3)),
    st.builds(Sampled, st.sampled_from([TENTH, Fraction(1, 2)]), st.builds(Crowd, st.integers(20, 60))),
    st.builds(Sampled, st.sampled_from([TENTH, Fraction(1, 2)]), st.builds(Pure, st.just(Fraction(1)))),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(losses, min_size=1, max_size=3), losses)
def test_one_more_release_is_never_cheaper(parts: list[Loss], extra: Loss) -> None:
    """Within the pessimism of the discretizations: one part alone has an exact curve, several are rounded up."""
    fewer, more = Sequence(tuple(parts)), Sequence((*parts, extra))
    assert epsilon(more, SMALL).value >= epsilon(fewer, SMALL).value * (1 - 2e-3) - 2e-3


@settings(max_examples=40, deadline=None)
@given(st.lists(losses, min_size=1, max_size=3), st.sampled_from([Fraction(1, 10**4), SMALL, Fraction(1, 10**8)]))
def test_no_sequence_costs_more_than_its_sums(parts: list[Loss], at: Fraction) -> None:
    floors = sum((accountant.least_delta(part) for part in parts), Fraction(0))
    share = (at - floors) / len(parts)
    if share <= 0:
        return
    sums = sum(epsilon(part, accountant.least_delta(part) + share).value for part in parts)
    assert epsilon(Sequence(tuple(parts)), at).value <= sums * (1 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(losses, st.floats(min_value=1e-9, max_value=1e-3))
def test_epsilon_and_delta_agree(loss: Loss, at: float) -> None:
    found = epsilon(loss, at)
    if math.isfinite(found.value) and found.value > 0.0:
        assert delta(loss, found.value).value <= at * (1 + 1e-6)


@dataclass(frozen=True)
class Outcomes:
    """Two distributions over the same outcomes: with a person and without."""

    left: tuple[float, ...]
    right: tuple[float, ...]

    def times(self, other: "Outcomes") -> "Outcomes":
        return Outcomes(
            tuple(a * b for a, b in itertools.product(self.left, other.left)),
            tuple(a * b for a, b in itertools.product(self.right, other.right)),
        )

    def delta(self, at: float) -> float:
        factor = math.exp(at)
        pairs = list(zip(self.left, self.right, strict=True))
        return max(sum(max(0.0, p - factor * q) for p, q in pairs), sum(max(0.0, q - factor * p) for p, q in pairs))


def response(at: Fraction) -> Outcomes:
    yes = math.exp(at) / (1 + math.exp(at))
    return Outcomes((yes, 1 - yes), (1 - yes, yes))


def suppressed(k: int, rate: Fraction, n: int) -> Outcomes:
    def law(size: int) -> list[float]:
        masses = [math.comb(size, j) * float(rate) ** j * float(1 - rate) ** (size - j) for j in range(size + 1)]
        return [sum(masses[:k]), *masses[k:], *([0.0] * (n - size))]

    return Outcomes(tuple(law(n)), tuple(law(n - 1)))


@pytest.mark.parametrize("at", [0.0, 0.3, 0.8, 1.5])
@pytest.mark.parametrize("sizes", list(itertools.product([3, 5, 8], repeat=2)))
def test_composition_covers_every_pair_of_crowds_and_a_coin(sizes: tuple[int, int], at: float) -> None:
    """Two releases by suppression and one randomized response, by brute force over the product of outcomes."""
    half = Fraction(1, 2)
    truth = suppressed(3, half, sizes[0]).times(suppressed(2, half, sizes[1])).times(response(half)).delta(at)
    loss = Sequence((Sampled(half, Crowd(3)), Sampled(half, Crowd(2)), Pure(half)))
    assert delta(loss, at).value >= truth * (1 - 1e-9)


@pytest.mark.parametrize("at", [0.0, 0.1, 0.4, 1.0])
def test_a_pure_mechanism_on_a_sample_is_amplified_exactly(at: float) -> None:
    """Randomized response on whether you are in the sample: the mixture over the coin, by hand."""
    rate, inner = 0.25, response(Fraction(1))
    mixed = Outcomes(
        tuple(rate * p + (1 - rate) * q for p, q in zip(inner.left, inner.right, strict=True)), inner.right
    )
    assert delta(Sampled(Fraction(1, 4), Pure(Fraction(1))), at).value >= mixed.delta(at) * (1 - 1e-12)


def test_a_sample_saves_nothing_when_rows_are_replaced() -> None:
    loss = Sampled(TENTH, Pure(Fraction(1)))
    assert epsilon(loss, 0, Adjacency.ADD_REMOVE).value < 0.2
    assert epsilon(loss, 0, Adjacency.REPLACE).value == 1.0


def test_a_crowd_and_pure_answers_from_one_sample_count_twice() -> None:
    together = Sampled(TENTH, Sequence((Crowd(20), Pure(Fraction(1, 4)))))
    alone = Sampled(TENTH, Crowd(20, Fraction(1, 2)))
    assert epsilon(together, SMALL) == epsilon(alone, SMALL)


def test_robust_sampling_is_read_by_its_own_theorem() -> None:
    loss = RobustlySampled(TENTH, Fraction(3, 25), 5, Fraction(1), Crowd(50, TENTH))
    found = delta(loss, "1.07448")
    assert found.value == pytest.approx(3.851e-9, rel=1e-3)
    assert found.rule == (LossRule.BIASED_CROWD,)
    assert epsilon(loss, "1e-8").value < 1.1


def test_replaced_people_cost_more_than_added_or_removed_ones() -> None:
    for loss in (SDGS, Sampled(TENTH, Crowd(20, TENTH))):
        assert epsilon(loss, SMALL, Adjacency.REPLACE).value > epsilon(loss, SMALL, Adjacency.ADD_REMOVE).value


def test_one_sample_serves_one_crowd() -> None:
    for loss in (
        Sampled(TENTH, Sequence((Crowd(20), Crowd(30)))),
        Sequence((Sampled(TENTH, Crowd(20), "s"), Sampled(TENTH, Crowd(20), "s"))),
        Sequence((Sampled(TENTH, Crowd(20), "s"), Sampled(TENTH, Pure(Fraction(1)), "s"))),
    ):
        with pytest.raises(SampleReused):
            epsilon(loss, SMALL)
        with pytest.raises(SampleReused):
            delta(loss, 1)


def test_a_partition_is_refused_when_rows_are_replaced() -> None:
    with pytest.raises(DoesNotCompose):
        epsilon(Parallel((Pure(Fraction(1)),)), 0, Adjacency.REPLACE)


def test_an_unknown_class_is_refused() -> None:
    class Quantum:
        pass

    with pytest.raises(UnknownLoss, match="Quantum"):
        epsilon(Quantum(), SMALL)  # type: ignore[arg-type]
    with pytest.raises(UnknownLoss, match="Quantum"):
        delta(Quantum(), 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("at", [-1, 1, 2, "nan", math.inf])
def test_a_delta_that_is_no_probability_is_refused(at: float | str) -> None:
    with pytest.raises(InvalidParameter):
        epsilon(SDGS, at)


def test_charges_round_up_and_use_a_delta_of_their_own() -> None:
    spend = charge_of(Approximate(Fraction(1, 3), SMALL), 0)
    assert spend.delta == Decimal("0.000001")
    assert Fraction(spend.epsilon) >= Fraction(1, 3)
    spend = charge_of(SDGS, SMALL)
    assert tight_delta.delta(20, TENTH, Fraction(spend.epsilon)) <= 1e-6


def test_a_person_with_several_rows_pays_for_each() -> None:
    assert epsilon(Grouped(3, Pure(Fraction(1, 2))), 0).value == 1.5
    one, three = epsilon(SDGS, SMALL).value, epsilon(Grouped(3, SDGS), SMALL).value
    assert three > 3 * one


@pytest.mark.parametrize("private", [Fraction(0), Fraction(1, 4)])
def test_on_one_sample_of_replaced_rows_nothing_private_stands_beside_a_crowd(private: Fraction) -> None:
    """The exact size of the sample is Pure(0) when rows are replaced, and shows how many rows were suppressed."""
    together = Sampled(TENTH, Sequence((Crowd(20), Pure(private))))
    with pytest.raises(DoesNotCompose, match="rows added and removed"):
        epsilon(together, SMALL, Adjacency.REPLACE)
    with pytest.raises(DoesNotCompose, match="rows added and removed"):
        delta(together, 5, Adjacency.REPLACE)
    alone = Sampled(TENTH, Sequence((Crowd(20),)))
    assert delta(alone, 1, Adjacency.REPLACE) == delta(SDGS, 1, Adjacency.REPLACE)


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize(
    "loss",
    [
        Sampled(TENTH, Grouped(5, Crowd(1))),
        Sampled(TENTH, Grouped(5, Approximate(Fraction(0), Fraction(1, 2)))),
        Sequence((Sampled(TENTH, Sequence((Pure(Fraction(1)), Grouped(2, Gaussian(Fraction(9)))))), SDGS)),
    ],
)
def test_rows_of_one_person_are_grouped_around_a_sample_and_never_on_it(loss: Loss, adjacency: Adjacency) -> None:
    """Five rows, each shown if its own coin falls (one in ten), show the person in 1 - 0.9 ** 5 = 41% of all cases."""
    for ask in (
        lambda: epsilon(loss, SMALL, adjacency),
        lambda: delta(loss, 0, adjacency),
        lambda: accountant.epsilon_by_rule(loss, SMALL, adjacency),
        lambda: accountant.delta_by_rule(loss, 0, adjacency),
        lambda: charge_of(loss, SMALL, adjacency),
    ):
        with pytest.raises(DoesNotCompose, match="Grouped around the sample"):
            ask()


def test_five_rows_around_a_sample_cost_at_least_what_they_show() -> None:
    assert delta(Grouped(5, Sampled(TENTH, Crowd(1))), 0).value >= 1 - 0.9**5


@pytest.mark.parametrize("loss", [Sequence(()), Sequence((Sequence(()),)), Sampled(TENTH, Sequence(()))])
def test_nothing_released_costs_nothing(loss: Loss) -> None:
    assert epsilon(loss, SMALL).value == epsilon(loss, 0).value == delta(loss, 0).value == 0.0
