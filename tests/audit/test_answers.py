"""Answers to questions on neighboring tables: the attacker proves much of the claimed epsilon, and never more."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from incrowd.mechanisms.cube import AddCube
from incrowd.noise.system import SystemCoins
from incrowd.queries.measurement import Measurement, measurement
from incrowd.queries.measuring.groups import gathered
from incrowd.queries.question import Aggregate, Kind
from tests.audit.auditing import Trials, proved_epsilon
from tests.queries.asked import AGE, PERSON, ROW, WARD, Visit, asked, collected, terms

TRIALS = 60_000
OTHERS: list[Visit] = [(i, "F", "a", 2.0) for i in range(10, 14)]
YOU: list[Visit] = [(1, "F", "a", 4.0), (1, "F", "a", 4.0)]
AGGREGATES = (Aggregate("n", Kind.ROWS), Aggregate("mean", Kind.MEAN, AGE))


def noisy(measured: Measurement, visits: list[Visit], noise: AddCube) -> NDArray[np.int64]:
    """Return many independent noisy vectors of the one group."""
    names = tuple(f"_s{i}" for i in range(len(measured.sums.all)))
    exact = gathered(measured.question, collected(measured, visits)[0], names).vectors
    return noise.release(np.repeat(exact[:1], TRIALS, axis=0), SystemCoins())


def proved(measured: Measurement, you: list[Visit], noise: AddCube) -> float:
    """Return the largest epsilon that half-spaces of the answer prove, in either direction."""
    there, gone = noisy(measured, OTHERS + you, noise), noisy(measured, OTHERS, noise)
    widths = np.array(measured.sums.widths, dtype=np.float64)
    best = -np.inf
    for place in range(len(widths)):
        for at in range(-3, 9):
            sides = [(there[:, place] >= at * widths[place]), (gone[:, place] >= at * widths[place])]
            for with_you, without in (sides, sides[::-1], [~side for side in sides], [~side for side in sides[::-1]]):
                one, other = (Trials(int(events.sum()), TRIALS) for events in (with_you, without))
                best = max(best, proved_epsilon(one, other, 0.0))
    return float(best)


@pytest.mark.parametrize(("unit", "you"), [(ROW, YOU[:1]), (PERSON, YOU)], ids=["row", "person"])
def test_answers_prove_much_of_their_epsilon_and_no_more(unit: object, you: list[Visit]) -> None:
    which = PERSON if unit is PERSON else ROW
    measured = measurement(asked(AGGREGATES, (), which), which, terms(epsilon=1))
    noise = measured.settled.noise
    assert isinstance(noise, AddCube)
    assert 0.4 < proved(measured, you, noise) <= 1


def test_a_copy_that_forgets_how_many_rows_a_person_has_is_caught() -> None:
    measured = measurement(asked(AGGREGATES, (), PERSON), PERSON, terms(epsilon=1))
    noise = measured.settled.noise
    assert isinstance(noise, AddCube)
    assert proved(measured, YOU, replace(noise, rows=1)) > 1


def test_a_copy_that_takes_the_sum_for_narrower_than_it_is_is_caught() -> None:
    measured = measurement(asked(AGGREGATES, ()), ROW, terms(epsilon=1))
    noise = measured.settled.noise
    assert isinstance(noise, AddCube)
    narrow = replace(noise, widths=tuple(max(1, width // 2) for width in noise.widths))
    assert proved(measured, YOU[:1], narrow) > 1


def test_a_ward_that_only_you_visited_is_shown_no_more_often_than_delta() -> None:
    measured = measurement(asked((Aggregate("n", Kind.ROWS),), (WARD,)), ROW, terms(epsilon=1, delta=Fraction(1, 100)))
    noise, threshold = measured.settled.noise, measured.settled.threshold
    assert isinstance(noise, AddCube)
    assert threshold is not None
    alone = noise.release(np.ones((TRIALS, 1), dtype=np.int64), SystemCoins())
    shown = Trials(int((alone >= threshold.least).sum()), TRIALS)
    assert shown.least() <= 0.01
    lower = Trials(int((alone >= threshold.least - 2).sum()), TRIALS)
    assert lower.least() > 0.01  # two less would be caught
