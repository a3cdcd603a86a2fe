"""Noise on vectors: all sums of a row's bounded numbers at once, Gaussian or uniform in cubes."""

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
from incrowd.core.loss import Laplace, Loss, Pure, ZeroConcentrated
from incrowd.core.rounding import Number, float_up
from incrowd.core.terms import Theorem
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.numbers import counting_number, integers, plus, positive
from incrowd.noise.marginal import Marginal
from incrowd.noise.tails import CubeLaw, gaussian_reach

_DIGITS = 10**9  # scales have nine decimals, rounded up until the cost is met exactly
_PARTS = 64  # steps per scale of a marginal law: for intervals, which are approximate
_DEVIATIONS = 36  # e^(−648) < 10⁻²⁸¹: as far as a tail can be written as a float


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
        miss_each = -math.expm1(math.log1p(-miss) / len(self.scales))
        return tuple(self.within(place, miss_each) for place in range(len(self.scales)))

    def marginal(self, place: int) -> Marginal:
        """Return the law of one coordinate.

        >>> GaussianLaw((Fraction(1),)).marginal(0).above(1).round(4).tolist()
        0.3005
        """
        return _marginal(self.scales[place])

    def conditional(self, place: int, reach: int, miss: float) -> tuple[int, ...]:
        """Return half-widths of a box that all other coordinates leave with chance about `miss`, given one of them."""
        del place, reach  # coordinates are independent
        return self.together(miss)


@dataclass(frozen=True)
class AddGaussianVector:
    """Adds to coordinate j of each of a list of integer vectors Gaussian noise of scale `scale` · width_j.

    Guarantee: ρ-zero-concentrated differential privacy with ρ = d · rows² / (2 scale²) for d coordinates.
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
    because: ClassVar[Theorem] = Theorem(
        "gaussian-noise-vector", "Canonne, Kamath & Steinke 2020, Theorem 4 (integer Gaussian noise)"
    )

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
        return ZeroConcentrated(len(self.widths) * Fraction(self.rows) ** 2 / (2 * self.scale**2))

    @property
    def law(self) -> GaussianLaw:
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


_STEPS = 16  # steps of noise per factor of e: at most 1/16 more noise than without steps; any number is sound
_FINEST = 2**20  # as `LARGEST_FINENESS` of the sampler


@dataclass(frozen=True)
class AddCube:
    """Adds to each of a list of integer vectors noise x whose chance falls with its largest coordinate.

    P[x] ∝ e^(−epsilon · J(x) / (rows · fine)) with J(x) = ⌈fine · ‖x‖⌉ and ‖x‖ = max_j |x_j| / width_j.

    Guarantee: epsilon-differential privacy, for all vectors together.
    Assumes: one unit of privacy has at most `rows` rows; a row, added or removed, moves the vector of one group, and
    its coordinate j by at most width_j; the groups are public.
    Source: Hardt and Talwar 2010 (the K-norm mechanism), Steinke and Ullman 2016 (for the largest coordinate).

    Proof.  If r of the unit's rows lie in a group, its vector moves by some v with ‖v‖ ≤ r.  Then J(x + v) is at most
    ⌈fine · ‖x‖ + fine · r⌉ = J(x) + fine · r, because fine · r is whole: rounding up costs nothing.  So the chance of
    each outcome changes by a factor of at most e^(epsilon · r / rows), and the groups' r add up to `rows` at most.  ∎

    With d coordinates their standard deviations are about width_j · rows / epsilon · √((d + 1)(d + 2) / 3); splitting
    epsilon among d Laplace noises gives width_j · rows / epsilon · d √2, which is more from d = 2 on.  With one
    coordinate this is integer Laplace noise.

    >>> AddCube(Fraction(1), (1, 100)).loss
    Pure(epsilon=Fraction(1, 1))
    """

    epsilon: Fraction
    widths: tuple[int, ...]
    rows: int = 1
    because: ClassVar[Theorem] = Theorem(
        "noise-by-largest-coordinate",
        "Hardt & Talwar 2010 and Steinke & Ullman 2016 (noise by the largest coordinate), on integers",
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))
        counting_number(self.rows, "rows")
        if not self.widths:
            raise InvalidParameter("cube noise needs at least one coordinate.")
        for width in self.widths:
            counting_number(width, "a width")

    @property
    def loss(self) -> Loss:
        if self.widths == (1,) and self.rows == 1:
            return Laplace(1 / self.epsilon)
        return Pure(self.epsilon)

    @property
    def fine(self) -> int:
        """How many steps of noise one row is: the least power of two that gives 16 steps a factor of e, or more."""
        steps = -(-_STEPS * self.epsilon.numerator // (self.epsilon.denominator * self.rows))
        return min(_FINEST, 1 << max(0, steps - 1).bit_length())

    @property
    def law(self) -> CubeLaw:
        if len(self.widths) == 1:
            return CubeLaw((1,), 1, self.widths[0] * self.rows / self.epsilon)
        return CubeLaw(self.widths, self.fine, self.fine * self.rows / self.epsilon)

    def release(self, vectors: NDArray[Any], coins: Coins) -> NDArray[np.int64]:
        """Return the noisy vectors; each is a row.

        >>> from incrowd.noise.system import SystemCoins
        >>> AddCube(Fraction(1), (1, 100)).release(np.array([[3, 250], [0, 0]]), SystemCoins()).shape
        (2, 2)
        """
        whole = integers(vectors)
        if whole.ndim != 2 or whole.shape[1] != len(self.widths):
            raise InvalidParameter("cube noise takes one row per group with one number per coordinate.")
        law = self.law
        if len(self.widths) == 1:
            return plus(whole, coins.laplace(law.scale, whole.size))
        return plus(whole, coins.cube(law.widths, law.fine, law.scale, len(whole)))
