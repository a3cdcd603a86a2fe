"""Regressor: a model that predicts a number, by least squares from noisy products."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from incrowd.core.domain import Numbers
from incrowd.core.plan import Plan
from incrowd.errors import InvalidParameter
from incrowd.methods.learning.fits import RowSpread, ridge
from incrowd.methods.learning.inputs import UNIT, Inputs, NumberScale, interval_classes
from incrowd.methods.learning.models import LearnedModel, ScoreLink, Use, rounded
from incrowd.methods.learning.output import ModelTable
from incrowd.methods.learning.planning import LearningTask, budget_of, check_parameters, plan_of
from incrowd.methods.learning.records import Records
from incrowd.methods.learning.statistics import moments, noisy_moments
from incrowd.methods.learning.vectors import VectorSpace, product_step

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema
    from incrowd.core.table import Table
    from incrowd.methods.learning.steps import MultiplyColumns

_BINS, _TARGET_BINS = 64, 256
_REACH = Fraction(1, 2)


@dataclass(frozen=True)
class PrivateRegressor:
    """A model that predicts a number: least squares with a penalty as large as the noise.

    Promise: (ε, δ)-differential privacy of everything together: the noisy products, the model, and whatever is
    predicted with it.

    Assumes: bounds, bins and parameters were declared without looking at the rows.

    Source: Wang 2018 (regression from noisy products); Canonne, Kamath & Steinke 2020 (integer Gaussian noise).
    """

    name: ClassVar[str] = "regressor"

    target_column: str
    epsilon: Fraction
    delta: Fraction
    columns: tuple[str, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)
    bins: int | None = None

    def __post_init__(self) -> None:
        check_parameters(self.epsilon, self.delta, self.bins)

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
        inputs = Inputs(self.columns, self.levels, self.bins or _BINS).of(schema, target.name)
        return LearningTask(inputs, classes, (target.name,))

    def space(self, task: LearningTask) -> tuple[VectorSpace, int]:
        """Return the vectors of rows, and what the constant and the largest target beside them are."""
        space = VectorSpace.of(task.inputs, _REACH)
        return space, max(1, math.isqrt(space.square // 2))

    def step(self, task: LearningTask, schema: Schema) -> MultiplyColumns:
        """Return the products, with noise that costs what may be spent."""
        space, own = self.space(task)
        rho = budget_of(self.epsilon, self.delta, self.name)
        return product_step(space.width + 2, space.square + 2 * own**2, rho, schema.unit)

    def plan(self, schema: Schema) -> Plan:
        """Promise from the schema alone."""
        task = self.task(schema)
        settings = {"model": "least squares from noisy products"}
        return plan_of(self, task, schema, (self.step(task, schema),), settings)

    def release(self, table: Table, coins: Coins) -> ModelTable:
        """Count the records once, sum their products with noise, and solve."""
        task = self.task(table.schema)
        space, own = self.space(task)
        step, scale = self.step(task, table.schema), NumberScale.of(task.classes[-1])
        assert scale is not None  # noqa: S101 - as `task` says
        ends = (scale.units * own // UNIT)[:, None]
        records = Records.of(table, task.classes, coins)
        sums = noisy_moments(moments(records, space.vectors, ends, own), (step.scale, step.beside), coins)
        spread = RowSpread.of(sums, space.width, own, float(step.scale))
        line = ridge(spread, space.width, float(step.scale) * math.sqrt(2.0 * space.width))
        factor = scale.half / own
        tables = tuple(map(rounded, space.tables(line.slopes * factor)))
        model = LearnedModel(
            Use.NUMBERS,
            task.encoders,
            task.outputs,
            rounded(np.atleast_1d(scale.center + factor * line.intercepts)),
            tables,
            self.target_column,
            ScoreLink.NUMBER,
            (scale.center - scale.half, scale.center + scale.half),
        )
        return ModelTable.of(model, spread.rows)
