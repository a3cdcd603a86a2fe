"""Recipes: the ways to learn classes; each says which sums it needs under a budget, and makes scores of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from incrowd.core.steps.counts import Law
from incrowd.methods.learning.shared.fits import (
    Descent,
    Floats,
    RowSpread,
    Scores,
    descend,
    naive_bayes,
    refine,
    ridge,
    shrunken,
    total_rows,
)
from incrowd.methods.learning.shared.growth import (
    FOR_CUTS,
    ForestShape,
    GrowthGoal,
    dealt_sums,
    grow_all,
    grown,
    leaf_sums,
)
from incrowd.methods.learning.shared.models import LearnedModel, ScoreLink, Use, rounded
from incrowd.methods.learning.shared.moves import gaussian_scale, squared_move, summed_move
from incrowd.methods.learning.shared.statistics import (
    RESIDUAL,
    Integers,
    Records,
    VectorSpace,
    class_tables,
    gradient,
    moments,
    noisy,
    noisy_moments,
    product_step,
)
from incrowd.methods.learning.shared.steps import (
    CountAllRows,
    CountByTarget,
    FollowGradients,
    ModelForm,
    MultiplyColumns,
)
from incrowd.methods.learning.shared.streaming import (
    SampleDescent,
    SampledRecords,
    column_residuals,
    rate_of,
    sampled_sums,
)
from incrowd.methods.learning.shared.tree_steps import CountLeaves, GrowTrees, SampleGradients
from incrowd.methods.learning.shared.trees import DecisionTree, SplitCandidates, TreeSplits

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.recoding import Classes
    from incrowd.core.steps.step import Step
    from incrowd.core.table import Table
    from incrowd.core.unit import Unit
    from incrowd.methods.learning.shared.planning import LearningTask


# of ρ: the count only sets the pace, so a fiftieth is enough; costs add up, any share is private
_FOR_COUNT = Fraction(1, 50)
_FOR_TABLES = Fraction(1, 2)  # of ρ: half for the start, half for the gradients; costs add up, any share is private
_SMALL = Fraction(1, 400)  # of ρ: below it each round would be mostly noise, and half as many rounds are taken
REACH = Fraction(7, 10)
"""Of the longest vector: longer ones are shortened; less adds bias, and takes noise away (`VectorSpace.of`)."""
_RIDGE = 0.7  # of the noise's size: more shrinks the model, less lets the noise in; post-processing


@dataclass(frozen=True, eq=False)
class FittedScores:
    """What a recipe makes: an offset, a table for each column, how scores become chances, about how many rows."""

    offset: Floats
    tables: tuple[Floats, ...]
    link: ScoreLink
    rows: float
    trees: tuple[DecisionTree, ...] = ()

    def model(self, task: LearningTask, target: str) -> LearnedModel:
        """Return the model that a file holds."""
        tables = tuple(map(rounded, self.tables))
        offset = rounded(self.offset)
        return LearnedModel(
            Use.CLASSES, task.encoders, task.outputs, offset, tables, target, self.link, trees=self.trees
        )


@dataclass(frozen=True)
class Recipe:
    """A way to learn classes: the sums that it needs, what it makes of them, and how it reads rows, once as a rule."""

    form: ModelForm
    sums: Callable[[LearningTask, Fraction, Unit], tuple[Step, ...]]
    fit: Callable[[LearningTask, Any, tuple[Step, ...], Coins], FittedScores]
    read: Callable[[Table, Sequence[Classes], Coins], Any] = Records.of


def pure_tables(task: LearningTask, epsilon: Fraction, unit: Unit) -> tuple[Step, ...]:
    """Return the tables of naive Bayes with Laplace noise that costs ε."""
    return (CountByTarget(len(task.inputs), Law.LAPLACE, summed_move(unit, len(task.inputs)) / epsilon),)


def tables_under(task: LearningTask, rho: Fraction, unit: Unit) -> tuple[CountByTarget]:
    """Return the tables of naive Bayes with Gaussian noise that costs ρ."""
    square = squared_move(unit, len(task.inputs), aligned=True)
    return (CountByTarget(len(task.inputs), Law.GAUSSIAN, gaussian_scale(rho, square)),)


def _counted(task: LearningTask, records: Records, step: CountByTarget, coins: Coins) -> tuple[Integers, float]:
    """Return noisy tables, and the standard deviation of their noise."""
    counts = noisy(class_tables(records, len(task.outputs)), step.scale, coins, step.noise)
    return counts, float(step.scale) * (1.0 if step.noise is Law.GAUSSIAN else math.sqrt(2.0))


def fit_tables(task: LearningTask, records: Records, steps: tuple[Step, ...], coins: Coins) -> FittedScores:
    """Return naive Bayes."""
    (step,) = steps
    assert isinstance(step, CountByTarget)  # noqa: S101 - as the recipe says
    tables, deviation = _counted(task, records, step, coins)
    rows = float(total_rows(tables, task.sizes).sum())
    return fitted_scores(naive_bayes(tables, task.sizes, deviation), task, rows)


def _gradients(task: LearningTask, rho: Fraction, unit: Unit, rounds: int) -> FollowGradients:
    outputs = 1 if len(task.outputs) == 2 else len(task.outputs)
    step = FollowGradients(rounds, len(task.inputs), outputs, RESIDUAL, Fraction(1))
    scale = gaussian_scale(rho / rounds, squared_move(unit, step.square, aligned=False))
    return FollowGradients(rounds, len(task.inputs), outputs, RESIDUAL, scale)


def _measured(
    task: LearningTask, records: Records, step: FollowGradients, coins: Coins
) -> Callable[[Integers, Integers], Integers]:
    return lambda intercepts, scores: noisy(gradient(records, len(task.outputs), intercepts, scores), step.scale, coins)


def gradients_under(task: LearningTask, rho: Fraction, unit: Unit) -> tuple[Step, ...]:
    """Return a count of all rows and gradients that cost ρ together; fewer of them where ρ is small."""
    count = CountAllRows(gaussian_scale(rho * _FOR_COUNT, squared_move(unit, 1, aligned=True)))
    return count, _gradients(task, rho * (1 - _FOR_COUNT), unit, 30 if rho < _SMALL else 60)


def fit_gradients(task: LearningTask, records: Records, steps: tuple[Step, ...], coins: Coins) -> FittedScores:
    """Return a logistic model, or a multinomial one, by noisy gradient descent."""
    count, step = steps
    assert isinstance(count, CountAllRows)  # noqa: S101 - as the recipe says
    assert isinstance(step, FollowGradients)  # noqa: S101 - as the recipe says
    rows = max(1.0, float(noisy(np.array([records.counts.total]), count.scale, coins)[0]))
    start = Scores(np.zeros(step.outputs), np.zeros((sum(task.sizes), step.outputs)))
    descent = Descent(step.rounds, 40.0 if step.rounds == 30 else 120.0, rows)
    scores = descend(_measured(task, records, step, coins), descent, len(task.inputs), start)
    return fitted_scores(scores.paired, task, rows)


def additive_under(task: LearningTask, rho: Fraction, unit: Unit) -> tuple[Step, ...]:
    """Return tables, and ten gradients from where they lead, that cost ρ together."""
    return *tables_under(task, rho * _FOR_TABLES, unit), _gradients(task, rho * (1 - _FOR_TABLES), unit, 10)


def fit_additive(task: LearningTask, records: Records, steps: tuple[Step, ...], coins: Coins) -> FittedScores:
    """Return an additive model: naive Bayes, refined by noisy gradients."""
    count, step = steps
    assert isinstance(count, CountByTarget)  # noqa: S101 - as the recipe says
    assert isinstance(step, FollowGradients)  # noqa: S101 - as the recipe says
    tables, deviation = _counted(task, records, count, coins)
    rows = float(total_rows(tables, task.sizes).sum())
    counts = np.maximum(tables.sum(axis=1), 0.0)
    start = naive_bayes(tables, task.sizes, deviation)
    if step.outputs == 1:
        start = Scores(start.intercepts[1:] - start.intercepts[:1], start.tables[:, 1:] - start.tables[:, :1])
    start = start.centered(counts + 1.0, task.sizes)
    pace = 2.0 * counts + 2.0 * float(step.scale / step.residual) + 0.01 * rows
    scores = refine(_measured(task, records, step, coins), Descent(step.rounds, 1.0, rows), start, pace)
    return fitted_scores(scores.paired, task, rows)


def _space(task: LearningTask) -> tuple[VectorSpace, int, int]:
    """Return the vectors of rows, the constant beside them, and what a class of the target is."""
    space = VectorSpace.of(task.inputs, REACH)
    one_class = math.isqrt(space.square)
    return space, max(1, 2 * one_class // 5), one_class


def products_under(task: LearningTask, rho: Fraction, unit: Unit) -> tuple[Step, ...]:
    """Return products that cost ρ."""
    space, one, own = _space(task)
    return (product_step(space.width + 1 + len(task.outputs), space.square + one**2 + own**2, rho, unit),)


def fit_products(task: LearningTask, records: Records, steps: tuple[Step, ...], coins: Coins) -> FittedScores:
    """Return least squares on the classes, with a penalty as large as the noise."""
    (step,) = steps
    assert isinstance(step, MultiplyColumns)  # noqa: S101 - as the recipe says
    space, one, own = _space(task)
    ends = own * np.eye(len(task.outputs), dtype=np.int64)
    sums = moments(records, space.vectors, ends, one)
    spread = RowSpread.of(noisy_moments(sums, (step.scale, step.beside), coins), space.width, one, float(step.scale))
    line = ridge(spread, space.width, _RIDGE * float(step.scale) * math.sqrt(2.0 * space.width))
    doubt = float(step.beside) / (one * own * spread.rows)
    usual = shrunken(spread.mean[space.width :] / own, doubt) - spread.mean[: space.width] @ line.slopes / own
    return FittedScores(usual, space.tables(line.slopes / own), ScoreLink.SHARES, spread.rows)


def fitted_scores(scores: Scores, task: LearningTask, rows: float) -> FittedScores:
    """Return what a model has of scores for the classes of all columns, stacked."""
    ends = np.cumsum(task.sizes)[:-1]
    return FittedScores(scores.intercepts, tuple(np.split(scores.tables, ends)), ScoreLink.SOFTMAX, rows)


RECIPES = {
    "naive-bayes": Recipe(ModelForm.NAIVE_BAYES, tables_under, fit_tables),
    "gradient": Recipe(ModelForm.GRADIENT, gradients_under, fit_gradients),
    "additive": Recipe(ModelForm.ADDITIVE, additive_under, fit_additive),
    "moments": Recipe(ModelForm.LEAST_SQUARES, products_under, fit_products),
}
PURE = Recipe(ModelForm.NAIVE_BAYES, pure_tables, fit_tables)
"""The one that needs no δ: its budget is ε."""


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
    forest = SplitCandidates.of(task.sizes, task.ordered).random(count.trees, count.depth)
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
            cuts, rounded((np.log(leaf_shares(sums.astype(np.float64), deviation)) - anywhere) / math.sqrt(len(forest)))
        )
        for cuts, sums in zip(forest, counts, strict=True)
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
        positive = np.maximum(level, 0.0)
        shares = (positive + noise * above) / (positive.sum(axis=1, keepdims=True) + noise)
    return shares


def sampled(expected_rows: int | None, delta: Fraction | None) -> Recipe:
    """Return the way to learn from samples, whose size follows from about how many rows there are."""
    rate = rate_of(expected_rows, delta)

    def sums(task: LearningTask, epsilon: Fraction, unit: Unit) -> tuple[Step, ...]:
        return sampled_sums((len(task.inputs), _outputs(task)), (epsilon, delta or Fraction(0)), rate, unit)

    def fit(task: LearningTask, rows: SampledRecords, steps: tuple[Step, ...], coins: Coins) -> FittedScores:
        (step,) = steps
        assert isinstance(step, SampleGradients)  # noqa: S101 - as the recipe says
        classes = len(task.outputs)

        def off(records: Records, scores: Integers, turn: tuple[int, int]) -> Integers:
            return column_residuals(records, classes, scores, turn)

        descent = SampleDescent(classes, _outputs(task), off, 0.5)
        tables, _, total = descent.follow(task.sizes, rows, step, coins)
        scores = Scores(np.zeros(_outputs(task)), tables).paired
        return fitted_scores(scores, task, total or float(expected_rows or 0))

    return Recipe(ModelForm.SAMPLED_ADDITIVE, sums, fit, SampledRecords.of)


def _outputs(task: LearningTask) -> int:
    return 1 if len(task.outputs) == 2 else len(task.outputs)
