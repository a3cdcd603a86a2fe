"""Steps of trees and of samples: cuts chosen privately, noisy sums in leaves, and noisy gradients of secret samples."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.loss import Gaussian, Sampled, Sequence
from incrowd.core.steps.counts import Law
from incrowd.core.steps.samples import COINS
from incrowd.core.steps.step import Step, StepGuarantee, assumptions
from incrowd.core.terms import Condition, Theorem
from incrowd.core.unit import Adjacency
from incrowd.core.words import counted, share
from incrowd.errors import InvalidParameter
from incrowd.methods.learning.shared.moves import gaussian_rho, squared_move
from incrowd.methods.learning.shared.steps import EVERY, SUMS, counts_guarantee, spent

if TYPE_CHECKING:
    from incrowd.core.unit import Unit


CHOICES = Theorem(
    "exponential-concentrated",
    "Rogers & Steinke 2021: a choice by the exponential mechanism with ε is ε²/8-zero-concentrated",
)

_CUTS = Condition(
    "cuts-chosen-privately",
    "every cut of a tree is drawn by the exponential mechanism, from scores that one row moves by at most 1",
)
_DEALT = Condition(
    "rows-dealt-to-trees",
    "each row counts in one tree, which its own random draw names, in a leaf of cuts drawn without rows",
)
_SAMPLED = Condition(
    "sampled-sums-alone",
    "what a sampled row adds to a sum is whole numbers that follow from this row and from earlier noisy results alone",
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
    proves: ClassVar[tuple[Condition, ...]] = (_CUTS,)

    trees: int
    depth: int
    candidates: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        if min(self.trees, self.depth, self.candidates) < 1 or self.epsilon <= 0:
            raise InvalidParameter("a tree has a level and a cut at least, each chosen with an epsilon above 0.")

    @property
    def sentence(self) -> str:
        trees = "a tree grows" if self.trees == 1 else f"each of {self.trees:,} trees grows"
        return (
            f"Level by level, {counted(self.depth, 'level')} deep, {trees}: in every node one of at most "
            f"{counted(self.candidates, 'declared cut')} is drawn, and one that leaves rows more mixed by one row is "
            f"e^{float(self.epsilon):.4g} times less likely."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
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
    def proves(self) -> tuple[Condition, ...]:
        """What holds for the counts."""
        return (_DEALT, EVERY) if self.dealt else SUMS

    @property
    def counts(self) -> int:
        """To how many counts a row adds."""
        return 1 if self.dealt else self.trees

    @property
    def sentence(self) -> str:
        leaves = f"the {2**self.depth:,} leaves of {counted(self.trees, 'tree')}"
        cuts = "The cuts of all trees are drawn without rows, by public chance. " if self.dealt else ""
        where = "in one tree, drawn at random for each row," if self.dealt else "in every tree"
        return (
            f"{cuts}Each row counts {where} by the target, in {leaves}; every count gets {self.noise} noise of scale "
            f"{float(self.scale):.4g}."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        return counts_guarantee(self.noise, self.scale, self.counts, inner, unit)


@dataclass(frozen=True)
class SumLeaves(Step):
    """In every leaf of every tree, rows are counted as `weight` each and their targets summed, with noise.

    A target is a whole number from −`reach` to `reach`.
    """

    kind: ClassVar[str] = "sum in leaves"
    title: ClassVar[str] = "Sum in leaves"
    glyph: ClassVar[str | None] = "sorted"
    proves: ClassVar[tuple[Condition, ...]] = SUMS

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
        leaves = f"the {2**self.depth:,} leaves of {counted(self.trees, 'tree')}"
        return (
            f"In {leaves}, rows are counted, as {self.weight:,} each, and their targets summed, as whole numbers up to "
            f"{self.reach:,}; everything gets integer Gaussian noise of scale {float(self.scale):.4g}."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        square = squared_move(unit, self.square, aligned=False)
        return spent(inner, gaussian_rho(self.scale, square), Law.GAUSSIAN.source, unit)


_COMPOSED = Theorem(
    "sampled-loss-distributions",
    "Koskela, Jälkö & Honkela 2020: privacy loss distributions of Poisson samples, all rounds together",
)


@dataclass(frozen=True)
class SampleGradients(Step):
    """In each round rows are sampled independently, and what the sampled rows add is summed by one column, with noise.

    A row that is drawn adds a whole number from −`residual` to `residual` to one sum: that of its class of the column
    of that round.  Rows added or removed, one for each unit: nothing is known here of people with several rows, whose
    rows would lie in several sums of a round.
    """

    kind: ClassVar[str] = "follow gradients of samples"
    title: ClassVar[str] = "Follow gradients of samples"
    glyph: ClassVar[str | None] = "drawn"
    proves: ClassVar[tuple[Condition, ...]] = (_SAMPLED, EVERY)

    rounds: int
    rate: Fraction
    residual: int
    scale: Fraction

    def __post_init__(self) -> None:
        if min(self.rounds, self.residual) < 1 or self.scale <= 0 or not 0 < self.rate < 1:
            raise InvalidParameter("samples are drawn for a round at least, at a rate between 0 and 1, with noise.")

    @property
    def design(self) -> str:
        """How rows are drawn."""
        return "Poisson, one secret draw per row and round"

    @property
    def coins(self) -> str:
        """Where the coins come from."""
        return "AES-256 in counter mode under a key from the operating system for each round, forgotten afterwards"

    @property
    def sentence(self) -> str:
        return (
            f"In each of {counted(self.rounds, 'round')}, each row is sampled independently, in secret: "
            f"{share(self.rate)} on average; the sampled rows are counted by the classes of one column, or summed "
            "by how much the model is off, for one class of the target if it has classes. Every sum gets integer "
            f"Gaussian noise of {float(self.scale / self.residual):.4g} rows."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        if inner.loss is not None:
            raise InvalidParameter("nothing else is summed beside samples.")
        if unit.max_rows > 1 or unit.adjacency is Adjacency.REPLACE:
            raise InvalidParameter(
                "a model is learned from samples where rows are added or removed, and everybody has one: write "
                "max_rows: 1 for people with more rows, or use another model."
            )
        one = Sampled(self.rate, Gaussian(self.scale, self.residual))
        reasons = (Law.GAUSSIAN.source, _COMPOSED)
        return StepGuarantee(Sequence((one,) * self.rounds), reasons, assumptions(unit) | {COINS})
