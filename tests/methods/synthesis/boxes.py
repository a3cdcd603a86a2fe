"""Small boxes, rows in them, and slowly changing functions, for tests of points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.domain import Dates, Domain, Numbers, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.table import Table
from incrowd.engines.local.engine import LocalEngine
from incrowd.methods.synthesis.points.grid import GridAxis, PointGrid
from tests.tables import Batches

Floats = NDArray[np.float64]


def column(name: str, domain: Domain, **rules: Any) -> Column:
    other = Type.DATE if isinstance(domain, Dates) else Type.TEXT
    kind = domain.type if isinstance(domain, Numbers) else other
    return Column(name, Role.QUASI, kind, Flat(domain), **rules)


def side(name: str, low: int = 0, high: int = 1) -> Column:
    """A column of decimal numbers."""
    return column(name, Numbers(low, high, Type.DECIMAL))


def table_of(columns: Sequence[Column], values: Iterable[Iterable[Any]]) -> Table:
    """Rows in a box, given column by column."""
    arrays = {each.name: pa.array(list(some)) for each, some in zip(columns, values, strict=True)}
    return Table(Schema(tuple(columns)), Batches(pa.table(arrays)), LocalEngine())


def scaled(axis: GridAxis, values: pa.Array) -> Floats:
    """Return coordinates with the side of the box as their unit; whole numbers and days own one unit each."""
    numbers = values.cast(pa.int32()) if pa.types.is_date(values.type) else values
    shift = Fraction(1, 2) if axis.slices.whole else Fraction(0)
    start = float(axis.slices.start - shift)
    found: Floats = (numbers.to_numpy(zero_copy_only=False).astype(np.float64) - start) / float(axis.slices.length)
    return found


def in_units(grid: PointGrid, table: pa.Table) -> Floats:
    columns = [scaled(axis, table[axis.column.name].combine_chunks()) for axis in grid.axes]
    return np.stack(columns, axis=1)


@dataclass(frozen=True, eq=False)
class Cones:
    """The least of several upturned cones, cut off: changes by at most `slope` per unit, between −bound and bound."""

    tips: Floats
    heights: Floats
    slope: float
    bound: float

    @classmethod
    def random(cls, seed: int, dimensions: int) -> Cones:
        chance = np.random.default_rng(seed)
        number = int(chance.integers(1, 6))
        slope, bound = chance.uniform(0.1, 5), chance.uniform(0.1, 2)
        return cls(chance.uniform(0, 1, (number, dimensions)), chance.uniform(-2, 2, number), slope, bound)

    def __call__(self, points: Floats) -> Floats:
        far = np.linalg.norm(points[:, None, :] - self.tips[None], axis=2)
        least: Floats = np.clip((self.heights + self.slope * far).min(axis=1), -self.bound, self.bound)
        return least
