"""Claims of several questions that were paid for as one: what all answers promise together."""

from __future__ import annotations

from dataclasses import dataclass

from incrowd.core.claims.privacy import Approximate, Pure


@dataclass(frozen=True, kw_only=True)
class PureTogether(Pure):
    """ε-differential privacy of all answers together."""

    questions: int


@dataclass(frozen=True, kw_only=True)
class ApproximateTogether(Approximate):
    """(ε, δ)-differential privacy of all answers together."""

    questions: int
