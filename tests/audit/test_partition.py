"""Every tree and every sample of a tiny table: the exact law of a partition's release, and what an attacker proves."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

from incrowd.accounting import accountant
from incrowd.core.cells import Cells
from incrowd.core.coins import Coins, Sample
from incrowd.core.domain import Categories, Numbers, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.loss import Sequence
from incrowd.core.schema import Column, Missing, Outside, Role, Schema
from incrowd.core.table import Table
from incrowd.core.unit import Unit
from incrowd.engines.local.engine import LocalEngine
from incrowd.methods.anonymity.mondrian.pieces import TupleGrid
from incrowd.methods.anonymity.partition.boxes import Box
from incrowd.methods.anonymity.partition.method import PrivatePartition, fill_boxes
from incrowd.noise.system import SystemCoins
from tests.audit.auditing import Law, Trials, distance, proved_epsilon, sure_epsilon
from tests.coins import ScriptedSample, law_of
from tests.statistics.alarm import FALSE_ALARM
from tests.tables import Batches

SCHEMA = Schema(
    (
        Column("n", Role.QUASI, Type.INTEGER, Flat(Numbers(0, 2)), missing=Missing.DROP),
        Column(
            "ill", Role.SENSITIVE, hierarchy=Flat(Categories(("a", "b"))), missing=Missing.DROP, outside=Outside.DROP
        ),
    )
)
RATE = Fraction(1, 2)
Rows = tuple[tuple[int, str], ...]


def partition(k: int) -> PrivatePartition:
    return PrivatePartition(Fraction(1), delta=Fraction(1, 2), rate=RATE, k=k, depth=1, least=2)


def table(rows: Rows) -> Table:
    columns = {
        "n": pa.array([str(n) for n, _ in rows], pa.string()),
        "ill": pa.array([i for _, i in rows], pa.string()),
    }
    return Table(SCHEMA, Batches(pa.table(columns)), LocalEngine())


def law(method: PrivatePartition, rows: Rows) -> Law:
    """Return the law of the release: that of the boxes, times that of what each sample shows in them."""
    axes, given = method.axes(SCHEMA), table(rows)
    counts = given.engine.count(given.rows, Cells.of(SCHEMA, {}, ["n"]))
    grid = TupleGrid.of(axes, counts.codes(), counts.counts)

    def boxes(coins: Coins) -> tuple[Box, ...]:
        return method.growth(Unit()).leaves(grid, coins)

    masses: defaultdict[object, float] = defaultdict(float)
    for leaves, chance in law_of(boxes, reach=6).items():
        for members in itertools.product((False, True), repeat=len(rows)):
            inside = frozenset(place for place, drawn in enumerate(members) if drawn)
            sample = given.engine.count(given.rows, Cells.of(SCHEMA, {}), ScriptedSample(RATE, inside))
            shown = fill_boxes(sample, axes, leaves, method.parameters(Unit()).k).to_arrow().to_pylist()
            outcome = (leaves, tuple(sorted(tuple(row.values()) for row in shown)))
            masses[outcome] += chance * float(RATE) ** len(rows)
    return dict(masses)


TABLES: list[Rows] = [
    ((0, "a"), (0, "a"), (1, "a")),
    ((0, "a"), (1, "a"), (2, "a"), (2, "a")),
    ((0, "a"), (0, "b"), (2, "b"), (2, "b")),
]


@pytest.mark.parametrize("rows", TABLES)
def test_the_exact_law_of_boxes_and_rows_keeps_the_claim(rows: Rows) -> None:
    method = partition(2)
    loss = method.plan(SCHEMA).guarantee.loss
    more = law(method, rows)
    assert math.isclose(math.fsum(more.values()), 1.0)
    curve = {epsilon: accountant.delta(loss, repr(epsilon)).value for epsilon in (0.25, 0.5, 1.0, 2.0)}
    for place in range(len(rows)):
        fewer = law(method, rows[:place] + rows[place + 1 :])
        for epsilon, claimed in curve.items():
            assert max(distance(more, fewer, epsilon), distance(fewer, more, epsilon)) <= claimed * (1 + 1e-9)


def test_the_composed_curve_is_at_most_that_of_the_sum_rule() -> None:
    """(ε₁ + ε, δ(ε)) is a valid claim; the accountant's is never worse."""
    method = partition(3)
    both = method.plan(SCHEMA).guarantee.loss
    assert isinstance(both, Sequence)
    single = both.parts[1]
    for epsilon in (0.5, 1.0, 2.0):
        assert accountant.delta(both, repr(1 + epsilon)).value <= accountant.delta(single, repr(epsilon)).value * (
            1 + 1e-9
        )


def test_the_law_at_a_choice_that_is_too_loud_is_caught() -> None:
    """A partition whose cuts cost more than they claim breaks the same check."""
    loud, quiet = PrivatePartition(Fraction(12), delta=Fraction(1, 2), rate=RATE, k=3, depth=1, least=4), partition(3)
    rows: Rows = ((0, "a"), (0, "a"), (2, "a"), (2, "a"))
    more, fewer = law(loud, rows), law(loud, rows[:-1])
    claimed = accountant.delta(quiet.plan(SCHEMA).guarantee.loss, "2").value
    assert max(distance(more, fewer, 2.0), distance(fewer, more, 2.0)) > claimed


class EveryRow(SystemCoins):
    """Coins that put every row into the sample."""

    def sample(self, rate: Fraction) -> Sample:
        return ScriptedSample(rate, frozenset(range(10)))


@pytest.mark.parametrize(("coins", "caught"), [(SystemCoins(), False), (EveryRow(), True)], ids=["real", "no sample"])
def test_the_real_release_proves_no_more_than_it_claims_and_one_without_a_sample_does(
    coins: Coins, caught: bool
) -> None:
    method, trials = PrivatePartition(Fraction(1, 4), delta=Fraction(3, 10), rate=RATE, k=2, depth=1, least=4), 60

    def seen(rows: Rows) -> Trials:
        given = table(rows)
        return Trials.count(len(method.release(given, coins)) >= 2 for _ in range(trials))

    found, claimed = (
        proved_epsilon(seen(((0, "a"),) * 2), seen(((0, "a"),)), 0.3),
        float(method.plan(SCHEMA).numbers["epsilon"]),
    )
    assert (found > claimed) is caught
    assert sure_epsilon((1.0, 0.0), trials, 0.3) > claimed  # two equal rows are in one box, and both are shown


def test_boxes_that_are_released_hold_at_least_k_of_each_tuple() -> None:
    chance = np.random.default_rng(3)
    rows: Rows = tuple(
        (int(n), str(i)) for n, i in zip(chance.integers(0, 3, 200), chance.choice(["a", "b"], 200), strict=True)
    )
    hidden = math.prod(binom.cdf(7, count, 0.5) for count in Counter(rows).values())  # a box holds whole tuples
    assert hidden < FALSE_ALARM
    outcome = PrivatePartition(Fraction(2), delta=Fraction(1, 100), rate=RATE, k=8, depth=2, least=10).release(
        table(rows), SystemCoins()
    )
    assert len(outcome) > 0
    assert outcome.counts.min() >= 8
    assert outcome.quasi == ("n", "ill")
