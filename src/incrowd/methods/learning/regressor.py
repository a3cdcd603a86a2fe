"""Regressor: a model that predicts a number, by least squares, by functions of single columns, or by trees."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from incrowd.accounting.concentrated import largest_rho
from incrowd.core.domain import Numbers
from incrowd.core.plan import Method, Plan
from incrowd.errors import InvalidParameter
from incrowd.methods.learning.shared.fits import Descent, Floats, RowSpread, Scores, refine, ridge
from incrowd.methods.learning.shared.growth import (
    FOR_CUTS,
    GROWN,
    ForestShape,
    GrowthGoal,
    check_depth,
    grow_all,
    grown,
    leaf_sums,
)
from incrowd.methods.learning.shared.inference import LinearInference, NoisyProducts, least_squares
from incrowd.methods.learning.shared.inputs import UNIT, Inputs, NumberScale, features_of, interval_classes, usual_bins
from incrowd.methods.learning.shared.models import LearnedModel, ScoreLink, Use, rounded
from incrowd.methods.learning.shared.moves import gaussian_scale, squared_move
from incrowd.methods.learning.shared.output import LearningCheck, LearningPicture, ModelTable
from incrowd.methods.learning.shared.planning import LearningTask, budget_of, check_parameters, plan_of
from incrowd.methods.learning.shared.statistics import (
    RESIDUAL,
    SCORE,
    Records,
    VectorSpace,
    moments,
    noisy,
    noisy_moments,
    number_gradient,
    product_step,
    target_sums,
)
from incrowd.methods.learning.shared.steps import FollowGradients, ModelForm, MultiplyColumns, SumByColumn
from incrowd.methods.learning.shared.streaming import (
    SampleDescent,
    SampledRecords,
    number_residuals,
    rate_of,
    sampled_sums,
)
from incrowd.methods.learning.shared.tree_steps import GrowTrees, SampleGradients, SumLeaves
from incrowd.methods.learning.shared.trees import DecisionTree

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.recoding import Classes
    from incrowd.core.schema import Schema
    from incrowd.core.steps.step import Step
    from incrowd.core.table import Table
    from incrowd.core.unit import Unit
    from incrowd.methods.learning.shared.statistics import Integers


# of the longest vector: longer ones are shortened; less adds bias, and takes noise away (`VectorSpace.of`)
_REACH = Fraction(1, 2)
_FOR_SUMS = Fraction(1, 2)  # of ρ: half for the moments, half for the rounds; costs add up, any share is private
_ROUNDS = 10  # each gets a tenth of the rest of ρ; more would be noisier
_PENALTY = 1.5  # of the noise's size; post-processing
_WEIGHT = round(UNIT / math.sqrt(2.0))


@dataclass(frozen=True, eq=False)
class FittedNumbers:
    """What a recipe makes: an offset, tables or trees, in halves of the declared range, and about how many rows."""

    offset: float
    tables: tuple[Floats, ...]
    rows: float
    trees: tuple[DecisionTree, ...] = ()
    inference: LinearInference | None = None

    def model(self, task: LearningTask, target: str) -> LearnedModel:
        """Return the model that a file holds."""
        scale = NumberScale.of(task.classes[-1])
        assert scale is not None  # noqa: S101 - the target has bounds
        own = self.scaled(scale)
        return LearnedModel(
            Use.NUMBERS,
            task.encoders,
            task.outputs,
            rounded(np.array([own.offset])),
            own.tables,
            target,
            ScoreLink.NUMBER,
            (scale.center - scale.half, scale.center + scale.half),
            trees=own.trees,
            inference=own.inference,
        )

    def scaled(self, scale: NumberScale) -> FittedNumbers:
        """Return the same in the units of the target."""
        trees = tuple(DecisionTree(tree.cuts, rounded(tree.leaves * scale.half)) for tree in self.trees)
        tables = tuple(rounded(table * scale.half) for table in self.tables)
        return FittedNumbers(scale.center + scale.half * self.offset, tables, self.rows, trees, self.inference)


@dataclass(frozen=True)
class NumberRecipe:
    """A way to learn numbers: the sums that it needs, and what it makes of them."""

    form: ModelForm
    sums: Callable[[LearningTask, Fraction, Unit], tuple[Step, ...]]
    fit: Callable[[LearningTask, Any, tuple[Step, ...], Coins], FittedNumbers]
    read: Callable[[Table, Sequence[Classes], Coins], Any] = Records.of


def units_of(task: LearningTask) -> Integers:
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
    ends = (units_of(task) * own // UNIT)[:, None]
    sums = noisy_moments(moments(records, space.vectors, ends, own), (step.scale, step.beside), coins)
    spread = RowSpread.of(sums, space.width, own, float(step.scale))
    line = ridge(spread, space.width, float(step.scale) * math.sqrt(2.0 * space.width))
    return FittedNumbers(float(line.intercepts[0]) / own, space.tables(line.slopes / own), spread.rows)


def _whole_space(task: LearningTask) -> tuple[VectorSpace, int]:
    """Return the vectors of rows, none of them shortened: intervals would not know of it."""
    space = VectorSpace.of(task.inputs, Fraction(1))
    return space, max(1, math.isqrt(space.square // 2))


def linear_under(task: LearningTask, rho: Fraction, unit: Unit) -> tuple[Step, ...]:
    """Return products of rows that are not shortened, that cost ρ."""
    space, own = _whole_space(task)
    return (product_step(space.width + 2, space.square + 2 * own**2, rho, unit),)


def fit_linear(task: LearningTask, records: Records, steps: tuple[Step, ...], coins: Coins) -> FittedNumbers:
    """Return least squares with intervals; with a penalty and without intervals, if noise leaves too little."""
    (step,) = steps
    assert isinstance(step, MultiplyColumns)  # noqa: S101 - as the recipe says
    space, own = _whole_space(task)
    scale = NumberScale.of(task.classes[-1])
    assert scale is not None  # noqa: S101 - the target has bounds
    ends = np.rint(own * (scale.middles - scale.center) / scale.half).astype(np.int64)[:, None]
    sums = noisy_moments(moments(records, space.vectors, ends, own), (step.scale, step.beside), coins)
    spread = RowSpread.of(sums, space.width, own, float(step.scale))
    one = np.append(np.full(space.width, float(UNIT)), [own, own])
    deviations = np.full(sums.shape, float(step.beside))
    np.fill_diagonal(deviations, float(step.scale))
    products = NoisyProducts(sums / np.outer(one, one), deviations / np.outer(one, one))
    features = LinearFeatures.of(task)
    places = products.estimable(features.groups)
    fitted = least_squares(products.of(places), spread.rows)
    if fitted is None:
        line = ridge(spread, space.width, float(step.scale) * math.sqrt(2.0 * space.width))
        return FittedNumbers(float(line.intercepts[0]) / own, space.tables(line.slopes / own), spread.rows)
    slopes = np.zeros(space.width + 1)
    slopes[places[:-1]] = fitted[0]
    tables = space.tables(slopes[:-1, None] / UNIT)
    return FittedNumbers(float(slopes[-1]), tables, spread.rows, (), features.declared(places[:-1], fitted))


@dataclass(frozen=True, eq=False)
class LinearFeatures:
    """What each number of a row's vector is, the constant last: its column and class, and the scale of numbers."""

    terms: tuple[tuple[str | None, str | None], ...]
    values: tuple[tuple[float, ...] | None, ...]
    scales: tuple[NumberScale | None, ...]
    target: NumberScale

    @classmethod
    def of(cls, task: LearningTask) -> LinearFeatures:
        """Return the features of a task."""
        terms: list[tuple[str | None, str | None]] = []
        values: list[tuple[float, ...] | None] = []
        scales: list[NumberScale | None] = []
        for item, encoder in zip(task.inputs, task.encoders, strict=True):
            scale = NumberScale.of(item)
            labels = [None] if scale is not None else list(encoder.labels)
            terms += [(encoder.name, label) for label in labels]
            scales += [scale] * len(labels)
            middles = None if scale is None else scale.center + scale.half * features_of(item)[:, 0] / UNIT
            values += [None if middles is None else tuple(middles.tolist())] * len(labels)
        own = NumberScale.of(task.classes[-1])
        assert own is not None  # noqa: S101 - the target has bounds
        return cls((*terms, (None, None)), (*values, None), (*scales, None), own)

    @property
    def groups(self) -> list[list[int]]:
        """The places of the classes of each column that has no numbers."""
        names = dict.fromkeys(name for (name, _), scale in zip(self.terms, self.scales, strict=True) if scale is None)
        return [
            [place for place, (own, _) in enumerate(self.terms) if own == name] for name in names if name is not None
        ]

    def declared(self, places: Integers, fitted: tuple[Floats, Floats, float]) -> LinearInference:
        """Return an inference in declared units: the constant, which is the last place, at 0 of each number."""
        line, covariance, variance = fitted
        turn = self.target.half * np.eye(len(places))
        for row, place in enumerate(places):
            scale = self.scales[place]
            if scale is not None:
                turn[-1, row] = -self.target.half * scale.center / scale.half
                turn[row, row] = self.target.half / scale.half
        estimates = turn @ line
        estimates[-1] += self.target.center
        return LinearInference(
            tuple(self.terms[place] for place in places),
            tuple(self.values[place] for place in places),
            rounded(estimates),
            rounded(turn @ covariance @ turn.T),
            float(f"{variance * self.target.half**2:.9g}"),
        )


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
    units = units_of(task)
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
    fitted = refine(measured, Descent(step.rounds, 1.0, pace * (rows + noise), penalty), start, slow)
    return FittedNumbers(float(fitted.intercepts[0]), tuple(np.split(fitted.tables, starts[1:])), rows)


def sampled(expected_rows: int | None, delta: Fraction) -> NumberRecipe:
    """Return the way to learn a function of each column from samples, whose size follows from the expected rows."""
    rate = rate_of(expected_rows, delta)

    def sums(task: LearningTask, epsilon: Fraction, unit: Unit) -> tuple[Step, ...]:
        return sampled_sums((len(task.inputs), 1), (epsilon, delta), rate, unit)

    def fit(task: LearningTask, rows: SampledRecords, steps: tuple[Step, ...], coins: Coins) -> FittedNumbers:
        (step,) = steps
        assert isinstance(step, SampleGradients)  # noqa: S101 - as the recipe says
        units = units_of(task)
        own = units * (SCORE // UNIT)

        def off(records: Records, scores: Integers, turn: tuple[int, int]) -> Integers:
            return number_residuals(records, own, scores, turn[0])

        descent = SampleDescent(len(units), 1, off, 1.0)
        tables, counts, total = descent.follow(task.sizes, rows, step, coins)
        scores = Scores(np.zeros(1), tables).centered(np.maximum(counts, 0.0) + 1.0, task.sizes)
        parts = tuple(np.split(scores.tables, np.cumsum(task.sizes)[:-1]))
        return FittedNumbers(float(scores.intercepts[0]), parts, total or float(expected_rows or 0))

    return NumberRecipe(ModelForm.SAMPLED_ADDITIVE, sums, fit, SampledRecords.of)


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
    units = units_of(task)
    forest = grow_all(task, records, GrowthGoal.numbers(units), grow, coins)
    weights = np.stack([np.full_like(units, leaves.weight), units], axis=1)
    sums = noisy(leaf_sums(records, weights, forest, task.ordered), leaves.scale, coins).astype(np.float64)
    doubt = float(leaves.scale) / leaves.weight
    means = [leaf_means(part[:, 0] / leaves.weight, part[:, 1] / UNIT, doubt) / len(forest) for part in sums]
    trees = tuple(DecisionTree(cuts, part[:, None]) for cuts, part in zip(forest, means, strict=True))
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
    "linear": NumberRecipe(ModelForm.LINEAR, linear_under, fit_linear),
    "additive": NumberRecipe(ModelForm.ADDITIVE_SUMS, additive_under, fit_additive),
}


_BINS, _TARGET_BINS = 64, 256  # in bins of equal width; finer bins round less and make more tables


@dataclass(frozen=True)
class PrivateRegressor(Method):
    """A model that predicts a number: least squares, additive, a regression tree, or a forest of them.

    Guarantee: (ε, δ)-differential privacy of everything together: the noisy sums, the choices of cuts, the model, and
    whatever is predicted with it.

    Assumes: bounds, bins and parameters were declared without looking at the rows.

    Source: Wang 2018 (regression from noisy products); Nori, Caruana, Bu, Shen & Kulkarni 2021 (additive models);
    Friedman & Schuster 2010 (trees); Rogers & Steinke 2021 (what a choice costs); Canonne, Kamath & Steinke 2020
    (integer Gaussian noise).
    """

    name: ClassVar[str] = "regressor"

    target_column: str
    epsilon: Fraction
    delta: Fraction
    columns: tuple[str, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)
    bins: int | None = None
    model: Literal["moments", "linear", "additive", "tree", "forest", "stream"] = "moments"
    expected_rows: int | None = None
    depth: int | None = None

    def __post_init__(self) -> None:
        check_parameters(self.epsilon, self.delta, self.bins, self.expected_rows)
        check_depth(self.depth)

    def task(self, schema: Schema) -> LearningTask:
        """Return from which classes which number is learned."""
        target = schema[self.target_column]
        if target not in schema.released or not isinstance(target.domain, Numbers):
            raise InvalidParameter(
                f"{target.name!r} is not a column of numbers that may be released: declare its type and bounds, or use "
                "the method classifier."
            )
        classes = interval_classes(target, _TARGET_BINS)
        if NumberScale.of(classes) is None or len(classes.marks) < 2:
            raise InvalidParameter(f"{target.name!r} has a single declared value: there is nothing to predict.")
        inputs = Inputs(self.columns, self.levels, self.bins or self._bins()).of(schema, target.name)
        return LearningTask(inputs, classes, (target.name,))

    def _bins(self) -> int:
        """Return in how many bins numbers are taken: few for functions of single columns under a small budget."""
        if self.model in ("moments", "linear"):
            return _BINS
        additive = self.model == "additive"
        return usual_bins(self.expected_rows, largest_rho(self.epsilon, self.delta) if additive else None)

    def recipe(self) -> tuple[NumberRecipe, Fraction]:
        """Return the way to learn, and its budget: ρ, or ε for samples."""
        if self.model == "stream":
            return sampled(self.expected_rows, self.delta), self.epsilon
        rho = budget_of(self.epsilon, self.delta, self.name)
        if self.model in GROWN:
            return greedy_trees(ForestShape.grown(GROWN[self.model], self.depth, self.expected_rows, rho)), rho
        return RECIPES[self.model], rho

    def plan(self, schema: Schema) -> Plan:
        task = self.task(schema)
        recipe, rho = self.recipe()
        return plan_of(self, task, schema, recipe.sums(task, rho, schema.unit), {"model": recipe.form})

    def release(self, table: Table, coins: Coins) -> ModelTable:
        """Read the rows as the recipe does, sum what it needs with noise, and make the model."""
        task = self.task(table.schema)
        recipe, rho = self.recipe()
        rows = recipe.read(table, task.classes, coins)
        fitted = recipe.fit(task, rows, recipe.sums(task, rho, table.schema.unit), coins)
        return ModelTable.of(fitted.model(task, self.target_column), fitted.rows)


CHECK = LearningCheck()
PICTURE = LearningPicture()
METHOD = PrivateRegressor
