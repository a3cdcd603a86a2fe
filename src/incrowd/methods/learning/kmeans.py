"""K-means: centers of clusters from the noisy sums of rows around points, or from the noisy counts of a grid."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from incrowd.core.plan import Method, Plan
from incrowd.core.steps.counts import Law
from incrowd.errors import InvalidParameter
from incrowd.methods.learning.shared.fits import Floats, even_points, found_centers, weighted_centers
from incrowd.methods.learning.shared.inputs import UNIT, Inputs, NumberScale
from incrowd.methods.learning.shared.models import LearnedModel, Use, rounded
from incrowd.methods.learning.shared.moves import gaussian_scale, squared_move, summed_move
from incrowd.methods.learning.shared.output import LearningCheck, LearningPicture, ModelTable
from incrowd.methods.learning.shared.planning import LearningTask, budget_of, check_parameters, plan_of
from incrowd.methods.learning.shared.statistics import Integers, Records, VectorSpace, cluster_sums, grid_counts, noisy
from incrowd.methods.learning.shared.steps import CountGrid, ModelForm, MoveCenters

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema
    from incrowd.core.table import Table


_BINS = 64  # numbers are rounded to 1/64 of their range, less than the noise
# of the longest vector: longer ones are shortened; less adds bias, and takes noise away (`VectorSpace.of`)
_REACH = Fraction(1, 2)
_MOST = 1000  # of clusters and of rounds: each round shares the budget
_POINTS, _MOST_POINTS = 6, 512  # public points of the first round for each cluster; more takes time and memory
_GRID_COLUMNS, _GRID_CELLS = 4, 2**16  # in more columns nearly all cells are empty and all counts are noise


@dataclass(frozen=True)
class PrivateClusters(Method):
    """Centers of clusters: by noisy sums around public points and Lloyd's steps, or by noisy counts of a grid.

    Guarantee: (ε, δ)-differential privacy of everything together: the noisy sums or counts, the centers, and whatever
    is assigned to them; ε-differential privacy on a grid.  Which rows are in which cluster is not released.

    Assumes: bounds, bins and parameters were declared without looking at the rows.

    Source: Su, Cao, Li, Bertino & Jin 2016 (noisy Lloyd; the grid and its size); Canonne, Kamath & Steinke 2020
    (integer Gaussian noise); Ghosh, Roughgarden & Sundararajan 2009 (integer Laplace noise).
    """

    name: ClassVar[str] = "kmeans"

    clusters: int
    epsilon: Fraction
    delta: Fraction | None = None
    columns: tuple[str, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)
    bins: int | None = None
    rounds: int = 2
    model: Literal["auto", "lloyd", "grid"] = "auto"
    expected_rows: int | None = None

    def __post_init__(self) -> None:
        check_parameters(self.epsilon, self.delta, self.bins, self.expected_rows)
        if not 2 <= self.clusters <= _MOST or not 1 <= self.rounds <= _MOST:
            raise InvalidParameter(f"there are 2 to {_MOST:,} clusters, and 1 to {_MOST:,} rounds.")

    def task(self, schema: Schema) -> LearningTask:
        """Return which classes are read."""
        inputs = Inputs(self.columns, self.levels, self.bins or _BINS).of(schema)
        return LearningTask(inputs, None, tuple(f"cluster {number + 1}" for number in range(self.clusters)))

    def choice(self, task: LearningTask) -> str:
        """Return the way, by public numbers alone: a grid where there are up to four columns, all of numbers.

        It needs to be known about how many rows there are, and as many cells as clusters at least.
        """
        numbers = all(NumberScale.of(item) is not None for item in task.inputs)
        fits = numbers and len(task.inputs) <= _GRID_COLUMNS
        if self.model == "grid" and not (fits and self.expected_rows is not None):
            raise InvalidParameter(
                f"a grid needs one to {_GRID_COLUMNS} columns, all of numbers with bounds, and expected_rows: about "
                "how many rows there are. Say it, name other columns, or use model: lloyd."
            )
        if self.model != "auto":
            return self.model
        enough = fits and self.expected_rows is not None and self._parts(task) ** len(task.inputs) >= self.clusters
        return "grid" if enough else "lloyd"

    def _parts(self, task: LearningTask) -> int:
        """Return how many parts a grid has along each column: (rows · ε / 10)^(2d / (d + 2)) cells in all."""
        width = len(task.inputs)
        rows = float(self.expected_rows or 1) * float(self.epsilon) / 10.0
        cells = min(float(_GRID_CELLS), max(1.0, rows) ** (2.0 * width / (width + 2.0)))
        return min(*task.sizes, _BINS, max(2, round(math.exp(math.log(cells) / width))))

    def step(self, task: LearningTask, schema: Schema) -> MoveCenters | CountGrid:
        """Return the sums or counts, with noise that costs what may be spent."""
        if self.choice(task) == "grid":
            scale = summed_move(schema.unit, 1) / self.epsilon
            return CountGrid(len(task.inputs), self._parts(task), Law.LAPLACE, scale)
        space = VectorSpace.of(task.inputs, _REACH)
        weight = max(1, round(math.sqrt(space.square) / (4.0 * space.width) ** 0.25))
        rho = budget_of(self.epsilon, self.delta, self.name)
        most = squared_move(schema.unit, space.square + weight**2, aligned=False)
        scale = gaussian_scale(rho / self.rounds, most)
        points = len(self._starts(space))
        return MoveCenters(self.rounds, points, self.clusters, space.width, space.square, weight, scale)

    def _starts(self, space: VectorSpace) -> Floats:
        """Return the public points of the first round."""
        number = min(_MOST_POINTS, _POINTS * self.clusters)
        return np.rint(even_points(number, space.width, UNIT))

    def plan(self, schema: Schema) -> Plan:
        task = self.task(schema)
        settings = {"model": ModelForm.CENTERS, "clusters": self.clusters}
        return plan_of(self, task, schema, (self.step(task, schema),), settings)

    def release(self, table: Table, coins: Coins) -> ModelTable:
        """Count the records once, and find the centers."""
        task = self.task(table.schema)
        space, step = VectorSpace.of(task.inputs, _REACH), self.step(task, table.schema)
        records = Records.of(table, task.inputs, coins)
        if isinstance(step, CountGrid):
            centers, rows = _on_grid(records, space, step, self.clusters, coins)
            return ModelTable.of(_model(task, space, centers), rows)
        centers, rows = self._starts(space), 0.0
        for number in range(self.rounds):
            sums = cluster_sums(records, space.vectors, centers.astype(np.int64), step.weight)
            noisy_sums = noisy(sums, step.scale, coins).astype(np.float64)
            centers = _moved(centers, noisy_sums, step) if number else _first(noisy_sums, step)
            rows = float(noisy_sums[:, 0].sum()) / step.weight
        return ModelTable.of(_model(task, space, centers), rows)


def grid_parts(space: VectorSpace, parts: int) -> tuple[Integers, ...]:
    """Return for each column in which part of the grid each code lies: numbers that are missing in the middle."""
    units = [table[:, 0] for table in space.vectors.features]
    return tuple(np.minimum((unit + UNIT) * parts // (2 * UNIT), parts - 1) for unit in units)


def _on_grid(
    records: Records, space: VectorSpace, step: CountGrid, clusters: int, coins: Coins
) -> tuple[Floats, float]:
    """Return the centers of noisy counts, and about how many rows there are; counts below their noise say nothing."""
    counts = noisy(grid_counts(records, grid_parts(space, step.parts), step.parts), step.scale, coins, step.noise)
    middles = UNIT * ((2.0 * np.arange(step.parts) + 1.0) / step.parts - 1.0)
    points = np.stack(np.meshgrid(*[middles] * step.columns, indexing="ij"), axis=-1).reshape(-1, step.columns)
    weights = np.where(counts > float(step.scale), counts, 0).astype(np.float64)
    occupied = weights > 0
    centers = weighted_centers(points[occupied], weights[occupied], clusters, 0.5 * math.sqrt(space.square))
    return np.rint(np.clip(centers, -UNIT, UNIT)), float(counts.sum())


def _first(sums: Floats, step: MoveCenters) -> Floats:
    """Return the centers that the noisy sums around public points lead to, the best of several starts."""
    doubt = float(step.scale) / step.weight
    centers = found_centers(sums[:, 1:], sums[:, 0] / step.weight, doubt, step.centers, 0.5 * math.sqrt(step.square))
    return np.rint(np.clip(centers, -UNIT, UNIT))


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


CHECK = LearningCheck()
PICTURE = LearningPicture()
METHOD = PrivateClusters
