"""Moves: how far one unit of privacy moves a sum over rows, and the noise that costs no more than a budget.

If one row adds a vector of length at most c, a unit of r rows that is added or removed moves the sum by r · c.  A unit
that is replaced moves it by the difference of two such sums: at most 2 r · c, and √2 r · c where any two contributions
have an angle of at most 90° (counts, and products of vectors with themselves).
"""

from __future__ import annotations

import math
from fractions import Fraction

from incrowd.core.unit import Adjacency, Unit
from incrowd.errors import InvalidParameter

_FINE = 2**20  # scales are rounded up to multiples of 2⁻²⁰, so that ρ is kept


def squared_move(unit: Unit, square: int, *, aligned: bool) -> int:
    """Return the squared distance that a unit moves a sum of vectors, each of at most this squared length.

    >>> squared_move(Unit(), 5, aligned=True)
    5
    >>> squared_move(Unit(adjacency=Adjacency.REPLACE), 5, aligned=False)
    20
    """
    replaced = 1 if unit.adjacency is Adjacency.ADD_REMOVE else 2 if aligned else 4
    return replaced * unit.max_rows**2 * square


def summed_move(unit: Unit, tables: int) -> int:
    """Return by how much a unit changes the counts of so many tables, all changes added up."""
    return (1 if unit.adjacency is Adjacency.ADD_REMOVE else 2) * unit.max_rows * tables


def gaussian_scale(rho: Fraction, square: int | Fraction) -> Fraction:
    """Return a scale, rounded up, with which a vector that moves by this squared distance costs at most ρ.

    >>> gaussian_scale(Fraction(1, 200), 1) >= 10
    True
    """
    if rho <= 0:
        raise InvalidParameter("nothing is left of the budget for a statistic.")
    return Fraction(math.isqrt(math.ceil(square * _FINE**2 / (2 * rho))) + 1, _FINE)


def gaussian_rho(scale: Fraction, square: int) -> Fraction:
    """Return what Gaussian noise of a scale costs on a vector that moves by this squared distance."""
    return square / (2 * scale**2)
