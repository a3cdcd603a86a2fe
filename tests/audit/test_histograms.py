"""Real histograms with real coins: no count proves more than the claim, and broken copies are caught.

Bins are independent, if they are not clamped, so one release of a table with thousands of bins shows thousands of
outputs of one bin.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from incrowd.accounting import accountant
from incrowd.core.domain import Categories
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import Column, Missing, Outside, Role, Schema
from incrowd.core.table import Table
from incrowd.engines.local.engine import LocalEngine
from incrowd.methods.histograms.blended import BlendedHistogram
from incrowd.methods.histograms.private import PrivateHistogram
from incrowd.methods.histograms.suppressed import SuppressedHistogram
from incrowd.methods.shared.outcome import Histogram
from incrowd.noise.system import SystemCoins
from tests.audit.auditing import Events, shifted
from tests.tables import Batches

CELLS = 20_000
NAMES = tuple(f"{n:05d}" for n in range(CELLS))
BIN = Column("bin", Role.QUASI, hierarchy=Flat(Categories(NAMES)), missing=Missing.DROP, outside=Outside.DROP)
SCHEMA = Schema((BIN,))
HALF, ONE = Fraction(1, 2), Fraction(1)
EPSILON = 0.75
EXACT = 1000
EVENTS = Events([*range(-3, 9), *range(EXACT, EXACT + 9)])

Releasing = Callable[[int], Histogram]
Seen = NDArray[np.int64]


def crowds(n: int) -> Table:
    """Return a table with n rows in each bin."""
    codes = np.tile(np.arange(CELLS, dtype=np.int32), n)
    column = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(NAMES))
    return Table(SCHEMA, Batches(pa.table({"bin": column}), 1 << 18), LocalEngine())


def blended(n: int) -> Histogram:
    asked = BlendedHistogram(noise_epsilon=ONE, k=3, rate=HALF, delta=HALF, flag=True)
    return asked.release(crowds(n), SystemCoins())


def suppressed(n: int) -> Histogram:
    return SuppressedHistogram(k=3, rate=HALF, delta=HALF).release(crowds(n), SystemCoins())


def private(n: int) -> Histogram:
    return PrivateHistogram(epsilon=Fraction(3, 4), clamp=False).release(crowds(n), SystemCoins())


def events(outcome: Histogram) -> Seen:
    """Return what is seen of each bin: its count, moved far away where it is marked as exact."""
    return outcome.counts + (EXACT * outcome.exact if outcome.exact is not None else 0)


def proved(release: Releasing, n: int, delta: float) -> float:
    """Return what the most telling event proves about one person in a bin of n."""
    return EVENTS.proved(events(release(n)).tolist(), events(release(n - 1)).tolist(), delta)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_blended_counts_on_a_sample_prove_no_more_than_the_claim(n: int) -> None:
    guarantee = BlendedHistogram(noise_epsilon=ONE, k=3, rate=HALF, delta=HALF).plan(SCHEMA).guarantee
    assert proved(blended, n, accountant.delta(guarantee.loss, repr(EPSILON)).value) <= EPSILON


def test_suppressed_counts_on_a_sample_prove_no_more_than_the_claim() -> None:
    guarantee = SuppressedHistogram(k=3, rate=HALF, delta=HALF).plan(SCHEMA).guarantee
    assert proved(suppressed, 4, accountant.delta(guarantee.loss, repr(EPSILON)).value) <= EPSILON


@pytest.mark.parametrize("n", [1, 4])
def test_private_counts_prove_their_epsilon_and_no_more(n: int) -> None:
    sure = EVENTS.sure(shifted(1, 1 / EPSILON), CELLS)
    assert 0.75 * EPSILON < sure <= proved(private, n, 0.0) <= EPSILON


def test_a_copy_that_spares_empty_bins_the_noise_is_caught() -> None:
    """Noise is added to 1 or, outside the sample, to 0: something is shown with chance 1/2, and without you nothing."""

    def spared(n: int) -> Histogram:
        return blended(n) if n else suppressed(0)

    guarantee = BlendedHistogram(noise_epsilon=ONE, k=3, rate=HALF, delta=HALF).plan(SCHEMA).guarantee
    delta = accountant.delta(guarantee.loss, repr(EPSILON)).value
    assert proved(spared, 1, delta) >= EVENTS.sure((0.5, 0.0), CELLS, delta) > EPSILON + 1


def test_a_copy_with_half_the_noise_is_caught() -> None:
    def louder(n: int) -> Histogram:
        return PrivateHistogram(epsilon=Fraction(3, 2), clamp=False).release(crowds(n), SystemCoins())

    assert proved(louder, 1, 0.0) >= EVENTS.sure(shifted(1, 0.5 / EPSILON), CELLS) > EPSILON
