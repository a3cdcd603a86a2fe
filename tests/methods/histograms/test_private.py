"""The differentially private histogram, and the most common bins."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.accounting import accountant
from incrowd.core.domain import Numbers, Text, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.hierarchy.text import Prefix
from incrowd.core.loss import Approximate, Gaussian, GaussianRounds, Grouped, Laplace, Pure, Sampled
from incrowd.core.schema import Column, Outside, Role, Schema
from incrowd.core.table import Table
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.engines.local.engine import LocalEngine
from incrowd.errors import InvalidParameter
from incrowd.methods.histograms.blended import BlendedHistogram
from incrowd.methods.histograms.most_common import MostCommon
from incrowd.methods.histograms.private import PrivateHistogram
from incrowd.methods.histograms.shared import partition
from tests.coins import ScriptedCoins
from tests.methods.histograms.tables import SCHEMA, SIX, bins, counts, for_unit, table
from tests.plans import steps_json
from tests.tables import Batches

ONE, SMALL = Fraction(1), Fraction(1, 10**6)
ROW, REPLACED = Unit(), Unit(adjacency=Adjacency.REPLACE)
PEOPLE = Unit(Kind.PERSON, column="id", max_rows=3)
TOWN = Column("town", Role.QUASI, hierarchy=Prefix(Text(), (2,)))


def schema(unit: Unit) -> Schema:
    return for_unit(unit) if unit.column else Schema(SCHEMA.columns, unit)


def test_every_count_gets_noise() -> None:
    noise = [1, -1, -2, 0, 3, 0]
    released = PrivateHistogram(epsilon=ONE).release(table(), ScriptedCoins(laplace=noise))
    assert counts(released) == [8, 1, 0, 5, 3, 0]
    even = PrivateHistogram(epsilon=ONE, round=2).release(table(), ScriptedCoins(laplace=noise))
    assert counts(even) == [8, 2, 0, 6, 4, 0]  # 20, as the sum of 8, 2, -2, 6, 4 and 2
    plain = PrivateHistogram(epsilon=ONE, clamp=False).release(table(), ScriptedCoins(laplace=noise))
    assert counts(plain) == [8, 2, -2, 5, 3, 1]
    wide = PrivateHistogram(epsilon=ONE, delta=SMALL, noise="gaussian", clamp=False)
    assert counts(wide.release(table(), ScriptedCoins(gaussian=noise))) == [8, 2, -2, 5, 3, 1]


@given(st.lists(st.integers(-4, 6), min_size=1, max_size=4), st.sampled_from([1, 2, 5]))
@settings(max_examples=80)
def test_clamped_counts_are_the_nearest_that_keep_their_sum(noisy: list[int], base: int) -> None:
    counts = np.array(noisy, np.int64)
    target = partition.rounded(counts, base)
    published = partition.adding_up(counts, base)
    total = max(0, int(target.sum()))
    assert published.min() >= 0
    assert published.sum() == total
    every = (row for row in product(range(0, total + 1, base), repeat=len(noisy)) if sum(row) == total)
    nearest = min(sum((a - b) ** 2 for a, b in zip(row, target.tolist(), strict=True)) for row in every)
    assert int(((published - target) ** 2).sum()) == nearest


def test_noise_does_not_move_the_sum_of_many_empty_bins() -> None:
    noisy = np.concatenate([np.full(5, 10**12), np.tile([3, -3, 0], 2000)]).astype(np.int64)
    published = partition.adding_up(noisy)
    assert published.sum() == 5 * 10**12
    assert np.abs(published - np.maximum(noisy, 0)).max() <= 3


@pytest.mark.parametrize(
    ("unit", "loss"),
    [(ROW, Laplace(ONE)), (PEOPLE, Pure(ONE)), (REPLACED, Pure(ONE))],
    ids=str,
)
def test_laplace_noise_costs_exactly_its_epsilon_by_the_unit(unit: Unit, loss: object) -> None:
    asked, declared = PrivateHistogram(epsilon=ONE), schema(unit)
    assert asked.plan(declared).guarantee.loss == loss
    assert asked.plan(declared).settings["scale"] == unit.max_rows * (2 if unit is REPLACED else 1)
    assert accountant.charge_of(asked.plan(declared).guarantee.loss, 0, unit.adjacency).epsilon == 1


@pytest.mark.parametrize(
    ("unit", "kind"), [(ROW, Gaussian), (PEOPLE, GaussianRounds), (REPLACED, GaussianRounds)], ids=str
)
def test_gaussian_noise_is_the_least_that_keeps_epsilon_and_delta(
    unit: Unit, kind: type[Gaussian | GaussianRounds]
) -> None:
    asked, declared = PrivateHistogram(epsilon=ONE, delta=SMALL, noise="gaussian"), schema(unit)
    guarantee = asked.plan(declared).guarantee
    assert isinstance(guarantee.loss, kind)
    spent = accountant.charge_of(guarantee.loss, guarantee.delta, unit.adjacency).epsilon
    assert 0.999999 < spent <= 1
    assert str(spent) == asked.plan(declared).claims[0].parameters["epsilon"]


def test_a_person_moves_squares_by_the_square_of_its_rows() -> None:
    loss = PrivateHistogram(error=20, delta=SMALL, noise="gaussian").plan(schema(PEOPLE)).guarantee.loss
    scale = PrivateHistogram(error=20, delta=SMALL, noise="gaussian").plan(schema(PEOPLE)).settings["scale"]
    assert loss == GaussianRounds(Fraction(9) / (2 * scale**2), scale, 3)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("error", [1, 5, 40])
def test_a_wanted_error_is_kept_and_nearly_used_up(noise: Any, error: int) -> None:
    delta = SMALL if noise == "gaussian" else None
    found = PrivateHistogram(error=error, delta=delta, noise=noise).plan(SCHEMA).settings
    assert found["within"] == error
    assert found["solved"] == "epsilon"


def test_a_sample_in_front_needs_less_noise_for_the_same_epsilon() -> None:
    plain, sampled = PrivateHistogram(epsilon=ONE), PrivateHistogram(epsilon=ONE, rate=Fraction(1, 10))
    assert sampled.plan(SCHEMA).settings["scale"] < plain.plan(SCHEMA).settings["scale"] / 2
    loss = sampled.plan(SCHEMA).guarantee.loss
    assert isinstance(loss, Sampled)
    assert isinstance(loss.inner, Laplace)
    inner = float(1 / loss.inner.scale)
    assert math.isclose(math.log1p(math.expm1(inner) / 10), 1, rel_tol=1e-8)
    assert isinstance(sampled.plan(schema(PEOPLE)).guarantee.loss, Grouped)


def towns() -> Table:
    rows = pa.table({"sex": ["F"] * 60 + ["M"], "town": ["Oslo"] * 60 + ["Rome"]})
    return Table(Schema((SIX, TOWN)), Batches(rows, 7), LocalEngine())


def test_bins_nobody_listed_appear_from_a_threshold_on() -> None:
    asked = PrivateHistogram(epsilon=ONE, delta=SMALL, levels={"town": 1})
    assert asked.plan(towns().schema).guarantee.loss == Approximate(ONE, SMALL)
    assert steps_json(asked, towns().schema)[-2]["least"] == 15
    released = asked.release(towns(), ScriptedCoins(laplace=[-2, 13])).to_arrow()
    assert released.to_pylist() == [{"sex": "F", "town": "Os", "count": 58}]
    assert released["town"].chunk(0).dictionary.to_pylist() == ["Os"]


def test_very_many_bins_appear_from_a_public_threshold_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "LISTED", 5)
    asked = PrivateHistogram(epsilon=ONE)
    assert steps_json(asked, SCHEMA)[-2] == {"step": "threshold", "least": 2}
    found = bins(asked.release(table(), ScriptedCoins(laplace=[0, -2, 0, 0, 2, 1])))
    assert found == {("F", "n"): 7, ("F", "s"): 2, ("M", "n"): 5}
    with pytest.raises(InvalidParameter, match="laplace"):
        PrivateHistogram(epsilon=ONE, delta=SMALL, noise="gaussian").plan(SCHEMA)


@pytest.mark.parametrize(
    ("options", "unit", "words"),
    [
        ({}, ROW, "give epsilon"),
        ({"epsilon": ONE, "error": 5}, ROW, "give epsilon"),
        ({"epsilon": Fraction(0)}, ROW, "above 0"),
        ({"error": -1}, ROW, "negative"),
        ({"epsilon": ONE, "delta": SMALL}, ROW, "leave it out"),
        ({"epsilon": ONE, "noise": "gaussian"}, ROW, "delta is needed"),
        ({"epsilon": ONE, "noise": "gaussian", "delta": ONE}, ROW, "strictly"),
        ({"epsilon": ONE, "rate": ONE}, ROW, "strictly"),
        ({"epsilon": ONE, "rate": Fraction(1, 2)}, REPLACED, "added or removed"),
        ({"epsilon": ONE, "round": 0}, ROW, "multiples"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict[str, Any], unit: Unit, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        PrivateHistogram(**options).plan(schema(unit))


def test_the_most_common_bins_are_read_off_the_noisy_counts() -> None:
    asked = MostCommon(epsilon=ONE, top=2)
    released = asked.release(table(), ScriptedCoins(laplace=[-6, 0, 0, 0, 4, 0])).to_arrow().to_pylist()
    assert released == [
        {"rank": 1, "sex": "M", "area": "n", "count": 5},
        {"rank": 2, "sex": "M", "area": "e", "count": 4},
    ]


def test_without_counts_none_is_published() -> None:
    released = MostCommon(epsilon=ONE, top=2, counts=False).release(table(), ScriptedCoins(laplace=[0] * 6))
    assert released.schema.names == ["rank", "sex", "area"]
    one = MostCommon(epsilon=ONE, counts=False)
    coins = ScriptedCoins(decay=[1, 0, 0, 0, 0, 0], below=[0])
    assert one.release(table(), coins).to_arrow().to_pylist() == [{"rank": 1, "sex": "F", "area": "n"}]
    assert coins.used_up


@pytest.mark.parametrize("unit", [ROW, PEOPLE, REPLACED], ids=str)
@pytest.mark.parametrize("counted", [True, False])
def test_a_selection_costs_its_epsilon_once_however_many_are_named(unit: Unit, counted: bool) -> None:
    for top in (1, 3):
        guarantee = MostCommon(epsilon=ONE, top=top, counts=counted).plan(schema(unit)).guarantee
        assert accountant.charge_of(guarantee.loss, 0, unit.adjacency).epsilon == 1


def test_a_winner_among_people_who_are_replaced_needs_twice_the_noise() -> None:
    scales = [
        MostCommon(epsilon=ONE, counts=False).plan(schema(unit)).settings["scale"] for unit in (ROW, PEOPLE, REPLACED)
    ]
    assert scales == [1, 3, 2]


@pytest.mark.parametrize(
    ("options", "words"),
    [({"epsilon": Fraction(0)}, "above 0"), ({"top": 0}, "at least one"), ({"top": 7}, "at most all")],
)
def test_selections_that_mean_nothing_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        MostCommon(**({"epsilon": ONE} | options)).plan(SCHEMA)


def test_candidates_must_be_known_and_not_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidParameter, match="private-histogram"):
        MostCommon(epsilon=ONE, levels={"town": 1}).plan(Schema((SIX, TOWN)))
    monkeypatch.setattr("incrowd.methods.histograms.most_common.LISTED", 5)
    with pytest.raises(InvalidParameter, match="too many"):
        MostCommon(epsilon=ONE).plan(SCHEMA)
    with pytest.raises(InvalidParameter, match="'rank'"):
        MostCommon(epsilon=ONE).plan(Schema((Column("rank", hierarchy=SIX.hierarchy),)))


def test_more_bins_than_noise_can_be_drawn_over_are_refused_before_anything_is_charged() -> None:
    ages = tuple(
        Column(f"age {n}", Role.QUASI, Type.INTEGER, Flat(Numbers(0, 999)), outside=Outside.ENDS) for n in range(5)
    )
    with pytest.raises(InvalidParameter, match=r"2\^46 are the most"):
        PrivateHistogram(epsilon=ONE).plan(Schema(ages))
    with pytest.raises(InvalidParameter, match=r"2\^46 are the most"):
        BlendedHistogram(noise_epsilon=Fraction(40), k=5).plan(Schema(ages))


def test_a_claim_about_unknown_bins_does_not_say_that_empty_ones_get_noise() -> None:
    asked, unknown = PrivateHistogram(levels={"town": 1}, epsilon=ONE, delta=SMALL), Schema((TOWN,))
    (claim,) = asked.plan(unknown).claims
    told = " ".join(each.text for each in claim.preconditions)
    assert "empty" not in told
    assert "declaration" not in told
    assert "threshold" in told
