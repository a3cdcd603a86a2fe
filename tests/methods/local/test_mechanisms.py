"""Randomizers draw by their weights: every outcome of every draw, for all pairs of inputs, in exact fractions."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from incrowd.core.coins import Sample
from incrowd.errors import InvalidParameter
from incrowd.methods.local.choice import best, categorical, numeric, randomizer_of, randomizers, tree
from incrowd.methods.local.mechanisms import numbers, options, sets
from incrowd.methods.local.mechanisms.hashed import Galois, HadamardResponse, LocalHashing, prime_power
from incrowd.methods.local.mechanisms.numbers import Duchi, Mixture, Numeric, Window
from incrowd.methods.local.mechanisms.options import OptionBits
from incrowd.methods.local.mechanisms.randomizer import Categorical, Family, LevelTree, Randomness, Response
from incrowd.methods.local.mechanisms.ratio import Weights, exponential_below
from incrowd.methods.local.mechanisms.sets import (
    OptimalUnary,
    Rappor,
    SetReports,
    SubsetSelection,
    SymmetricUnary,
    flips,
    threshold,
)
from incrowd.methods.local.survey.steps import CollectReports
from incrowd.noise.system import SystemCoins
from tests.coins import Branching, SeededCoins
from tests.surveys import TRAVEL, survey_file

SMALL = Weights(5, 2)


@dataclass
class ExactCoins:
    """Coins that come up in every possible way, with their exact chances."""

    branching: Branching

    def below(self, bound: int, size: int) -> NDArray[np.int64]:
        return np.array([self.branching.choose([Fraction(1, bound)] * bound) for _ in range(size)], np.int64)  # type: ignore[list-item]

    def bernoulli(self, probability: Fraction, size: int) -> NDArray[np.bool_]:
        chances = [1 - probability, probability]
        return np.array([self.branching.choose(chances) for _ in range(size)], np.bool_)  # type: ignore[arg-type]

    def sample(self, rate: Fraction) -> Sample:
        raise NotImplementedError


def drawn_law(run: Callable[[Any], Any]) -> dict[Any, Fraction]:
    """Return the exact chance of every outcome of the code that draws."""
    branching = Branching()
    chances: defaultdict[Any, Fraction] = defaultdict(Fraction)
    while True:
        outcome = run(ExactCoins(branching))
        chances[outcome] += Fraction(branching.chance())
        if not branching.advance():
            return dict(chances)


@pytest.fixture
def every_coin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bits by coins of one chance each; that `flips` has that chance is shown below."""
    for module in (sets, options):
        monkeypatch.setattr(module, "flips", lambda coins, chance, size: coins.bernoulli(chance, size))
    monkeypatch.setattr(numbers, "SHARES", 4)


CATEGORICAL: list[Categorical] = [
    *(Response(size, SMALL) for size in (2, 3, 5)),
    *(SymmetricUnary(size, SMALL) for size in (2, 4)),
    *(OptimalUnary(size, SMALL) for size in (2, 4)),
    *(SubsetSelection(size, SMALL, width) for size, width in ((2, 1), (4, 2), (5, 2), (5, 4))),
    *(LocalHashing(size, SMALL, width) for size, width in ((2, 2), (5, 3), (5, 4), (9, 3))),
    *(HadamardResponse(size, SMALL) for size in (2, 3, 5)),
]
OPTIONS: list[Categorical] = [OptionBits(size, SMALL, size) for size in (2, 3)]
NUMERIC: list[Numeric] = [
    Duchi(1, SMALL),
    Duchi(3, SMALL),
    Window(2, SMALL, 0),
    Window(3, SMALL, 2),
    Mixture(2, SMALL, 1, 3),
]
ALL: list[Any] = [*CATEGORICAL, *NUMERIC]


def key_of(found: Categorical, report: Any) -> Any:
    """Return a report as the law names it."""
    if isinstance(found, SetReports):
        bits = np.unpackbits(report[0], count=found.size, bitorder="little")
        return tuple(np.flatnonzero(bits).tolist())
    return int(report[0])


def one_report(found: Categorical, value: int, coins: Any) -> Any:
    return key_of(found, found.randomize(np.array([value], np.int64), coins))


def one_number(found: Numeric, value: int, coins: Any) -> int:
    return int(found.randomize(np.array([value], np.int64), coins)[0])


def report_of(found: Categorical, key: Any) -> Any:
    """Return a report that the law names."""
    if isinstance(found, SetReports):
        bits = np.isin(np.arange(found.size), list(key))
        return np.packbits(bits[None, :], axis=1, bitorder="little")
    return np.array([key], np.int64)


def loss(laws: list[Mapping[Any, Fraction]]) -> Fraction:
    """Return the largest ratio of chances over all pairs of inputs and all outputs."""
    outcomes = {outcome for law in laws for outcome in law}
    return max(max(law[each] for law in laws) / min(law[each] for law in laws) for each in outcomes)


@pytest.mark.usefixtures("every_coin")
@pytest.mark.parametrize("found", [*CATEGORICAL, *OPTIONS], ids=repr)
def test_every_report_is_drawn_with_the_chance_that_its_weights_say(found: Categorical) -> None:
    for value in range(found.values):
        assert drawn_law(partial(one_report, found, value)) == found.law(value)


@pytest.mark.usefixtures("every_coin")
@pytest.mark.parametrize("found", NUMERIC, ids=repr)
def test_every_number_is_reported_with_the_chance_that_its_weights_say(found: Numeric) -> None:
    for value in range(-found.size, found.size + 1):
        drawn = drawn_law(partial(one_number, found, value))
        assert drawn == {point: chance for point, chance in found.law(value).items() if chance}


@pytest.mark.usefixtures("every_coin")
@pytest.mark.parametrize("found", [*CATEGORICAL, *OPTIONS, *NUMERIC], ids=repr)
def test_the_loss_of_all_pairs_of_inputs_is_the_stated_ratio(found: Any) -> None:
    inputs = range(found.values) if isinstance(found, Categorical) else range(-found.size, found.size + 1)
    laws = [found.law(value) for value in inputs]
    assert all(sum(law.values()) == 1 for law in laws)
    assert loss(laws) == found.ratio


@pytest.mark.parametrize("epsilon", ["0.1", "1", "2.5", "6"])
@pytest.mark.parametrize("size", [2, 3, 5, 6])
def test_the_weights_that_are_really_used_never_lose_more_than_epsilon(size: int, epsilon: str) -> None:
    asked = Fraction(epsilon)
    for found in randomizers(size, Weights.below(asked), Weights.below(asked / 2)):
        assert loss([found.law(value) for value in range(size)]) == found.ratio <= exponential_below(asked)
    for family in (Family.DUCHI, Family.WINDOW, Family.MIXTURE):
        made = numeric(family, size, Weights.below(asked))
        laws = [made.law(value) for value in range(-size, size + 1)]
        assert loss([{k: v for k, v in law.items() if v} for law in laws]) == made.ratio <= exponential_below(asked)


@pytest.mark.parametrize("found", CATEGORICAL, ids=repr)
def test_estimates_are_unbiased_and_supports_are_counted(found: Categorical) -> None:
    for value in range(found.size):
        mean = np.zeros(found.size, dtype=object)
        for key, chance in found.law(value).items():
            mean = mean + chance * found.support(report_of(found, key)).astype(object)
        assert mean.tolist() == [found.p if each == value else found.q for each in range(found.size)]


@pytest.mark.parametrize("found", NUMERIC, ids=repr)
def test_numbers_are_unbiased_with_the_closed_form_of_their_variance(found: Numeric) -> None:
    for value in range(-found.size, found.size + 1):
        law = found.law(value)
        share = Fraction(value, found.size)
        assert sum(chance * found.worth(point) for point, chance in law.items()) == share
        assert sum(chance * found.worth(point) ** 2 for point, chance in law.items()) == found.mean_square(value)
        assert found.mean_square(value) - share**2 <= found.variance


@pytest.mark.parametrize("chance", [Fraction(1, 2), Fraction(1, 3), Fraction(63812, 237271), Fraction(255, 256)])
def test_a_flip_is_true_with_exactly_its_chance(chance: Fraction) -> None:
    @dataclass(frozen=True)
    class OneByte:
        byte: int
        tie: bool

        def below(self, bound: int, size: int) -> NDArray[np.int64]:
            assert bound == 2**56
            return np.full(size, sum(self.byte << 8 * place for place in range(7)), np.int64)

        def bernoulli(self, probability: Fraction, size: int) -> NDArray[np.bool_]:
            assert probability == threshold(chance)[1]
            return np.full(size, self.tie)

    rest = threshold(chance)[1]
    total = Fraction(0)
    for byte in range(256):
        yes, no = (flips(OneByte(byte, tie), chance, 9) for tie in (True, False))  # type: ignore[arg-type]
        assert len(set(yes.tolist())) == len(set(no.tolist())) == 1
        total += Fraction(1, 256) * (rest * int(yes[0]) + (1 - rest) * int(no[0]))
    assert total == chance


def test_support_of_a_fast_transform_is_that_of_counting_report_by_report() -> None:
    coins = SeededCoins(3)
    for size, width in ((100, 4), (50, 7), (30, 9), (17, 2)):
        found = LocalHashing(size, Weights.below(Fraction(1)), width)
        reports = found.randomize(coins.below(size, 500), coins)
        slow = found.support_of(reports, np.arange(size, dtype=np.int64))
        assert found.support(reports).tolist() == slow.tolist()
    plain = HadamardResponse(37, SMALL)
    reports = plain.randomize(coins.below(37, 300), coins)
    signs = [[((v + 1) & int(y)).bit_count() % 2 == 0 for y in reports] for v in range(37)]
    assert plain.support(reports).tolist() == np.sum(signs, axis=1).tolist()


def test_reports_travel_as_json_and_wrong_ones_are_refused() -> None:
    for found in ALL:
        values = np.zeros(5, np.int64)
        plain = found.plain(found.randomize(values, SystemCoins()))
        assert found.plain(found.read(plain)) == plain
        for wrong in (-(10**6), 10**9, "x", "0", None, True, [1], 1.5, "ff" * 40):
            with pytest.raises(InvalidParameter, match="refused"):
                found.read([wrong])
    with pytest.raises(InvalidParameter, match="shape"):
        SubsetSelection(5, SMALL, 2).read(["07"])
    with pytest.raises(InvalidParameter, match="shape"):
        OptimalUnary(5, SMALL).read(["20"])
    with pytest.raises(InvalidParameter, match="shape"):
        Duchi(3, SMALL).read([0])


def test_answers_outside_of_the_domain_are_refused_without_repeating_them() -> None:
    for found in CATEGORICAL:
        with pytest.raises(InvalidParameter, match="not among"):
            found.randomize(np.array([4711], np.int64), SystemCoins())
    with pytest.raises(InvalidParameter, match="outside"):
        NUMERIC[0].randomize(np.array([2], np.int64), SystemCoins())


@pytest.mark.parametrize("epsilon", ["0", "-1", "29", "1/1000000"])
def test_an_epsilon_that_cannot_be_drawn_is_refused(epsilon: str) -> None:
    with pytest.raises(InvalidParameter, match="epsilon"):
        Weights.below(Fraction(epsilon))


def test_a_domain_too_large_for_its_epsilon_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="too large to be drawn exactly"):
        Response(2**48, Weights.below(Fraction(20)))
    with pytest.raises(InvalidParameter, match="at least two values"):
        Response(1, SMALL)
    with pytest.raises(InvalidParameter, match="bit for each value"):
        OptimalUnary(2**17, SMALL)


def test_what_was_told_of_a_randomizer_makes_it_again() -> None:
    for found in ALL:
        assert randomizer_of(found.randomness) == found
    with pytest.raises(InvalidParameter, match="no randomizer"):
        randomizer_of(Randomness(Family.RESPONSE, 3, 2, 1, width=2))


def test_a_tree_reports_at_one_level_and_loses_no_more_than_it() -> None:
    found = tree(10, (4, 2, 1), SMALL, Weights(3, 2))
    assert found.ratio <= SMALL.value
    drawn = found.randomize(np.arange(10, dtype=np.int64), SystemCoins())
    plain = found.plain(drawn)
    assert [each[0] for each in plain] == drawn[0].tolist()
    assert found.plain(found.read(plain)) == plain
    for wrong in ([[3, 0]], [[0, 9]], [[0]], ["x"], [[True, 0]]):
        with pytest.raises(InvalidParameter, match="refused"):
            found.read(wrong)
    covered = [value for level, node in found.nodes(1, 8) for value in range(10) if value // found.steps[level] == node]
    assert sorted(covered) == list(range(1, 9))
    with pytest.raises(InvalidParameter, match="as many values"):
        LevelTree(10, (4, 1), (Response(2, SMALL), Response(10, SMALL)))


def test_fields_are_powers_of_primes() -> None:
    assert [size for size in range(2, 33) if prime_power(size)] == [
        2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32,
    ]  # fmt: skip
    with pytest.raises(InvalidParameter, match="power of a prime"):
        Galois(6)


def test_the_best_is_chosen_by_its_error_and_a_named_one_is_taken() -> None:
    weights, half = Weights.below(Fraction(1)), Weights.below(Fraction(1, 2))
    assert best(3, weights, half).family is Family.RESPONSE
    assert best(100, weights, half).family is Family.SUBSET
    assert categorical(Family.HADAMARD, 9, weights, half).family is Family.HADAMARD
    with pytest.raises(InvalidParameter, match="does not fit"):
        categorical(Family.DUCHI, 9, weights, half)
    with pytest.raises(InvalidParameter, match="does not fit a number"):
        numeric(Family.SUBSET, 9, weights)


def test_rappor_reports_by_its_kept_bits() -> None:
    found = Rappor(6, Fraction(1, 2), Fraction(1, 4), Fraction(3, 4))
    people, coins = 4000, SeededCoins(8)  # a fixed seed: the same draws every time
    kept = found.memoize(np.zeros(people, np.int64), coins)
    shown = found.report(kept, coins).mean(axis=0)
    assert abs(shown[0] - float(found.p)) < 0.05
    assert np.abs(shown[1:] - float(found.q)).max() < 0.05
    assert found.ratio(1) < found.ratio(2) < found.permanent()
    assert math.isclose(float(found.permanent()), 9.0)
    with pytest.raises(InvalidParameter, match="p < q"):
        Rappor(6, Fraction(1, 2), Fraction(3, 4), Fraction(1, 4))


def test_a_survey_cannot_state_an_epsilon_below_that_of_its_weights() -> None:
    (step,) = survey_file(TRAVEL).survey.plan.steps
    assert isinstance(step, CollectReports)
    with pytest.raises(InvalidParameter, match="by more than e"):
        replace(step, epsilon=step.epsilon * Fraction(99, 100))
