"""SystemCoins: exact randomness from the operating system's generator."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from incrowd.core.coins import LARGEST_SCALE, Sample, check_scale
from incrowd.errors import InvalidParameter
from incrowd.noise.chance import rational
from incrowd.noise.cube import cube
from incrowd.noise.integers import gaussian, laplace, outliers
from incrowd.noise.positioned import PositionedSample
from incrowd.noise.toss import below, decay, fresh_words, toss

if TYPE_CHECKING:
    from incrowd.core.coins import Coins

LARGEST_SIZE = 2**46  # more numbers than a computer holds: sizes computed by mistake are refused
LARGEST_WIDTH = 2**40  # times the largest fineness it stays within 2⁶⁰
LARGEST_FINENESS = 2**20  # a power of two, so that a width over it is an exact float
LARGEST_CUBE = 2**40  # a radius of 2¹⁴ scales, beyond which nothing is drawn, stays within 2⁵⁴
MOST_COORDINATES = 64  # a cube's law multiplies so many widths; more columns than anybody sums at once


@dataclass(frozen=True)
class SystemCoins:
    """Coins for releases: every call draws a key from the operating system, uses it and forgets it.

    There is nothing to seed and nothing to remember.  All draws are integers with exactly the stated distribution:
    no floating-point number is involved, and scales are honored as the fractions they are.  Noise ends at ±2^62,
    which at the largest scale allowed (2^48) has a chance below e^(−16000); adding it must not overflow, so add it
    with the primitives of `incrowd.mechanisms`.  The time a draw takes depends on the noise; a service that
    must hide it pads the time of the whole answer.

    >>> coins = SystemCoins()
    >>> bool(coins.bernoulli(Fraction(1), 3).all())
    True
    >>> coins.below(1, 2).tolist()
    [0, 0]
    >>> coins.laplace(Fraction(1, 2), 4).shape
    (4,)
    """

    def bernoulli(self, probability: Fraction, size: int) -> NDArray[np.bool_]:
        """Toss `size` independent coins that come up true with exactly `probability`."""
        if not 0 <= probability <= 1:
            raise InvalidParameter("a probability must lie between 0 and 1.")
        return toss(fresh_words(), rational(probability), _checked(size))

    def below(self, bound: int, size: int) -> NDArray[np.int64]:
        """Draw `size` independent integers, uniform on 0, 1, …, bound − 1."""
        if not 1 <= bound <= 2**63:
            raise InvalidParameter("uniform integers need a bound between 1 and 2^63.")
        return below(fresh_words(), bound, _checked(size))

    def laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        """Draw integer Laplace noise: P[z] proportional to exp(−|z| / scale)."""
        check_scale(scale)
        return laplace(fresh_words(), scale, _checked(size))

    def gaussian(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        """Draw integer Gaussian noise: P[z] proportional to exp(−z² / (2 scale²))."""
        check_scale(scale)
        return gaussian(fresh_words(), scale, _checked(size))

    def cube(self, widths: tuple[int, ...], fine: int, scale: Fraction, size: int) -> NDArray[np.int64]:
        """Draw integer vectors: P[x] proportional to exp(−J / scale), J the largest ⌈fine · |x_j| / width_j⌉."""
        _check_cube(widths, fine, scale)
        return cube(fresh_words(), widths, fine, scale, _checked(size))

    def decay(self, scale: Fraction, steps: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Toss for each number of steps n ≥ 0 a coin that comes up true with exactly exp(−n / scale)."""
        if scale <= 0:
            raise InvalidParameter("the scale of a decay must be positive.")
        if steps.dtype != np.int64 or steps.ndim != 1 or steps.min(initial=0) < 0:
            raise InvalidParameter("a decay needs a list of integers, none below zero.")
        return decay(fresh_words(), scale, steps)

    def outliers(self, scale: Fraction, least: int, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of `size` integer Laplace draws, return where those of at least `least` ≥ 1 lie, and their values."""
        check_scale(scale)
        if not 1 <= least <= 2**61:
            raise InvalidParameter("outliers need a least value between 1 and 2^61.")
        return outliers(fresh_words(), scale, least, _checked(size))

    def sample(self, rate: Fraction) -> Sample:
        """Return a fresh secret sample under keys of its own."""
        return PositionedSample.fresh(rate)


def _check_cube(widths: tuple[int, ...], fine: int, scale: Fraction) -> None:
    if not 1 <= len(widths) <= MOST_COORDINATES or not all(1 <= width <= LARGEST_WIDTH for width in widths):
        raise InvalidParameter("cube noise needs 1 to 64 coordinates, each with a width between 1 and 2^40.")
    if not 1 <= fine <= LARGEST_FINENESS or fine & (fine - 1):
        raise InvalidParameter("the fineness of cube noise must be a power of two, up to 2^20.")
    if not 0 < scale <= LARGEST_CUBE or max(widths) * scale / fine > LARGEST_SCALE:
        raise InvalidParameter("the scale of noise must be positive and at most 2^48; measure in a coarser unit.")


def _checked(size: int) -> int:
    if not 0 <= size <= LARGEST_SIZE:
        raise InvalidParameter("the number of draws must lie between 0 and 2^46.")
    return size


_KEYS = 2**62


def permutation(coins: Coins, size: int) -> NDArray[np.int64]:
    """Return the places of so many things in an order that is uniform over all orders.

    Each place gets an independent uniform key, and places are sorted by their keys.  Keys that are all different come
    in every order alike; should two be equal, all are drawn again.

    >>> from incrowd.noise.system import SystemCoins
    >>> sorted(permutation(SystemCoins(), 4).tolist())
    [0, 1, 2, 3]
    """
    while True:
        keys = coins.below(_KEYS, size)
        order = np.argsort(keys)
        if np.all(np.diff(keys[order]) > 0):
            return order.astype(np.int64)
