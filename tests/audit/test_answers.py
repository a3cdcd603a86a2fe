"""Answers to questions on neighboring tables: the attacker proves much of the claimed epsilon, and never more."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from incrowd.mechanisms.vector_noise import AddCube
from incrowd.noise.system import SystemCoins
from incrowd.queries.measurement import Measurement, measurement
from incrowd.queries.measuring.groups import collect_groups
from incrowd.queries.query import Aggregate, AggregateKind
from tests.audit.auditing import Trials, proved_epsilon, reaching, reaching_in_cube, sure_epsilon
from tests.queries.asked import AGE, PERSON, ROW, WARD, Visit, asked, collected, terms
from tests.statistics.alarm import FALSE_ALARM

TRIALS = 100_000
OTHERS: list[Visit] = [(i, "F", "a", 2.0) for i in range(10, 14)]
YOU: list[Visit] = [(1, "F", "a", 4.0), (1, "F", "a", 4.0)]
STEPS = range(-3, 9)
AGGREGATES = (Aggregate("n", AggregateKind.ROWS), Aggregate("mean", AggregateKind.MEAN, AGE))


def noisy(measured: Measurement, visits: list[Visit], noise: AddCube) -> NDArray[np.int64]:
    """Return many independent noisy vectors of the one group."""
    return noise.release(np.repeat(exact(measured, visits), TRIALS, axis=0), SystemCoins())


def exact(measured: Measurement, visits: list[Visit]) -> NDArray[np.int64]:
    names = tuple(f"_s{i}" for i in range(len(measured.sums.all)))
    return collect_groups(measured.question, collected(measured, visits)[0], names).vectors[:1]


def proved(measured: Measurement, you: list[Visit], noise: AddCube) -> float:
    """Return the largest epsilon that half-spaces of the answer prove, in either direction."""
    there, gone = noisy(measured, OTHERS + you, noise), noisy(measured, OTHERS, noise)
    widths = np.array(measured.sums.widths, dtype=np.float64)
    best = -np.inf
    for place in range(len(widths)):
        for at in STEPS:
            sides = [(there[:, place] >= at * widths[place]), (gone[:, place] >= at * widths[place])]
            for with_you, without in (sides, sides[::-1], [~side for side in sides], [~side for side in sides[::-1]]):
                one, other = (Trials(int(events.sum()), TRIALS) for events in (with_you, without))
                best = max(best, proved_epsilon(one, other, 0.0, events(measured)))
    return float(best)


def events(measured: Measurement) -> int:
    """Return how many half-spaces are looked at: from each step on or up to it, in both directions."""
    return 4 * len(STEPS) * len(measured.sums.widths)


def sure(measured: Measurement, you: list[Visit], noise: AddCube) -> float:
    """Return the epsilon that is proved at least: what the half-space proves of which that can be said most of all."""
    there, gone = exact(measured, OTHERS + you)[0], exact(measured, OTHERS)[0]

    def chance(vector: NDArray[np.int64], place: int, at: int) -> float:
        return reaching_in_cube(noise.law, place, at * measured.sums.widths[place] - int(vector[place]))

    return max(
        sure_epsilon((chance(there, place, at), chance(gone, place, at)), TRIALS, events=events(measured))
        for place in range(len(measured.sums.widths))
        for at in STEPS
    )


@pytest.mark.parametrize(("unit", "you"), [(ROW, YOU[:1]), (PERSON, YOU)], ids=["row", "person"])
def test_answers_prove_much_of_their_epsilon_and_no_more(unit: object, you: list[Visit]) -> None:
    which = PERSON if unit is PERSON else ROW
    measured = measurement(asked(AGGREGATES, (), which), which, terms(epsilon=1))
    noise = measured.noise_choice.noise
    assert isinstance(noise, AddCube)
    assert 0.4 < sure(measured, you, noise) <= proved(measured, you, noise) <= 1


def test_a_copy_that_forgets_how_many_rows_a_person_has_is_caught() -> None:
    measured = measurement(asked(AGGREGATES, (), PERSON), PERSON, terms(epsilon=1))
    noise = measured.noise_choice.noise
    assert isinstance(noise, AddCube)
    forgetful = replace(noise, rows=1)
    assert proved(measured, YOU, forgetful) >= sure(measured, YOU, forgetful) > 1


def test_a_copy_that_takes_the_sum_for_narrower_than_it_is_is_caught() -> None:
    measured = measurement(asked(AGGREGATES, ()), ROW, terms(epsilon=1))
    noise = measured.noise_choice.noise
    assert isinstance(noise, AddCube)
    narrow = replace(noise, widths=tuple(max(1, width // 2) for width in noise.widths))
    assert proved(measured, YOU[:1], narrow) >= sure(measured, YOU[:1], narrow) > 1


def test_a_ward_that_only_you_visited_is_shown_no_more_often_than_delta() -> None:
    measured = measurement(
        asked((Aggregate("n", AggregateKind.ROWS),), (WARD,)), ROW, terms(epsilon=1, delta=Fraction(1, 100))
    )
    noise, threshold = measured.noise_choice.noise, measured.noise_choice.threshold
    assert isinstance(noise, AddCube)
    assert threshold is not None
    alone = noise.release(np.ones((TRIALS, 1), dtype=np.int64), SystemCoins())
    shown = Trials(int((alone >= threshold.least).sum()), TRIALS)
    assert shown.least() <= 0.01
    lower = Trials(int((alone >= threshold.least - 2).sum()), TRIALS)
    assert lower.least() > 0.01  # two less would be caught
    fewest = binom.ppf(FALSE_ALARM / 2, TRIALS, reaching(threshold.least - 3, 1))
    assert Trials(int(fewest), TRIALS).least() > 0.01
