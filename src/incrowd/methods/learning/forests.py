"""Forests: what learning by trees shares: how many there are and how deep, and how their cuts are chosen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from incrowd.errors import InvalidParameter
from incrowd.methods.learning.growth import GrowthGoal, grow
from incrowd.methods.learning.moves import squared_move
from incrowd.methods.learning.tree_steps import GrowTrees
from incrowd.methods.learning.trees import SplitCandidates, TreeSplits

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.unit import Unit
    from incrowd.methods.learning.planning import LearningTask
    from incrowd.methods.learning.records import Records

DEEPEST = 12
_FINE = 2**20
_FEW = 2000
FOR_CUTS = Fraction(1, 2)
COLUMNS_OF_A_TREE = 0.6


@dataclass(frozen=True)
class ForestShape:
    """How many trees there are, and how deep."""

    trees: int
    depth: int

    @classmethod
    def grown(cls, trees: int, depth: int | None, rows: int | None, rho: Fraction) -> ForestShape:
        """Return a forest of chosen cuts, fewer levels and trees for fewer expected rows and a smaller budget."""
        small = rows is not None and rows < _FEW
        strength = 0.0 if rows is None else rows * math.sqrt(rho) / 30.0
        return cls(max(1, trees // 2) if small else trees, depth or _levels(strength, 3, 6, rows))

    @classmethod
    def drawn(cls, depth: int | None, rows: int | None, epsilon: Fraction) -> ForestShape:
        """Return a forest of cuts that are drawn without rows, in the same way."""
        small = rows is not None and rows < _FEW
        strength = 0.0 if rows is None else rows * float(epsilon) / 16.0
        return cls(4 if small else 16, depth or _levels(strength, 4, 8, rows))


def _levels(strength: float, least: int, most: int, rows: int | None) -> int:
    """Return how many levels a tree has, by how many rows there are for the noise; one between if nobody knows."""
    if rows is None:
        return (least + most) // 2
    return min(most, max(least, round(math.log2(max(1.0, strength)))))


GROWN = {"tree": 1, "forest": 8}
"""How many trees grow by private choices, where many rows are expected."""


def check_depth(depth: int | None) -> None:
    """Refuse trees without levels, or with leaves that nobody could read."""
    if depth is not None and not 1 <= depth <= DEEPEST:
        raise InvalidParameter(f"trees have 1 to {DEEPEST} levels.")


def grown(task: LearningTask, shape: ForestShape, rho: Fraction, unit: Unit) -> GrowTrees:
    """Return the step that chooses the cuts of all trees, for ρ."""
    candidates = len(SplitCandidates.of(task.sizes, task.ordered))
    square = squared_move(unit, 1, aligned=False) * shape.trees * shape.depth
    epsilon = Fraction(math.isqrt(math.floor(8 * rho / square * _FINE**2)), _FINE)
    if not epsilon:
        raise InvalidParameter("nothing is left of the budget for the cuts of trees.")
    return GrowTrees(shape.trees, shape.depth, candidates, epsilon)


def grow_all(
    task: LearningTask, records: Records, goal: GrowthGoal, step: GrowTrees, coins: Coins
) -> tuple[TreeSplits, ...]:
    """Return the cuts of all trees; of several, each has a public choice of columns of its own."""
    every = SplitCandidates.of(task.sizes, task.ordered)
    several = [every if step.trees == 1 else every.some(tree, COLUMNS_OF_A_TREE) for tree in range(step.trees)]
    return tuple(grow(records, goal, task.ordered, each, (step.epsilon, step.depth, coins)) for each in several)
