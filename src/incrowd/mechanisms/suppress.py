"""Suppress: small counts become zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.core.loss import Crowd
from incrowd.mechanisms.integers import integers
from incrowd.mechanisms.parameters import counting_number


@dataclass(frozen=True)
class Suppress:
    """Counts below k become zero; the others are released as they are.

    Promise: (k, 0)-crowd-blending.  In a bin of k or more, everyone can be exchanged for any of the others without
    any change; in a smaller one, everyone can be left out without any change.
    Assumes: the bins were fixed without looking at the rows, and each row counts in one bin, once.
    Source: Gehrke, Hay, Lui and Pass 2012, Example 1.

    >>> Suppress(3).release(np.array([5, 2, 0, 3])).tolist()
    [5, 0, 0, 3]
    >>> Suppress(3).loss
    Crowd(k=3, epsilon=Fraction(0, 1))
    """

    k: int
    because: ClassVar[str] = "Gehrke et al. 2012, Example 1"

    def __post_init__(self) -> None:
        counting_number(self.k, "k")

    @property
    def loss(self) -> Crowd:
        """The promise, from the parameters alone."""
        return Crowd(self.k)

    def release(self, counts: NDArray[Any]) -> NDArray[np.int64]:
        """Return the counts of all bins, those below k as zero."""
        whole = integers(counts)
        return np.where(whole >= self.k, whole, 0)
