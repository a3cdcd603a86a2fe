"""Information: quality models that measure in bits."""

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
    MergingMeasure,
    Quality,
    Rungs,
    counted_by_code,
    shares_of_weights,
)
from incrowd.quality.tuples import Tuples

Logs = NDArray[np.float64]


@dataclass(frozen=True)
class NonUniformEntropy(Quality):
    """Non-uniform entropy: the bits needed to recover the values from the labels, over all rows, mean over columns.

    A row whose value occurs n times under a label that occurs m times costs log(m/n).  Suppressed rows then lose their
    labels too: the entropy of the labels among them, once for each.  The first part depends on one column at a time and
    m only grows, which gives the bound; the second is never negative.

    Source: De Waal & Willenborg 1999; Gionis & Tassa 2009; with the factor and the weights of ARX.
    """

    factor: Number = "0.5"
    weights: Mapping[str, Number] = field(default_factory=dict)

    def __post_init__(self) -> None:
        Factors.of(self.factor)

    def over(self, ladders: Sequence[Ladder], tuples: Tuples) -> Measure:
        factors, parts = Factors.of(self.factor), shares_of_weights(self.weights, ladders)
        steps = []
        for ladder, counted, part in zip(ladders, counted_by_code(ladders, tuples), parts, strict=True):
            met = counted > 0
            totals = [np.bincount(rise, counted)[rise] for rise in ladder.rises]
            bits = [float((counted[met] * np.log2(total[met] / counted[met])).sum()) for total in totals]
            steps.append(part * factors.generalized * np.array(bits))
        return _Entropy(tuple(steps), tuple(ladders), parts * factors.suppressed)


@dataclass(frozen=True)
class Divergence(Quality):
    """Kullback–Leibler divergence, in bits, from the table to what a reader infers from the release.

    A reader spreads each class evenly over the tuples it could stand for, and the suppressed rows over all tuples.
    With P the share of a class and A its number of tuples the divergence is Σ p log p − Σ P log(P/A).  When classes
    merge, or are suppressed, their tuples are disjoint parts of those of the result, so by the log-sum inequality
    Σ P log(P/A) falls: the divergence without suppression bounds that of every coarser node, and its own with it.

    Source: Machanavajjhala, Gehrke, Kifer & Venkitasubramaniam 2006; Kifer & Gehrke 2006.
    """

    def over(self, ladders: Sequence[Ladder], tuples: Tuples) -> Measure:
        shares = tuples.sizes[tuples.sizes > 0] / max(1, tuples.rows)
        zeros = tuple(np.zeros(len(ladder)) for ladder in ladders)
        return _Spread(zeros, _widths(ladders, tuples), tuples.rows, float((shares * np.log2(shares)).sum()))


@dataclass(frozen=True, eq=False)
class _Entropy(Measure):
    steps: tuple[NDArray[np.float64], ...]
    ladders: tuple[Ladder, ...]
    parts: NDArray[np.float64]

    def score(self, rungs: Rungs, tuples: Tuples, retained: Mask) -> float:
        bits = self.least(rungs, tuples)
        gone, sizes = tuples.codes[:, ~retained], tuples.sizes[~retained]
        if not len(sizes):
            return bits
        for ladder, rung, codes, part in zip(self.ladders, rungs, gone, self.parts, strict=True):
            labels = np.bincount(ladder.rises[rung][codes], sizes)
            labels = labels[labels > 0]
            bits += float(part * (labels * np.log2(labels.sum() / labels)).sum())
        return bits


@dataclass(frozen=True, eq=False)
class _Spread(MergingMeasure):
    widths: tuple[tuple[Logs, ...], ...]
    rows: int
    negentropy: float

    def score(self, rungs: Rungs, tuples: Tuples, retained: Mask) -> float:
        shares = tuples.sizes[retained] / max(1, self.rows)
        areas = _areas(self.widths, rungs, tuples.codes[:, retained])
        read = float((shares * (np.log2(shares) - areas)).sum())
        lost = float(tuples.sizes[~retained].sum()) / max(1, self.rows)
        if lost > 0:
            read += lost * (np.log2(lost) - _everything(self.widths))
        return self.negentropy - float(read)


def _widths(ladders: Sequence[Ladder], tuples: Tuples) -> tuple[tuple[Logs, ...], ...]:
    """Return for each column and rung the log of how many values a row's label stands for, by its lowest code.

    Values outside the domain, and missing ones, are one value each, if they occur.
    """
    widths = []
    for ladder, counted in zip(ladders, counted_by_code(ladders, tuples), strict=True):
        values = np.ones(len(counted))
        ordinary = len(ladder.classes[0].marks)
        values[ordinary:] = counted[ordinary:] > 0
        totals = [np.bincount(rise, values)[rise] for rise in ladder.rises]
        widths.append((*(np.log2(np.maximum(total, 1.0)) for total in totals), np.array([np.log2(values.sum())])))
    return tuple(widths)


def _areas(widths: Sequence[Sequence[Logs]], rungs: Rungs, codes: NDArray[np.int32]) -> Logs:
    areas: Logs = np.zeros(codes.shape[1])
    for column, rung, column_codes in zip(widths, rungs, codes, strict=True):
        areas += column[rung][column_codes]
    return areas


def _everything(widths: Sequence[Sequence[Logs]]) -> float:
    return sum(float(column[-1][0]) for column in widths)
