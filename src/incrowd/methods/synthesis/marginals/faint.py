"""Faint classes: those that noisy counts of a single column do not show, and tails of noise at both ends of numbers.

Noisy counts and declarations alone decide (post-processing).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from incrowd.methods.synthesis.marginals.detail import tail_of
from incrowd.methods.synthesis.marginals.model import NoisyTable, Zero, ZeroTable

_ABOVE = 3.0  # standard deviations of noise; a class below that may be empty
_FAINT = 2.0  # the same for a run of classes with which a tail begins


def faint_zeros(tables: Sequence[NoisyTable], faint: Sequence[tuple[int, int]]) -> list[Zero]:
    """Return classes that were not measured above noise, as what never occurs: noisy tables alone decide.

    >>> tables = [NoisyTable((0,), np.array([90, 5]), 10.0), NoisyTable((1,), np.array([50, 45]), 10.0)]
    >>> faint_zeros(tables, [(0, 1), (1, 1)])
    [Zero(columns=(0,), classes=((1,),))]
    """
    zeros = []
    for column, code in faint:
        table = next(table for table in tables if table.columns == (column,))
        if table.counts[code] < _ABOVE * table.scale:
            zeros.append(Zero((column,), ((code,),)))
    return zeros


def evened_tails(
    tables: Sequence[NoisyTable], ordered: Sequence[tuple[int, int]]
) -> tuple[list[NoisyTable], list[Zero]]:
    """Return tables whose tails of noise are even, and the tails that are empty, their classes next to others first.

    At both ends of numbers classes that hold no more than noise share its sum, or nothing if that is below its scale:
    else the positive half of the noise of many empty classes would be drawn as numbers far from all others.

    >>> table = NoisyTable((0,), np.array([3, 400, 500, 90, 12, -30, 25]), 20.0)
    >>> evened, zeros = evened_tails([table], [(0, 7)])
    >>> evened[0].counts.tolist(), [zero.classes for zero in zeros]
    ([3, 400, 500, 90, 2, 2, 2], [((4, 5, 6),), ((0,),)])
    """
    evened, zeros = {table.columns: table for table in tables}, []
    for column, number in ordered:
        table = evened[column,]
        counts = table.counts.copy()
        for places in (np.arange(number), np.arange(number)[::-1]):
            start = tail_of(table.counts[places].astype(np.float64), table.scale, _FAINT)
            tail = places[start:]
            if 0 < start < number:
                counts[tail] = round(max(0.0, float(table.counts[tail].sum())) / len(tail))
                if table.counts[tail].sum() < table.scale * math.sqrt(len(tail)):
                    zeros.append(Zero((column,), (tuple(tail.tolist()),)))
        evened[column,] = NoisyTable((column,), counts, table.scale)
    return list(evened.values()), zeros


def harmless_zeros(faint: Sequence[Zero], declared: Sequence[ZeroTable]) -> list[Zero]:
    """Return the faint classes without which every other class can still occur beside what is declared.

    Where one could not, each of the faint ones in its table gives up its first class, until all can.

    >>> never = ZeroTable((0, 1), np.array([[False, False], [True, False]]))
    >>> harmless_zeros([Zero((1,), ((1,),))], [never]), len(harmless_zeros([Zero((0,), ((1,),))], [never]))
    ([], 1)
    """
    harmless = list(faint)
    for zero in declared:
        while _lost(zero, [item for item in harmless if item.columns[0] in zero.columns]):
            shorter = [
                Zero(item.columns, (item.classes[0][1:],)) if item.columns[0] in zero.columns else item
                for item in harmless
            ]
            harmless = [item for item in shorter if item.classes[0]]
    return harmless


def _lost(zero: ZeroTable, own: Sequence[Zero]) -> bool:
    """Whether some class that can occur cannot any more without faint ones."""
    before, after = ~zero.never, ~zero.never
    for item in own:
        np.moveaxis(after, zero.columns.index(item.columns[0]), 0)[list(item.classes[0])] = False
    for axis, column in enumerate(zero.columns):
        others = tuple(other for other in range(before.ndim) if other != axis)
        lost = np.array(before.any(axis=others) & ~after.any(axis=others))
        lost[[code for item in own if item.columns[0] == column for code in item.classes[0]]] = False
        if lost.any():
            return True
    return False
