"""Orthogonal: rows are rotated among each other, which keeps means and covariances."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from incrowd.errors import Infeasible
from incrowd.methods.perturbation.covariance import covariance, need_spread
from incrowd.methods.perturbation.frame import Numbers, Places, RowFrame, need_numbers, normals, shuffled
from incrowd.methods.perturbation.masks import GroupedMask
from incrowd.methods.perturbation.orthogonal.steps import Rotate

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema

_ROUNDING = 1e-9
_AT_ONCE = 2**20


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
    numeric: ClassVar[bool] = True

    columns: tuple[str, ...]
    strength: Fraction = Fraction(1)
    block: int = 20

    def step(self, schema: Schema) -> Rotate:
        """Return what happens, from the schema alone."""
        need_numbers(schema, self.columns, whole=True)
        return Rotate(
            columns=self.columns, strength=self.strength, block=self.block, **self.scope(schema, self.columns)
        )

    def examine(self, frame: RowFrame, schema: Schema) -> None:  # noqa: ARG002 - the same for every schema
        """Refuse a table that is too small to be rotated, or does not vary."""
        need_spread(frame, self.columns, whole=False)
        if len(frame) < 3:
            raise Infeasible("fewer than three rows cannot be rotated among each other.")

    def masked(self, frame: RowFrame, schema: Schema, coins: Coins) -> RowFrame:  # noqa: ARG002 - the same for every schema
        """Return the frame with rotated rows."""
        values = frame.matrix(self.columns)
        middle = values.mean(axis=0)
        rotated = np.empty_like(values)
        order = shuffled(coins, len(values))
        for size, rows in _blocks(order, min(self.block, len(values))):
            turns = rotations(len(rows) // size, size, float(self.strength), coins)
            stacked = (values[rows] - middle).reshape(-1, size, len(self.columns))
            rotated[rows] = middle + (turns @ stacked).reshape(-1, len(self.columns))
        return frame.replaced(**{name: rotated[:, place] for place, name in enumerate(self.columns)})

    def broken(self, before: RowFrame, after: RowFrame, schema: Schema) -> str | None:  # noqa: ARG002 - the same for every schema
        """Return that means or covariances differ by more than rounding, or None."""
        old, new = before.matrix(self.columns), after.matrix(self.columns)
        scale = np.abs(old).max(axis=0) + 1.0
        means = np.abs(old.mean(axis=0) - new.mean(axis=0)) / scale
        spread = np.abs(covariance(old / scale) - covariance(new / scale))
        return None if max(means.max(), spread.max()) < _ROUNDING else "means and covariances"

    def settings(self) -> dict[str, Any]:
        """Return what people are told of the parameters."""
        return {"orthogonal": ", ".join(self.columns), "strength": self.strength, "block": self.block}


def _blocks(order: Places, size: int) -> Iterator[tuple[int, Places]]:
    """Yield rows in an order, of which so many at a time make a block: blocks of this size, some of one row more."""
    blocks = len(order) // size
    larger = len(order) - blocks * size
    while larger > blocks:  # few blocks: they take more than one row more
        size, larger = size + 1, larger - blocks
    for each, rows in ((size + 1, order[: larger * (size + 1)]), (size, order[larger * (size + 1) :])):
        step = each * max(1, _AT_ONCE // each**2)
        for start in range(0, len(rows), step):
            yield each, rows[start : start + step]


def rotations(number: int, size: int, strength: float, coins: Coins) -> Numbers:
    """Return so many random orthogonal matrices that keep the vector of ones.

    On the space orthogonal to the ones, each is the orthogonal part of the identity plus a normal matrix.
    """
    basis = np.linalg.qr(np.column_stack([np.ones(size), np.eye(size)[:, : size - 1]]))[0][:, 1:]
    drawn = np.eye(size - 1) + strength * normals(coins, number * (size - 1), size - 1).reshape(
        number, size - 1, size - 1
    )
    turns, triangles = np.linalg.qr(drawn)
    signs = np.where(np.diagonal(triangles, axis1=1, axis2=2) < 0, -1.0, 1.0)
    rotated: Numbers = np.full((size, size), 1.0 / size) + basis @ (turns * signs[:, None, :]) @ basis.T
    return rotated
