"""Histograms with exact counts for crowds."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from incrowd.core.domain import Text
from incrowd.core.hierarchy.text import Prefix
from incrowd.core.loss import Crowd, Grouped, NoisyWhenSmall, Sampled
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.steps.bins import ListedBins
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.methods.histograms import blended as method
from incrowd.methods.histograms.blended import BlendedHistogram
from incrowd.methods.histograms.shared import partition
from incrowd.methods.histograms.suppressed import SuppressedHistogram
from tests.coins import ScriptedCoins
from tests.methods.histograms.tables import SCHEMA, SIX, bins, counts, for_unit, table
from tests.plans import steps_json

ONE, TENTH = Fraction(1), Fraction(1, 10)
DELTA = Fraction(1, 10**6)
PEOPLE = Unit(Kind.PERSON, column="id", max_rows=2)
TOWN = Column("town", Role.QUASI, hierarchy=Prefix(Text(), (2,)))


def blended(**options: Any) -> BlendedHistogram:
    return BlendedHistogram(**({"noise_epsilon": ONE, "k": 5} | options))


def test_counts_from_k_on_are_exact_and_others_zero() -> None:
    assert counts(SuppressedHistogram(k=5).release(table(), ScriptedCoins())) == [7, 0, 0, 5, 0, 0]


def test_rounding_comes_after_suppression() -> None:
    assert counts(SuppressedHistogram(k=3, round=5).release(table(), ScriptedCoins())) == [5, 5, 0, 5, 0, 0]


def test_every_small_count_gets_noise_that_of_empty_bins_too() -> None:
    noise = [99, 1, 2, 99, -4, -9]
    assert counts(blended().release(table(), ScriptedCoins(laplace=noise))) == [7, 4, 2, 5, 0, 0]
    free = blended(clamp=False).release(table(), ScriptedCoins(laplace=noise))
    assert counts(free) == [7, 4, 2, 5, -4, -8]


def test_marks_tell_exact_counts_from_noisy_ones_that_look_alike() -> None:
    coins = ScriptedCoins(laplace=[0, 4, 0, 0, 0, 0])
    outcome = blended(clamp=False, flag=True).release(table(), coins)
    assert outcome.counts.tolist() == [7, 7, 0, 5, 0, 1]
    assert outcome.exact is not None
    assert outcome.exact.tolist() == [True, False, False, True, False, False]


def test_bins_are_the_cross_of_the_asked_columns_in_the_asked_order() -> None:
    outcome = SuppressedHistogram(k=1, columns=("area", "sex")).release(table(), ScriptedCoins())
    assert outcome.labels == ("area", "sex")
    assert counts(outcome) == [7, 5, 3, 0, 0, 1]
    assert counts(SuppressedHistogram(k=1, columns=("sex",)).release(table(), ScriptedCoins())) == [10, 6]


def test_only_the_sample_is_counted() -> None:
    asked = SuppressedHistogram(k=2, rate=TENTH, delta=Fraction(1, 50))
    assert counts(asked.release(table(), ScriptedCoins(members=[0, 1, 7, 10, 11, 12]))) == [2, 0, 0, 3, 0, 0]


@pytest.mark.parametrize("clamp", [True])
def test_beyond_what_is_listed_only_bins_above_zero_appear(clamp: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "LISTED", 5)
    assert bins(SuppressedHistogram(k=5).release(table(), ScriptedCoins())) == {("F", "n"): 7, ("M", "n"): 5}
    # first the four occupied bins, then the two empty ones
    coins = ScriptedCoins(laplace=[0, 1, 0, -3, 2, 0])
    found = bins(blended(clamp=clamp).release(table(), coins))
    assert found == {("F", "n"): 7, ("F", "e"): 4, ("F", "s"): 2, ("M", "n"): 5}
    assert steps_json(blended(), SCHEMA)[2]["listed"] == ListedBins.ABOVE_ZERO


def test_many_bins_need_clamping_and_noise_that_does_not_fill_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "LISTED", 1)
    monkeypatch.setattr(method, "LISTED", 1)
    with pytest.raises(InvalidParameter, match="clamp"):
        blended(clamp=False).plan(SCHEMA)
    with pytest.raises(InvalidParameter, match="noise alone"):
        blended(noise_epsilon=TENTH).plan(SCHEMA)
    assert blended(noise_epsilon=Fraction(3)).plan(SCHEMA).guarantee.loss == NoisyWhenSmall(5, Fraction(3))


def test_guarantees_follow_from_the_schema() -> None:
    assert SuppressedHistogram(k=5).plan(SCHEMA).guarantee.loss == Crowd(5)
    assert blended().plan(SCHEMA).guarantee.loss == NoisyWhenSmall(5, ONE)
    sampled = blended(k=None, rate=TENTH, epsilon=ONE, delta=DELTA)
    assert sampled.plan(SCHEMA).guarantee.loss == Sampled(TENTH, NoisyWhenSmall(8, ONE))
    assert sampled.plan(SCHEMA).guarantee.delta == DELTA
    grouped = sampled.plan(for_unit(PEOPLE)).guarantee.loss
    assert isinstance(grouped, Grouped)
    assert grouped.inner.inner.k > 8  # type: ignore[union-attr]


@pytest.mark.parametrize("unit", [Unit(), PEOPLE, Unit(adjacency=Adjacency.REPLACE)], ids=str)
def test_what_is_solved_keeps_what_was_asked(unit: Unit) -> None:
    schema = for_unit(unit) if unit.column else Schema(SCHEMA.columns, unit)
    k = blended(k=None, rate=TENTH, epsilon=ONE, delta=DELTA).parameters(unit)
    assert k.epsilon <= 1
    rate = blended(k=k.k, epsilon=ONE, delta=DELTA).parameters(unit)
    assert rate.rate >= TENTH
    assert rate.epsilon <= 1
    epsilon = blended(k=k.k, rate=TENTH, delta=DELTA)
    assert epsilon.parameters(unit).epsilon == k.epsilon
    assert epsilon.plan(schema).settings["solved"] == "epsilon"


def test_an_epsilon_that_noise_alone_exceeds_names_the_one_that_can_be_had() -> None:
    with pytest.raises(Infeasible, match=r"costs 0\.158"):
        blended(k=None, rate=TENTH, epsilon=Fraction(1, 20), delta=DELTA).parameters(Unit())


def test_a_delta_below_the_floor_is_refused() -> None:
    with pytest.raises(Infeasible, match="Raise k"):
        blended(k=3, rate=TENTH, delta=Fraction(1, 10**9)).parameters(Unit())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"k": 0}, "at least 1"),
        ({"k": None}, "k must be given"),
        ({"rate": Fraction(2)}, "rate"),
        ({"rate": TENTH}, "needs delta"),
        ({"epsilon": ONE}, "needs delta too"),
        ({"round": 0}, "multiples"),
        ({"columns": ("sex",), "levels": {"area": 1}}, "does not count by"),
        ({"columns": ("nobody",)}, "no column"),
    ],
)
@pytest.mark.parametrize("method", [SuppressedHistogram, blended])
def test_parameters_that_mean_nothing_are_refused(method: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        method(**({"k": 5} | options)).plan(SCHEMA)


def test_noise_needs_an_epsilon_above_zero() -> None:
    with pytest.raises(InvalidParameter, match="suppressed-histogram"):
        blended(noise_epsilon=Fraction(0))


def test_people_with_several_rows_need_a_sample() -> None:
    with pytest.raises(InvalidParameter, match="max_rows"):
        SuppressedHistogram(k=5).plan(for_unit(PEOPLE))


def test_bins_nobody_listed_are_refused_where_empty_ones_need_noise() -> None:
    schema = Schema((SIX, TOWN))
    with pytest.raises(InvalidParameter, match="suppressed-histogram"):
        blended(levels={"town": 1}).plan(schema)
    assert steps_json(SuppressedHistogram(k=5, levels={"town": 1}), schema)[2]["listed"] == ListedBins.FROM_K
    with pytest.raises(InvalidParameter, match="free text"):
        SuppressedHistogram(k=5).plan(schema)


def test_columns_of_the_histogram_itself_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="'count'"):
        SuppressedHistogram(k=5).plan(Schema((Column("count", hierarchy=SIX.hierarchy),)))


def test_crowds_are_not_claimed_for_people_with_several_rows() -> None:
    sampled = blended(k=None, rate=TENTH, epsilon=ONE, delta=DELTA)
    kinds = [claim.kind for claim in sampled.plan(SCHEMA).claims]
    assert kinds == [
        "approximate differential privacy",
        "zero-knowledge with respect to random sampling",
        "crowd-blending",
    ]
    assert [claim.kind for claim in sampled.plan(for_unit(PEOPLE)).claims] == ["approximate differential privacy"]
    assert any("overlapping tables" in gap for gap in map(str, sampled.plan(SCHEMA).claims[-1].not_protected))


def test_rounding_is_to_the_nearest_multiple() -> None:
    assert partition.rounded(np.array([-3, -2, 0, 2, 3, 12]), 5).tolist() == [-5, 0, 0, 0, 5, 10]
