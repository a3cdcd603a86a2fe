"""Real histograms with real coins: no count proves more than the claim, and broken copies are caught.

Bins are independent, so one release of a table with thousands of bins shows thousands of outputs of one bin.
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
from incrowd.methods.crowds.parameters import Target
from incrowd.methods.histograms.blending import BlendedHistogram, SuppressedHistogram
from incrowd.methods.histograms.private import PrivateHistogram
from incrowd.methods.outcomes.histogram import Histogram
from incrowd.noise.system import SystemCoins
from tests.audit.auditing import Trials, proved_epsilon
from tests.tables import Batches

CELLS = 40_000
NAMES = tuple(f"{n:05d}" for n in range(CELLS))
BIN = Column("bin", Role.QUASI, hierarchy=Flat(Categories(NAMES)), missing=Missing.DROP, outside=Outside.DROP)
SCHEMA = Schema((BIN,))
HALF, ONE = Fraction(1, 2), Fraction(1)
EPSILON = 0.75

Releasing = Callable[[int], Histogram]
Seen = NDArray[np.int64]
Candidate = tuple[Seen, Seen, np.ufunc, int]


def crowds(n: int) -> Table:
    """Return a table with n rows in each bin."""
    codes = np.tile(np.arange(CELLS, dtype=np.int32), n)
    column = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(NAMES))
    return Table(SCHEMA, Batches(pa.table({"bin": column}), 1 << 18), LocalEngine())


def blended(n: int) -> Histogram:
    asked = BlendedHistogram(epsilon=ONE, k=3, rate=HALF, target=Target(HALF), flag=True)
    return asked.release(crowds(n), SystemCoins())


def suppressed(n: int) -> Histogram:
    return SuppressedHistogram(k=3, rate=HALF, target=Target(HALF)).release(crowds(n), SystemCoins())


def private(n: int) -> Histogram:
    return PrivateHistogram(epsilon=Fraction(3, 4)).release(crowds(n), SystemCoins())


def events(outcome: Histogram) -> Seen:
    """Return what is seen of each bin: its count, moved far away where it is marked as exact."""
    return outcome.counts + (1000 * outcome.exact if outcome.exact is not None else 0)


def proved(release: Releasing, n: int, delta: float) -> float:
    """Return what the most telling event proves about one person in a bin of n.

    The event is chosen on half of the bins and tested on the others, so that choosing it costs no certainty.
    """
    laws = events(release(n)), events(release(n - 1))
    candidates = [
        (one, other, chosen, value)
        for one, other in (laws, laws[::-1])
        for value in np.unique(np.concatenate(laws)).tolist()
        for chosen in (np.equal, np.greater_equal, np.less_equal)
    ]

    def told(candidate: Candidate, half: slice) -> float:
        one, other, chosen, value = candidate
        with_you, without = (Trials.count(chosen(each[half], value).tolist()) for each in (one, other))
        return proved_epsilon(with_you, without, delta)

    best = max(candidates, key=lambda each: told(each, slice(0, CELLS // 2)))
    return told(best, slice(CELLS // 2, CELLS))


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_blended_counts_on_a_sample_prove_no_more_than_the_claim(n: int) -> None:
    promise = BlendedHistogram(epsilon=ONE, k=3, rate=HALF, target=Target(HALF)).guarantee(SCHEMA)
    assert proved(blended, n, accountant.delta(promise.loss, repr(EPSILON)).value) <= EPSILON


def test_suppressed_counts_on_a_sample_prove_no_more_than_the_claim() -> None:
    promise = SuppressedHistogram(k=3, rate=HALF, target=Target(HALF)).guarantee(SCHEMA)
    assert proved(suppressed, 4, accountant.delta(promise.loss, repr(EPSILON)).value) <= EPSILON


@pytest.mark.parametrize("n", [1, 4])
def test_private_counts_prove_their_epsilon_and_no_more(n: int) -> None:
    found = proved(private, n, 0.0)
    assert 0.8 * EPSILON < found <= EPSILON


def test_a_copy_that_spares_empty_bins_the_noise_is_caught() -> None:
    def spared(n: int) -> Histogram:
        return blended(n) if n else suppressed(0)

    promise = BlendedHistogram(epsilon=ONE, k=3, rate=HALF, target=Target(HALF)).guarantee(SCHEMA)
    assert proved(spared, 1, accountant.delta(promise.loss, repr(EPSILON)).value) > EPSILON + 1


def test_a_copy_with_half_the_noise_is_caught() -> None:
    def louder(n: int) -> Histogram:
        return PrivateHistogram(epsilon=Fraction(3, 2)).release(crowds(n), SystemCoins())

    assert proved(louder, 1, 0.0) > EPSILON
