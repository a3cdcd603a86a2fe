"""Coded: a table as codes of values, so that a release can be compared with its original."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from incrowd.core.keys import Layout, grouped
from incrowd.errors import InvalidParameter

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Coded:
    """Tuples of codes, a line for each column, and the number of rows of each tuple.

    `sizes` is the number of values of each column, `positions` the numbers or days that the codes stand for (NaN for
    missing ones); two tables that are compared have the same of both.

    >>> sexes = Coded(("sex",), np.array([[0, 1]]), np.array([3.0, 1.0]), (2,), (None,))
    >>> sexes.rows, sexes.marginal(0).tolist()
    (4.0, [0.75, 0.25])
    """

    names: tuple[str, ...]
    codes: NDArray[np.int32]
    weights: Numbers
    sizes: tuple[int, ...]
    positions: tuple[Numbers | None, ...]

    def __post_init__(self) -> None:
        if not len(self.names) == len(self.codes) == len(self.sizes) == len(self.positions):
            raise InvalidParameter("a coded table needs codes, a size and positions for each of its columns.")
        if (self.weights < 0).any():
            raise InvalidParameter("a tuple cannot have fewer than 0 rows.")

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def rows(self) -> float:
        """How many rows all tuples have together."""
        return float(self.weights.sum())

    def place(self, name: str) -> int:
        """Return the place of a column."""
        if name not in self.names:
            raise InvalidParameter(f"{name!r} is not in this table; there are {', '.join(self.names)}.")
        return self.names.index(name)

    def marginal(self, column: int) -> Numbers:
        """Return the share of each value of a column."""
        counted = np.bincount(self.codes[column], self.weights, self.sizes[column])
        return np.asarray(counted / max(counted.sum(), 1e-300))

    def pair(self, one: int, other: int) -> Numbers:
        """Return the share of each pair of values of two columns, one down and the other across."""
        wide = self.sizes[other]
        keys = self.codes[one].astype(np.int64) * wide + self.codes[other]
        counted: Numbers = np.asarray(np.bincount(keys, self.weights, self.sizes[one] * wide), np.float64)
        counted /= max(counted.sum(), 1e-300)
        return counted.reshape(self.sizes[one], wide)

    def numbers(self, column: int) -> Numbers:
        """Return for each tuple where its value of an ordered column lies; nan where it is missing."""
        positions = self.positions[column]
        if positions is None:
            raise InvalidParameter(f"{self.names[column]!r} has neither numbers nor days.")
        return np.asarray(positions[self.codes[column]])

    def classes(self, columns: Sequence[int]) -> NDArray[np.int64]:
        """Return how many rows each class over some columns has, rounded to whole rows."""
        layout = Layout(tuple(self.sizes[place] for place in columns))
        keys = layout.pack([self.codes[place] for place in columns])
        return grouped(keys, np.rint(self.weights).astype(np.int64))[1]

    def picked(self, most: int) -> Coded:
        """Return at most `most` single rows, evenly spaced over the tuples in their order."""
        total = int(np.rint(self.rows))
        ends = np.cumsum(self.weights)
        targets = np.arange(total) + 0.5 if total <= most else (np.arange(most) + 0.5) * (total / most)
        places = np.minimum(np.searchsorted(ends, targets), len(self) - 1) if len(self) else np.zeros(0, np.intp)
        return replace(self, codes=self.codes[:, places], weights=np.ones(len(places)))

    def some(self, chosen: NDArray[np.bool_]) -> Coded:
        """Return some of the tuples."""
        return replace(self, codes=self.codes[:, chosen], weights=self.weights[chosen])

    def only(self, columns: Sequence[int]) -> Coded:
        """Return some of the columns."""
        if tuple(columns) == tuple(range(len(self.names))):
            return self
        names, sizes = tuple(self.names[c] for c in columns), tuple(self.sizes[c] for c in columns)
        return Coded(names, self.codes[list(columns)], self.weights, sizes, tuple(self.positions[c] for c in columns))
