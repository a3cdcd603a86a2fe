"""Inference: least squares from noisy products with confidence intervals that know the noise, in floating point.

Nothing here reads a row or costs anything.  To first order, the noise E on the products A = ΣzzT and e on b = Σzy moves
the coefficients β = A⁻¹b by A⁻¹(e − Eβ), whose covariance is known exactly because the scale of the noise is public.
The rows themselves add s²A⁻¹, as in every textbook: errors with one variance, independent between rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_CLEAR = 3.0  # times the size of the noise: below it products say too little, and first order is not enough
_KEYS = frozenset(("terms", "values", "estimates", "covariance", "variance"))


@dataclass(frozen=True, eq=False)
class NoisyProducts:
    """Noisy sums of products of features, the target last, and the standard deviations of their noise."""

    sums: Floats
    deviations: Floats

    @property
    def size(self) -> float:
        """About the largest that the noise can make of a sum of features: its spectral norm."""
        return float(self.deviations[:-1, :-1].max()) * math.sqrt(2.0 * (len(self.sums) - 1))

    def of(self, places: NDArray[np.int64]) -> NoisyProducts:
        """Return those of some features."""
        return NoisyProducts(self.sums[np.ix_(places, places)], self.deviations[np.ix_(places, places)])

    def estimable(self, groups: list[list[int]]) -> NDArray[np.int64]:
        """Return the features that can be told apart: of each group of classes all but the most frequent one.

        Classes with about as few rows as there is noise count as that one.
        """
        frequent = np.diag(self.sums)
        left_out = {place for group in groups for place in group if frequent[place] < _CLEAR * self.size}
        left_out |= {max(group, key=lambda place: float(frequent[place])) for group in groups}
        return np.array([place for place in range(len(self.sums)) if place not in left_out], np.int64)


@dataclass(frozen=True, eq=False)
class LinearInference:
    """Coefficients with their covariance, and the variance of a row around the line, in declared units.

    `terms` are pairs of a column and a class of it: no class for a column of numbers, neither for the intercept.
    `values` has for a term of numbers what each code of its column stands for; other classes than those that are
    listed are the reference.
    """

    terms: tuple[tuple[str | None, str | None], ...]
    values: tuple[tuple[float, ...] | None, ...]
    estimates: Floats
    covariance: Floats
    variance: float

    def intervals(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the lower and upper ends of the confidence intervals of all coefficients, each by itself."""
        wide = quantile(level) * np.sqrt(np.diag(self.covariance))
        return self.estimates - wide, self.estimates + wide

    def around(self, rows: Floats, level: float, *, single: bool) -> Floats:
        """Return how far the ends lie from the line: of the mean of rows like these, or of a single such row."""
        spread = np.einsum("ij,jk,ik->i", rows, self.covariance, rows)
        wide: Floats = quantile(level) * np.sqrt(np.maximum(spread, 0.0) + (self.variance if single else 0.0))
        return wide

    def to_json(self) -> dict[str, Any]:
        """Return the plain form of a model's file."""
        return {
            "terms": [list(term) for term in self.terms],
            "values": [None if numbers is None else list(numbers) for numbers in self.values],
            "estimates": self.estimates.tolist(),
            "covariance": self.covariance.tolist(),
            "variance": self.variance,
        }

    @classmethod
    def from_json(cls, plain: Any) -> LinearInference:
        """Read what `to_json` wrote, or raise a ValueError."""
        if not isinstance(plain, dict) or set(plain) != _KEYS:
            raise ValueError("inference")
        terms = tuple((_text(column), _text(label)) for column, label in plain["terms"])
        numbers = [np.array(plain[name], np.float64) for name in ("estimates", "covariance")]
        variance = float(plain["variance"])
        values = tuple(None if item is None else tuple(map(float, item)) for item in plain["values"])
        shapes = [(len(terms),), (len(terms), len(terms))]
        if len(values) != len(terms) or [part.shape for part in numbers] != shapes or not variance >= 0:
            raise ValueError("inference")
        if not all(np.isfinite(part).all() for part in numbers) or not math.isfinite(variance):
            raise ValueError("inference")
        return cls(terms, values, numbers[0], numbers[1], variance)


def _text(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ValueError("term")
    return value


def quantile(level: float) -> float:
    """Return how many standard deviations an interval of a confidence level spans to each side.

    >>> round(quantile(0.95), 3)
    1.96
    """
    return NormalDist().inv_cdf(0.5 + level / 2.0)


def least_squares(products: NoisyProducts, rows: float) -> tuple[Floats, Floats, float] | None:
    """Return coefficients, their covariance, and the variance of a row; None where noise leaves too little.

    The last line of the products is the target's.
    """
    own, cross, square = products.sums[:-1, :-1], products.sums[:-1, -1], float(products.sums[-1, -1])
    noise, beside = products.deviations[:-1, :-1] ** 2, products.deviations[:-1, -1] ** 2
    if np.linalg.eigvalsh(own)[0] < _CLEAR * products.size or rows <= len(own) + 1:
        return None
    inverse = np.linalg.inv(own)
    line = inverse @ cross
    moved = noise * np.outer(line, line)
    np.fill_diagonal(moved, beside + noise @ line**2)
    left = square - cross @ line
    doubt = float(products.deviations[-1, -1]) ** 2 + 4.0 * beside @ line**2 + 2.0 * (line**2) @ noise @ (line**2)
    variance = max(0.0, float(left) + math.sqrt(float(doubt))) / (rows - len(own))
    covariance: Floats = np.asarray(variance * inverse + inverse @ moved @ inverse, np.float64)
    return line, covariance, variance
