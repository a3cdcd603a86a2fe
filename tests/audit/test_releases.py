"""Real releases with real coins: no output proves more than the claim, and every broken copy is caught.

Cells are independent, so one release of a table with thousands of cells shows thousands of outputs of one cell.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pytest

from incrowd.core.coins import Coins
from incrowd.core.counts import Counts
from incrowd.core.domain import Categories
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.hierarchy.text import Prefix
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.table import Table
from incrowd.core.unit import Kind, Unit
from incrowd.engines.local.engine import LocalEngine
from incrowd.methods.anonymity.safe import Safe
from incrowd.methods.shared.microdata import Microdata
from incrowd.noise.system import SystemCoins
from tests.audit.auditing import Claim, Trials, proved_epsilon, published, sure_epsilon, worst_crowd
from tests.audit.broken import FreshSamples, NoSample, OneLess, OneSampleForTwo, SizeTold, TwiceTheRate
from tests.statistics.alarm import FALSE_ALARM, binomial_p_value
from tests.tables import Batches

CELLS = 50_000
NAMES = tuple(f"{n:05d}x" for n in range(CELLS)) + tuple(f"{n:05d}y" for n in range(CELLS))
MANY = Schema((Column("cell", Role.QUASI, hierarchy=Prefix(Categories(NAMES), (5,))),))
ONE = Schema((Column("cell", Role.QUASI, hierarchy=Flat(Categories(("a",)))),))
HALF = Fraction(1, 2)
CLAIMS = [Claim(2, HALF, 0.05), Claim(2, HALF, 0.2), Claim(3, HALF, 0.1), Claim(3, HALF, 0.3), Claim(3, HALF, 1.0)]


class Releasing(Protocol):
    def release(self, table: Table, coins: Coins) -> Any: ...


def safe(claim: Claim, level: int = 0) -> Safe:
    return Safe({"cell": level}, delta=HALF, rate=claim.rate, k=claim.k)


def crowds(n: int, alone: int = 0) -> Table:
    """Return a table in which n rows are in each cell x, and so many in each cell y."""
    cells = np.concatenate([np.tile(np.arange(CELLS), n), np.tile(np.arange(CELLS) + CELLS, alone)])
    column = pa.DictionaryArray.from_arrays(pa.array(cells.astype(np.int32)), pa.array(NAMES))
    return Table(MANY, Batches(pa.table({"cell": column}), 1 << 18), LocalEngine())


def counts_of(method: Releasing, n: int) -> list[int]:
    """Return the published count of every cell x; 0 where it is suppressed."""
    released = method.release(crowds(n), SystemCoins())
    return by_block(released.counts if isinstance(released, Microdata) else released, 0)


def by_block(counts: Counts, level: int) -> list[int]:
    shown = np.zeros(CELLS if level else 2 * CELLS, np.int64)
    shown[counts.codes()[0]] = counts.counts
    return [int(count) for count in shown[:CELLS]]


def proved(method: Releasing, claim: Claim, n: int, threshold: int) -> float:
    """What counts of at least `threshold` in crowds of n and of n − 1 prove."""
    with_you = Trials.count(count >= threshold for count in counts_of(method, n))
    without = Trials.count(count >= threshold for count in counts_of(method, n - 1))
    return proved_epsilon(with_you, without, claim.delta)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"k={claim.k},epsilon={claim.epsilon}")
def test_the_worst_case_of_the_theory_proves_no_more_than_the_claim_and_not_much_less(claim: Claim) -> None:
    n, event = worst_crowd(claim)
    with_you = Trials.count(map(event, counts_of(safe(claim), n)))
    without = Trials.count(map(event, counts_of(safe(claim), n - 1)))
    assert proved_epsilon(with_you, without, claim.delta) <= claim.epsilon
    if claim.epsilon <= 0.3:
        chances = [sum(mass for count, mass in published(claim, m).items() if event(count)) for m in (n, n - 1)]
        sure = sure_epsilon((chances[0], chances[1]), CELLS, 0.7 * claim.delta)
        assert proved_epsilon(with_you, without, 0.7 * claim.delta) >= sure
        assert sure > claim.epsilon, "the audit is too weak to see a delta that is a third too small"


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"k={claim.k},epsilon={claim.epsilon}")
def test_no_crowd_and_no_threshold_proves_more_than_the_claim(claim: Claim) -> None:
    sizes = (claim.k - 1, claim.k, claim.k + 1, 2 * claim.k + 1)
    events = sum(1 + len(range(claim.k, n + 1)) for n in sizes)
    for n in sizes:
        shown = counts_of(safe(claim), n), counts_of(safe(claim), n - 1)
        for threshold in range(claim.k, n + 1):
            one, other = (Trials.count(count >= threshold for count in counts) for counts in shown)
            assert proved_epsilon(one, other, claim.delta, events) <= claim.epsilon
        one, other = (Trials.count(count == 0 for count in counts) for counts in reversed(shown))
        assert proved_epsilon(one, other, claim.delta, events) <= claim.epsilon


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"k={claim.k},epsilon={claim.epsilon}")
def test_a_copy_without_a_sample_is_caught(claim: Claim) -> None:
    assert proved(safe(claim), claim, claim.k, claim.k) <= claim.epsilon
    sure = sure_epsilon((1.0, 0.0), CELLS, claim.delta)
    assert proved(NoSample(safe(claim)), claim, claim.k, claim.k) >= sure > claim.epsilon + 1


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"k={claim.k},epsilon={claim.epsilon}")
def test_a_copy_that_suppresses_below_k_minus_1_is_caught(claim: Claim) -> None:
    assert proved(safe(claim), claim, claim.k - 1, claim.k - 1) <= claim.epsilon
    sure = sure_epsilon((float(claim.rate) ** (claim.k - 1), 0.0), CELLS, claim.delta)
    assert proved(OneLess(safe(claim)), claim, claim.k - 1, claim.k - 1) >= sure > claim.epsilon + 1


@pytest.mark.parametrize("k", [2, 3])
def test_a_copy_that_samples_twice_as_much_is_caught(k: int) -> None:
    claim = Claim(k, Fraction(1, 4), 1.0)
    assert proved(safe(claim), claim, k, k) <= claim.epsilon
    sure = sure_epsilon((float(2 * claim.rate) ** k, 0.0), CELLS, claim.delta)
    assert proved(TwiceTheRate(safe(claim)), claim, k, k) >= sure > claim.epsilon + 1


def differences(method: Releasing, alone: int) -> Trials:
    """How often a coarse and a fine release of blocks of twenty rows x, and perhaps one y, differ by one."""
    coarse, fine = method.release(crowds(20, alone), SystemCoins())
    pairs = zip(by_block(coarse, 1), by_block(fine, 0), strict=True)
    return Trials.count(fine > 0 and coarse - fine == 1 for coarse, fine in pairs)


def test_two_releases_from_one_sample_are_caught() -> None:
    """They differ by one if the one y is in the sample, beside at least three of the twenty x."""
    claim = Claim(3, HALF, 1.0)
    both, epsilon = 2 * claim.delta, 2 * claim.epsilon
    coarse, fine = safe(claim, 1), safe(claim, 0)
    honest, shared = FreshSamples(coarse, fine), OneSampleForTwo(coarse, fine)
    assert proved_epsilon(differences(honest, 1), differences(honest, 0), both) <= epsilon
    sure = sure_epsilon((0.5 * (1 - published(claim, 20)[0]), 0.0), CELLS, both)
    assert proved_epsilon(differences(shared, 1), differences(shared, 0), both) >= sure > epsilon + 1


def test_a_sample_whose_size_is_told_is_caught() -> None:
    claim = Claim(2, HALF, 0.5)
    tables = [Table(ONE, Batches(pa.table({"cell": pa.array(["a"] * n, pa.string())})), LocalEngine()) for n in (1, 0)]
    leaking, real = SizeTold(safe(claim)), safe(claim)
    one, other = (Trials.count(leaking.release(table, SystemCoins())[1] >= 1 for _ in range(1000)) for table in tables)
    assert proved_epsilon(one, other, claim.delta) >= sure_epsilon((0.5, 0.0), 1000, claim.delta) > claim.epsilon + 1
    one, other = (Trials.count(len(real.release(table, SystemCoins())) >= 1 for _ in range(1000)) for table in tables)
    assert proved_epsilon(one, other, claim.delta) <= claim.epsilon


def test_a_person_with_many_rows_is_sampled_no_more_often_than_one_with_a_single_row() -> None:
    """In each cell five rows of one person and one of another: a row chosen after sampling would show both at 31/64."""
    cells = 4_000
    schema = Schema((Column("id", Role.IDENTIFIER), *MANY.columns), Unit(Kind.PERSON, column="id"))
    owners = [f"{n}{who}" for who in ("me", "me", "you", "me", "me", "me") for n in range(cells)]
    table = pa.table({"id": owners, "cell": NAMES[:cells] * 6})
    released = safe(Claim(2, HALF, 0.5)).release(Table(schema, Batches(table), LocalEngine()), SystemCoins()).counts
    assert set(released.counts.tolist()) == {2}
    assert binomial_p_value(len(released), cells, 0.25) > FALSE_ALARM
    assert binomial_p_value(round(cells * 31 / 64), cells, 0.25) < FALSE_ALARM


def test_the_auditor_is_calibrated() -> None:
    """Randomized response with epsilon 1 is what it is: the bound is below 1, and near it."""
    chance = np.random.default_rng(1)
    truth = math.e / (1 + math.e)
    yes, no = (Trials.count(chance.random(CELLS) < p) for p in (truth, 1 - truth))
    assert 0.9 < proved_epsilon(yes, no, 0.0) <= 1.0
    assert proved_epsilon(no, yes, 0.0) < 0
    assert proved_epsilon(Trials(0, 10), Trials(0, 10), 0.1) == -math.inf
    assert Trials(10, 10).most() == 1.0
