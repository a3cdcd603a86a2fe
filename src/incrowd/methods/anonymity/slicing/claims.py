"""Blending alone: everyone has company in each table, which says nothing about two tables side by side."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.crowds import blended


@dataclass(frozen=True, kw_only=True)
class BlendingAlone(Claim):
    """(k, 0)-crowd-blending of each table alone."""

    kind = "crowd-blending, each table alone"
    rank: ClassVar[int] = 20

    k: int
    epsilon: Fraction

    @property
    def sentence(self) -> str:
        """What is claimed, for people."""
        return f"Of each table by itself: {blended(self.epsilon)} Of several tables side by side this is not said."
