"""Points: a public box in cells, counts of crowded cells exact and of others noisy or none, and points made of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from incrowd.core.claims.privacy import ApproximatePrivacy, Blending, ZeroKnowledge
from incrowd.core.coins import Coins
from incrowd.core.counts import Counts
from incrowd.core.keys import Codes, Keys
from incrowd.core.plan import Method, Plan
from incrowd.core.steps.counts import NoiseWhenSmall, SuppressCounts, small_counts
from incrowd.core.steps.rows import KeepRows, keep_rows
from incrowd.core.steps.samples import EveryRow
from incrowd.core.steps.step import fold
from incrowd.core.unit import Unit
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.mechanisms.partition import ClampedSmallCounts, OccupiedBins, blend
from incrowd.methods.shared.columns import row_limits
from incrowd.methods.shared.sampling import Parameters, Target, require_crowds_of_people, solve_small_counts
from incrowd.methods.synthesis.points.accuracy import Accuracy, accuracy, least_pieces, refusal
from incrowd.methods.synthesis.points.check import PointsCheck
from incrowd.methods.synthesis.points.grid import GridAxis, PointGrid
from incrowd.methods.synthesis.points.output import Points, PointsPicture
from incrowd.methods.synthesis.points.steps import (
    FINE,
    IntoCells,
    LipschitzError,
    Placement,
    PlacePoints,
    SampleOfCells,
)
from incrowd.verifier.check import maybe, one

if TYPE_CHECKING:
    from incrowd.core.schema import Schema
    from incrowd.core.table import Table


@dataclass(frozen=True)
class SyntheticPoints(Method):
    """Synthetic points in a public box: means of all slowly changing functions survive, and nobody's record does.

    Guarantee: (k, ε)-crowd-blending, with ε that of the noise (0 without noise: small cells are suppressed); on a
    secret sample (ε, δ)-differential privacy by the tight curve, and zero-knowledge with respect to the sample.  For
    every function that changes slowly a bound on how far its mean over the points is from its mean over the rows.

    Assumes: the box, s and all parameters were chosen without looking at the rows; the coins stay secret; one row is
    one person, or the person column says whose it is; all releases about these people go through one ledger.

    Source: Gehrke, Hay, Lui & Pass 2012, Example 4 (points), Examples 1 and 2 (cells), Theorem 1 (sampling).

    >>> points = SyntheticPoints(s=10, epsilon=Fraction(1), delta=Fraction(1, 10**6), rate=Fraction(1, 10))
    >>> points.parameters(Unit()).k
    8
    """

    name: ClassVar[str] = "points"

    columns: tuple[str, ...] = ()
    s: int | None = None
    error: Fraction | None = None
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rate: Fraction | None = None
    k: int | None = None
    noise_epsilon: Fraction | None = None
    place: Literal["centers", "uniform"] = "centers"

    def __post_init__(self) -> None:
        if (self.s is None) == (self.error is None):
            raise InvalidParameter("method points needs s (cells along each side of the box) or error, one of the two.")
        if self.s is not None and self.s < 1:
            raise InvalidParameter("s is the number of cells along each side of the box: at least 1.")
        if self.error is not None and self.error <= 0:
            raise InvalidParameter("the wanted error lies above 0, such as 0.01: a share of the sides of the box.")
        if self.k is not None and self.k < 1:
            raise InvalidParameter("a crowd needs k of at least 1.")
        if self.noise_epsilon is not None and self.noise_epsilon < 0:
            raise InvalidParameter("noise_epsilon lies above 0; left out, cells below k are suppressed.")
        if self.rate is not None and not 0 < self.rate <= 1:
            raise InvalidParameter("the rate lies above 0 and at most at 1; below 1 there is a secret sample.")
        if self.place not in tuple(Placement):
            raise InvalidParameter(f"points are placed at centers or uniform, not {self.place!r}.")
        if len(set(self.columns)) < len(self.columns):
            raise InvalidParameter("name each column once; left out, all released ones are taken.")
        if self.target is None and self.rate not in (None, 1):
            raise InvalidParameter("a secret sample needs delta and two of epsilon, k and rate.")
        if self.unsampled and self.k is None:
            raise InvalidParameter(
                "without a secret sample, which delta asks for, k must be given; then there is no epsilon."
            )

    @property
    def target(self) -> Target | None:
        """ε and δ as one value; None without δ."""
        return Target.of(self.epsilon, self.delta)

    @property
    def unsampled(self) -> bool:
        """Whether every row is read: then crowds are exact, and there is no ε."""
        return self.rate == 1 or self.target is None

    @property
    def noise(self) -> Fraction | None:
        """The ε of the noise on small cells; None where they are suppressed."""
        return self.noise_epsilon or None

    def parameters(self, unit: Unit) -> Parameters:
        """Return k, rate, ε and δ for a unit, the missing one solved."""
        if self.target is None or self.unsampled:
            raise InvalidParameter("without a secret sample there is no epsilon: give delta and a rate below 1.")
        return solve_small_counts(self.k, self.rate, self.target, unit, self.noise)

    def crowd(self, unit: Unit) -> int:
        """Return k, solved where it was left open."""
        return self.k if self.k is not None else self.parameters(unit).k

    def grid(self, schema: Schema) -> PointGrid:
        """Return the cells of the public box; what was drafted from rows is refused, and free text has no place."""
        names = self.columns or tuple(column.name for column in schema.released)
        for name in names:
            if schema[name] in schema.unreleased:
                raise InvalidParameter(f"{name!r} is an identifier: it is never released.")
            if name in schema.drafted:
                raise InvalidParameter(
                    f"the bounds of {name!r} were drafted from rows, and no guarantee can rest on them. Where the same "
                    'is public, write public: "source" there.'
                )
        return _grid(tuple(schema[name] for name in names), self.s, self.error, Placement(self.place))

    def accuracy(self, schema: Schema) -> Accuracy:
        """Return what is known about slowly changing functions before a row is read."""
        return accuracy(self.grid(schema), Placement(self.place), self.crowd(schema.unit), self.noise)

    def at_epsilon(self, epsilon: Fraction) -> Self | None:
        return replace(self, epsilon=epsilon) if self.k is None and self.delta is not None else None

    def plan(self, schema: Schema) -> Plan:
        unit, k, grid = schema.unit, self.crowd(schema.unit), self.grid(schema)
        drowned = None if self.noise is None else refusal(grid, k, self.noise)
        if drowned is not None:
            raise Infeasible(drowned)
        if self.unsampled and unit.max_rows > 1:
            raise InvalidParameter(
                "at rate 1 crowds of rows say nothing about people with several rows: keep max_rows at 1."
            )
        if self.unsampled:
            require_crowds_of_people(unit)
        solved = None if self.unsampled else self.parameters(unit)
        steps = (
            *keep_rows(unit),
            EveryRow() if solved is None else SampleOfCells(solved.rate),
            IntoCells(grid.sides()),
            small_counts(k, self.noise),
            PlacePoints(Placement(self.place)),
        )
        exact, sides = self.accuracy(schema).numbers, max(axis.slices.pieces for axis in grid.axes)
        settings = {"s": sides, "cells": grid.size, **{name: str(number) for name, number in exact.items()}}
        return Plan(
            self.name,
            steps,
            fold(steps, unit, Fraction(0) if solved is None else solved.delta),
            exact if solved is None else {"epsilon": solved.epsilon, **exact},
            self.release,
            settings=({"k": k} if solved is None else asdict(solved)) | settings,
            cells=grid.cells,
        )

    def release(self, table: Table, coins: Coins) -> Points:
        """Count the sampled rows of each cell in one pass, release the counts, and put points into the cells."""
        schema, k, grid = table.schema, self.crowd(table.schema.unit), self.grid(table.schema)
        limits = [*row_limits(table, coins)]
        if not self.unsampled:
            limits.append(coins.sample(self.parameters(schema.unit).rate))
        at_least = k if self.noise is None else 1
        counts = table.engine.count(table.rows, grid.cells, *limits, at_least=at_least).at_least(at_least)
        keys, released = released_cells(counts, k, self.noise, coins)
        offsets = uniform_offsets(grid, keys, released, coins) if self.place == "uniform" else None
        return Points(grid, keys, released, self.accuracy(schema), offsets)


@lru_cache(maxsize=64)
def _grid(columns: tuple[Any, ...], s: int | None, error: Fraction | None, place: Placement) -> PointGrid:
    if s is not None:
        return PointGrid.of(columns, s)
    if error is None:
        raise AssertionError("s or error is given")
    return PointGrid.of(columns, least_pieces(PointGrid.of(columns, 1), place, error))


def released_cells(counts: Counts, k: int, noise: Fraction | None, coins: Coins) -> tuple[Keys, NDArray[np.int64]]:
    """Return the cells that get points, in order, and how many; without noise, cells below k were left out before.

    With noise every cell of the grid takes part: those that no row was in get theirs as all others do.
    """
    if noise is None:
        return counts.keys, counts.counts
    bins = OccupiedBins(counts.keys.astype(np.int64), counts.counts, counts.layout.size)
    out = blend(ClampedSmallCounts(k, noise), bins, coins)
    return out.places, out.counts


def uniform_offsets(grid: PointGrid, keys: Keys, counts: NDArray[np.int64], coins: Coins) -> tuple[NDArray[Any], ...]:
    """Draw for each axis and each point a place inside its cell, uniform and exact, whatever the rows are."""
    sides = zip(grid.axes, grid.cells.layout.unpack(keys), strict=True)
    return tuple(_offsets(axis, np.repeat(codes, counts), coins) for axis, codes in sides)


def _offsets(axis: GridAxis, codes: Codes, coins: Coins) -> NDArray[Any]:
    if not axis.slices.whole:
        return coins.below(FINE, len(codes)).astype(np.uint32)
    sizes = np.diff(axis.slices.ends)[codes]
    offsets = np.zeros(len(codes), np.int64)
    for size in np.unique(sizes).tolist():
        where = np.flatnonzero(sizes == size)
        offsets[where] = coins.below(size, len(where))
    return offsets


CHECK = PointsCheck(
    order=(
        maybe(KeepRows),
        one(EveryRow, SampleOfCells),
        one(IntoCells),
        one(SuppressCounts, NoiseWhenSmall),
        one(PlacePoints),
    ),
    claims=(ApproximatePrivacy, ZeroKnowledge, Blending, LipschitzError),
)
PICTURE = PointsPicture()
METHOD = SyntheticPoints
