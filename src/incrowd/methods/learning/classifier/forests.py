"""Forests of a classifier: cuts that are chosen privately or drawn without rows, and noisy counts in their leaves."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from incrowd.core.steps.counts import Law
from incrowd.methods.learning.classifier.recipes import FittedScores, Recipe
from incrowd.methods.learning.forests import FOR_CUTS, ForestShape, grow_all, grown
from incrowd.methods.learning.forms import ModelForm
from incrowd.methods.learning.growth import GrowthGoal, dealt_sums, leaf_sums
from incrowd.methods.learning.models import ScoreLink, rounded
from incrowd.methods.learning.moves import gaussian_scale, squared_move, summed_move
from incrowd.methods.learning.statistics import noisy
from incrowd.methods.learning.tree_steps import CountLeaves, GrowTrees
from incrowd.methods.learning.trees import DecisionTree, SplitCandidates, TreeSplits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from incrowd.core.coins import Coins
    from incrowd.core.steps.step import Step
    from incrowd.core.unit import Unit
    from incrowd.methods.learning.fits import Floats
    from incrowd.methods.learning.planning import LearningTask
    from incrowd.methods.learning.records import Integers, Records


def greedy_trees(shape: ForestShape) -> Recipe:
    """Return the way to learn by trees that grow by private choices, every one from all rows."""

    def sums(task: LearningTask, rho: Fraction, unit: Unit) -> tuple[Step, ...]:
        square = squared_move(unit, shape.trees, aligned=True)
        scale = gaussian_scale(rho * (1 - FOR_CUTS), square)
        leaves = CountLeaves(shape.trees, shape.depth, dealt=False, noise=Law.GAUSSIAN, scale=scale)
        return grown(task, shape, rho * FOR_CUTS, unit), leaves

    return Recipe(ModelForm.DECISION_TREES, sums, fit_greedy)


def fit_greedy(task: LearningTask, records: Records, steps: tuple[Step, ...], coins: Coins) -> FittedScores:
    """Return trees that grew by private choices."""
    grow, count = steps
    assert isinstance(grow, GrowTrees)  # noqa: S101 - as the recipe says
    assert isinstance(count, CountLeaves)  # noqa: S101 - as the recipe says
    goal = GrowthGoal.classes(len(task.outputs))
    forest = grow_all(task, records, goal, grow, coins)
    counts = noisy(leaf_sums(records, goal.weights, forest, task.ordered), count.scale, coins, count.noise)
    return _fitted(forest, counts, count)


def random_trees(shape: ForestShape) -> Recipe:
    """Return the way to learn by trees that are drawn without rows; each row counts in one of them."""

    def sums(_: LearningTask, epsilon: Fraction, unit: Unit) -> tuple[Step, ...]:
        scale = summed_move(unit, 1) / epsilon
        return (CountLeaves(shape.trees, shape.depth, dealt=True, noise=Law.LAPLACE, scale=scale),)

    return Recipe(ModelForm.RANDOM_TREES, sums, fit_random)


def fit_random(task: LearningTask, records: Records, steps: tuple[Step, ...], coins: Coins) -> FittedScores:
    """Return trees that were drawn without rows."""
    (count,) = steps
    assert isinstance(count, CountLeaves)  # noqa: S101 - as the recipe says
    forest = SplitCandidates.of(task.sizes, task.ordered).drawn(count.trees, count.depth)
    weights = np.eye(len(task.outputs), dtype=np.int64)
    counts = noisy(dealt_sums(records, weights, forest, task.ordered, coins), count.scale, coins, count.noise)
    return _fitted(forest, counts, count)


def _fitted(forest: Sequence[TreeSplits], counts: Integers, step: CountLeaves) -> FittedScores:
    """Return scores by how much likelier each class is in a leaf than anywhere, all trees together over their root."""
    deviation = float(step.scale) * (1.0 if step.noise is Law.GAUSSIAN else math.sqrt(2.0))
    total = np.maximum(1.0, counts.sum(axis=(0, 1)).astype(np.float64))
    anywhere = np.log(total / total.sum())
    trees = tuple(
        DecisionTree(
            cuts, rounded((np.log(leaf_shares(each.astype(np.float64), deviation)) - anywhere) / math.sqrt(len(forest)))
        )
        for cuts, each in zip(forest, counts, strict=True)
    )
    rows = float(counts.sum()) / (1 if step.dealt else step.trees)
    return FittedScores(anywhere, (), ScoreLink.SOFTMAX, rows, trees)


def leaf_shares(counts: Floats, deviation: float) -> Floats:
    """Return shares of classes in the leaves of a tree from noisy counts, each drawn to those of the node above it."""
    levels = [counts]
    while len(levels[0]) > 1:
        levels.insert(0, levels[0][0::2] + levels[0][1::2])
    shares = np.full((1, counts.shape[1]), 1.0 / counts.shape[1])
    for place, level in enumerate(levels):
        noise = deviation * math.sqrt(2.0 ** (len(levels) - 1 - place)) + 1.0
        above = shares if place == 0 else np.repeat(shares, 2, axis=0)
        kept = np.maximum(level, 0.0)
        shares = (kept + noise * above) / (kept.sum(axis=1, keepdims=True) + noise)
    return shares
