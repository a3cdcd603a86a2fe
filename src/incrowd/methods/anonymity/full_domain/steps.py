"""Steps: whole columns are generalized, to the levels that a search found."""

from __future__ import annotations

from dataclasses import dataclass

from incrowd.core.words import counted
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.syntactic.steps import CutWithoutSome


@dataclass(frozen=True, kw_only=True)
class CutLevels(CutWithoutSome):
    """Each quasi-identifier is shown at one level, found by a search; some rows may be left out.

    `quality` names what is lost least at the levels that are taken, among so many `combinations`.
    """

    quality: str
    combinations: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.combinations < 1:
            raise InvalidParameter("levels are taken among at least one combination.")

    @property
    def where(self) -> str:
        """Where the table is cut, for people."""
        return f"the levels with the least {self.quality} among {counted(self.combinations, 'combination')}"

    @property
    def shown(self) -> str:
        """As what a class is shown, for people."""
        return "hierarchy labels"
