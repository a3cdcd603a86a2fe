"""Levels chosen under differential privacy: one row moves every score a little, and both stages are paid."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.accounting.suppression import tight_delta
from incrowd.core.cells import Cells
from incrowd.core.domain import Categories, Provenance, Text
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.hierarchy.text import Prefix
from incrowd.core.hierarchy.tree import tree
from incrowd.core.loss import Crowd, Grouped, Pure, Sampled, Sequence, Syntactic
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.table import Table
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.engines.local.engine import LocalEngine
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.mechanisms.selection import MonotoneNoisyMax, NoisyMax
from incrowd.methods.anonymity.safe import Safe
from incrowd.methods.anonymity.scheme import Scheme
from incrowd.methods.anonymity.shared.scores import DETAIL, FINENESS, expected_rows, scores
from incrowd.noise.system import SystemCoins
from incrowd.verifier.slow_accountant import derive
from tests.plans import steps_json
from tests.tables import Batches

CITY = Column("city", Role.QUASI, hierarchy=tree({"north": ["Oslo", "Bergen"], "south": ["Rome"]}))
SEX = Column("sex", Role.QUASI, hierarchy=Flat(Categories(("F", "M"))))
ZIP = Column("zip", Role.QUASI, hierarchy=Prefix(Text(), (2, 1)))
SCHEMA = Schema((CITY, SEX))
CHOICES = {"city": range(3), "sex": range(2)}
DELTA = Fraction(1, 10**6)
SCHEME = Scheme(Fraction(1, 10), epsilon=Fraction(1), delta=DELTA, rate=Fraction(1, 10))


def scores_of(rows: tuple[tuple[str, str], ...], k: int, rate: Fraction) -> list[int]:
    columns = {"city": [city for city, _ in rows], "sex": [sex for _, sex in rows]}
    table = pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
    counts = LocalEngine().count(Batches(table), Cells.of(SCHEMA, {}))
    return [int(each) for each in scores(counts, CHOICES, expected_rows(k, rate))]


def test_no_row_moves_any_score_by_more_than_the_sensitivity_and_all_move_the_same_way() -> None:
    """Every table of up to five rows, every row that can join it."""
    k, rate = 2, Fraction(1, 2)
    most = DETAIL * expected_rows(k, rate).most
    values = list(product(("Oslo", "Bergen", "Rome"), ("F", "M")))
    known = {rows: scores_of(rows, k, rate) for n in range(6) for rows in combinations_with_replacement(values, n)}
    reached = 0
    for rows, before in known.items():
        if len(rows) == 5:
            continue
        for row in values:
            after = known[tuple(sorted((*rows, row), key=values.index))]
            moved = [new - old for new, old in zip(after, before, strict=True)]
            assert min(moved) >= 0
            assert max(moved) <= most
            reached = max(reached, *moved)
    assert reached > most // 2, "the sensitivity is far from what a row can do"


@given(st.integers(1, 60), st.sampled_from([Fraction(1, 2), Fraction(1, 10), Fraction(9, 10), Fraction(1, 100)]))
@settings(max_examples=30, deadline=None)
def test_what_is_kept_is_the_expectation_of_sampled_suppression(k: int, rate: Fraction) -> None:
    from scipy.stats import binom

    kept = expected_rows(k, rate)
    for n in (0, k - 1, k, math.ceil(k / rate), 3 * math.ceil(k / rate)):
        sizes = np.arange(k, n + 1)
        expected = float((sizes * binom.pmf(sizes, n, float(rate))).sum())
        found = int(kept.of(np.array([n]))[0]) / FINENESS
        assert expected - 1e-9 - (n + 1) / FINENESS <= found <= expected + 1e-6 * (n + 1)


def test_kept_grows_by_no_more_than_its_steps_also_beyond_the_table() -> None:
    kept = expected_rows(7, Fraction(1, 3))
    sizes = np.arange(5 * len(kept.steps))
    moved = np.diff(kept.of(sizes))
    assert moved.min() >= 0
    assert moved.max() == kept.most


def test_the_guarantee_is_the_choice_and_the_sampled_suppression() -> None:
    guarantee = SCHEME.plan(SCHEMA).guarantee
    assert guarantee.loss == Sequence((Pure(Fraction(1, 10)), Sampled(Fraction(1, 10), Crowd(8))))
    assert guarantee.delta == DELTA
    epsilon = float(SCHEME.plan(SCHEMA).numbers["epsilon"])
    found = float(SCHEME.parameters(SCHEMA.unit).epsilon)
    assert found < epsilon <= found + 0.1 + 1e-9


def test_the_cost_is_never_below_that_of_the_two_stages_on_one_crowd() -> None:
    """A choice that is one biased bit, beside the exact law of a sampled crowd: the distance is below delta."""
    k, rate, choosing = 8, Fraction(1, 10), 0.1
    epsilon = float(SCHEME.plan(SCHEMA).numbers["epsilon"])
    right = math.exp(choosing) / (1 + math.exp(choosing))
    bound = right * tight_delta.delta(k, rate, epsilon - choosing) + (1 - right) * tight_delta.delta(
        k, rate, epsilon + choosing
    )
    assert bound <= float(DELTA) * (1 + 1e-6)


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("choosing", ["1/20", "1/2"])
@pytest.mark.parametrize("given_", [{"rate": Fraction(1, 10)}, {"k": 30}])
def test_choice_and_release_together_never_cost_a_person_more_than_the_target(
    rows: int, choosing: str, given_: dict[str, Any]
) -> None:
    """With two rows of a person, a target of 1 was missed: the release alone kept it."""
    several = Schema((Column("id", Role.IDENTIFIER), CITY), Unit(Kind.PERSON, column="id", max_rows=rows))
    plan = Scheme(Fraction(choosing), epsilon=Fraction(1), delta=DELTA, **given_).plan(several)
    assert 0.5 < plan.numbers["epsilon"] <= 1
    derived = derive(plan.guarantee.loss, plan.unit, plan.numbers["epsilon"], DELTA)
    assert derived is not None
    assert derived.delta <= float(DELTA) * (1 + 1e-6)


def test_replaced_people_keep_the_target_too() -> None:
    unit = Unit(Kind.PERSON, Adjacency.REPLACE, "id", 2)
    schema = Schema((Column("id", Role.IDENTIFIER), CITY), unit)
    plan = Scheme(Fraction(1, 4), epsilon=Fraction(1), delta=DELTA, rate=Fraction(1, 10)).plan(schema)
    assert plan.numbers["epsilon"] <= 1


def test_what_is_released_has_the_k_that_was_solved_behind_the_choice() -> None:
    scheme = Scheme(Fraction(1, 2), epsilon=Fraction(1), delta=DELTA, rate=Fraction(1, 10))
    alone = Safe(epsilon=scheme.epsilon, delta=scheme.delta, rate=scheme.rate)
    assert scheme.parameters(Unit()).k == 10 > alone.parameters(Unit()).k
    assert scheme._solved({}, Unit()).k == 10


def test_a_choice_that_costs_the_whole_target_is_refused() -> None:
    with pytest.raises(Infeasible, match="the choice alone costs epsilon 1"):
        Scheme(Fraction(1), epsilon=Fraction(1), delta=DELTA, rate=Fraction(1, 10)).plan(SCHEMA)


def test_people_with_several_rows_move_scores_by_as_many_steps() -> None:
    several = Schema((Column("id", Role.IDENTIFIER), CITY), Unit(Kind.PERSON, column="id", max_rows=3))
    loss = SCHEME.plan(several).guarantee.loss
    assert isinstance(loss, Sequence)
    assert isinstance(loss.parts[1], Grouped)
    choose = steps_json(SCHEME, several)[0]
    found = SCHEME.parameters(several.unit)
    assert choose["sensitivity"] == 3 * DETAIL * expected_rows(found.k, found.rate).most


def test_replaced_rows_move_scores_both_ways_and_need_twice_the_noise() -> None:
    assert type(SCHEME._selection(Unit())) is MonotoneNoisyMax
    assert type(SCHEME._selection(Unit(adjacency=Adjacency.REPLACE))) is NoisyMax


def test_what_was_drafted_from_rows_leaves_k_anonymity() -> None:
    drafted = Flat(Categories(("F", "M"), Provenance(derived=True)))
    schema = Schema((Column("sex", Role.QUASI, hierarchy=drafted),))
    assert isinstance(SCHEME.plan(schema).guarantee.loss, Syntactic)
    assert [claim.kind for claim in SCHEME.plan(schema).claims] == ["k-anonymity"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"choosing": Fraction(0)}, "above 0"),
        ({"rate": Fraction(1)}, "secret sample"),
    ],
)
def test_bad_parameters_are_refused(change: dict[str, Fraction], told: str) -> None:
    given = {"choosing": Fraction(1, 10), "epsilon": Fraction(1), "delta": DELTA, "rate": Fraction(1, 10)} | change
    with pytest.raises(InvalidParameter, match=told):
        Scheme(**given)  # type: ignore[arg-type]


def test_levels_that_are_not_there_and_too_many_of_them_are_refused() -> None:
    loss: Any = {"epsilon": Fraction(1), "delta": DELTA, "rate": Fraction(1, 10)}
    with pytest.raises(InvalidParameter, match="not a released column"):
        Scheme(Fraction(1), **loss, lowest={"town": 1}).plan(SCHEMA)
    with pytest.raises(InvalidParameter, match="run from 1 to 3"):
        Scheme(Fraction(1), **loss, lowest={"zip": 0}).plan(Schema((ZIP,)))
    many = Schema(tuple(Column(f"c{n}", hierarchy=Flat(Categories(("a", "b")))) for n in range(15)))
    with pytest.raises(InvalidParameter, match="32,768 combinations"):
        Scheme(Fraction(1), **loss).plan(many)


def test_a_clear_winner_is_chosen_and_released_at_its_levels() -> None:
    """Two thousand people in each city and sex: nothing needs to be made coarser."""
    cities, sexes = ["Oslo", "Bergen", "Rome"] * 2000, ["F", "M"] * 3000
    table = Table(SCHEMA, Batches(pa.table({"city": cities, "sex": sexes})), LocalEngine())
    released = Scheme(Fraction(2), epsilon=Fraction(3), delta=DELTA, rate=Fraction(1, 10)).release(table, SystemCoins())
    assert released.counts.levels == {"city": 0, "sex": 0}
    assert released.evidence(SCHEMA.unit, private=True)["levels"] == {"city": 0, "sex": 0}
    assert int(released.counts.counts.min()) >= 8


def test_a_table_of_strangers_is_released_at_the_top() -> None:
    few = pa.table({"city": ["Oslo", "Bergen", "Rome"], "sex": ["F", "M", "F"]})
    released = SCHEME.release(Table(SCHEMA, Batches(few), LocalEngine()), SystemCoins())
    assert len(released) == 0
