"""Steps: in rounds, each on the rows that the round before could not release, rows are shown at different levels."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from incrowd.core.terms import Exposure
from incrowd.core.words import counted
from incrowd.criteria.demand import MINIMALITY
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.syntactic.steps import CutWithoutSome, require_share

ROUNDS = Exposure(
    "rounds",
    "rounds: a row at coarser levels than others tells that its finer class was too small, so"
    " it stands for fewer people than its labels say",
)


@dataclass(frozen=True, kw_only=True)
class CutRounds(CutWithoutSome):
    """Each round shows some rows at its levels and leaves the others to the next; some may be left out at last.

    There are up to so many `rounds`; each takes the levels with the least loss that leave at most a share of `left`.
    """

    rounds: int
    left: Fraction

    def __post_init__(self) -> None:
        super().__post_init__()
        require_share(self.left)
        if self.rounds < 1:
            raise InvalidParameter("there is at least one round.")

    @property
    def where(self) -> str:
        """Where the table is cut, for people."""
        return (
            f"in up to {counted(self.rounds, 'round')} the levels with the least loss that leave at most a share of "
            f"{self.left} to the next"
        )

    @property
    def shown(self) -> str:
        """As what a class is shown, for people."""
        return "hierarchy labels of several levels"

    @property
    def left_open(self) -> tuple[Exposure, ...]:
        """Which attacks the cut leaves open: that of every cut, and what rounds tell."""
        return (MINIMALITY, ROUNDS)
