"""Displacement: how far a mask moves the values of a column, as its published steps say."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class DistanceKind(StrEnum):
    """In what a displacement is measured."""

    DEVIATION = "standard deviations of the column"
    RANK = "shares of the rows, by rank"
    NUMBER = "the column's own numbers"
    CATEGORY = "the probability that a category changes"


@dataclass(frozen=True)
class Displacement:
    """How far published values lie from the true ones, typically; without more knowledge, 1 % of the rows by rank.

    >>> round(Displacement(DistanceKind.CATEGORY, 0.1).mismatch, 3)
    2.096
    """

    measured: DistanceKind = DistanceKind.RANK
    size: float = 0.01

    @property
    def mismatch(self) -> float:
        """How far two different categories are apart, in units of the size: by how much likelier a category stays."""
        share = min(max(self.size, 1e-9), 0.5) if self.measured is DistanceKind.CATEGORY else 0.1
        return math.sqrt(2 * math.log((1 - share) / share))
