"""Weighted rows: distinct rows as codes, and the tables that they make."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.methods.synthesis.marginals.junction import Columns
from incrowd.methods.synthesis.marginals.model import Codes

_DENSE = 2**22


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Distinct rows as codes, a column each, with how often each occurs."""

    sizes: tuple[int, ...]
    codes: Codes
    times: NDArray[np.int64]

    @classmethod
    def drawn(cls, sizes: tuple[int, ...], codes: Codes) -> WeightedRows:
        """Take each row once."""
        return cls(sizes, codes, np.ones(codes.shape[1], np.int64))

    def table(self, columns: Columns) -> NDArray[np.int64]:
        """Return the counts over some columns.

        >>> WeightedRows((2, 2), np.array([[0, 1], [1, 1]]), np.array([5, 2])).table((1,)).tolist()
        [0, 7]
        """
        shape = tuple(self.sizes[column] for column in columns)
        counts: NDArray[np.int64] = np.bincount(self.places(columns), self.times, math.prod(shape)).astype(np.int64)
        return counts.reshape(shape)

    def places(self, columns: Columns) -> NDArray[np.int64]:
        """Return in which cell of the table over some columns each row is."""
        place = np.zeros(self.codes.shape[1], np.int64)
        for column in columns:
            place = place * self.sizes[column] + self.codes[column]
        return place

    def away(self, drawn: WeightedRows, columns: Columns, total: int) -> int:
        """Return by how much counts differ from those of drawn rows, taken for so many, in all: a row moves it by 1."""
        own, other, cells = self.places(columns), drawn.places(columns), math.prod(self.sizes[c] for c in columns)
        if cells > _DENSE:  # cells that are empty in both add nothing
            found, place = np.unique(np.concatenate((own, other)), return_inverse=True)
            own, other, cells = place[: len(own)], place[len(own) :], len(found)
        times = total / max(1, int(drawn.times.sum()))
        expected = np.rint(np.bincount(other, drawn.times, cells) * times).astype(np.int64)
        return int(np.abs(np.bincount(own, self.times, cells).astype(np.int64) - expected).sum())
