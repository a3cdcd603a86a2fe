"""Features: columns as numbers that models can read, the same for both tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.coded import Coded

Matrix = NDArray[np.float64]
_VALUES = 20


class Features:
    """How columns become numbers: ordered ones scaled, of the others the most frequent values one by one.

    It is made from one table, whose means and frequent values hold for all.

    >>> table = Coded(("sex",), np.array([[0, 0, 1]]), np.ones(3), (2,), (None,))
    >>> Features(table, [0]).of(table).tolist()
    [[0.0], [0.0], [1.0]]
    """

    def __init__(self, table: Coded, columns: Sequence[int]) -> None:
        self._columns = [self._column(table, column) for column in columns]

    def of(self, table: Coded) -> Matrix:
        """Return a line for each tuple; the most frequent value of a column is where all its features are 0."""
        return np.hstack([spelled[table.codes[column]] for column, spelled in self._columns])

    @property
    def width(self) -> int:
        """How many features there are."""
        return sum(spelled.shape[1] for _, spelled in self._columns)

    @staticmethod
    def _column(table: Coded, column: int) -> tuple[int, Matrix]:
        shares, positions = table.marginal(column), table.positions[column]
        if positions is None:
            frequent = np.argsort(-shares, kind="stable")[1 : _VALUES + 1]
            return column, (np.arange(table.sizes[column])[:, None] == frequent[None, shares[frequent] > 0]).astype(
                float
            )
        known = np.isfinite(positions)
        inside = np.where(known, positions, 0.0)
        weight = shares * known / max(float((shares * known).sum()), 1e-300)
        mean = float((weight * inside).sum())
        spread = float(np.sqrt((weight * (inside - mean) ** 2).sum())) or 1.0
        scaled = np.where(known, (inside - mean) / spread, 0.0)[:, None]
        absent = (~known).astype(float)[:, None]
        return column, np.hstack([scaled, absent]) if shares[~known].sum() > 0 else scaled
