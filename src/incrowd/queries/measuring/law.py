"""NoiseLaw: what is known about the noise of one vector, whatever the rows."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

MISS = 0.05
"""Intervals miss the truth this often."""


class NoiseLaw(Protocol):
    """What is known about the noise of one vector, whatever the rows."""

    def __hash__(self) -> int:
        """Laws are values: the same law is asked the same thing once."""

    def reach(self, place: int, chance: Fraction) -> int:
        """Return an m ≥ 1 with P[x_place ≥ m] ≤ chance, never understated."""

    def within(self, place: int, miss: float) -> int:
        """Return a w with P[|x_place| > w] ≤ miss."""

    def combined(self, places: tuple[int, int], factors: tuple[float, float], miss: float) -> float:
        """Return a t with P[|a x_i + b x_j| > t] ≤ miss."""

    def together(self, miss: float) -> tuple[int, ...]:
        """Return half-widths of a box that the whole vector leaves with chance at most `miss`."""
