"""Budget: how a concentrated budget is divided among tables and choices, before and while they are made.

One unit moves a table by at most `reach` in Euclidean norm, squared, and a score by at most `move`: a row that is added
or removed by 1 and 1, one that is replaced by √2 and 2, a person with r rows by r times that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from incrowd.core.unit import Adjacency, Unit
from incrowd.errors import InvalidParameter

_FINE = 2**20  # scales are rounded up, and ε down, to multiples of 2⁻²⁰ or 2⁻⁴⁰, so that ρ is kept
EVALUATION = Fraction(1, 100)
"""The share of the budget for saying how good the result is; where each table is told of, as much again for those."""

DETAIL = Fraction(1, 20)
"""The share of the budget for values inside classes, where any are drawn."""


PATTERNS = Fraction(2, 5)
"""The part of that for days of the week, round numbers and distances, where any are counted."""


MANY_CLASSES = 48
"""A column with more classes gets a finer table of its own, and those that it does not show are taken together."""


class ErrorScope(StrEnum):
    """Of what errors are told: of all pairs on average, or of each table of the workload besides."""

    PAIRS = "pairs"
    TABLES = "tables"

    @property
    def share(self) -> Fraction:
        """The share of the budget that telling them costs."""
        return 2 * EVALUATION if self is ErrorScope.TABLES else EVALUATION


@dataclass(frozen=True)
class Sensitivity:
    """How far one unit moves what is measured: the squared norm of a table, and a score."""

    table: int
    score: int

    @classmethod
    def of(cls, unit: Unit) -> Sensitivity:
        """Return the reach of a unit.

        >>> Sensitivity.of(Unit())
        Sensitivity(table=1, score=1)
        """
        twice = 2 if unit.adjacency is Adjacency.REPLACE else 1
        return cls(twice * unit.max_rows**2, twice * unit.max_rows)


def gaussian_scale(rho: Fraction, tables: int, reach: Sensitivity) -> Fraction:
    """Return the scale with which so many tables cost at most ρ together, rounded up.

    >>> float(gaussian_scale(Fraction("0.0149730576735885"), 9, Sensitivity(1, 1)) / 10).__round__(3)
    1.734
    """
    if rho <= 0:
        raise InvalidParameter("nothing is left of the budget for a table.")
    return Fraction(math.isqrt(math.ceil(tables * reach.table * _FINE**2 / (2 * rho))) + 1, _FINE)


def single_scales(scale: Fraction, sizes: Sequence[int], reach: Sensitivity) -> tuple[Fraction, ...]:
    """Return the scale of each single column, all together at the cost of one scale for all.

    Where a column has many classes, each costs as the root of its classes: noise in many cells adds up.

    >>> [round(float(own)) for own in single_scales(Fraction(30), (900, 9, 4), Sensitivity(1, 1))]
    [19, 59, 72]
    >>> single_scales(Fraction(30), (40, 2), Sensitivity(1, 1))
    (Fraction(30, 1), Fraction(30, 1))
    """
    if max(sizes, default=0) <= MANY_CLASSES:
        return (scale,) * len(sizes)
    rho, roots = table_rho(scale, reach, len(sizes)), list(map(math.isqrt, sizes))
    return tuple(gaussian_scale(rho * root / sum(roots), 1, reach) for root in roots)


def choice_epsilon(rho: Fraction, choices: int) -> Fraction:
    """Return the ε with which so many choices by the exponential mechanism cost at most ρ together, rounded down.

    Source: Rogers & Steinke 2021: the exponential mechanism with ε is ε²/8-zero-concentrated.
    """
    return Fraction(math.isqrt(math.floor(8 * rho * _FINE**4 / choices)), _FINE**2)


def table_rho(scale: Fraction, reach: Sensitivity, tables: int = 1) -> Fraction:
    """Return what so many tables with Gaussian noise cost."""
    return tables * reach.table / (2 * scale**2)


def choice_rho(epsilon: Fraction) -> Fraction:
    """Return what a choice by the exponential mechanism costs."""
    return epsilon**2 / 8


@dataclass(frozen=True)
class Shares:
    """How what is spendable of a budget ρ is divided: tables of single columns, rounds of a choice and a table each.

    >>> shares = Shares.of(Fraction("0.0149730576735885"), 9, 16, Sensitivity(1, 1))
    >>> [round(float(each), 4) for each in (shares.first, shares.scale, shares.epsilon)]
    [54.8215, 25.6831, 0.026]
    """

    spendable: Fraction
    first: Fraction
    scale: Fraction
    epsilon: Fraction

    @classmethod
    def of(
        cls, rho: Fraction, columns: int, rounds: int, reach: Sensitivity, one: Fraction = Fraction(1, 10)
    ) -> Shares:
        """Divide a budget: a share `one` for single columns, a tenth of the rest for choices."""
        rest = (1 - one) * rho
        return cls(
            rho,
            gaussian_scale(one * rho, columns, reach),
            gaussian_scale(rest * Fraction(9, 10) / rounds, 1, reach),
            choice_epsilon(rest / 10 / rounds, 1),
        )


def last_round(left: Fraction, reach: Sensitivity) -> tuple[Fraction, Fraction]:
    """Return scale and ε of a round that spends what is left."""
    return gaussian_scale(left * Fraction(9, 10), 1, reach), choice_epsilon(left / 10, 1)
