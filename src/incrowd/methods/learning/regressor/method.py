"""Regressor: a model that predicts a number, by least squares, by functions of single columns, or by trees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from incrowd.accounting.concentrated import largest_rho
from incrowd.core.domain import Numbers
from incrowd.core.plan import Method, Plan
from incrowd.errors import InvalidParameter
from incrowd.methods.learning.forests import GROWN, ForestShape, check_depth
from incrowd.methods.learning.inputs import Inputs, NumberScale, interval_classes, usual_bins
from incrowd.methods.learning.models import LearnedModel, ScoreLink, Use, rounded
from incrowd.methods.learning.output import ModelTable
from incrowd.methods.learning.planning import LearningTask, budget_of, check_parameters, plan_of
from incrowd.methods.learning.records import Records
from incrowd.methods.learning.regressor.recipes import RECIPES, NumberRecipe, greedy_trees

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema
    from incrowd.core.table import Table

_BINS, _TARGET_BINS = 64, 256


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
    model: Literal["moments", "additive", "tree", "forest"] = "moments"
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
        if self.model == "moments":
            return _BINS
        additive = self.model == "additive"
        return usual_bins(self.expected_rows, largest_rho(self.epsilon, self.delta) if additive else None)

    def recipe(self) -> tuple[NumberRecipe, Fraction]:
        """Return the way to learn, and its budget ρ."""
        rho = budget_of(self.epsilon, self.delta, self.name)
        if self.model in GROWN:
            return greedy_trees(ForestShape.grown(GROWN[self.model], self.depth, self.expected_rows, rho)), rho
        return RECIPES[self.model], rho

    def plan(self, schema: Schema) -> Plan:
        """Guarantee from the schema alone."""
        task = self.task(schema)
        recipe, rho = self.recipe()
        return plan_of(self, task, schema, recipe.sums(task, rho, schema.unit), {"model": recipe.form})

    def release(self, table: Table, coins: Coins) -> ModelTable:
        """Count the records once, sum what the recipe needs with noise, and make the model."""
        task = self.task(table.schema)
        recipe, rho = self.recipe()
        records, scale = Records.of(table, task.classes, coins), NumberScale.of(task.classes[-1])
        assert scale is not None  # noqa: S101 - as `task` says
        found = recipe.fit(task, records, recipe.sums(task, rho, table.schema.unit), coins).scaled(scale)
        model = LearnedModel(
            Use.NUMBERS,
            task.encoders,
            task.outputs,
            rounded(np.array([found.offset])),
            found.tables,
            self.target_column,
            ScoreLink.NUMBER,
            (scale.center - scale.half, scale.center + scale.half),
            trees=found.trees,
        )
        return ModelTable.of(model, found.rows)
