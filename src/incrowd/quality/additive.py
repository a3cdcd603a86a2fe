"""Additive: quality models in which every row pays for each column separately: loss, precision and height."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from incrowd.core.rounding import Number
from incrowd.quality.ladder import Ladder
from incrowd.quality.quality import (
    Factors,
    Mask,
    Measure,
    Quality,
    Rows,
    Rungs,
    Surcharges,
    counted_by_code,
    shares_of_weights,
)
from incrowd.quality.tuples import Tuples

Prices = Sequence[Sequence[NDArray[np.float64]]]
"""For each column and rung what a row pays, by its code at the lowest rung."""


@dataclass(frozen=True, eq=False)
class Additive(Measure):
    """What a released row pays for each column and rung, and how much more a suppressed one pays.

    The score is the mean over the rows.  The payment of all rows without suppression depends on one column at a time,
    so it is a sum of `bases`; only suppressed classes are computed again.

    Soundness of the bounds: a row pays at least the smaller of its two prices, which gives `steps`; prices of released
    rows never fall from rung to rung, and what a suppressed row pays more never rises.  All rows of a class pay alike.
    So if a finer node suppresses at least n rows of a class, whichever, each pays there at least as much more as the
    row of the class that pays least there, and no less than here: `surcharges` are bounds there, unless some row pays
    less for being suppressed; then they are 0.
    """

    bases: tuple[NDArray[np.float64], ...]
    steps: tuple[NDArray[np.float64], ...]
    more: tuple[tuple[NDArray[np.float64], ...], ...]
    least_more: tuple[tuple[NDArray[np.float64], ...], ...]
    rows: int
    never_negative: bool

    @classmethod
    def of(cls, released: Prices, suppressed: Prices, ladders: Sequence[Ladder], tuples: Tuples) -> Additive:
        """Return the measure with these prices for a row that is released, and for one that is not."""
        counted, rows = counted_by_code(ladders, tuples), max(1, tuples.rows)
        bases = tuple(
            np.array([float((c * p).sum()) for p in column]) for c, column in zip(counted, released, strict=True)
        )
        pairs = [list(zip(*both, strict=True)) for both in zip(released, suppressed, strict=True)]
        least = [
            [
                float((c * np.minimum(released_price, suppressed_price)).sum())
                for released_price, suppressed_price in column
            ]
            for c, column in zip(counted, pairs, strict=True)
        ]
        more = tuple(
            tuple(suppressed_price - released_price for released_price, suppressed_price in column) for column in pairs
        )
        negative = any((part < 0).any() for column in more for part in column)
        steps = tuple(np.maximum.accumulate(np.array(column)) / rows for column in least)
        below = tuple(_least_more(ladder, column) for ladder, column in zip(ladders, more, strict=True))
        return cls(tuple(base / rows for base in bases), steps, more, below, rows, not negative)

    def score(self, rungs: Rungs, tuples: Tuples, retained: Mask) -> float:
        base = sum(float(column[rung]) for column, rung in zip(self.bases, rungs, strict=True))
        return base + self._surcharge(rungs, tuples, retained)

    def surcharges(self, rungs: Rungs, tuples: Tuples, lost: Rows) -> Surcharges:
        gone = np.flatnonzero(lost)
        if not len(gone) or not self.never_negative:
            return super().surcharges(rungs, tuples, lost)
        shares = lost[gone] / self.rows
        columns = zip(self.least_more, rungs, tuples.codes, strict=True)
        return tuple(
            more[rung] @ np.bincount(codes[gone], shares, more[rung].shape[1]) for more, rung, codes in columns
        )

    def _surcharge(self, rungs: Rungs, tuples: Tuples, retained: Mask) -> float:
        gone = np.flatnonzero(~retained)
        if not len(gone):
            return 0.0
        extra = np.zeros(len(gone))
        for more, rung, codes in zip(self.more, rungs, tuples.codes, strict=True):
            extra += more[rung][codes[gone]]
        return float((extra * tuples.sizes[gone]).sum()) / self.rows


def _least_more(ladder: Ladder, more: Sequence[NDArray[np.float64]]) -> tuple[NDArray[np.float64], ...]:
    """Return for each rung a table: by each lower rung and lowest code, the least of all that share the code's label.

    Whichever rows of a class are suppressed at a lower rung, each pays so much more there.
    """
    tables = []
    for rung, rise in enumerate(ladder.rises):
        least = np.full((rung + 1, int(rise.max(initial=0)) + 1), np.inf)
        for lower in range(rung + 1):
            np.minimum.at(least[lower], rise, more[lower])
        tables.append(least[:, rise])
    return tuple(tables)


@dataclass(frozen=True)
class WeightedQuality(Quality):
    """A quality with a factor, which weighs generalization against suppression, and a weight for each column."""

    factor: Number = "0.5"
    weights: Mapping[str, Number] = field(default_factory=dict)

    def __post_init__(self) -> None:
        Factors.of(self.factor)


@dataclass(frozen=True)
class Loss(WeightedQuality):
    """Loss: the mean over rows and columns of the share of the column's values that a label could stand for.

    A released row pays g·(n − 1)/(N − g) in a column where its label stands for n of N values, and a suppressed row 1:
    with factor 1/2, where g = 1, that is 0 for a value and 1 for `*`.  Below one half, a suppressed row pays only the
    part s of what is left: λ + s·(1 − λ).

    Source: Iyengar 2002, the general loss metric, normalized, with the factor and the weights of ARX.

    >>> Loss(factor="0.5").weights
    {}
    """

    def over(self, ladders: Sequence[Ladder], tuples: Tuples) -> Additive:
        factors, parts = Factors.of(self.factor), shares_of_weights(self.weights, ladders)
        released, suppressed = [], []
        for ladder, part in zip(ladders, parts, strict=True):
            spared = 1.0 / ladder.domain if ladder.domain > 1 else 0.0
            scale = factors.generalized * (1.0 - spared) / (1.0 - factors.generalized * spared)
            left = [losses + factors.suppressed * (1.0 - losses) for losses in ladder.losses]
            released.append([part * scale * losses for losses in ladder.losses])
            suppressed.append(
                [np.full(len(losses), part) if factors.suppressed == 1.0 else part * losses for losses in left]
            )
        return Additive.of(released, suppressed, ladders, tuples)


@dataclass(frozen=True)
class Precision(WeightedQuality):
    """Precision lost: the mean over rows and columns of the level over the height of the hierarchy; 1 if suppressed.

    Source: Sweeney 2002, the precision metric, subtracted from 1; with the factor and the weights of ARX.
    """

    def over(self, ladders: Sequence[Ladder], tuples: Tuples) -> Additive:
        factors, parts = Factors.of(self.factor), shares_of_weights(self.weights, ladders)
        released, suppressed = [], []
        for ladder, part in zip(ladders, parts, strict=True):
            codes = len(ladder.rises[0])
            heights = [level / ladder.height for level in ladder.levels]
            released.append([np.full(codes, part * factors.generalized * height) for height in heights])
            suppressed.append([np.full(codes, part * factors.suppressed) for _ in heights])
        return Additive.of(released, suppressed, ladders, tuples)


@dataclass(frozen=True)
class Height(Quality):
    """Height: the sum of the levels; suppressed rows cost nothing.

    Source: Samarati 2001, the height of a generalization.
    """

    weights: Mapping[str, Number] = field(default_factory=dict)

    def over(self, ladders: Sequence[Ladder], tuples: Tuples) -> Additive:
        parts = shares_of_weights(self.weights, ladders) * len(ladders)
        prices = [
            [np.full(len(ladder.rises[0]), part * level) for level in ladder.levels]
            for ladder, part in zip(ladders, parts, strict=True)
        ]
        return Additive.of(prices, prices, ladders, tuples)
