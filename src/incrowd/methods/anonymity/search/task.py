"""Task: what is searched for, and what one node is worth."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from incrowd.core.rounding import Number, exact
from incrowd.criteria.criterion import All, Criterion, Monotone, Rows
from incrowd.criteria.partition import Partition
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.search.lattice import Lattice, Node
from incrowd.methods.anonymity.search.rollup import Rolled
from incrowd.quality.additive import Loss
from incrowd.quality.quality import Mask, Measure, Quality, Surcharges


@dataclass(frozen=True)
class Task:
    """A criterion to meet, the share of the rows that may be suppressed for it, and what is lost.

    >>> from incrowd.criteria.k_anonymity import KAnonymity
    >>> Task(KAnonymity(5), limit="0.05").allowed(30162)
    1508
    """

    criterion: Criterion
    quality: Quality = field(default_factory=Loss)
    limit: Number = 0

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise InvalidParameter("the suppression limit is a share of the rows, from 0 to 1.")

    @cached_property
    def share(self) -> Fraction:
        """The suppression limit, exactly."""
        return exact(self.limit, "the suppression limit")

    def allowed(self, rows: int) -> int:
        """Return how many of so many rows may be suppressed."""
        return self.share.numerator * rows // self.share.denominator

    @cached_property
    def inherited(self) -> bool:
        """Whether a node that fails rules out all finer ones, whatever the reason."""
        monotone = self.criterion.monotone
        return monotone is Monotone.UPWARD or (monotone is Monotone.UNIONS and self.share == 0)

    @cached_property
    def parts(self) -> tuple[Criterion, ...]:
        """The criteria in the order in which they are asked: those that rule out finer nodes first, the whole last."""
        parts = self.criterion.parts if isinstance(self.criterion, All) else (self.criterion,)
        return tuple(sorted(parts, key=lambda part: (part.whole, -part.monotone, len(part.sensitive))))

    @cached_property
    def prunes(self) -> bool:
        """Whether a failing node can rule out finer ones."""
        return self.inherited or any(part.bounding for part in self.parts)


@dataclass(frozen=True)
class Point:
    """A node that meets the task: its levels, its score, and how exposed those are who are released.

    `smallest` is the number of rows in the smallest released class (None if nothing is released), one over it the
    highest risk, and `classes` over released rows the average risk.
    """

    node: Node
    levels: tuple[int, ...]
    score: float
    suppressed: int
    classes: int
    smallest: int | None


@dataclass(frozen=True)
class Judgment:
    """One node judged: the point if it meets the task, a bound for coarser nodes and a burden for finer ones.

    `least` is at most the score of this node and every coarser one.  Every finer node's score is at least the sum of
    its own steps plus `surcharges` at its rungs, and so at least its own steps plus `burden`, which is infinite where
    none of them can meet the task.
    """

    point: Point | None
    least: float
    burden: float
    surcharges: Surcharges = ()

    def burden_of(self, node: Node) -> float:
        """Return what a finer node pays at least on top of its own steps."""
        if self.burden in (0.0, math.inf):
            return self.burden
        return sum([float(column[rung]) for column, rung in zip(self.surcharges, node, strict=True)])


def judge(task: Task, measure: Measure, rolled: Rolled, node: Node) -> Judgment:
    """Return what a node is worth.

    Soundness of `burden`: what each class can release at finer nodes (see `Criterion.releasable`) leaves some of its
    rows suppressed at every one of them: more than allowed, or at the price of `Measure.surcharges` at least.  Where
    the whole task is inherited (see `Monotone`), failing at all is enough.
    """
    lattice, tuples, partition = rolled.lattice, rolled.tuples, rolled.partition()
    least = measure.least(node, tuples)
    allowed = task.allowed(lattice.rows)
    kept, rows = np.ones(len(tuples), np.bool_), tuples.sizes
    suppressed, out_of_reach = 0, False
    for part in task.parts:
        kept = part.retained(partition, kept)
        rows = rows if part.whole else part.releasable(partition, rows, kept)
        suppressed = _gone(tuples.sizes, kept)
        if suppressed > allowed:
            out_of_reach = task.inherited
            break
    else:
        if task.criterion.whole and len(task.parts) > 1:
            kept = task.criterion.retained(partition, kept)
            suppressed = _gone(tuples.sizes, kept)
            out_of_reach = suppressed > allowed and task.inherited
    lost = tuples.sizes - _at_most(task, partition, rows)
    if out_of_reach or int(lost.sum()) > allowed:
        return Judgment(None, least, math.inf)
    surcharges = measure.surcharges(node, tuples, lost)
    burden = sum([float(column[-1]) for column in surcharges])
    if suppressed > allowed:
        return Judgment(None, least, burden, surcharges)
    score = measure.score(node, tuples, kept)
    return Judgment(_point(lattice, node, score, (tuples.sizes, kept), suppressed), least, burden, surcharges)


def _at_most(task: Task, partition: Partition, rows: Rows) -> Rows:
    """Return how many rows any finer node can release, where criteria that count rows see what the others leave."""
    for part in task.parts:
        if part.monotone is Monotone.UPWARD and not part.whole:
            rows = part.releasable(partition, rows, rows > 0)
    return rows


def _gone(sizes: Rows, kept: Mask) -> int:
    return int(sizes[~kept].sum())


def _point(lattice: Lattice, node: Node, score: float, classes: tuple[Rows, Mask], suppressed: int) -> Point:
    sizes = classes[0][classes[1]]
    levels = tuple(ladder.levels[rung] for ladder, rung in zip(lattice.ladders, node, strict=True))
    return Point(node, levels, score, suppressed, len(sizes), int(sizes.min()) if len(sizes) else None)
