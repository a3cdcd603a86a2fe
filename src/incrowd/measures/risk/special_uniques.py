"""Special uniques: rows that few columns single out, and which columns do it.

A set of columns is a *minimal sample unique* of a row if the row is unique in it, and in no smaller set among them.
With M columns, one of k columns adds (M − k)! to the row's score: the number of ways in which the others can be added
one by one, all of them unique too.  A row that has a twin has none, and scores 0.

Sets are visited from the smaller to the larger.  A row that is unique in a set is unique in every larger one, and no
other row shares its values there: so each set is counted only over rows that are unique in none of its parts.

Source: Elliot, Manning & Ford 2002; Manning, Haglin & Keane 2008 (SUDA2); Skinner & Elliot 2002 for DIS.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from incrowd.core.keys import Codes, Layout, ranked
from incrowd.core.rounding import Number, exact
from incrowd.errors import InvalidParameter
from incrowd.measures.score import Score

_SETS = 2**13  # of columns that are tried: their number doubles with each column
_DENSE = 8  # a dense table is used up to eight times the rows: beyond it is mostly empty
_DIS_MEANS = (
    "probability that a match with a unique row of the sample is right, if each person was sampled with the given "
    "probability"
)


@dataclass(frozen=True, eq=False)
class SpecialUniques:
    """The result of SUDA: scores by row, how many minimal uniques of each size there are, what columns contribute.

    `contributions` is the share of all scores that comes from minimal uniques with a column in them; since a set has
    several columns, they add up to more than one.  `largest` is the size of the largest sets that were visited.
    """

    scores: NDArray[np.float64]
    by_size: tuple[int, ...]
    contributions: NDArray[np.float64]
    largest: int

    @property
    def rows(self) -> int:
        """How many rows some of the columns single out."""
        return int(np.count_nonzero(self.scores))


def special_uniques(columns: Sequence[NDArray[np.integer]], largest: int | None = None) -> SpecialUniques:
    """Return the scores of all rows, from codes column by column.

    Without a `largest` size of sets, all sizes are visited as long as there are at most 8,192 sets.

    >>> rows = np.array([[0, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 1, 0]])
    >>> special_uniques(list(rows.T)).scores.tolist()
    [2.0, 2.0, 2.0, 12.0, 0.0, 0.0]
    """
    if not columns:
        raise InvalidParameter("special uniques need at least one column.")
    m, n = len(columns), len(columns[0])
    top = _largest(m) if largest is None else min(m, largest)
    scores, by_column, by_size = np.zeros(n), np.zeros(m), [0] * top
    for members, minimal in _minimal(columns, top):
        worth = float(math.factorial(m - len(members)))
        scores[minimal] += worth
        by_column[list(members)] += worth * len(minimal)
        by_size[len(members) - 1] += len(minimal)
    total = float(scores.sum())
    return SpecialUniques(scores, tuple(by_size), by_column / total if total else by_column, top)


def _largest(m: int) -> int:
    """Return the largest size for which the number of sets stays within the limit."""
    sets = np.cumsum([math.comb(m, size) for size in range(1, m + 1)])
    return max(1, int(np.searchsorted(sets, _SETS, side="right")))


def _minimal(columns: Sequence[NDArray[np.integer]], top: int) -> Iterator[tuple[tuple[int, ...], NDArray[np.intp]]]:
    """Yield each set of columns with the rows that it singles out and no part of it does."""
    ranks = [ranked(column) for column in columns]
    codes, sizes = [column for column, _ in ranks], [size for _, size in ranks]
    alone: dict[tuple[int, ...], NDArray[np.bool_]] = {(): np.zeros(len(columns[0]), np.bool_)}
    for size in range(1, top + 1):
        single_rows = {}
        for members in combinations(range(len(columns)), size):
            below = np.logical_or.reduce([alone[part] for part in combinations(members, size - 1)])
            open_rows = np.flatnonzero(~below)
            single = _single([codes[place][open_rows] for place in members], [sizes[place] for place in members])
            minimal = open_rows[single]
            yield members, minimal
            below[minimal] = True
            single_rows[members] = below
        alone = single_rows


def _single(columns: list[Codes], sizes: list[int]) -> NDArray[np.bool_]:
    """Return which rows have a tuple of their own."""
    layout, rows = Layout(tuple(sizes)), len(columns[0])
    keys = layout.pack(columns)
    if layout.size <= _DENSE * rows + 1024:
        return np.asarray(np.bincount(keys, minlength=1)[keys] == 1) if rows else np.zeros(0, np.bool_)
    order = np.argsort(keys)
    ranked = keys[order]
    differs = np.concatenate(([True], ranked[1:] != ranked[:-1], [True]))
    single = np.zeros(rows, np.bool_)
    single[order] = differs[1:] & differs[:-1]
    return single


def data_intrusion(uniques: int, pairs: int, sampled: Number) -> Score:
    """Return how often a unique match is right, from the numbers of unique rows and of classes of two.

    Source: Skinner & Elliot 2002: π·n₁ / (π·n₁ + 2(1 − π)·n₂).

    >>> data_intrusion(4, 1, "1/100").value == 2 / 101
    True
    """
    pi = exact(sampled, "the share of the population that was sampled")
    if not 0 < pi <= 1 or min(uniques, pairs) < 0:
        raise InvalidParameter("the share of the population that was sampled must be above 0 and at most 1.")
    right, wrong = pi * uniques, 2 * (1 - pi) * pairs
    value = right / (right + wrong) if right + wrong else Fraction(0)
    return Score("data intrusion", float(value), _DIS_MEANS)
