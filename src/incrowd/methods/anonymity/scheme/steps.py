"""The steps of a release at chosen levels that no other method has: the choice, and an order that tells of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from incrowd.core.steps.choices import RecodingChoice
from incrowd.core.steps.rows import Order
from incrowd.core.terms import Assumption, Condition, Exposure, Theorem
from incrowd.core.words import counted


@dataclass(frozen=True)
class ChooseLevels(RecodingChoice):
    """A private selection weighs every combination of levels by what it would keep of all rows."""

    kind: ClassVar[str] = "choose levels"
    title: ClassVar[str] = "Choose levels privately"
    because: ClassVar[Theorem] = Theorem(
        "private-choice-of-levels",
        "levels chosen by an epsilon-private selection, then sampled suppression with fresh coins"
        " at those levels: adaptive composition",
    )
    blind: ClassVar[Assumption] = Assumption(
        "candidates-chosen-without-rows",
        "the candidate levels, the recoding rules and the parameters were chosen without looking at the rows",
    )
    moved: ClassVar[Condition] = Condition(
        "recoding-sensitivity", "one row moves the worth of every recoding by at most the stated sensitivity"
    )
    fresh: ClassVar[Condition] = Condition(
        "fresh-coins-after-choice", "the sample that is released has coins of its own, not those of the choice"
    )
    left_open: ClassVar[Exposure] = Exposure(
        "no-blending-after-choice",
        "crowd-blending is not claimed: who stands in which crowd hangs on a choice that read the rows",
    )

    candidates: int
    sensitivity: int

    @property
    def by(self) -> str:
        """How levels are chosen."""
        return "permute-and-flip over what each recoding would keep of all rows"

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return (
            f"One of {counted(self.candidates, 'combination')} of levels is taken. A private selection with an ε of "
            f"{self.epsilon} chooses it; it reads all rows."
        )


@dataclass(frozen=True)
class OrderChosen(Order):
    """Rows at chosen levels are published in the order of their values."""

    kind: ClassVar[str] = "order by chosen levels"
