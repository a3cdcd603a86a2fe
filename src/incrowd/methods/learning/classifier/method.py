"""Classifier: a model that predicts a class, from noisy tables, gradients or products."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

from incrowd.core.plan import Method, Plan
from incrowd.errors import InvalidParameter
from incrowd.methods.learning.classifier.recipes import (
    PURE,
    REACH,
    RECIPES,
    Recipe,
    greedy_trees,
    random_trees,
    sampled,
)
from incrowd.methods.learning.shared.growth import GROWN, ForestShape, check_depth
from incrowd.methods.learning.shared.inputs import BINS, Inputs, NumberScale, usual_bins
from incrowd.methods.learning.shared.output import LearningCheck, LearningPicture, ModelTable
from incrowd.methods.learning.shared.planning import LearningTask, budget_of, check_parameters, plan_of
from incrowd.methods.shared.columns import text_of

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.recoding import Classes
    from incrowd.core.schema import Schema
    from incrowd.core.table import Table

_FINE_BINS = 64  # moments sum numbers, so that finer bins cost nothing
_MANY_CLASSES = 4  # a gradient splits ρ among classes, moments do not
# rules of thumb by public numbers, chosen on tables of bench/learning.py at ε .3, 1, 3; others cost no privacy
_FEW_PURE, _MANY, _CLEAR, _COARSE = 3, 200_000, 4, 2
_NOISE_IN_BINS = ("naive-bayes", "gradient", "additive")  # the fewer bins, the more rows stand above the noise of each


@dataclass(frozen=True)
class PrivateClassifier(Method):
    """A model that predicts the class of a row: naive Bayes, logistic, additive, least squares, or trees.

    Guarantee: (ε, δ)-differential privacy of everything together: the noisy sums, the choices of cuts, the model, and
    whatever is predicted with it; ε-differential privacy of random trees, and of naive Bayes where no δ is given.

    Assumes: classes, bounds, bins and parameters were declared without looking at the rows.

    Source: Canonne, Kamath & Steinke 2020 (integer Gaussian noise); Bun & Steinke 2016 (ρ adds up); Bassily, Smith &
    Thakurta 2014 (noisy gradients); Nori, Caruana, Bu, Shen & Kulkarni 2021 (additive models); Vaidya, Shafiq, Basu &
    Hong 2013 (naive Bayes); Wang 2018 (products); Friedman & Schuster 2010 (trees); Rogers & Steinke 2021 (what a
    choice of a cut costs); Jagannathan, Pillaipakkamnatt & Wright 2012 (random trees).
    """

    name: ClassVar[str] = "classifier"

    target_column: str
    epsilon: Fraction
    delta: Fraction | None = None
    model: Literal[
        "auto", "naive-bayes", "gradient", "additive", "moments", "tree", "forest", "random-trees", "stream"
    ] = "auto"
    columns: tuple[str, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)
    bins: int | None = None
    expected_rows: int | None = None
    depth: int | None = None
    smallest_share: Fraction | None = None

    def __post_init__(self) -> None:
        check_parameters(self.epsilon, self.delta, self.bins, self.expected_rows)
        if self.smallest_share is not None and not 0 < self.smallest_share <= Fraction(1, 2):
            raise InvalidParameter("smallest_share is about the share of the rarest class, above 0 and at most 1/2.")
        check_depth(self.depth)

    def task(self, schema: Schema) -> LearningTask:
        """Return from which classes which ones are learned."""
        target = schema[self.target_column]
        if target not in schema.released:
            raise InvalidParameter(f"{target.name!r} is an identifier: a model that predicts it would show it.")
        classes = Inputs((), self.levels, BINS).classes(target)
        outputs = text_of(classes.labels()).to_pylist()[: len(classes.marks)]
        if len(outputs) < 2:
            raise InvalidParameter(f"{target.name!r} has a single declared class: there is nothing to predict.")
        columns = Inputs(self.columns, self.levels, self.bins or self._bins(schema, len(outputs)))
        return LearningTask(columns.of(schema, target.name), classes, tuple(outputs))

    def _bins(self, schema: Schema, outputs: int) -> int:
        """Return in how many bins numbers are taken: the fewer rows are expected, and the less budget, the fewer."""
        choice = self.choice(Inputs(self.columns, self.levels, BINS).of(schema, self.target_column), outputs)
        if choice == "moments":
            return _FINE_BINS
        usual = usual_bins(self.expected_rows)
        if self.delta is None or choice not in _NOISE_IN_BINS:
            return usual
        return min(usual, usual_bins(self.expected_rows, budget_of(self.epsilon, self.delta, choice), _COARSE))

    def choice(self, inputs: tuple[Classes, ...], outputs: int) -> str:
        """Return the model that is learned, by public numbers alone: ε and δ, columns, classes, expected rows."""
        if self.model != "auto":
            return self.model
        if self.delta is None:
            return self._fewest(inputs, outputs)
        if outputs >= _MANY_CLASSES and all(NumberScale.of(item) is not None for item in inputs):
            return "moments"
        rho, rows = budget_of(self.epsilon, self.delta, self.model), self.expected_rows
        if rows is None or rho * rows**2 >= _MANY * len(inputs):
            return "gradient"
        return "moments" if self._clear(inputs, rho * rows**2) else self._fewest(inputs, outputs)

    def _clear(self, inputs: tuple[Classes, ...], strength: Fraction) -> bool:
        """Whether products of columns, mostly of numbers, are above their noise: less so where a class is rare.

        `strength` is ρ times the square of the number of rows.
        """
        numbers = sum(NumberScale.of(item) is not None for item in inputs)
        others = len(inputs) - numbers
        square = (REACH + (1 - REACH) / max(1, numbers)) ** 2 * numbers + others
        rarity = min(Fraction(1), 2 * (self.smallest_share or Fraction(1, 2))) ** 3
        return 2 * others <= square and strength * rarity >= _CLEAR * (Fraction(216, 100) * square) ** 2

    def _fewest(self, inputs: tuple[Classes, ...], outputs: int) -> str:
        """Return the model for few rows: with many classes trees drawn without rows, if counts are mostly noise."""
        rows, counts = self.expected_rows, len(inputs) * outputs
        mostly_noise = rows is not None and outputs > 2 and rows * self.epsilon < _FEW_PURE * counts
        return "random-trees" if mostly_noise else "naive-bayes"

    def recipe(self, task: LearningTask) -> tuple[Recipe, Fraction]:
        """Return the way to learn, and its budget: ρ, or ε where no δ is given."""
        choice = self.choice(task.inputs, len(task.outputs))
        if choice == "stream":
            return sampled(self.expected_rows, self.delta), self.epsilon
        if choice == "random-trees":
            return random_trees(ForestShape.random(self.depth, self.expected_rows, self.epsilon)), self.epsilon
        if choice in GROWN:
            rho = budget_of(self.epsilon, self.delta, choice)
            return greedy_trees(ForestShape.grown(GROWN[choice], self.depth, self.expected_rows, rho)), rho
        if choice == "naive-bayes" and self.delta is None:
            return PURE, self.epsilon
        return RECIPES[choice], budget_of(self.epsilon, self.delta, choice)

    def plan(self, schema: Schema) -> Plan:
        task = self.task(schema)
        recipe, budget = self.recipe(task)
        settings = {"model": recipe.form, "classes": len(task.outputs)}
        return plan_of(self, task, schema, recipe.sums(task, budget, schema.unit), settings)

    def release(self, table: Table, coins: Coins) -> ModelTable:
        """Read the rows as the recipe does, sum what it needs with noise, and make the model."""
        task = self.task(table.schema)
        recipe, budget = self.recipe(task)
        rows = recipe.read(table, task.classes, coins)
        fitted = recipe.fit(task, rows, recipe.sums(task, budget, table.schema.unit), coins)
        return ModelTable.of(fitted.model(task, self.target_column), fitted.rows)


CHECK = LearningCheck()
PICTURE = LearningPicture()
METHOD = PrivateClassifier
