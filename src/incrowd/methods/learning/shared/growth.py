"""Growth: trees that part rows by private choices of cuts, level by level, and noisy sums in their leaves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from incrowd.errors import InvalidParameter
from incrowd.mechanisms.selection import MonotoneExponential, select_each
from incrowd.methods.learning.shared.moves import squared_move
from incrowd.methods.learning.shared.statistics import Integers, Records, added
from incrowd.methods.learning.shared.tree_steps import GrowTrees
from incrowd.methods.learning.shared.trees import SplitCandidates, TreeSplits

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.unit import Unit
    from incrowd.methods.learning.shared.planning import LearningTask


FINE = 2**8
"""What a score of 1 is in integers: one row moves every score by at most this, and all scores the same way."""
_DEALT = 2**20  # rows at a time: 8 MB


@dataclass(frozen=True, eq=False)
class GrowthGoal:
    """What a tree should tell apart: the numbers that a row adds by its class of the target, and how mixed rows are.

    `weights` has a line for each class of the target that takes part.  `mixture` says of sums of such lines how much
    the rows differ, in units of `FINE`: whole numbers that a further row raises by 0 to `FINE`.
    """

    weights: Integers
    mixture: Callable[[Any], Any]

    @classmethod
    def classes(cls, outputs: int) -> GrowthGoal:
        """Return the goal of telling classes apart: half of the Gini impurity times the number of rows."""
        return cls(np.eye(outputs, dtype=np.int64), half_gini)

    @classmethod
    def numbers(cls, units: Integers) -> GrowthGoal:
        """Return the goal of telling numbers apart, given the whole number of each class of the target."""
        low = int(units.min())
        reach = max(1, int(units.max()) - low)
        above = units - low
        weights = np.stack([np.ones_like(above), above, above * above], axis=1)
        return cls(weights, lambda sums: squared_spread(sums, reach))


def half_gini(counts: Any) -> Any:
    """Return ½ (n − Σ n_k² / n) in units of `FINE`, rounded down, for counts n_k along the last axis.

    One row more of class k changes it by ½ (1 − (2 n_k + 1)/(n + 1) + Σ n_j²/(n (n + 1))), before rounding: at least 0,
    because Σ n_j² ≥ n_k² and n n + n_k² ≥ 2 n n_k, and below 1.  So rounded it grows by 0 to `FINE`.

    >>> half_gini(np.array([[1, 1], [0, 7], [0, 0]], dtype=object)).tolist()
    [128, 0, 0]
    """
    rows = counts.sum(axis=-1)
    return FINE * (rows * rows - (counts * counts).sum(axis=-1)) // np.maximum(1, 2 * rows)


def squared_spread(sums: Any, reach: int) -> Any:
    """Return the sum of squared distances from the mean over reach², in units of `FINE`, rounded down.

    `sums` are, along the last axis, the number of rows, the sum of their numbers from 0 to `reach`, and of their
    squares.  One row y more adds n/(n + 1) · (y − mean)², which is at least 0 and below reach².

    >>> squared_spread(np.array([[2, 4, 16]], dtype=object), 4).tolist()
    [128]
    """
    rows, total, squares = sums[..., 0], sums[..., 1], sums[..., 2]
    return FINE * (rows * squares - total * total) // np.maximum(1, rows * reach * reach)


def grow(
    records: Records,
    goal: GrowthGoal,
    ordered: Sequence[bool],
    candidates: SplitCandidates,
    chosen: tuple[Fraction, int, Coins],
) -> TreeSplits:
    """Return the cuts of one tree: the ε of each level for one row, how many levels, and the coins are `chosen`.

    The rows of a level lie in one of its nodes each.  In every node, also in one without rows, a cut is picked with a
    chance that grows with how much less mixed the two parts are.
    """
    epsilon, depth, coins = chosen
    mechanism, cuts = MonotoneExponential(epsilon, FINE), TreeSplits(np.zeros(0, np.int64), np.zeros(0, np.int64))
    for level in range(depth):
        scores = cut_scores(node_sums(records, goal, cuts, ordered), goal, candidates, (records.sizes, ordered))
        picked = select_each(mechanism, scores, coins)
        assert len(picked) == 2**level  # noqa: S101 - a node of each level has a line of scores
        columns, codes = candidates.columns[picked], candidates.codes[picked]
        cuts = TreeSplits(np.append(cuts.columns, columns), np.append(cuts.codes, codes))
    return cuts


def node_sums(records: Records, goal: GrowthGoal, cuts: TreeSplits, ordered: Sequence[bool]) -> Integers:
    """Return what rows add by their target, for each leaf of the cuts and each class of each column, stacked."""
    outputs, width = goal.weights.shape
    starts = np.cumsum([0, *records.sizes[:-1]])
    nodes, size = len(cuts.columns) + 1, int(starts[-1])
    total = np.zeros((nodes * size * width,), np.int64)
    for codes, times, target in with_target(records, outputs):
        place = cuts.ends(codes, ordered) * size
        for output in range(width):
            amounts = goal.weights[target, output] * times
            nonzero = amounts != 0
            for column, start in enumerate(starts[:-1]):
                cells = (place[nonzero] + start + codes[nonzero, column]) * width + output
                total += added(cells, amounts[nonzero], len(total))
    return total.reshape(nodes, size, width)


def with_target(records: Records, outputs: int) -> Iterator[tuple[Integers, Integers, Integers]]:
    """Return the codes of records but the target's, how many rows are like each, and the target's, if it is known."""
    for codes, times in records.pieces():
        inside = codes[:, -1] < outputs
        yield codes[inside, :-1], times[inside], codes[inside, -1]


def cut_scores(
    sums: Integers, goal: GrowthGoal, candidates: SplitCandidates, columns: tuple[Sequence[int], Sequence[bool]]
) -> Integers:
    """Return a score for each node and cut: the less mixed the two parts, the higher; Python's integers do not wrap."""
    sizes, ordered = columns
    starts, exact = np.cumsum([0, *sizes[:-1]]), sums.astype(object)
    whole = exact[:, : sizes[0]].sum(axis=1)[:, None]
    parts = []
    for column, below in enumerate(ordered):
        own = exact[:, starts[column] : starts[column + 1]]
        codes = candidates.codes[candidates.columns == column]
        parts.append(own.cumsum(axis=1)[:, codes - 1] if below else own[:, codes])
    left = np.concatenate(parts, axis=1)
    mixed: Integers = (goal.mixture(left) + goal.mixture(whole - left)).astype(np.int64)
    return -mixed


def leaf_sums(records: Records, weights: Integers, forest: Sequence[TreeSplits], ordered: Sequence[bool]) -> Integers:
    """Return what rows add by their target in the leaves of each tree, every row in every tree."""
    parts = [_in_leaves(with_target(records, len(weights)), weights, cuts, ordered) for cuts in forest]
    return np.stack(parts)


def dealt_sums(
    records: Records, weights: Integers, forest: Sequence[TreeSplits], ordered: Sequence[bool], coins: Coins
) -> Integers:
    """Return what rows add by their target in the leaves of one tree each: a coin of its own deals each row to it."""
    total = np.zeros((len(forest), len(forest[0].columns) + 1, weights.shape[1]), np.int64)
    for codes, times, target in with_target(records, len(weights)):
        shares = dealt(times, len(forest), coins)
        for tree, cuts in enumerate(forest):
            total[tree] += _in_leaves(iter([(codes, shares[:, tree], target)]), weights, cuts, ordered)
    return total


def dealt(times: Integers, trees: int, coins: Coins) -> Integers:
    """Return how many of the rows of each record go to each tree, by a coin for each row."""
    ends, total = np.cumsum(times), np.zeros(len(times) * trees, np.int64)
    for start in range(0, int(times.sum()), _DEALT):
        rows = np.arange(start, min(start + _DEALT, int(ends[-1])))
        owner = np.searchsorted(ends, rows, side="right")
        total += np.bincount(owner * trees + coins.below(trees, len(rows)), minlength=len(total))
    return total.reshape(len(times), trees)


def _in_leaves(
    rows: Iterator[tuple[Integers, Integers, Integers]], weights: Integers, cuts: TreeSplits, ordered: Sequence[bool]
) -> Integers:
    width = weights.shape[1]
    total = np.zeros((len(cuts.columns) + 1) * width, np.int64)
    for codes, times, target in rows:
        place = cuts.ends(codes, ordered) * width
        for output in range(width):
            total += added(place + output, weights[target, output] * times, len(total))
    return total.reshape(-1, width)


DEEPEST = 12  # 4096 leaves: deeper ones hold noise alone
_FINE = 2**20  # ε is rounded down to a multiple of 2⁻²⁰, so that its ρ stays within its part
_FEW = 2000  # below so many expected rows there are fewer trees; costs accuracy, never privacy
FOR_CUTS = Fraction(1, 2)  # of ρ: half for the cuts, half for the leaves; costs add up, any share is private
COLUMNS_OF_A_TREE = 0.6  # trees see different columns, drawn without rows, so that their errors differ


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
    def random(cls, depth: int | None, rows: int | None, epsilon: Fraction) -> ForestShape:
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
    return tuple(
        grow(records, goal, task.ordered, candidates, (step.epsilon, step.depth, coins)) for candidates in several
    )
