"""Steps of trees: cuts that are chosen privately, level by level, and what is summed in leaves with noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.steps.counts import Law
from incrowd.core.steps.step import Step, StepGuarantee
from incrowd.core.terms import Theorem
from incrowd.core.words import counted
from incrowd.errors import InvalidParameter
from incrowd.methods.learning.moves import gaussian_rho, squared_move
from incrowd.methods.learning.steps import counts_guarantee, spent

if TYPE_CHECKING:
    from incrowd.core.unit import Unit

CHOICES = Theorem(
    "exponential-concentrated",
    "Rogers & Steinke 2021: a choice by the exponential mechanism with ε is ε²/8-zero-concentrated",
)


@dataclass(frozen=True)
class GrowTrees(Step):
    """In every node of every tree a cut is picked by the exponential mechanism, level by level.

    A row is in one node of each level, and moves all scores there the same way, by at most 1: for one row more or less
    a level costs ε²/8.  A unit of r rows moves the scores of the nodes by numbers that add up to r; one that is
    replaced raises some scores by up to r and lowers others by as much.
    """

    kind: ClassVar[str] = "grow trees"
    title: ClassVar[str] = "Grow trees"
    glyph: ClassVar[str | None] = "sorted"

    trees: int
    depth: int
    candidates: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        if min(self.trees, self.depth, self.candidates) < 1 or self.epsilon <= 0:
            raise InvalidParameter("a tree has a level and a cut at least, each chosen with an epsilon above 0.")

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        trees = "a tree grows" if self.trees == 1 else f"each of {self.trees:,} trees grows"
        return (
            f"Level by level, {counted(self.depth, 'level')} deep, {trees}: in every node one of at most "
            f"{counted(self.candidates, 'declared cut')} is drawn, and one that leaves rows more mixed by one row is "
            f"e^{float(self.epsilon):.4g} times less likely."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee what all levels of all trees cost."""
        level = squared_move(unit, 1, aligned=False) * self.epsilon**2 / 8
        return spent(inner, self.trees * self.depth * level, CHOICES, unit)


@dataclass(frozen=True)
class CountLeaves(Step):
    """In every leaf of every tree, rows are counted by the target, each count with noise.

    If rows are `dealt`, an own coin for each row, which depends on nothing, names the one tree in which it counts: a
    row adds 1 to one count of all trees together.  Otherwise it adds 1 to one count of every tree.
    """

    kind: ClassVar[str] = "count in leaves"
    title: ClassVar[str] = "Count in leaves"
    glyph: ClassVar[str | None] = "sorted"

    trees: int
    depth: int
    dealt: bool
    noise: Law
    scale: Fraction

    def __post_init__(self) -> None:
        if min(self.trees, self.depth) < 1 or self.scale <= 0:
            raise InvalidParameter("a tree has a level at least, and counts have noise of a scale above 0.")

    @property
    def law(self) -> Theorem:
        """Who proved what the noise costs."""
        return self.noise.source

    @property
    def counts(self) -> int:
        """To how many counts a row adds."""
        return 1 if self.dealt else self.trees

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        leaves = f"the {2**self.depth:,} leaves of {counted(self.trees, 'tree')}"
        drawn = "The cuts of all trees are drawn without rows, by public chance. " if self.dealt else ""
        where = "in one tree, which an own coin names," if self.dealt else "in every tree"
        return (
            f"{drawn}Each row counts {where} by the target, in {leaves}; every count gets {self.noise} noise of scale "
            f"{float(self.scale):.4g}."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee what noise on counts costs."""
        return counts_guarantee(self.noise, self.scale, self.counts, inner, unit)


@dataclass(frozen=True)
class SumLeaves(Step):
    """In every leaf of every tree, rows are counted as `weight` each and their targets summed, with noise.

    A target is a whole number from −`reach` to `reach`.
    """

    kind: ClassVar[str] = "sum in leaves"
    title: ClassVar[str] = "Sum in leaves"
    glyph: ClassVar[str | None] = "sorted"

    trees: int
    depth: int
    reach: int
    weight: int
    scale: Fraction

    def __post_init__(self) -> None:
        if min(self.trees, self.depth, self.reach, self.weight) < 1 or self.scale <= 0:
            raise InvalidParameter("a tree has a level at least, and sums have noise of a scale above 0.")

    @property
    def square(self) -> int:
        """The squared length of what one row adds, at most."""
        return self.trees * (self.reach**2 + self.weight**2)

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        leaves = f"the {2**self.depth:,} leaves of {counted(self.trees, 'tree')}"
        return (
            f"In {leaves}, rows are counted, as {self.weight:,} each, and their targets summed, as whole numbers up to "
            f"{self.reach:,}; everything gets integer Gaussian noise of scale {float(self.scale):.4g}."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee what noise on the sums costs."""
        square = squared_move(unit, self.square, aligned=False)
        return spent(inner, gaussian_rho(self.scale, square), Law.GAUSSIAN.source, unit)
