"""Orthogonal: rows are rotated among each other, which preserves means and covariances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from incrowd.core.coins import Coins
from incrowd.core.displacement import Displacement, DistanceKind
from incrowd.core.schema import Schema
from incrowd.core.terms import Theorem
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.methods.perturbation.shared.frame import Numbers, Places, RowFrame, covariance, normals, shuffled
from incrowd.methods.perturbation.shared.masks import GroupedMask, MaskInput, need_numbers, need_spread
from incrowd.methods.perturbation.shared.output import MaskCheck, MaskPicture
from incrowd.methods.perturbation.shared.steps import ColumnMasking, Exactness, KeptStatistic, by_group, column_list

_ROUNDING = 1e-9  # means and covariances are kept up to this, relative to them
_AT_ONCE = 2**20  # entries of rotations in memory at a time: 8 MB


@dataclass(frozen=True, kw_only=True)
class Rotate(ColumnMasking):
    """Rows in blocks drawn at random are multiplied by a random orthogonal matrix that leaves their sum as it is."""

    kind: ClassVar[str] = "rotate"
    title: ClassVar[str] = "Rotate rows"
    glyph: ClassVar[str | None] = None
    numeric: ClassVar[bool] = True
    source: ClassVar[Theorem] = Theorem(
        "orthogonal-moments",
        "Ting, Fienberg & Trottini 2008, random orthogonal matrix masking: TX has the means and "
        "covariances of X if T is orthogonal and keeps the vector of ones",
    )
    statistics = ((KeptStatistic.MOMENTS, Exactness.ROUNDED),)

    strength: Fraction
    block: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.strength <= 0 or self.block < 3:
            raise InvalidParameter("rows are rotated by a strength above 0, in blocks of 3 rows at least.")

    @property
    def displaced(self) -> Mapping[str, Displacement]:
        distance = min(1.0, float(self.strength) * self.block**0.5)
        return dict.fromkeys(self.columns, Displacement(DistanceKind.DEVIATION, distance))

    @property
    def sentence(self) -> str:
        return (
            f"In {column_list(self.columns)}, random blocks of about {self.block} rows are multiplied by a random "
            f"rotation that leaves their sum as it is{by_group(self.within)}."
        )


@dataclass(frozen=True)
class Orthogonal(GroupedMask):
    """Random orthogonal masking: means and covariances of the table stay, to the rounding of numbers.

    Rows are put into blocks at random, and each block is multiplied by an orthogonal matrix that keeps the vector of
    ones.  The stronger, the farther from the original: a strength near 0 leaves rows nearly as they are, a large one
    draws the matrix uniformly.

    Guarantee: none to people.  Means, variances and covariances of these columns are those of the original.

    Assumes: nothing.

    Source: Ting, Fienberg & Trottini 2008.

    >>> Orthogonal(("income", "rent")).settings()
    {'orthogonal': 'income, rent', 'strength': Fraction(1, 1), 'block': 20}
    """

    name: ClassVar[str] = "orthogonal"

    columns: tuple[str, ...]
    strength: Fraction = Fraction(1)
    block: int = 20

    def step(self, schema: Schema) -> Rotate:
        need_numbers(schema, self.columns, whole=True)
        return Rotate(
            columns=self.columns, strength=self.strength, block=self.block, **self.scope(schema, self.columns)
        )

    def examine(self, rows: MaskInput) -> None:
        """Refuse a table that is too small to be rotated, or does not vary."""
        need_spread(rows.frame, self.columns, whole=False)
        if len(rows.frame) < 3:
            raise Infeasible("fewer than three rows cannot be rotated among each other.")

    def masked(self, rows: MaskInput) -> RowFrame:
        values = rows.frame.matrix(self.columns)
        means = values.mean(axis=0)
        rotated = np.empty_like(values)
        order = shuffled(rows.coins, len(values))
        for size, places in _blocks(order, min(self.block, len(values))):
            matrices = rotations(len(places) // size, size, float(self.strength), rows.coins)
            stacked = (values[places] - means).reshape(-1, size, len(self.columns))
            rotated[places] = means + (matrices @ stacked).reshape(-1, len(self.columns))
        return rows.frame.replaced(**dict(zip(self.columns, rotated.T, strict=True)))

    def broken(self, rows: MaskInput, after: RowFrame) -> str | None:
        old, new = rows.frame.matrix(self.columns), after.matrix(self.columns)
        scale = np.abs(old).max(axis=0) + 1.0
        means = np.abs(old.mean(axis=0) - new.mean(axis=0)) / scale
        spread = np.abs(covariance(old / scale) - covariance(new / scale))
        return None if max(means.max(), spread.max()) < _ROUNDING else "means and covariances"

    def settings(self) -> dict[str, Any]:
        return {"orthogonal": ", ".join(self.columns), "strength": self.strength, "block": self.block}


def _blocks(order: Places, size: int) -> Iterator[tuple[int, Places]]:
    """Yield the size of some blocks with their rows, block after block; blocks have `size` rows, some one row more."""
    blocks = len(order) // size
    larger = len(order) - blocks * size
    while larger > blocks:  # few blocks: they take more than one row more
        size, larger = size + 1, larger - blocks
    for block, rows in ((size + 1, order[: larger * (size + 1)]), (size, order[larger * (size + 1) :])):
        step = block * max(1, _AT_ONCE // block**2)
        for start in range(0, len(rows), step):
            yield block, rows[start : start + step]


def rotations(number: int, size: int, strength: float, coins: Coins) -> Numbers:
    """Return random orthogonal matrices that keep the vector of ones.

    On the space orthogonal to the ones, each is the orthogonal part of the identity plus a normal matrix.
    """
    basis = np.linalg.qr(np.column_stack([np.ones(size), np.eye(size)[:, : size - 1]]))[0][:, 1:]
    noise = normals(coins, number * (size - 1), size - 1).reshape(number, size - 1, size - 1)
    turns, triangles = np.linalg.qr(np.eye(size - 1) + strength * noise)
    signs = np.where(np.diagonal(triangles, axis1=1, axis2=2) < 0, -1.0, 1.0)
    rotated: Numbers = np.full((size, size), 1.0 / size) + basis @ (turns * signs[:, None, :]) @ basis.T
    return rotated


CHECK = MaskCheck(Rotate)
PICTURE = MaskPicture()
METHOD = Orthogonal
