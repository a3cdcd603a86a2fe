"""Marginal: the law of one coordinate of symmetric noise, alone and given that it passed a threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_Array = NDArray[np.float64]

_CLOSE = 1e-9  # a node that interpolation misses by rounding is still that node
_SEEN = 1e-290  # floats below lose digits; tails are extended from here by a line that lies above them


@dataclass(frozen=True, eq=False)
class Marginal:
    """log P[x ≥ k] at whole numbers k = 0 < k_1 < …, in between and beyond by straight lines of the logarithm.

    The laws of our noise are symmetric, and their tails fall ever faster: the line beyond the last node lies above.
    Where the nodes are all whole numbers there is nothing in between.
    """

    nodes: _Array
    logs: _Array

    @classmethod
    def of(cls, nodes: _Array, tails: _Array) -> Marginal:
        """Return the law with these tails; what cannot be told apart from nothing is left out."""
        seen = tails > _SEEN
        return cls(nodes[seen], np.log(tails[seen]))

    def log_above(self, k: Any) -> _Array:
        """Return log P[x ≥ k] for whole numbers k."""
        at = np.asarray(k, dtype=np.float64)
        far = self._line(np.maximum(at, 0.0))
        near = np.log1p(-np.exp(self._line(np.maximum(1.0 - at, 1.0))))
        return np.asarray(np.where(at > 0.0, far, near))

    def above(self, k: Any) -> _Array:
        """Return P[x ≥ k] for whole numbers k.

        >>> import math
        >>> laplace = Marginal.of(np.arange(40.0), 2.0 ** -np.arange(40.0) / 1.5)
        >>> laplace.above([1, 0, -1]).round(4).tolist()
        [0.3333, 0.6667, 0.8333]
        """
        return np.asarray(np.exp(self.log_above(k)))

    def least(self, log_chance: Any) -> _Array:
        """Return the least k ≥ 0 with log P[x ≥ k] ≤ log_chance.

        >>> Marginal.of(np.arange(40.0), 2.0 ** -np.arange(40.0) / 1.5).least(np.log(1 / 3)).tolist()
        1.0
        """
        target = np.asarray(log_chance, dtype=np.float64)
        inside = np.interp(-target, -self.logs, self.nodes)
        beyond = self.nodes[-1] + (target - self.logs[-1]) / self._slope
        return np.asarray(np.ceil(np.where(target < self.logs[-1], beyond, inside) - _CLOSE))

    def radius(self, least: Any, miss: float) -> _Array:
        """Return the least r with P[|x| ≤ r | x ≥ least] ≥ 1 − miss, for each of several whole numbers.

        The chance of x falls with |x|, so these are the likeliest outcomes: a part next to `least` where that is above
        zero or near it, and two equal sides of zero far from it.
        """
        at = np.asarray(least, dtype=np.float64)
        passed = self.log_above(at)
        one = self.least(passed + np.log(miss)) - 1.0
        two = self.least(np.log1p(-(1.0 - miss) * np.exp(passed)) - np.log(2.0)) - 1.0
        return np.asarray(np.where(at >= -one, np.maximum(one, at), two))

    @property
    def _slope(self) -> float:
        if len(self.nodes) < 2:  # all but zero is so unlikely that no number tells how much
            return math.log(_SEEN) - float(self.logs[-1])
        return float((self.logs[-1] - self.logs[-2]) / (self.nodes[-1] - self.nodes[-2]))

    def _line(self, at: _Array) -> _Array:
        beyond = self.logs[-1] + self._slope * (at - self.nodes[-1])
        return np.asarray(np.where(at > self.nodes[-1], beyond, np.interp(at, self.nodes, self.logs)))
