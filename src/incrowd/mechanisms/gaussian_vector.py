"""Gaussian noise on vectors: each coordinate has noise in proportion to how far one row moves it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.core.coins import Coins
from incrowd.core.loss import ZeroConcentrated
from incrowd.core.rounding import Number, float_up
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.integers import integers, plus
from incrowd.mechanisms.parameters import counting_number, positive
from incrowd.noise.marginal import Marginal
from incrowd.noise.tails import gaussian_reach

_DIGITS = 10**9
_PARTS = 64
_DEVIATIONS = 36


@dataclass(frozen=True)
class GaussianLaw:
    """Independent integer Gaussian noises; intervals are those of the continuous law, widened by half a step."""

    scales: tuple[Fraction, ...]

    def reach(self, place: int, chance: Fraction) -> int:
        """Return an m ≥ 1 with P[x_place ≥ m] ≤ chance, never understated."""
        return gaussian_reach(self.scales[place], chance)

    def within(self, place: int, miss: float) -> int:
        """Return a w with P[|x_place| > w] about `miss` at most."""
        return math.ceil(_quantile(miss) * float(self.scales[place]) + 0.5)

    def combined(self, places: tuple[int, int], factors: tuple[float, float], miss: float) -> float:
        """Return a t with P[|a x_i + b x_j| > t] about `miss` at most."""
        spread = math.hypot(*(factor * float(self.scales[i]) for i, factor in zip(places, factors, strict=True)))
        return _quantile(miss) * spread + sum(map(abs, factors)) / 2.0

    def together(self, miss: float) -> tuple[int, ...]:
        """Return half-widths of a box that the whole vector leaves with chance about `miss` at most."""
        each = -math.expm1(math.log1p(-miss) / len(self.scales))
        return tuple(self.within(place, each) for place in range(len(self.scales)))

    def marginal(self, place: int) -> Marginal:
        """Return the law of one coordinate.

        >>> GaussianLaw((Fraction(1),)).marginal(0).above(1).round(4).tolist()
        0.3005
        """
        return _marginal(self.scales[place])

    def given(self, place: int, reach: int, miss: float) -> tuple[int, ...]:  # noqa: ARG002 - coordinates are independent
        """Return half-widths of a box that all other coordinates leave with chance about `miss`, given one of them."""
        return self.together(miss)


@dataclass(frozen=True)
class AddGaussianVector:
    """Adds to coordinate j of each of a list of integer vectors Gaussian noise of scale `scale` · width_j.

    Promise: ρ-zero-concentrated differential privacy with ρ = d · rows² / (2 scale²) for d coordinates.
    Assumes: as `AddCube`.
    Source: Canonne, Kamath and Steinke 2020, Theorem 4.

    Proof.  If r_g of the unit's rows lie in group g, its coordinate j moves by r_g · width_j at most, which costs
    r_g² / (2 scale²).  Costs add up over d coordinates and over groups, and Σ r_g² ≤ (Σ r_g)² ≤ rows².  ∎

    >>> AddGaussianVector(Fraction(10), (1, 100)).loss
    ZeroConcentrated(rho=Fraction(1, 100))
    """

    scale: Fraction
    widths: tuple[int, ...]
    rows: int = 1
    because: ClassVar[str] = "Canonne, Kamath & Steinke 2020, Theorem 4 (integer Gaussian noise)"

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive(self.scale, "scale"))
        counting_number(self.rows, "rows")
        if not self.widths:
            raise InvalidParameter("noise needs at least one coordinate.")

    @classmethod
    def costing(cls, rho: Number, widths: tuple[int, ...], rows: int = 1) -> AddGaussianVector:
        """Return the mechanism with nearly the least scale that costs at most ρ.

        >>> AddGaussianVector.costing("0.01", (1, 100)).loss.rho <= Fraction(1, 100)
        True
        """
        square = len(widths) * Fraction(rows) ** 2 / (2 * positive(rho, "rho"))
        scale = Fraction(math.ceil(math.sqrt(float_up(square)) * _DIGITS), _DIGITS)
        while scale**2 < square:
            scale += Fraction(1, _DIGITS)
        return cls(scale, widths, rows)

    @property
    def loss(self) -> ZeroConcentrated:
        """The promise, from the parameters alone."""
        return ZeroConcentrated(len(self.widths) * Fraction(self.rows) ** 2 / (2 * self.scale**2))

    @property
    def law(self) -> GaussianLaw:
        """The law of the noise of one vector."""
        return GaussianLaw(tuple(self.scale * width for width in self.widths))

    def release(self, vectors: NDArray[Any], coins: Coins) -> NDArray[np.int64]:
        """Return the noisy vectors; each is a row.

        >>> from incrowd.noise.system import SystemCoins
        >>> AddGaussianVector(Fraction(10), (1, 100)).release(np.array([[3, 250], [0, 0]]), SystemCoins()).shape
        (2, 2)
        """
        whole = integers(vectors)
        if whole.ndim != 2 or whole.shape[1] != len(self.widths):
            raise InvalidParameter("noise takes one row per group with one number per coordinate.")
        noise = [coins.gaussian(scale, len(whole)) for scale in self.law.scales]
        return plus(whole, np.stack(noise, axis=1))


@lru_cache(maxsize=64)
def _marginal(scale: Fraction) -> Marginal:
    """Add up e^(−x² / (2 scale²)), by steps far below a wide scale."""
    step = max(1, math.floor(scale / _PARTS))
    nodes = np.arange(0.0, _DEVIATIONS * max(float(scale), 1.0), step)
    middle = nodes + (step - 1.0) / 2.0
    weights = np.exp(-((middle / float(scale)) ** 2) / 2.0) * step
    tails = np.cumsum(weights[::-1])[::-1]
    return Marginal.of(nodes, tails / (2.0 * tails[0] - 1.0))


def _quantile(miss: float) -> float:
    return NormalDist().inv_cdf(1.0 - miss / 2.0)
