"""Recipes: the ways to learn a number; each says which sums it needs under a budget, and makes a function of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from incrowd.methods.learning.fits import Descent, Floats, RowSpread, Scores, refine, ridge
from incrowd.methods.learning.forests import FOR_CUTS, ForestShape, grow_all, grown
from incrowd.methods.learning.forms import ModelForm
from incrowd.methods.learning.growth import GrowthGoal, leaf_sums
from incrowd.methods.learning.inputs import UNIT, NumberScale
from incrowd.methods.learning.models import rounded
from incrowd.methods.learning.moves import gaussian_scale, squared_move
from incrowd.methods.learning.statistics import (
    RESIDUAL,
    SCORE,
    moments,
    noisy,
    noisy_moments,
    number_gradient,
    target_sums,
)
from incrowd.methods.learning.steps import FollowGradients, MultiplyColumns, SumByColumn
from incrowd.methods.learning.tree_steps import GrowTrees, SumLeaves
from incrowd.methods.learning.trees import DecisionTree
from incrowd.methods.learning.vectors import VectorSpace, product_step

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.steps.step import Step
    from incrowd.core.unit import Unit
    from incrowd.methods.learning.planning import LearningTask
    from incrowd.methods.learning.records import Integers, Records

_REACH = Fraction(1, 2)
_FOR_SUMS = Fraction(1, 2)
_ROUNDS = 10
_PENALTY = 1.5
_WEIGHT = round(UNIT / math.sqrt(2.0))


@dataclass(frozen=True, eq=False)
class FittedNumbers:
    """What a recipe makes: an offset, tables or trees, in halves of the declared range, and about how many rows."""

    offset: float
    tables: tuple[Floats, ...]
    rows: float
    trees: tuple[DecisionTree, ...] = ()

    def scaled(self, scale: NumberScale) -> FittedNumbers:
        """Return the same in the units of the target."""
        trees = tuple(DecisionTree(tree.cuts, rounded(tree.leaves * scale.half)) for tree in self.trees)
        tables = tuple(rounded(table * scale.half) for table in self.tables)
        return FittedNumbers(scale.center + scale.half * self.offset, tables, self.rows, trees)


@dataclass(frozen=True)
class NumberRecipe:
    """A way to learn numbers: the sums that it needs, and what it makes of them."""

    form: ModelForm
    sums: Callable[[LearningTask, Fraction, Unit], tuple[Step, ...]]
    fit: Callable[[LearningTask, Records, tuple[Step, ...], Coins], FittedNumbers]


def _units(task: LearningTask) -> Integers:
    """Return the whole number of each class of the target, from −UNIT to UNIT."""
    scale = NumberScale.of(task.classes[-1])
    assert scale is not None  # noqa: S101 - the target has bounds
    return scale.units


def _space(task: LearningTask) -> tuple[VectorSpace, int]:
    """Return the vectors of rows, and what the constant and the largest target beside them are."""
    space = VectorSpace.of(task.inputs, _REACH)
    return space, max(1, math.isqrt(space.square // 2))


def products_under(task: LearningTask, rho: Fraction, unit: Unit) -> tuple[Step, ...]:
    """Return products that cost ρ."""
    space, own = _space(task)
    return (product_step(space.width + 2, space.square + 2 * own**2, rho, unit),)


def fit_products(task: LearningTask, records: Records, steps: tuple[Step, ...], coins: Coins) -> FittedNumbers:
    """Return least squares, with a penalty as large as the noise."""
    (step,) = steps
    assert isinstance(step, MultiplyColumns)  # noqa: S101 - as the recipe says
    space, own = _space(task)
    ends = (_units(task) * own // UNIT)[:, None]
    sums = noisy_moments(moments(records, space.vectors, ends, own), (step.scale, step.beside), coins)
    spread = RowSpread.of(sums, space.width, own, float(step.scale))
    line = ridge(spread, space.width, float(step.scale) * math.sqrt(2.0 * space.width))
    return FittedNumbers(float(line.intercepts[0]) / own, space.tables(line.slopes / own), spread.rows)


def additive_under(task: LearningTask, rho: Fraction, unit: Unit) -> tuple[Step, ...]:
    """Return counts and sums by column, and gradients from where they lead, that cost ρ together."""
    columns = len(task.inputs)
    plain = SumByColumn(columns, UNIT, _WEIGHT, Fraction(1))
    scale = gaussian_scale(rho * _FOR_SUMS, squared_move(unit, plain.square, aligned=False))
    gradient = FollowGradients(_ROUNDS, columns, 1, RESIDUAL, Fraction(1))
    most = squared_move(unit, gradient.square, aligned=False)
    loud = gaussian_scale(rho * (1 - _FOR_SUMS) / _ROUNDS, most)
    return (
        SumByColumn(columns, UNIT, _WEIGHT, scale),
        FollowGradients(_ROUNDS, columns, 1, RESIDUAL, loud),
    )


def fit_additive(task: LearningTask, records: Records, steps: tuple[Step, ...], coins: Coins) -> FittedNumbers:
    """Return a function of each column: the noisy mean of its classes, refined together by noisy gradients.

    A step is divided by the rows of a class and by half of the number of columns, so that columns that say the same
    cannot make steps grow; the penalty is as large as the noise.
    """
    first, step = steps
    assert isinstance(first, SumByColumn)  # noqa: S101 - as the recipe says
    assert isinstance(step, FollowGradients)  # noqa: S101 - as the recipe says
    units = _units(task)
    sums = noisy(target_sums(records, units, first.weight), first.scale, coins).astype(np.float64)
    counts, doubt = np.maximum(sums[:, 0] / first.weight, 0.0), float(first.scale) / first.weight
    starts = np.cumsum([0, *task.sizes])[:-1]
    weights = 1.0 / np.array(task.sizes, np.float64)
    rows, total = weights @ np.add.reduceat(sums, starts, axis=0) / weights.sum()
    rows = max(1.0, doubt, rows / first.weight)
    mean = float(np.clip(total / UNIT / rows, -1.0, 1.0))
    shapes = (sums[:, 1] / UNIT - mean * counts) / (counts + doubt + 1.0)
    start = Scores(np.array([mean]), shapes[:, None]).centered(counts + 1.0, task.sizes)
    pace = max(1.0, (len(task.sizes) + 1) / 2.0)
    noise = float(step.scale / step.residual)

    def measured(intercepts: Integers, scores: Integers) -> Integers:
        return noisy(number_gradient(records, units * (SCORE // UNIT), intercepts, scores), step.scale, coins)

    penalty = _PENALTY * noise
    slow = pace * (counts + penalty + 0.01 * rows)
    found = refine(measured, Descent(step.rounds, 1.0, pace * (rows + noise), penalty), start, slow)
    return FittedNumbers(float(found.intercepts[0]), tuple(np.split(found.tables, starts[1:])), rows)


def greedy_trees(shape: ForestShape) -> NumberRecipe:
    """Return the way to learn by trees that grow by private choices, every one from all rows."""

    def sums(task: LearningTask, rho: Fraction, unit: Unit) -> tuple[Step, ...]:
        plain = SumLeaves(shape.trees, shape.depth, UNIT, _WEIGHT, Fraction(1))
        scale = gaussian_scale(rho * (1 - FOR_CUTS), squared_move(unit, plain.square, aligned=False))
        leaves = SumLeaves(shape.trees, shape.depth, UNIT, _WEIGHT, scale)
        return grown(task, shape, rho * FOR_CUTS, unit), leaves

    return NumberRecipe(ModelForm.REGRESSION_TREES, sums, fit_greedy)


def fit_greedy(task: LearningTask, records: Records, steps: tuple[Step, ...], coins: Coins) -> FittedNumbers:
    """Return trees that grew by private choices."""
    grow, leaves = steps
    assert isinstance(grow, GrowTrees)  # noqa: S101 - as the recipe says
    assert isinstance(leaves, SumLeaves)  # noqa: S101 - as the recipe says
    units = _units(task)
    forest = grow_all(task, records, GrowthGoal.numbers(units), grow, coins)
    weights = np.stack([np.full_like(units, leaves.weight), units], axis=1)
    sums = noisy(leaf_sums(records, weights, forest, task.ordered), leaves.scale, coins).astype(np.float64)
    doubt = float(leaves.scale) / leaves.weight
    means = [leaf_means(each[:, 0] / leaves.weight, each[:, 1] / UNIT, doubt) / len(forest) for each in sums]
    trees = tuple(DecisionTree(cuts, each[:, None]) for cuts, each in zip(forest, means, strict=True))
    return FittedNumbers(0.0, (), float(sums[..., 0].sum()) / leaves.weight / len(forest), trees)


def leaf_means(counts: Floats, sums: Floats, doubt: float) -> Floats:
    """Return means in the leaves of a tree from noisy counts and sums, each drawn to that of the node above it."""
    levels = [(counts, sums)]
    while len(levels[0][0]) > 1:
        levels.insert(0, tuple(level[0::2] + level[1::2] for level in levels[0]))  # type: ignore[arg-type]
    means: Floats = np.zeros(1)
    for place, (rows, total) in enumerate(levels):
        noise = doubt * math.sqrt(2.0 ** (len(levels) - 1 - place)) + 1.0
        above = means if place == 0 else np.repeat(means, 2)
        means = np.clip((total + noise * above) / (np.maximum(rows, 0.0) + noise), -1.0, 1.0)
    return means


RECIPES = {
    "moments": NumberRecipe(ModelForm.LEAST_SQUARES, products_under, fit_products),
    "additive": NumberRecipe(ModelForm.ADDITIVE_SUMS, additive_under, fit_additive),
}
