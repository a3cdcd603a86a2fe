"""Scores: what a candidate recoding would keep of the table, as a whole number that one row moves a little.

The worth of a recoding is the sum over its cells of (what a row in that cell keeps of its details) · (how many of its
rows sampled suppression is expected to keep).  The first factor is public: one minus the loss of the cell's labels,
which the declared hierarchies fix.  The second is a table of whole steps (`ExpectedRows`).

A row lies in one cell of each recoding.  Adding it raises that cell's count by one, hence the worth by at most
DETAIL · most, and never lowers it: scores are monotone, with sensitivity DETAIL · most for each row of a person.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from incrowd.core.counts import Counts
from incrowd.core.recoding import Classes
from incrowd.mechanisms.numbers import WIDEST
from incrowd.quality.ladder import class_losses

FINENESS = 2**16
"""How many steps one expected row has."""
_SETTLED = 1e-12  # probabilities of suppression below this change no digit of a score


@dataclass(frozen=True, eq=False)
class ExpectedRows:
    """The steps by which the n-th row of a cell raises what is kept of it; after the last one they stay the same.

    The table is public: it follows from k and the rate.  It is close to the expectation of what sampled suppression
    keeps of n rows, E[X·1{X ≥ k}] for X ~ Bin(n, rate), but nothing about privacy hangs on how close, since scores are
    made of these whole steps and `most` is their true maximum.
    """

    steps: NDArray[np.int64]

    @property
    def most(self) -> int:
        """The most that one row can add."""
        return int(self.steps.max())

    def of(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what is kept of cells with so many rows, in whole steps; it never falls in the count.

        >>> kept = expected_rows(5, Fraction(1, 2))
        >>> kept.of(np.array([0, 4, 5, 100])).tolist()[:2]
        [0, 0]
        >>> bool(abs(kept.of(np.array([100]))[0] / FINENESS - 50) < 0.1)
        True
        """
        sums = np.concatenate(([0], np.cumsum(self.steps)))
        inside = np.minimum(counts, len(self.steps))
        return sums[inside] + (counts - inside) * int(self.steps[-1])


@lru_cache(maxsize=64)
def expected_rows(k: int, rate: Fraction, fineness: int = FINENESS) -> ExpectedRows:
    """Return the steps of sampled suppression below k at a rate, `fineness` of which are one expected row.

    One row more in a cell of n − 1 is sampled with chance β = rate.  Beside B ~ Bin(n − 1, β) others it then adds 1 if
    B ≥ k, and k if B = k − 1, where it saves the whole cell: β·(P[B ≥ k] + k·P[B = k − 1]) in expectation.
    """
    from scipy.stats import binom

    beta, steps, size = float(rate), np.zeros(0), max(64, int(4 * k / float(rate)))
    while True:
        others = np.arange(size)
        rarely = binom.cdf(k - 1, others, beta)
        steps = beta * (1.0 - rarely + k * binom.pmf(k - 1, others, beta))
        if rarely[-1] < _SETTLED:
            break
        size *= 2
    settled = int(np.argmax(rarely < _SETTLED)) + 1
    whole = np.floor(fineness * steps[:settled]).astype(np.int64)
    whole[-1] = int(fineness * rate)
    return ExpectedRows(whole)


DETAIL = 2**12
"""How finely a cell's details are measured."""
_LOW = 32  # sums of halves of 32 bits do not wrap for up to 2³¹ products
Details = dict[tuple[str, int, int], NDArray[np.int64]]


def scores(
    counts: Counts,
    choices: Mapping[str, Sequence[int]],
    expected: ExpectedRows,
    importance: Mapping[str, Fraction] = MappingProxyType({}),
) -> NDArray[np.int64]:
    """Return the worth of every combination of levels, the last column's changing fastest.

    `counts` are those of all rows at levels no higher than any choice; a column that is not in `choices` stays.
    The details of a column count in proportion to its `importance`, 1 by default: the shares of all columns sum to 1,
    so that one row moves a worth by no more than without.
    """
    names = [classes.recoding.column.name for classes in counts.classes]
    total = sum((importance.get(name, Fraction(1)) for name in names), Fraction(0))
    shares = {name: importance.get(name, Fraction(1)) / total for name in names}
    details: Details = {}
    worths = [
        min(score(rolled, expected, details, shares), WIDEST) for rolled in _rolled(counts, list(choices), choices)
    ]
    return np.array(worths, np.int64)


def _rolled(counts: Counts, names: list[str], choices: Mapping[str, Sequence[int]]) -> Iterator[Counts]:
    """Return the counts at every combination, each rolled up from a finer one."""
    if not names:
        yield counts
        return
    first, *others = names
    for level in choices[first]:
        counts = counts.rollup({first: level}) if counts.levels[first] != level else counts
        yield from _rolled(counts, others, choices)


def score(
    counts: Counts,
    expected: ExpectedRows,
    details: Details | None = None,
    shares: Mapping[str, Fraction] = MappingProxyType({}),
) -> int:
    """Return the worth of one recoding, exactly; `details` remembers those of a column's levels from call to call.

    >>> from fractions import Fraction
    >>> from incrowd.core.domain import Categories
    >>> from incrowd.core.hierarchy.flat import Flat
    >>> from incrowd.core.recoding import Recoding
    >>> from incrowd.core.schema import Column
    >>> sexes = Recoding(Column("sex", hierarchy=Flat(Categories(("F", "M")))), 0).classes
    >>> counts = Counts((sexes,), np.array([0, 1]), np.array([50, 2]))
    >>> fine, coarse = (score(each, expected_rows(5, Fraction(1, 2))) for each in (counts, counts.rollup({"sex": 1})))
    >>> fine > 0, coarse                              # `*` keeps every row and no detail
    (True, 0)
    """
    cached: Details = {} if details is None else details
    detail = np.zeros(len(counts), np.int64)
    for classes, codes in zip(counts.classes, counts.codes(), strict=True):
        place = (classes.recoding.column.name, classes.recoding.level, len(classes))
        if place not in cached:
            share = shares.get(place[0], Fraction(1, len(counts.classes)))
            parts = (int(whole) * share.numerator // share.denominator for whole in details_of(classes))
            cached[place] = np.fromiter(parts, np.int64)
        detail += cached[place][codes]
    products = detail * expected.of(counts.counts)
    high, low = int((products >> _LOW).sum()), int((products & (2**_LOW - 1)).sum())  # no sum wraps
    return (high << _LOW) + low


def details_of(classes: Classes) -> NDArray[np.int64]:
    """Return what a row keeps of its details in each class, from the declaration alone."""
    recoding = classes.recoding
    hierarchy = recoding.column.hierarchy
    if recoding.level and not recoding.top and (recoding.classes is None or hierarchy.leaves(recoding.level) is None):
        losses = np.full(
            len(classes), recoding.level / hierarchy.height
        )  # nothing declared says how much it stands for
    else:
        losses = class_losses(classes)
    return np.floor(DETAIL * (1.0 - losses)).astype(np.int64)
