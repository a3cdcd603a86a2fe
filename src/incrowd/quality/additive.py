"""Additive: quality models in which every row pays for every column on its own: loss, precision and height."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from incrowd.core.rounding import Number
from incrowd.quality.ladder import Ladder
from incrowd.quality.quality import Factors, Kept, Measure, Quality, Rungs, counted_by_code, shares_of_weights
from incrowd.quality.tuples import Tuples

Prices = Sequence[Sequence[NDArray[np.float64]]]
"""For each column and rung what a row pays, by its code at the lowest rung."""


@dataclass(frozen=True, eq=False)
class Additive(Measure):
    """What a released row pays for each column and rung, and how much more a suppressed one pays.

    The score is the mean over the rows.  What all rows pay as if none were suppressed depends on one column at a time,
    so it is a sum of `bases`; only suppressed classes are looked at again.

    Soundness of the bounds: a row pays at least the smaller of its two prices, which gives `steps`; prices of released
    rows never fall from rung to rung, and what a suppressed row pays more never rises.  If a finer node suppresses the
    rows S of this one and perhaps more, each row of S pays there at least as much more as here, so `surcharge` is a
    bound there, unless some row pays less for being suppressed; then it is 0.
    """

    bases: tuple[NDArray[np.float64], ...]
    steps: tuple[NDArray[np.float64], ...]
    surcharges: tuple[tuple[NDArray[np.float64], ...], ...]
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
            [float((c * np.minimum(kept, gone)).sum()) for kept, gone in column]
            for c, column in zip(counted, pairs, strict=True)
        ]
        surcharges = tuple(tuple(gone - kept for kept, gone in column) for column in pairs)
        negative = any((part < 0).any() for column in surcharges for part in column)
        steps = tuple(np.maximum.accumulate(np.array(column)) / rows for column in least)
        return cls(tuple(base / rows for base in bases), steps, surcharges, rows, not negative)

    def score(self, rungs: Rungs, tuples: Tuples, kept: Kept) -> float:
        """Return the mean over the rows."""
        base = sum(float(column[rung]) for column, rung in zip(self.bases, rungs, strict=True))
        return base + self._surcharge(rungs, tuples, kept)

    def surcharge(self, rungs: Rungs, tuples: Tuples, kept: Kept) -> float:
        """Return what suppressed rows pay more, or 0 where some pay less."""
        return self._surcharge(rungs, tuples, kept) if self.never_negative else 0.0

    def _surcharge(self, rungs: Rungs, tuples: Tuples, kept: Kept) -> float:
        gone = np.flatnonzero(~kept)
        if not len(gone):
            return 0.0
        each = np.zeros(len(gone))
        for surcharges, rung, codes in zip(self.surcharges, rungs, tuples.codes, strict=True):
            each += surcharges[rung][codes[gone]]
        return float((each * tuples.sizes[gone]).sum()) / self.rows


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
        """Return the loss of one table's generalizations."""
        factors, parts = Factors.of(self.factor), shares_of_weights(self.weights, ladders)
        released, suppressed = [], []
        for ladder, part in zip(ladders, parts, strict=True):
            spared = 1.0 / ladder.domain if ladder.domain > 1 else 0.0
            scale = factors.generalized * (1.0 - spared) / (1.0 - factors.generalized * spared)
            left = [losses + factors.suppressed * (1.0 - losses) for losses in ladder.losses]
            released.append([part * scale * losses for losses in ladder.losses])
            suppressed.append([np.full(len(each), part) if factors.suppressed == 1.0 else part * each for each in left])
        return Additive.of(released, suppressed, ladders, tuples)


@dataclass(frozen=True)
class Precision(WeightedQuality):
    """Precision lost: the mean over rows and columns of the level over the height of the hierarchy; 1 if suppressed.

    Source: Sweeney 2002, the precision metric, subtracted from 1; with the factor and the weights of ARX.
    """

    def over(self, ladders: Sequence[Ladder], tuples: Tuples) -> Additive:
        """Return the precision that one table's generalizations lose."""
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
        """Return the height of one table's generalizations."""
        parts = shares_of_weights(self.weights, ladders) * len(ladders)
        prices = [
            [np.full(len(ladder.rises[0]), part * level) for level in ladder.levels]
            for ladder, part in zip(ladders, parts, strict=True)
        ]
        return Additive.of(prices, prices, ladders, tuples)
