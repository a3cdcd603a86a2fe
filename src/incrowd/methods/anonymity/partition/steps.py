"""The steps of a release in boxes that no other method has: the cuts, and an order that tells of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from incrowd.core.steps.choices import RecodingChoice
from incrowd.core.steps.rows import Arrange
from incrowd.core.terms import Assumption, Condition, Exposure, Theorem
from incrowd.errors import InvalidParameter

DEEPEST = 14
"""How often a box can be cut in a row."""


@dataclass(frozen=True)
class ChooseCuts(RecodingChoice):
    """Boxes are cut again and again, each cut chosen by a private look at all rows."""

    kind: ClassVar[str] = "choose cuts"
    title: ClassVar[str] = "Choose cuts privately"
    glyph: ClassVar[str | None] = "coarser"
    because: ClassVar[Theorem] = Theorem(
        "private-choice-of-boxes",
        "boxes cut by epsilon-private choices, then sampled suppression with fresh coins in them: adaptive composition",
    )
    blind: ClassVar[Assumption] = Assumption(
        "finest-levels-chosen-without-rows",
        "the finest levels, the depth and all parameters were chosen without looking at the rows",
    )
    moved: ClassVar[Condition] = Condition(
        "cut-sensitivity", "one row moves the score of every cut by at most one, and all in one direction"
    )
    fresh: ClassVar[Condition] = Condition(
        "fresh-coins-after-cuts", "the sample that is released has coins of its own, not those of the cuts"
    )
    left_open: ClassVar[Exposure] = Exposure(
        "no-blending-after-cuts",
        "crowd-blending is not claimed: who stands in which crowd hangs on cuts that read the rows",
    )

    columns: tuple[str, ...]
    depth: int
    least: int

    def __post_init__(self) -> None:
        """Refuse more cuts than any release has: their number of boxes could not be computed with."""
        if self.depth > DEEPEST:
            raise InvalidParameter(f"a box is cut 1 to {DEEPEST} times in a row: give such a depth.")

    @property
    def by(self) -> str:
        """How cuts are chosen."""
        return "permute-and-flip over the rows of the smaller part, and noisy counts, at the same cost each"

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return (
            f"The table is cut into at most {2**self.depth:,} boxes. A private selection with an ε of {self.epsilon} "
            "places the cuts; it reads all rows."
        )


@dataclass(frozen=True)
class ArrangeBoxes(Arrange):
    """Rows in boxes are published in the order of their values."""

    kind: ClassVar[str] = "arrange by chosen cuts"
