"""A private look: how far one person moves it, how likely its choice is a bad one, and whether its intervals hold."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

from incrowd.core.loss import Pure
from incrowd.core.schema import Schema
from incrowd.core.table import Table
from incrowd.engines.local.engine import LOCAL
from incrowd.methods.anonymity.shared.classes import least_width
from incrowd.methods.anonymity.shared.scores import expected_rows
from incrowd.noise.system import SystemCoins
from incrowd.workflows.plan.preview.choices import MOST
from incrowd.workflows.plan.preview.method import PrivatePreview
from incrowd.workflows.plan.preview.output import KeptChoices, spread
from incrowd.workflows.plan.preview.steps import FINENESS, WeighedChoice
from incrowd.workflows.policy.policy import load_policy
from tests.plans import assert_changes_refused, assert_read_back
from tests.policies import changed
from tests.statistics.alarm import FALSE_ALARM
from tests.workflows.plan.preview.weighing import MADE, ROWS, SURVEY, expected, look, table

SMALL: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "small"},
    "columns": {"id": {"role": "identifier"}, "sex": {"categories": ["F", "M"]}, "home": {"categories": ["a", "b"]}},
    "release": {"method": "safe", "rate": "1/2", "k": 2, "delta": "1/2"},
    "budget": {"epsilon": 9, "delta": "0.9"},
}
CELLS = tuple(itertools.product("FM", "ab"))
Person = tuple[tuple[str, str], ...]


def _choice(levels: tuple[int, ...], k: int, rate: Fraction) -> WeighedChoice:
    return WeighedChoice(levels, k, rate, expected_rows(k, rate, FINENESS).most)


CHOICES = (
    _choice((0, 0), 2, Fraction(1, 2)),
    _choice((0, 1), 3, Fraction(1, 2)),
    _choice((1, 0), 2, Fraction(9, 10)),
)


@lru_cache
def _small(max_rows: int) -> tuple[PrivatePreview, Schema]:
    unit = None if max_rows == 1 else {"column": "id", "max_rows": max_rows}
    schema = load_policy(changed(SMALL, dataset__unit=unit)).schema
    return PrivatePreview(Fraction(1, 2), ("sex", "home"), CHOICES, schema), schema


def _sums(people: list[Person], max_rows: int) -> list[int]:
    return _added(tuple(sorted(people)), max_rows)


@cache
def _added(people: tuple[Person, ...], max_rows: int) -> list[int]:
    """Return what the real code adds up; nobody has more rows than take part, so no coin decides."""
    measured, schema = _small(max_rows)
    rows = [(f"p{n}", *row) for n, person in enumerate(people) for row in person]
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    names = ("id", "sex", "home")
    made = pa.table({name: pa.array(each, pa.string()) for name, each in zip(names, columns, strict=True)})
    return measured.sums(Table(schema, LOCAL.open(made), LOCAL), SystemCoins())


def _crowds(most: int, max_rows: int) -> list[list[Person]]:
    """Return every table of so many people with so many rows each, at most, in the four cells."""
    persons = [each for rows in range(1, max_rows + 1) for each in itertools.combinations_with_replacement(CELLS, rows)]
    return [
        list(each) for people in range(most + 1) for each in itertools.combinations_with_replacement(persons, people)
    ]


@pytest.mark.parametrize(("max_rows", "people"), [(1, 4), (2, 1)])
def test_one_person_moves_every_choice_by_at_most_its_width_and_all_the_same_way(max_rows: int, people: int) -> None:
    """Every table of few people, and everyone who could join it, through the real code; also one person for another."""
    widths = [max_rows * choice.width for choice in CHOICES]
    moved = [0] * len(CHOICES)
    persons = [each for rows in range(1, max_rows + 1) for each in itertools.combinations_with_replacement(CELLS, rows)]
    for before in _crowds(people, max_rows):
        sums = _sums(before, max_rows)
        joined = [_sums([*before, person], max_rows) for person in persons]
        for after in joined:
            assert all(0 <= new - old <= width for old, new, width in zip(sums, after, widths, strict=True))
            moved = [max(most, new - old) for most, old, new in zip(moved, sums, after, strict=True)]
        for one, other in itertools.combinations(joined, 2):
            assert all(abs(a - b) <= width for a, b, width in zip(one, other, widths, strict=True))
    if max_rows == 1:
        assert moved[0] == widths[0], "the stated width is reached"


def test_no_output_is_more_than_e_to_epsilon_times_as_likely_with_somebody_as_without() -> None:
    """The law of the noise is P[x] ∝ e^(−J(x) / scale): held against every pair of small tables, output by output."""
    measured, _ = _small(2)
    law, chance = measured.mechanism.law, np.random.default_rng(3)

    def radius(point: tuple[int, ...]) -> int:
        return max(-(-law.fine * abs(x) // width) for x, width in zip(point, law.widths, strict=True))

    assert law.widths == tuple(choice.width for choice in CHOICES)
    worst = Fraction(0)
    for before in _crowds(1, 2):
        for person in [(CELLS[0],), (CELLS[0], CELLS[0]), (CELLS[1], CELLS[2])]:
            one, other = _sums(before, 2), _sums([*before, person], 2)
            far = [int(each) for each in chance.integers(-4 * FINENESS, 4 * FINENESS, 3)]
            for output in (one, other, far, [-(10**11)] * 3, [10**11] * 3):
                radii = [radius(tuple(y - s for y, s in zip(output, sums, strict=True))) for sums in (one, other)]
                worst = max(worst, abs(radii[0] - radii[1]) / law.scale)
    assert Fraction(1, 8) < worst <= measured.epsilon


def test_the_steps_are_read_back_and_every_change_is_refused() -> None:
    plan = look(SURVEY, "0.05").plan
    assert plan.guarantee.loss == Pure(Fraction(1, 20))
    assert_read_back(plan)
    assert_changes_refused(plan)


def test_choices_are_few_start_with_the_policys_own_and_need_no_rows() -> None:
    for policy in (SURVEY, changed(SURVEY, dataset__rows=None)):
        choices = look(policy, "0.05").choices
        assert 6 <= len(choices) <= MOST
        assert (choices[0].levels, choices[0].rate) == ((1, 1, 0), Fraction(1, 2))
        assert {choice.rate for choice in choices} == {Fraction(1, 10), Fraction(1, 4), Fraction(1, 2)}
        assert len({(choice.levels, choice.rate) for choice in choices}) == len(choices)
        assert all(choice.width >= least_width(choice.k, choice.rate, FINENESS) for choice in choices)


def _beyond(measured: PrivatePreview, radius: float) -> float:
    """Return the chance that the noise leaves the box of so many widths: P[J] ∝ |box of J|·e^(−J/scale), summed up."""
    law = measured.mechanism.law
    steps = np.arange(0, math.ceil(200 * law.scale))
    logs = sum(np.log(2 * (steps * width // law.fine) + 1.0) for width in law.widths) - steps / float(law.scale)
    weights = np.exp(logs - logs.max())
    return float(weights[steps > radius * law.fine].sum() / weights.sum())


@pytest.mark.parametrize("kind", MADE)
def test_the_choice_keeps_at_least_four_fifths_of_what_the_best_would(kind: str) -> None:
    """At ε = 0.05 and 20,000 rows; by chance it fails with less than one in a million.

    Noise within r widths of every choice moves the worth of a choice by r·detail·width at most.  So a choice that is
    worth less than four fifths of the best can only win if r reaches the least gap over both choices' moves.
    """
    measured, rows = look(SURVEY, "0.05"), table(SURVEY, MADE[kind](np.random.default_rng(8), ROWS))
    shown: KeptChoices = measured.plan.draw(rows, SystemCoins())
    details, widths = np.array(shown.details), np.array([choice.width for choice in measured.choices]) / FINENESS
    worth = details * [expected(rows, choice) for choice in measured.choices]
    best, moves = int(worth.argmax()), details * widths
    bad = worth < 0.8 * worth[best]
    assert bad.any(), "there is something to choose"
    reach = ((worth[best] - worth) / (moves + moves[best]))[bad].min()
    assert _beyond(measured, reach) < FALSE_ALARM
    assert worth[shown.place] >= 0.8 * worth[best]


def test_the_intervals_hold_the_truth_in_264_of_300_looks() -> None:
    """All intervals at once hold with 95 % at least; Bin(300, 0.95) lies below 264 less than once in a million."""
    assert binom.cdf(263, 300, 0.95) < FALSE_ALARM
    policy = changed(SURVEY, dataset__rows=2000)
    measured, rows = look(policy, "0.5"), table(policy, MADE["skewed"](np.random.default_rng(9), 2000))
    truth = [expected(rows, choice) for choice in measured.choices]
    release, coins, held = measured.plan.draw, SystemCoins(), 0
    for _ in range(300):
        estimates = release(rows, coins).estimates
        held += all(each.low <= true <= each.high for each, true in zip(estimates, truth, strict=True))
    assert held >= 264


@pytest.mark.parametrize(("k", "rate"), [(2, "1/2"), (5, "1/10"), (8, "1/4"), (20, "1/2")])
def test_no_table_strays_further_in_one_draw_than_is_said(k: int, rate: str) -> None:
    """Variance over expectation, cell by cell from the law itself; and the bound is reached."""
    beta, found = Fraction(rate), []
    for n in range(k, math.ceil(6 * k / beta)):
        m = np.arange(n + 1)
        masses, kept = binom.pmf(m, n, float(beta)), m * (m >= k)
        mean = float(masses @ kept)
        found.append((float(masses @ kept**2) - mean**2) / mean)
    assert max(found) == pytest.approx(spread(k, beta), rel=1e-9)


def test_rounding_is_less_than_a_row_in_a_table_of_ten_million() -> None:
    for k, rate in ((8, Fraction(1, 10)), (35, Fraction(1, 2)), (7, Fraction(1, 3))):
        kept, sizes = expected_rows(k, rate, FINENESS), np.array([10, 100, 1000, 10**7])
        for n, steps in zip(sizes, kept.of(sizes), strict=True):
            m = np.arange(k, n + 1) if n < 10**6 else None
            true = float((m * binom.pmf(m, n, float(rate))).sum()) if m is not None else float(rate) * n
            assert true - 1 < steps / FINENESS <= true * (1 + 1e-9)


def test_estimates_are_never_below_zero_and_too_wide_ones_are_called_useless() -> None:
    choices = (_choice((0, 0), 2, Fraction(1, 2)),) * 3
    shown = KeptChoices(
        ("sex", "home"), choices, (1.0, 1.0, 0.5), (-5 * FINENESS, 0, 100 * FINENESS), (60 * FINENESS,) * 3
    )
    assert [each.expected for each in shown.estimates] == [0.0, 0.0, 100.0]
    assert [each.low for each in shown.estimates] == [0.0, 0.0, 40.0]
    assert shown.place == 2
    assert shown.useless
    assert not KeptChoices(shown.names, choices, shown.details, shown.sums, (40 * FINENESS,) * 3).useless
    assert shown.to_arrow().num_rows == 3
