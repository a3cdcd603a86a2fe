"""PCA: the directions in which rows differ most, from noisy products."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from incrowd.core.plan import Method, Plan
from incrowd.errors import InvalidParameter
from incrowd.methods.learning.shared.fits import RowSpread
from incrowd.methods.learning.shared.inputs import UNIT, Inputs
from incrowd.methods.learning.shared.models import LearnedModel, Use, rounded
from incrowd.methods.learning.shared.output import LearningCheck, LearningPicture, ModelTable
from incrowd.methods.learning.shared.planning import LearningTask, budget_of, check_parameters, plan_of
from incrowd.methods.learning.shared.statistics import Records, VectorSpace, moments, noisy_moments, product_step
from incrowd.methods.learning.shared.steps import ModelForm

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema
    from incrowd.core.table import Table
    from incrowd.methods.learning.shared.steps import MultiplyColumns


_BINS = 64  # numbers are rounded to 1/64 of their range, less than the noise
# of the longest vector: longer ones are shortened; less adds bias, and takes noise away (`VectorSpace.of`)
_REACH = Fraction(1, 2)


@dataclass(frozen=True)
class PrivateComponents(Method):
    """The directions in which rows differ most: eigenvectors of a noisy matrix of products, less the mean.

    Guarantee: (ε, δ)-differential privacy of everything together: the noisy products, the components, and whatever is
    computed with them.

    Assumes: bounds, bins and parameters were declared without looking at the rows.

    Source: Dwork, Talwar, Thakurta & Zhang 2014 (noisy products); Canonne, Kamath & Steinke 2020 (integer noise).
    """

    name: ClassVar[str] = "pca"

    components: int
    epsilon: Fraction
    delta: Fraction
    columns: tuple[str, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)
    bins: int | None = None

    def __post_init__(self) -> None:
        check_parameters(self.epsilon, self.delta, self.bins)
        if self.components < 1:
            raise InvalidParameter("there is one component at least.")

    def task(self, schema: Schema) -> LearningTask:
        """Return which classes are read."""
        inputs = Inputs(self.columns, self.levels, self.bins or _BINS).of(schema)
        width = VectorSpace.of(inputs, _REACH).width
        if self.components > width:
            raise InvalidParameter(f"these columns have {width:,} numbers, and there are at most as many components.")
        return LearningTask(inputs, None, tuple(f"component {number + 1}" for number in range(self.components)))

    def step(self, task: LearningTask, schema: Schema) -> MultiplyColumns:
        """Return the products, with noise that costs what may be spent."""
        space = VectorSpace.of(task.inputs, _REACH)
        rho = budget_of(self.epsilon, self.delta, self.name)
        return product_step(space.width + 1, space.square + UNIT**2, rho, schema.unit)

    def plan(self, schema: Schema) -> Plan:
        task = self.task(schema)
        step = self.step(task, schema)
        gap = math.ceil(float(step.scale) * math.sqrt(2.0 * step.numbers) / UNIT**2)
        return plan_of(self, task, schema, (step,), {"model": ModelForm.COMPONENTS, "gap": gap})

    def release(self, table: Table, coins: Coins) -> ModelTable:
        """Count the records once, sum their products with noise, and take the eigenvectors."""
        task = self.task(table.schema)
        space, step = VectorSpace.of(task.inputs, _REACH), self.step(task, table.schema)
        records = Records.of(table, task.inputs, coins)
        sums = noisy_moments(moments(records, space.vectors, None, UNIT), (step.scale, step.beside), coins)
        spread = RowSpread.of(sums, space.width, UNIT, float(step.scale))
        _, basis = np.linalg.eigh(spread.covariance)
        slopes = basis[:, ::-1][:, : self.components]
        slopes = slopes * np.where(slopes[np.abs(slopes).argmax(axis=0), np.arange(self.components)] < 0, -1.0, 1.0)
        mean = np.clip(spread.mean, -UNIT, UNIT)
        model = LearnedModel(
            Use.COMPONENTS,
            task.encoders,
            task.outputs,
            rounded(-(mean @ slopes) / UNIT),
            tuple(map(rounded, space.tables(slopes / UNIT))),
            vectors=rounded(slopes.T),
        )
        return ModelTable.of(model, spread.rows)


CHECK = LearningCheck()
PICTURE = LearningPicture()
METHOD = PrivateComponents
