"""Claims of several questions that were paid for as one: what all answers promise together."""

from __future__ import annotations

from dataclasses import dataclass

from incrowd.core.claims.privacy import ApproximatePrivacy, PurePrivacy


@dataclass(frozen=True, kw_only=True)
class PureTogether(PurePrivacy):
    """ε-differential privacy of all answers together."""

    questions: int


@dataclass(frozen=True, kw_only=True)
class ApproximateTogether(ApproximatePrivacy):
    """(ε, δ)-differential privacy of all answers together."""

    questions: int
