"""Demands: agreement on all columns, or on every subset of so many, met one after the other until all are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from incrowd.methods.anonymity.suppression.cells import MISSING, Parts, VisibleTuples, overlaps
from incrowd.methods.anonymity.suppression.equal_rows import make_equal
from incrowd.methods.anonymity.suppression.matching_rows import count_matches, make_match

Demand = tuple[tuple[int, ...], int]
"""The columns that must agree, and in how many rows."""


@dataclass(frozen=True)
class CrowdDemand:
    """How many rows must agree: k in all columns, so many in every subset of a size; and whether missing matches.

    >>> list(CrowdDemand(5, {1: 9}).over(2))
    [((0,), 9), ((1,), 9), ((0, 1), 5)]
    """

    k: int
    subsets: Mapping[int, int]
    wild: bool = False

    def over(self, columns: int) -> Iterator[Demand]:
        """Yield the columns that must agree, and in how many rows; the fewest columns first."""
        for size in sorted(self.subsets):
            if size < columns and self.subsets[size] > 1:
                yield from ((chosen, self.subsets[size]) for chosen in combinations(range(columns), size))
        k = max(self.k, *(rows for size, rows in self.subsets.items() if size == columns), 1)
        if k > 1:
            yield tuple(range(columns)), k


@dataclass(frozen=True, eq=False)
class SuppressedTuples:
    """What becomes of tuples: for each piece the tuple it comes from, what it shows, and how many rows it has."""

    origins: NDArray[np.intp]
    shown: VisibleTuples

    def price(self, before: VisibleTuples, weights: NDArray[np.float64]) -> float:
        """Return what the cells cost that are left out."""
        newly = (self.shown.codes == MISSING) & (before.codes[:, self.origins] != MISSING)
        return float(((weights @ newly) * self.shown.rows).sum())


def suppress_cells(shown: VisibleTuples, crowded: CrowdDemand, weights: NDArray[np.float64]) -> SuppressedTuples | None:
    """Leave out cells until every demand is met; None if there are fewer rows than some demand asks for.

    Where missing cells are values, rows that agree in all columns agree in every subset: so the largest of the numbers,
    asked of all columns, is another way to meet all demands, and the cheaper one is taken.
    """
    columns = len(shown.codes)
    demands = list(crowded.over(columns))
    most = max((rows for _, rows in demands), default=1)
    if shown.total < most:
        return None
    found = [_walked(shown, demands, weights, wild=crowded.wild)]
    if len(demands) > 1 and not crowded.wild:
        found.append(_walked(shown, [(tuple(range(columns)), most)], weights, wild=False))
    return min(found, key=lambda pieces: pieces.price(shown, weights))


def _walked(
    shown: VisibleTuples, demands: Sequence[Demand], weights: NDArray[np.float64], *, wild: bool
) -> SuppressedTuples:
    """Meet one demand after the other, again and again until all are met.

    Cells are only ever left out, so this ends: with nothing shown, every demand is met.  Where missing cells match,
    meeting one demand breaks no other.
    """
    pieces, again = SuppressedTuples(np.arange(len(shown)), shown), True
    while again:
        again = False
        for columns, k in demands:
            chosen = np.zeros(len(shown.codes), np.bool_)
            chosen[list(columns)] = True
            met = _met(pieces, (chosen, k), weights, wild=wild)
            again |= met is not pieces
            pieces = met
    return pieces


def _met(
    pieces: SuppressedTuples, demand: tuple[NDArray[np.bool_], int], weights: NDArray[np.float64], *, wild: bool
) -> SuppressedTuples:
    """Return pieces that meet one demand, the same ones if they do already."""
    columns, k = demand
    codes = pieces.shown.codes
    columns = columns & (codes.min(axis=1) < codes.max(axis=1))  # what all rows show alike tells nobody apart
    ids, rows = pieces.shown.alike(columns)
    first = np.zeros(len(rows), np.intp)
    first[ids] = np.arange(len(ids))
    over = VisibleTuples(codes[:, first][columns], rows)
    if rows.min() >= k or (wild and count_matches(over, k).min() >= k):
        return pieces
    parts = (make_match if wild else make_equal)(over, k, weights[columns])
    return _cut(pieces, ids, columns, parts)


def _cut(pieces: SuppressedTuples, ids: NDArray[np.intp], columns: NDArray[np.bool_], parts: Parts) -> SuppressedTuples:
    """Return the pieces that parts of their classes over some columns make of them."""
    order = np.argsort(ids, kind="stable")
    piece, part, rows = overlaps(pieces.shown.rows[order], parts.rows)
    piece = order[piece]
    codes = pieces.shown.codes[:, piece]
    codes[columns] = np.where(parts.blank[part].T, MISSING, codes[columns])
    return SuppressedTuples(pieces.origins[piece], VisibleTuples(codes, rows))
