"""Every sample of a tiny table: the exact law of two tables with samples of their own, and of two from one sample."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest
from scipy.stats import binom

from incrowd.accounting import accountant
from incrowd.core.cells import Cells
from incrowd.core.coins import Coins, Sample
from incrowd.core.domain import Categories
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import Column, Missing, Outside, Schema
from incrowd.core.table import Table
from incrowd.core.unit import Unit
from incrowd.engines.local.engine import LocalEngine
from incrowd.methods.anonymity.slicing.grouping import associations
from incrowd.methods.anonymity.slicing.method import Slicing
from incrowd.noise.system import SystemCoins
from tests.audit.auditing import Law, Trials, distance, proved_epsilon, sure_epsilon
from tests.coins import ScriptedSample, law_of
from tests.tables import Batches

SCHEMA = Schema(
    tuple(
        Column(name, hierarchy=Flat(Categories(values)), missing=Missing.DROP, outside=Outside.DROP)
        for name, values in {"sex": ("F", "M"), "zip": ("1", "2")}.items()
    )
)
RATE = Fraction(1, 2)
EPSILONS = (0.0, 0.25, 0.5, 1.0, 2.0)
Rows = tuple[tuple[str, str], ...]


class Samples(SystemCoins):
    """Coins whose samples are written down, one after the other."""

    def __init__(self, *members: frozenset[int]) -> None:
        self.members = iter(members)

    def sample(self, rate: Fraction) -> Sample:
        return ScriptedSample(rate, next(self.members))


def slicing(k: int, sample: str = "fresh") -> Slicing:
    return Slicing((("sex",), ("zip",)), delta=Fraction(9, 10), rate=RATE, k=k, sample=sample)


def table(rows: Rows) -> Table:
    columns = {name: pa.array([row[place] for row in rows], pa.string()) for place, name in enumerate(("sex", "zip"))}
    return Table(SCHEMA, Batches(pa.table(columns)), LocalEngine())


def subsets(rows: Sequence[object]) -> Iterator[frozenset[int]]:
    for members in itertools.product((False, True), repeat=len(rows)):
        yield frozenset(place for place, drawn in enumerate(members) if drawn)


def shown(method: Slicing, rows: Rows, coins: Coins) -> object:
    tables = method.release(table(rows), coins).tables
    return tuple(tuple(tuple(row.values()) for row in each.to_arrow().to_pylist()) for each in tables)


def law(method: Slicing, rows: Rows, *, shared: bool = False) -> Law:
    """Return the law of all tables together: every sample of each, or one sample for both."""
    masses: defaultdict[object, float] = defaultdict(float)
    samples = 1 if shared or method.sample == "joint" else 2
    for members in itertools.product(tuple(subsets(rows)), repeat=samples):
        drawn = members * 2 if shared else members
        masses[shown(method, rows, Samples(*drawn))] += float(RATE) ** (samples * len(rows))
    return dict(masses)


TABLES: list[Rows] = [
    (("F", "1"), ("F", "1"), ("M", "1")),
    (("F", "1"), ("F", "1"), ("F", "1"), ("F", "2")),
    (("F", "1"), ("F", "2"), ("M", "2"), ("M", "2")),
]


@pytest.mark.parametrize("sample", ["fresh", "joint"])
@pytest.mark.parametrize("rows", TABLES)
def test_the_exact_law_of_all_tables_keeps_the_claim(rows: Rows, sample: str) -> None:
    """In every direction and for every row of these tables."""
    method = slicing(2, sample)
    curve = {at: accountant.delta(method.plan(SCHEMA).guarantee.loss, repr(at)).value for at in EPSILONS}
    more = law(method, rows)
    assert math.isclose(math.fsum(more.values()), 1.0)
    for place in range(len(rows)):
        fewer = law(method, rows[:place] + rows[place + 1 :])
        for epsilon, claimed in curve.items():
            assert max(distance(more, fewer, epsilon), distance(fewer, more, epsilon)) <= claimed * (1 + 1e-9)


def test_the_exact_law_of_chosen_groups_and_their_tables_keeps_the_claim() -> None:
    """Three columns of two values: every choice, every sample of both tables, every row that can be missing."""
    schema = Schema((*SCHEMA.columns, replace(SCHEMA.columns[0], name="ill")))
    auto = Slicing("auto", delta=Fraction(9, 10), rate=RATE, k=2, choosing=Fraction(1), size=2)
    curve = {at: accountant.delta(auto.plan(schema).guarantee.loss, repr(at)).value for at in EPSILONS}
    rows = (("F", "1", "F"), ("F", "1", "M"), ("F", "2", "F"))

    def given(kept: tuple[tuple[str, ...], ...]) -> Law:
        columns = {name: pa.array([row[n] for row in kept], pa.string()) for n, name in enumerate(schema.names)}
        opened = Table(schema, Batches(pa.table(columns)), LocalEngine())
        pairs = associations(opened.engine.count(opened.rows, Cells.of(schema, {})))
        masses: defaultdict[object, float] = defaultdict(float)
        for groups, chance in law_of(
            lambda coins: auto.grouping(schema).choose(pairs, Fraction(1), Unit(), coins)
        ).items():
            named = tuple(tuple(schema.names[place] for place in group) for group in groups)
            method = Slicing(named, delta=auto.delta, rate=RATE, k=2)
            for members in itertools.product(tuple(subsets(kept)), repeat=2):
                tables = method.release(opened, Samples(*members)).tables
                seen = tuple(tuple(tuple(row.values()) for row in each.to_arrow().to_pylist()) for each in tables)
                masses[named, seen] += chance * float(RATE) ** (2 * len(kept))
        return dict(masses)

    more = given(rows)
    assert math.isclose(math.fsum(more.values()), 1.0)
    for place in range(len(rows)):
        fewer = given(rows[:place] + rows[place + 1 :])
        for epsilon, claimed in curve.items():
            assert max(distance(more, fewer, epsilon), distance(fewer, more, epsilon)) <= claimed * (1 + 1e-9)


def test_one_sample_for_both_tables_breaks_the_same_claim() -> None:
    """Four of (F, 1) and one (F, 2): more F than 1 shows the one at any epsilon."""
    method, rows = slicing(3), (*(("F", "1"),) * 4, ("F", "2"))
    more, fewer = law(method, rows, shared=True), law(method, rows[:-1], shared=True)
    betrayed = 0.5 * 11 / 16  # drawn, beside at least two of the other four
    for epsilon in (1.0, 5.0, 13.8):
        assert distance(more, fewer, epsilon) >= betrayed - 1e-9
    assert betrayed > accountant.delta(method.plan(SCHEMA).guarantee.loss, "5").value


class OneSample(SystemCoins):
    """Coins that draw the same sample again and again."""

    def __init__(self) -> None:
        self.drawn: Sample | None = None

    def sample(self, rate: Fraction) -> Sample:
        self.drawn = super().sample(rate) if self.drawn is None else self.drawn
        return self.drawn


@pytest.mark.parametrize("shared", [False, True], ids=["fresh", "shared"])
def test_an_attacker_who_compares_tables_proves_no_more_than_is_claimed_unless_they_share_a_sample(
    shared: bool,
) -> None:
    """Of twenty (F, 1) and one (F, 2): whether F is counted more often than 1.

    In one sample it is if the one is drawn beside at least five of the twenty.
    """
    method, others, trials = slicing(6), (("F", "1"),) * 20, 300

    def seen(rows: Rows) -> bool:
        first, second = method.release(table(rows), OneSample() if shared else SystemCoins()).tables
        return len(first) > len(second)

    with_you, without = (Trials.count(seen(rows) for _ in range(trials)) for rows in ((*others, ("F", "2")), others))
    claimed = accountant.delta(method.plan(SCHEMA).guarantee.loss, "1").value
    assert (proved_epsilon(with_you, without, claimed) > 1.0) is shared
    assert sure_epsilon((0.5 * float(binom.sf(4, 20, 0.5)), 0.0), trials, claimed) > 1.0
