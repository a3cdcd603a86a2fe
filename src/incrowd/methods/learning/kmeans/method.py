"""K-means: centers of clusters, moved again and again to the noisy mean of their rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from incrowd.core.plan import Plan
from incrowd.errors import InvalidParameter
from incrowd.methods.learning.fits import Floats, spread_points
from incrowd.methods.learning.inputs import UNIT, Inputs
from incrowd.methods.learning.models import LearnedModel, Use, rounded
from incrowd.methods.learning.moves import gaussian_scale, squared_move
from incrowd.methods.learning.output import ModelTable
from incrowd.methods.learning.planning import LearningTask, budget_of, check_parameters, plan_of
from incrowd.methods.learning.records import Records
from incrowd.methods.learning.statistics import cluster_sums, noisy
from incrowd.methods.learning.steps import MoveCenters
from incrowd.methods.learning.vectors import VectorSpace

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema
    from incrowd.core.table import Table

_BINS = 64
_REACH = Fraction(1, 2)
_MOST = 1000


@dataclass(frozen=True)
class PrivateClusters:
    """Centers of clusters by Lloyd's steps on noisy sums, from public points that lie far apart.

    Promise: (ε, δ)-differential privacy of everything together: the noisy sums, the centers, and whatever is assigned
    to them.  Which rows are in which cluster is not released.

    Assumes: bounds, bins and parameters were declared without looking at the rows.

    Source: Su, Cao, Li, Bertino & Jin 2016 (noisy Lloyd); Canonne, Kamath & Steinke 2020 (integer Gaussian noise).
    """

    name: ClassVar[str] = "kmeans"

    clusters: int
    epsilon: Fraction
    delta: Fraction
    columns: tuple[str, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)
    bins: int | None = None
    rounds: int = 3

    def __post_init__(self) -> None:
        check_parameters(self.epsilon, self.delta, self.bins)
        if not 2 <= self.clusters <= _MOST or not 1 <= self.rounds <= _MOST:
            raise InvalidParameter(f"there are 2 to {_MOST:,} clusters, and 1 to {_MOST:,} rounds.")

    def task(self, schema: Schema) -> LearningTask:
        """Return which classes are read."""
        inputs = Inputs(self.columns, self.levels, self.bins or _BINS).of(schema)
        return LearningTask(inputs, None, tuple(f"cluster {number + 1}" for number in range(self.clusters)))

    def step(self, task: LearningTask, schema: Schema) -> MoveCenters:
        """Return the sums, with noise that costs what may be spent."""
        space = VectorSpace.of(task.inputs, _REACH)
        weight = max(1, round(math.sqrt(space.square) / (4.0 * space.width) ** 0.25))
        rho = budget_of(self.epsilon, self.delta, self.name)
        most = squared_move(schema.unit, space.square + weight**2, aligned=False)
        scale = gaussian_scale(rho / self.rounds, most)
        return MoveCenters(self.rounds, self.clusters, space.width, space.square, weight, scale)

    def plan(self, schema: Schema) -> Plan:
        """Promise from the schema alone."""
        task = self.task(schema)
        settings = {"model": "centers of clusters", "clusters": self.clusters}
        return plan_of(self, task, schema, (self.step(task, schema),), settings)

    def release(self, table: Table, coins: Coins) -> ModelTable:
        """Count the records once, and move the centers."""
        task = self.task(table.schema)
        space, step = VectorSpace.of(task.inputs, _REACH), self.step(task, table.schema)
        records = Records.of(table, task.inputs, coins)
        centers = np.rint(spread_points(self.clusters, space.width, 0.5 * math.sqrt(space.square)))
        rows = 0.0
        for _ in range(self.rounds):
            sums = cluster_sums(records, space.vectors, centers.astype(np.int64), step.weight)
            found = noisy(sums, step.scale, coins).astype(np.float64)
            centers, rows = _moved(centers, found, step), float(found[:, 0].sum()) / step.weight
        return ModelTable.of(_model(task, space, centers), rows)


def _moved(centers: Floats, sums: Floats, step: MoveCenters) -> Floats:
    """Return the noisy means; a center with about as few rows as there is noise stays where it is."""
    counts = sums[:, 0] / step.weight
    enough = counts > float(step.scale) / step.weight
    means = sums[:, 1:] / np.maximum(1.0, counts)[:, None]
    longest = math.sqrt(step.square)
    means *= np.minimum(1.0, longest / np.maximum(1e-9, np.linalg.norm(means, axis=1)))[:, None]
    return np.rint(np.where(enough[:, None], np.clip(means, -UNIT, UNIT), centers))


def _model(task: LearningTask, space: VectorSpace, centers: Floats) -> LearnedModel:
    """Return the model: a row is nearest to the center c with the largest 2 x·c − |c|²."""
    points = centers / UNIT
    tables = tuple(map(rounded, space.tables(2.0 * points.T / UNIT)))
    offset = rounded(-(points**2).sum(axis=1))
    vectors = rounded(space.declared_units(centers))
    return LearnedModel(Use.CLUSTERS, task.encoders, task.outputs, offset, tables, vectors=vectors)
