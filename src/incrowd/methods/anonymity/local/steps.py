"""Steps: in rounds, each on the rows that the round before could not release, rows are shown at different levels."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from incrowd.core.codec import named
from incrowd.criteria.demand import MINIMALITY
from incrowd.methods.anonymity.syntactic.steps import CutWithoutSome, groups_of

ROUNDS = (
    "rounds: a row at coarser levels than others tells that its finer class was too small, so it stands for fewer "
    "people than its labels say"
)
_AT = (
    r"in up to (\d{1,3}(?:,\d{3})*) rounds the levels with the least loss that leave at most a share of (\d+(?:/\d+)?) "
    r"to the next"
)


class SeveralLevels(StrEnum):
    """As what classes are shown."""

    LABELS = "hierarchy labels of several levels"


@dataclass(frozen=True, kw_only=True)
class CutRounds(CutWithoutSome):
    """Each round shows some rows at its levels and leaves the others to the next; some may be left out at last."""

    shown_as: SeveralLevels = named("shown as", SeveralLevels.LABELS)

    def __post_init__(self) -> None:
        super().__post_init__()
        groups_of(_AT, self.at)

    @property
    def shown(self) -> str:
        """As what a class is shown."""
        return str(self.shown_as)

    @property
    def left_open(self) -> tuple[str, ...]:
        """Which attacks the cut leaves open: that of every cut, and what rounds tell."""
        return (MINIMALITY, ROUNDS)


def in_rounds(rounds: int, left: Fraction) -> str:
    """Return which levels each round takes."""
    return f"in up to {rounds:,} rounds the levels with the least loss that leave at most a share of {left} to the next"
