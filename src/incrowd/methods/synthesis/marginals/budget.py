"""Budget: how a concentrated budget is divided among tables and choices, before and while they are made.

One unit moves a table by at most `reach` in Euclidean norm, squared, and a score by at most `move`: a row that is added
or removed by 1 and 1, one that is replaced by √2 and 2, a person with r rows by r times that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from incrowd.core.unit import Adjacency, Unit
from incrowd.errors import InvalidParameter

_FINE = 2**20
EVALUATION = Fraction(1, 100)
"""The share of the budget for saying how good the result is."""


@dataclass(frozen=True)
class Reach:
    """How far one unit moves what is measured: the squared norm of a table, and a score."""

    table: int
    score: int

    @classmethod
    def of(cls, unit: Unit) -> Reach:
        """Return the reach of a unit.

        >>> Reach.of(Unit())
        Reach(table=1, score=1)
        """
        twice = 2 if unit.adjacency is Adjacency.REPLACE else 1
        return cls(twice * unit.max_rows**2, twice * unit.max_rows)


def gaussian_scale(rho: Fraction, tables: int, reach: Reach) -> Fraction:
    """Return the scale with which so many tables cost at most ρ together, rounded up.

    >>> float(gaussian_scale(Fraction("0.0149730576735885"), 9, Reach(1, 1)) / 10).__round__(3)
    1.734
    """
    if rho <= 0:
        raise InvalidParameter("nothing is left of the budget for a table.")
    return Fraction(math.isqrt(math.ceil(tables * reach.table * _FINE**2 / (2 * rho))) + 1, _FINE)


def choice_epsilon(rho: Fraction, choices: int) -> Fraction:
    """Return the ε with which so many choices by the exponential mechanism cost at most ρ together, rounded down.

    Source: Rogers & Steinke 2021: the exponential mechanism with ε is ε²/8-zero-concentrated.
    """
    return Fraction(math.isqrt(math.floor(8 * rho * _FINE**4 / choices)), _FINE**2)


def table_rho(scale: Fraction, reach: Reach, tables: int = 1) -> Fraction:
    """Return what so many tables with Gaussian noise cost."""
    return tables * reach.table / (2 * scale**2)


def choice_rho(epsilon: Fraction) -> Fraction:
    """Return what a choice by the exponential mechanism costs."""
    return epsilon**2 / 8


@dataclass(frozen=True)
class Shares:
    """How a budget ρ is divided: first tables of single columns, rounds of a choice and a table each, an evaluation.

    >>> shares = Shares.of(Fraction("0.0149730576735885"), 9, 16, Reach(1, 1))
    >>> [round(float(each), 4) for each in (shares.first, shares.scale, shares.epsilon)]
    [55.0977, 25.8125, 0.0258]
    """

    rho: Fraction
    first: Fraction
    scale: Fraction
    epsilon: Fraction

    @property
    def spendable(self) -> Fraction:
        """What tables and choices may cost in all."""
        return (1 - EVALUATION) * self.rho

    @classmethod
    def of(cls, rho: Fraction, columns: int, rounds: int, reach: Reach, one: Fraction = Fraction(1, 10)) -> Shares:
        """Divide a budget: a share `one` for single columns, a tenth of the rest for choices."""
        for_tables = (1 - EVALUATION) * rho
        rest = (1 - one) * for_tables
        return cls(
            rho,
            gaussian_scale(one * for_tables, columns, reach),
            gaussian_scale(rest * Fraction(9, 10) / rounds, 1, reach),
            choice_epsilon(rest / 10 / rounds, 1),
        )


def last_round(left: Fraction, reach: Reach) -> tuple[Fraction, Fraction]:
    """Return scale and ε of a round that spends what is left."""
    return gaussian_scale(left * Fraction(9, 10), 1, reach), choice_epsilon(left / 10, 1)
