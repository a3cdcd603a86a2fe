"""Drawing: a secret sample in which everyone has the chance that an own column says."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from incrowd.core.cells import Cells
from incrowd.core.counts import Counts
from incrowd.core.domain import Type
from incrowd.core.recoding import Recoding
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema


def with_chances(cells: Cells, schema: Schema, column: str) -> Cells:
    """Return the cells split by the column of chances, or refuse a column that holds no numbers.

    >>> from incrowd.core.schema import Column, Role, Schema
    >>> schema = Schema((Column("sex"), Column("chance", Role.IDENTIFIER, Type.DECIMAL)))
    >>> with_chances(Cells.of(schema, {}), schema, "chance").names
    ('sex', 'chance')
    """
    chance = schema[column]
    if chance.type is not Type.DECIMAL:
        raise InvalidParameter(f"the column {column!r} holds chances of being drawn: declare it with type: decimal.")
    if chance.name in cells.names:
        raise InvalidParameter(
            f"the column {column!r} holds chances of being drawn and would be released: make its role identifier."
        )
    return Cells((*cells.recodings, Recoding(chance, 0)))


def drawn(counts: Counts, low: Fraction, high: Fraction, coins: Coins) -> Counts:
    """Return how many rows of each cell a secret sample keeps; the last column is everyone's chance, which goes.

    A chance above 0 but outside [low, high] is moved to the nearer end, and a row without one, or with a chance of 0,
    is not drawn: both are decided by the row alone.  Rows that agree in all columns and in their chance are
    interchangeable, so tossing as many exact coins as there are of them draws each by a coin of its own.
    """
    *columns, _ = counts.names
    chances, codes = counts.classes[-1].values().to_pylist(), counts.codes()[-1]
    kept = np.zeros(len(counts), np.int64)
    for place in range(len(counts)):
        value = chances[codes[place]]
        if value is not None and 0 < float(value) < np.inf:
            chance = min(max(Fraction(value), low), high)
            kept[place] = int(coins.bernoulli(chance, int(counts.counts[place])).sum())
    return replace(counts, counts=kept).marginal(columns)
