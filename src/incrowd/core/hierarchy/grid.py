"""Grid: points at equal distances on the number line, and the one at or below each number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Grid:
    """The points origin + step · width; for whole numbers exactly, else each rounded once to the nearest double.

    Numbers and points are both doubles nearest to what was written, and are compared as such: 0.3 written in a file
    is at, not below, the third point of a grid of width 0.1.
    """

    origin: Fraction
    width: Fraction
    whole: bool

    def point(self, step: int) -> float:
        """Return one point, as it is stored.

        >>> Grid(Fraction(0), Fraction(1, 10), whole=False).point(3)
        0.3
        """
        exactly = self.origin + step * self.width
        return int(exactly) if self.whole else float(exactly)

    def step(self, number: float) -> int:
        """Return the step of the last point that is not above a number.

        The exact step is not above; the next point is, unless rounding puts it on the number.

        >>> Grid(Fraction(0), Fraction(1, 10), whole=False).step(0.3)
        3
        """
        step = math.floor((Fraction(number) - self.origin) / self.width)
        return step + (self.point(step + 1) <= number)

    def below(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return for each number the last point that is not above it.

        >>> Grid(Fraction(10), Fraction(5), whole=True).below(np.array([9, 10, 17])).tolist()
        [5, 10, 15]
        """
        if self.whole:
            whole = numbers.astype(np.int64)
            width, origin = int(self.width), int(self.origin)
            return np.asarray(whole - (whole % width - origin % width) % width)
        # The step found in floating point may be one off, so the points around it decide; where points lie closer
        # than doubles do, every number is one.
        with np.errstate(over="ignore"):
            near = np.floor((numbers.astype(np.float64) - float(self.origin)) / float(self.width))
        apart = np.abs(near) < 2.0**53
        steps, where = np.unique(np.where(apart, near, 0.0), return_inverse=True)
        around = np.array([[self.point(int(step) + more) for more in (-1, 0, 1)] for step in steps])
        before, at, after = around.reshape(-1, 3)[where].T
        points = np.where(numbers < at, before, np.where(numbers >= after, after, at))
        return np.where(apart, points, numbers)
