"""Accuracy: what is known before a row is read about every function that changes slowly.

Scale the box to sides of length 1 and take any g with |g(x) − g(y)| ≤ L·|x − y| and |g| ≤ B.  Pair released points
with counted rows cell by cell, as many as there are of both.  A pair lies within r of each other, r being half the
diagonal of a cell for centers and the diagonal for uniform points; what is left unpaired is Δ = Σ |released − counted|
over the cells.  With N released points there are at most N pairs, so

    |Σ over points − Σ over rows| ≤ N·L·r + B·Δ,     |mean over points − mean over rows| ≤ L·r + 2·B·Δ/N,

the second because S′/N − S/n = (S′ − S)/N + (S/n)·(n − N)/N, |S| ≤ B·n and |n − N| ≤ Δ.  The pairing does not depend
on g, so this holds for all g at once.  N can be counted in what was released; the number n of rows is needed nowhere.

Only cells below k are changed.  With noise, |A(c) − c| is at most |Z|, Z two-sided geometric, because holding a number
between 0 and k − 1, where c lies, cannot take it further from c; and it is at most k − 1.  E|Z| = 1/sinh ε and
E Z² = 1/(2·sinh²(ε/2)), and cells are independent.  So E Δ ≤ cells/sinh ε, and by Cantelli's inequality Δ exceeds this
by √19 standard deviations at most 1 time in 20.  With suppression Δ is how many rows lie in cells with fewer than k:
nothing that is public bounds it but (k − 1) times the number of cells that came out empty.

Source: Gehrke, Hay, Lui & Pass 2012, Example 4, there with the number of rows in place of N.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from incrowd.mechanisms.partition import MOST_BINS
from incrowd.methods.synthesis.points.grid import PointGrid
from incrowd.methods.synthesis.points.steps import EXPECTED, LIKELY, MOVES, Placement

MOST_PHANTOMS = 10**7
"""Points that stand for nobody: with more expected than this, a release is refused."""

_DIGITS = Context(prec=9, rounding=ROUND_CEILING)
_INFLATION = 1 + 1e-12  # more than the roundings of mean and variance, so that a stated error is never too small
_LARGEST_EXPONENT = 700.0  # e^700 is a float, e^710 is not


@dataclass(frozen=True)
class Accuracy:
    """How far points move at most, in units of the box, and how many are added or lost; all of it public.

    `expected` and `likely` (which holds 19 times in 20) bound the number of points that noise adds or takes away;
    both are None for suppression, where that number depends on the rows.

    >>> Accuracy(Decimal("0.01"), Decimal(40), Decimal(60)).mean_error(10_000)
    Decimal('0.022')
    """

    reach: Decimal
    expected: Decimal | None = None
    likely: Decimal | None = None

    def mean_error(self, points: int) -> Decimal | None:
        """Return by how much the mean of a function with L = B = 1 is off at most, 19 times in 20, or None."""
        if self.likely is None or not points:
            return None
        return _DIGITS.add(self.reach, _DIGITS.divide(2 * self.likely, Decimal(points)))

    @property
    def numbers(self) -> dict[str, Decimal]:
        """The numbers as a claim states them."""
        stated = {MOVES: self.reach, EXPECTED: self.expected, LIKELY: self.likely}
        return {name: number for name, number in stated.items() if number is not None}


def accuracy(grid: PointGrid, place: Placement, k: int, epsilon: Fraction | None) -> Accuracy:
    """Return what the grid and the noise guarantee; ε is that of the noise, None for suppression.

    >>> from incrowd.core.domain import Numbers
    >>> from incrowd.core.hierarchy.slices import Slices
    >>> from incrowd.core.schema import Column, Type
    >>> age = Column("age", type=Type.INTEGER, hierarchy=Slices(Numbers(0, 99), 1))
    >>> accuracy(PointGrid.of([age], 10), Placement.CENTERS, 5, Fraction(1))
    Accuracy(reach=Decimal('0.045'), expected=Decimal('8.50918129'), likely=Decimal('23.0791591'))
    """
    reach = _root_up(grid.reach_squared(place))
    if epsilon is None:
        return Accuracy(reach)
    cells, most = Decimal(grid.size), Decimal(grid.size * (k - 1))
    wide, half = _sinh(float(epsilon)), _sinh(float(epsilon) / 2.0)
    mean, variance = 1.0 / wide, max(0.0, 0.5 / half**2 - 1.0 / wide**2)
    expected = _DIGITS.multiply(cells, Decimal(mean * _INFLATION))
    spread = _root_up(19 * grid.size * Fraction(variance * _INFLATION))
    return Accuracy(reach, min(most, expected), min(most, _DIGITS.add(expected, spread)))


def least_pieces(grid: PointGrid, place: Placement, error: Fraction) -> int:
    """Return the least s for which points move by at most `error`, whatever the pieces of the grid that is given.

    >>> from incrowd.core.domain import Numbers
    >>> from incrowd.core.hierarchy.slices import Slices
    >>> from incrowd.core.schema import Column, Type
    >>> side = Column("x", type=Type.DECIMAL, hierarchy=Slices(Numbers(0, 1, Type.DECIMAL), 1))
    >>> least_pieces(PointGrid.of([side, Column("y", type=side.type, hierarchy=side.hierarchy)], 1), Placement.CENTERS,
    ...              Fraction(1, 50))                        # √2 / (2·36) < 1/50 < √2 / (2·35)
    36
    """
    columns = [axis.column for axis in grid.axes]

    def meets(pieces: int) -> bool:
        return PointGrid.of(columns, pieces).reach_squared(place) <= error**2

    low, high = 0, 1
    while not meets(high):
        low, high = high, 2 * high  # an error that no grid reaches ends here: more than 2^20 pieces are refused
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


def phantoms(cells: int, k: int, epsilon: Fraction) -> float:
    """Return how many points noise puts on average into cells that are all empty: the most it can add.

    A cell without rows comes out with E A(0) = Σ_{0<j<k} P[Z ≥ j] = (1 − e^(−ε(k−1)))/(2·sinh ε) points.

    >>> f"{phantoms(10**10, 20, Fraction(1, 10)):.3g}"
    '4.25e+10'
    """
    return cells * -math.expm1(-float(epsilon) * (k - 1)) / (2.0 * _sinh(float(epsilon)))


def refusal(grid: PointGrid, k: int, epsilon: Fraction) -> str | None:
    """Return why a grid cannot take noise on every cell, and the ways out; None if it can."""
    cells, added = grid.size, phantoms(grid.size, k, epsilon)
    if cells <= MOST_BINS and added <= MOST_PHANTOMS:
        return None
    per_cell = added / cells
    most = min(MOST_BINS, int(MOST_PHANTOMS / per_cell)) if per_cell else MOST_BINS
    fewer = max(1, int(most ** (1 / len(grid.axes))))
    enough = math.asinh(cells / (2.0 * MOST_PHANTOMS))
    why = f"about {added:.3g} points would stand for nobody" if added > MOST_PHANTOMS else "noise is drawn cell by cell"
    out = f"an epsilon of {math.ceil(enough * 100) / 100:g} or more, " if cells <= MOST_BINS else ""
    return (
        f"this grid has {cells:.3g} cells, and noise must fall on every one of them, the empty ones too: {why}. "
        f"Leave epsilon out (cells below k are then suppressed), or ask for {out}fewer columns, or s of about {fewer}."
    )


def _sinh(x: float) -> float:
    return math.sinh(min(x, _LARGEST_EXPONENT))


def _root_up(square: Fraction) -> Decimal:
    """Return the square root to nine digits, rounded up; a root that has no more digits is exact."""
    root = Context(prec=9).sqrt(Decimal(square.numerator) / Decimal(square.denominator)) if square else Decimal(0)
    while Fraction(root) ** 2 < square:
        root = _DIGITS.next_plus(root)
    return root.normalize()
